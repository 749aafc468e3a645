"""What the windows of hours hold, from what each of these hours has counted: matrices, and the items that
were kept of it."""

from collections.abc import Iterable, Mapping, Sequence
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
from transom.engine.hours import hour_number, quoted
from transom.features.frequency import tables_cells as cells
from transom.features.frequency import tables_tick_matrices as tick_matrices
from transom.features.frequency.algorithm.splitter_reference import UNIT
from transom.features.frequency.algorithm.tick_matrices import shares
from transom.features.frequency.algorithm.top_items import NO_ITEMS, HourlyTopItems, WindowCandidates, ranked
from transom.features.frequency.algorithm.window_sketch import WindowSketch
from transom.features.frequency.cell_values import VALUES, cell_values
from transom.features.frequency.resolve import FrequencyBlock
from transom.features.items.bytes import bytes_of, order_keys
from transom.storage.store import PinnedTables

Floats = npt.NDArray[np.float64]
UNBOUNDED = ("simple", "proportional")
"""Variants of whose estimates nobody knows by how much they are wrong."""
HEAVY = "heavy"
"""The row of an item that an earlier hour has told to be heavy."""


def rows_of_windows(
    pins: PinnedTables, block: FrequencyBlock, read: Iterable[datetime], hours: Iterable[datetime]
) -> DataFrame:
    """All that the windows of some hours are made of, with the number of the hour of each row.

    Args:
        read: the hours of the windows.
        hours: those at whose ends they end.
    """
    of_block = F.col("block") == block.name
    # What a chain holds stands in its own table.
    wanted = [tick_matrices.ITEM, tick_matrices.OTHERS, *([] if block.chained else [tick_matrices.WHOLE])]
    rows = pins.read(tick_matrices.TABLE, read).where(of_block & F.col("row_kind").isin(wanted))
    rows = rows.select(
        hour_number(), "row_kind", "records", F.col("cells").alias("counters"), *quoted(block.item)
    )
    if not block.chained:
        return rows
    held = cell_values(pins.read(cells.TABLE, hours).where(of_block), block)
    return rows.unionByName(held, allowMissingColumns=True)


@dataclass(frozen=True)
class CellState:
    """What cells hold at an hour's end, a number for each.

    Attributes:
        records: of the window; of vanilla all.
        counters: in the parts of a record in which the variant counts.
        least, most: how many records of the window fall into each cell, at least and at most.
    """

    records: int
    counters: Int64s
    low: Int64s
    high: Int64s

    @classmethod
    def nothing(cls, cells: int) -> "CellState":
        """Cells without a record."""
        return cls(0, *(np.zeros(cells, dtype=np.int64) for _ in range(3)))


@dataclass(frozen=True)
class Window:
    """What is known of the window that ends with an hour.

    Attributes:
        seen: its items.
        estimate: of each, by the sketch, within its bounds.
        records: of the window.
        margin: by how much the estimate of each is too large at most, but with probability delta; None where
            nobody knows.
    """

    seen: WindowCandidates
    estimate: Int64s
    records: int
    margin: Floats | None

    def ranked(self) -> "Window":
        """The same of items that may be there, the most frequent first."""
        order = ranked(self.estimate, self.seen.low, self.seen.item)
        order = order[self.seen.high[order] > 0]
        seen = replace(
            self.seen, item=self.seen.item[order], low=self.seen.low[order], high=self.seen.high[order]
        )
        margin = None if self.margin is None else self.margin[order]
        return replace(self, seen=seen, estimate=self.estimate[order], margin=margin)


@dataclass(frozen=True)
class Hours:
    """What hours have counted and left, and the items of which there is a row.

    Attributes:
        of_item: the columns of each item, in the order of `order_keys`.
        watched: which of them are watched.
        hours, sums: numbers of hours in order, and the sums of their matrices up to each: `(hours + 1, rows,
            columns)`, and of their records.
        cell_states: of chained variants: what cells hold at the end of an hour.
        heavy: since when which items were heavy, by hours before the wanted ones.
    """

    block: FrequencyBlock
    of_item: pa.Table
    keys: Sequence[bytes]
    watched: Int64s
    kept: HourlyTopItems
    hours: Int64s
    sums: Int64s
    records: Int64s
    cell_states: Mapping[int, CellState]
    heavy: Mapping[int, dict[int, int]]

    @classmethod
    def of(cls, block: FrequencyBlock, table: pa.Table) -> "Hours":
        """What is in some rows."""
        shape = block.shape
        of_items = table.filter(pc.is_in(table["row_kind"], pa.array([tick_matrices.ITEM, HEAVY])))
        columns = of_items.select(list(block.item))
        code, firsts = encode_keys(columns, list(block.item))
        keys = bytes_of(columns.take(pa.array(firsts)))
        order = sorted(range(len(keys)), key=order_keys(columns.take(pa.array(firsts))).__getitem__)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        code, hour = place[code], int64s(of_items["hour"])
        firsts = firsts[order]
        is_heavy = pc.equal(of_items["row_kind"], HEAVY).to_numpy(zero_copy_only=False)
        heavy: dict[int, dict[int, int]] = {}
        if is_heavy.any():
            since = int64s(of_items["since"])
            for row in np.flatnonzero(is_heavy).tolist():
                heavy.setdefault(int(hour[row]), {})[int(code[row])] = int(since[row])
        rest = _sorted(table, tick_matrices.OTHERS)
        counted = np.lexsort([code[~is_heavy], hour[~is_heavy]])
        kept = HourlyTopItems(
            code[~is_heavy][counted], hour[~is_heavy][counted],
            int64s(of_items["records"])[~is_heavy][counted], int64s(rest["hour"]), int64s(rest["records"]),
        )  # fmt: skip
        matrices = _sorted(table, tick_matrices.WHOLE)
        flat = matrices["counters"].combine_chunks().flatten().to_numpy()
        sums = np.zeros((matrices.num_rows + 1, shape.rows, shape.columns), dtype=np.int64)
        np.cumsum(flat.reshape(-1, shape.rows, shape.columns), axis=0, out=sums[1:])
        records = np.concatenate([[0], np.cumsum(int64s(matrices["records"]))])
        of_item, keys = columns.take(pa.array(firsts)), [keys[n] for n in order]
        watched = _watched(block, of_item.schema, keys)
        return cls(
            block, of_item, keys, watched, kept, int64s(matrices["hour"]), sums, records,
            _cell_states(block, table), heavy,
        )  # fmt: skip

    def keys_of(self, item: Int64s) -> list[bytes]:
        """The bytes of some items."""
        return [self.keys[one] for one in item.tolist()]

    def window(self, hour: int, others: Int64s = NO_ITEMS) -> Window:
        """What is known of the window that ends with an hour.

        Args:
            others: items that are asked for, whether or not an hour has kept them.
        """
        block = self.block
        first = max(hour - block.hours + 1, (block.start or 0) // HOUR_LENGTH)
        seen = self.kept.within(first, hour, self.watched, others)
        keys, sketch = self.keys_of(seen.item), self.sketch(hour)
        estimate = sketch.estimates(keys)
        margin = (
            None if block.variant in UNBOUNDED else np.full(len(keys), block.shape.epsilon * sketch.records)
        )
        if block.variant == "perfect":
            seen = replace(seen, high=np.minimum(seen.high, estimate))
        elif block.variant == "vanilla":
            # Of what was before the window nothing is known but what the sketch has counted.
            seen = replace(seen, high=estimate, unseen=sketch.records)
        elif margin is not None:
            held = self._held(hour)
            least, most = (
                self._counting(hour, sketch.records, some).estimates(keys) for some in (held.low, held.high)
            )
            seen = replace(seen, high=np.minimum(seen.high, most))
            # What the cells of the window hold lies between these, and an estimate of that beyond the truth
            # by the margin of a sketch that forgets nothing too early.
            margin = np.minimum(margin + np.maximum(estimate - least, 0), sketch.records)
        return Window(seen, np.clip(estimate, seen.low, seen.high), sketch.records, margin)

    def sketch(self, hour: int) -> WindowSketch:
        """What the matrix of the window holds that ends with an hour."""
        block = self.block
        if not block.chained:
            matrix = np.zeros((block.shape.rows, block.shape.columns), dtype=np.int64)
            for share in shares(block.variant, block.hours, hour):
                matrix += share.parts * self._between(self.sums, share.first, share.last)
            records = int(self._between(self.records, hour - block.hours + 1, hour))
            return self._counting(hour, records, matrix, block.hours)
        held = self._held(hour)
        return self._counting(hour, held.records, held.counters, UNIT if block.variant == "splitter" else 1)

    def _held(self, hour: int) -> CellState:
        return self.cell_states.get(hour) or CellState.nothing(self.block.shape.cells)

    def totals_off(self, hour: int) -> int:
        """How many rows of the matrix of the window do not add up to the records that it is to hold; of
        splitter, cannot."""
        sketch = self.sketch(hour)
        if not self.block.chained:
            due = sum(
                share.parts * int(self._between(self.records, share.first, share.last))
                for share in shares(self.block.variant, self.block.hours, hour)
            )
            return int(np.count_nonzero(sketch.counts.sum(axis=1) != due))
        low = high = sketch.counts
        if self.block.variant == "splitter":
            held = self._held(hour)
            low, high = (some.reshape(sketch.counts.shape) for some in (held.low, held.high))
        off = (low.sum(axis=1) > sketch.records) | (high.sum(axis=1) < sketch.records)
        return int(np.count_nonzero(off))

    def _counting(self, hour: int, records: int, flat: Int64s, parts: int = 1) -> WindowSketch:
        block = self.block
        counts = flat.reshape(block.shape.rows, block.shape.columns)
        now = (hour + 1) * block.ticks - 1
        return WindowSketch(block.shape, block.variant, block.tick, block.steps, now, records, parts, counts)

    def _between(self, sums: Any, first: int, last: int) -> Any:
        low, behind = np.searchsorted(self.hours, [first, last + 1])
        return sums[behind] - sums[low]


def _sorted(table: pa.Table, kind: str) -> pa.Table:
    return table.filter(pc.equal(table["row_kind"], kind)).sort_by("hour").combine_chunks()


def _cell_states(block: FrequencyBlock, table: pa.Table) -> dict[int, CellState]:
    """What cells hold, by hours."""
    if not block.chained:
        return {}
    rows = table.filter(pc.is_valid(table["number"])).sort_by(
        [("hour", "ascending"), ("number", "ascending")]
    )
    of_cells = VALUES if block.variant == "splitter" else ("counters",) * len(VALUES)
    found = {}
    for hour in np.unique(int64s(rows["hour"])).tolist():
        here = rows.filter(pc.equal(rows["hour"], hour)).combine_chunks()
        flat = (here[name].combine_chunks().flatten().to_numpy() for name in of_cells)
        found[hour] = CellState(here["records"][0].as_py(), *flat)
    return found


def _watched(block: FrequencyBlock, schema: pa.Schema, keys: Sequence[bytes]) -> Int64s:
    """Which of some items are watched, which are of the schema's columns."""
    if not block.watched:
        return np.zeros(0, dtype=np.int64)
    lists = zip(*block.watched, strict=True)
    wanted = [pa.array(values, field.type) for values, field in zip(lists, schema, strict=True)]
    watched = {*bytes_of(pa.Table.from_arrays(wanted, names=schema.names))}
    return np.array([place for place, key in enumerate(keys) if key in watched], dtype=np.int64)
