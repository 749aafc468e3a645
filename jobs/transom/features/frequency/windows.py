"""The window that ends with an hour, from the matrices and the kept items of its hours."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import encode_keys, int64s
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.features.frequency import tables_cells as cells
from transom.features.frequency import tables_tick_matrices as tick_matrices
from transom.features.frequency.algorithm.params import UNIT
from transom.features.frequency.algorithm.tick_matrices import shares
from transom.features.frequency.algorithm.top_items import NO_ITEMS, HourlyTopItems, WindowCandidates
from transom.features.frequency.algorithm.window_sketch import WindowSketch
from transom.features.frequency.resolve import FrequencyBlock
from transom.features.items.bytes import bytes_of, order_keys
from transom.storage.block_rows import BlockRows, select, select_frame
from transom.storage.store import PinnedTables

Floats = npt.NDArray[np.float64]
UNBOUNDED = ("simple", "proportional")
"""Variants whose estimates have no error bound."""
HEAVY = "heavy"
"""The kind of a row with an item that was heavy in an earlier hour."""


def rows_of_windows(
    pins: PinnedTables,
    block: FrequencyBlock,
    read: Collection[datetime],
    hours: Iterable[datetime],
    more: Sequence[BlockRows] = (),
) -> pa.Table | DataFrame:
    """Return all rows of the windows that end with some hours.

    Args:
        pins: the tables.
        block: the block.
        read: the hours of the windows.
        hours: the last hour of each window.
        more: further rows.
    """
    kinds = [tick_matrices.ITEM, tick_matrices.OTHERS, *([] if block.chained else [tick_matrices.WHOLE])]
    columns = {of: of for of in ("hour", "row_kind", "records", *block.item)} | {"counters": "cells"}
    rows = BlockRows(tick_matrices.TABLE, block.name, read, columns, only={"row_kind": kinds})
    if not block.chained:
        return select(pins, [rows, *more])
    of_block = F.col("block") == block.name
    values = cells.cell_values(pins.read(cells.TABLE, hours).where(of_block), block)
    return select_frame(pins, [rows, *more]).unionByName(values, allowMissingColumns=True)


def hour_numbers(rows: pa.Table) -> Int64s:
    """Return the number of each row's hour since 1970."""
    return int64s(rows["hour"]) // HOUR_LENGTH


@dataclass(frozen=True)
class CellState:
    """The cells of a window, flat.

    Attributes:
        records: the records of the window; with `vanilla`, all records.
        counters: the value of each cell, in the unit of the variant.
        low: the lower bound of each cell's records.
        high: the upper bound of each cell's records.
    """

    records: int
    counters: Int64s
    low: Int64s
    high: Int64s


@dataclass(frozen=True)
class Window(WindowCandidates):
    """A window and its candidates.

    Attributes:
        estimate: the sketch's estimate of each candidate, limited to its bounds.
        records: the records of the window.
        margin: the estimate of each is too large by more than this with probability at most `delta`; None if
            there is no such bound.
    """

    estimate: Int64s
    records: int
    margin: Floats | None

    def ranked(self) -> "Window":
        """Return the window with the candidates that may be in it, by rank.

        The larger estimate comes first, then the larger `low`, then the smaller code.
        """
        order = np.lexsort([self.item, -self.low, -self.estimate])
        order = order[self.high[order] > 0]
        columns = ("item", "low", "high", "estimate", *([] if self.margin is None else ["margin"]))
        return replace(self, **{name: getattr(self, name)[order] for name in columns})


class Hours:
    """The hours that windows are computed from, and their items.

    Args:
        block: the block.
        table: the rows of `rows_of_windows`, and rows of the kind `HEAVY`.

    Attributes:
        items: the columns of each item, in the order of `order_keys`.
        keys: the bytes of each item.
        watched: the codes of the watched items.
        top_items: the items that hours have kept.
        hours: the numbers of hours with a matrix, ascending.
        sums: the sum of the matrices before each hour, and of all, shape (hours + 1, rows, columns).
        records: the sums of their records, shape (hours + 1,).
        cell_states: for chained variants, the cells at the end of hours, by their numbers.
        heavy: since when each heavy item is heavy, by the number of an hour before a run of target hours.
    """

    def __init__(self, block: FrequencyBlock, table: pa.Table) -> None:
        rows = table.filter(pc.is_in(table["row_kind"], pa.array([tick_matrices.ITEM, HEAVY])))
        columns = rows.select(list(block.item))
        code, firsts = encode_keys(columns, list(block.item))
        items = columns.take(pa.array(firsts))
        order = sorted(range(len(firsts)), key=order_keys(items).__getitem__)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        code, hour = place[code], hour_numbers(rows)
        self.block, self.items = block, items.take(pa.array(order, pa.int64()))
        self.keys = bytes_of(self.items)
        is_heavy = pc.equal(rows["row_kind"], HEAVY).to_numpy(zero_copy_only=False)
        self.heavy: dict[int | None, dict[int, int]] = {}
        for row in np.flatnonzero(is_heavy).tolist():
            since = self.heavy.setdefault(int(hour[row]), {})
            since[int(code[row])] = rows["since"][row].value
        others = _sorted(table, tick_matrices.OTHERS)
        counted = np.lexsort([code, hour])
        counted = counted[~is_heavy[counted]]
        self.top_items = HourlyTopItems(
            code[counted], hour[counted], int64s(rows["records"])[counted],
            hour_numbers(others), int64s(others["records"]),
        )  # fmt: skip
        matrices = _sorted(table, tick_matrices.WHOLE)
        self.hours = hour_numbers(matrices)
        self.sums = np.zeros((len(self.hours) + 1, block.shape.rows, block.shape.columns), dtype=np.int64)
        flat = matrices["counters"].combine_chunks().flatten().to_numpy()
        np.cumsum(flat.reshape(-1, *self.sums.shape[1:]), axis=0, out=self.sums[1:])
        self.records = np.append(0, np.cumsum(int64s(matrices["records"])))
        listed = [dict(zip(block.item, values, strict=True)) for values in block.watched]
        is_watched = {*bytes_of(pa.Table.from_pylist(listed, items.schema))}
        self.watched = np.array([n for n, key in enumerate(self.keys) if key in is_watched], dtype=np.int64)
        self.cell_states = _cell_states(block, table)

    def keys_of(self, item: Int64s) -> list[bytes]:
        """Return the bytes of some items."""
        return [self.keys[code] for code in item.tolist()]

    def window(self, hour: int, others: Int64s = NO_ITEMS) -> Window:
        """Return the window that ends with an hour.

        Args:
            hour: the number of the last hour.
            others: further candidates, kept by an hour or not.
        """
        block = self.block
        first = max(hour - block.hours + 1, block.first_hour)
        seen = self.top_items.within(first, hour, self.watched, others)
        keys, sketch = self.keys_of(seen.item), self.sketch(hour)
        estimate, margin = sketch.estimates(keys), None
        if block.variant not in UNBOUNDED:
            margin = np.full(len(keys), block.shape.epsilon * sketch.records)
        if block.variant == "perfect":
            seen = replace(seen, high=np.minimum(seen.high, estimate))
        elif block.variant == "vanilla":
            # Only the sketch knows the records before the window.
            seen = replace(seen, high=estimate, unseen=sketch.records)
        elif margin is not None:
            state = self._cell_state(hour)
            lower, upper = (
                self._sketch(hour, state.records, bound).estimates(keys) for bound in (state.low, state.high)
            )
            seen = replace(seen, high=np.minimum(seen.high, upper))
            # `lower` exceeds the count by at most the margin of a sketch that forgets nothing too early.
            margin = np.minimum(margin + np.maximum(estimate - lower, 0), sketch.records)
        estimate = np.clip(estimate, seen.low, seen.high)
        return Window(**vars(seen), estimate=estimate, records=sketch.records, margin=margin)

    def sketch(self, hour: int) -> WindowSketch:
        """Return the sketch of the window that ends with an hour."""
        block = self.block
        if block.chained:
            state = self._cell_state(hour)
            scale = UNIT if block.variant == "splitter" else 1
            return self._sketch(hour, state.records, state.counters, scale)
        records = int(self._between(self.records, hour - block.hours + 1, hour))
        return self._sketch(hour, records, self._shared(self.sums, hour), block.hours)

    def totals_off(self, hour: int) -> int:
        """Return the number of rows of a window's matrix whose sum differs from the window's records.

        With `splitter`, these are the rows whose bounds exclude the records.
        """
        sketch = self.sketch(hour)
        low = high = sketch.counts
        records: Any = sketch.records
        if not self.block.chained:
            records = self._shared(self.records, hour)
        elif self.block.variant == "splitter":
            state = self._cell_state(hour)
            low, high = state.low.reshape(low.shape), state.high.reshape(low.shape)
        return int(np.count_nonzero((low.sum(axis=1) > records) | (high.sum(axis=1) < records)))

    def _cell_state(self, hour: int) -> CellState:
        nothing = np.zeros(self.block.shape.cells, dtype=np.int64)
        return self.cell_states.get(hour) or CellState(0, nothing, nothing, nothing)

    def _sketch(self, hour: int, records: int, flat: Int64s, scale: int = 1) -> WindowSketch:
        block = self.block
        counts = flat.reshape(block.shape.rows, block.shape.columns)
        now = (hour + 1) * block.ticks - 1
        return WindowSketch(block.shape, block.variant, block.tick, block.steps, now, records, scale, counts)

    def _shared(self, sums: Any, hour: int) -> Any:
        """Return the window's sum over hours, in units of `1 / hours`, for the hours of the window."""
        parts = shares(self.block.variant, self.block.hours, hour)
        return sum(share * self._between(sums, first, last) for first, last, share in parts)

    def _between(self, sums: Any, first: int, last: int) -> Any:
        begin, end = np.searchsorted(self.hours, [first, last + 1])
        return sums[end] - sums[begin]


def _sorted(table: pa.Table, kind: str) -> pa.Table:
    return table.filter(pc.equal(table["row_kind"], kind)).sort_by("hour").combine_chunks()


def _cell_states(block: FrequencyBlock, table: pa.Table) -> dict[int, CellState]:
    """Return the cells of chained variants, by the numbers of their hours."""
    if not block.chained:
        return {}
    rows = table.filter(pc.is_valid(table["number"]))
    rows = rows.sort_by([("hour", "ascending"), ("number", "ascending")])
    states = {}
    hours = hour_numbers(rows)
    for hour in np.unique(hours).tolist():
        of_hour = rows.filter(pa.array(hours == hour)).combine_chunks()
        flat = (of_hour[name].combine_chunks().flatten().to_numpy() for name in cells.VALUES)
        states[hour] = CellState(of_hour["records"][0].as_py(), *flat)
    return states
