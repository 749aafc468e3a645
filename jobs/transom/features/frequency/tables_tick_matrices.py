"""The table `tick_matrices`: a Count-Min matrix for each tick of an hour, and its most frequent items.

Spark counts each item by tick. Each task hashes its items once and adds their counts to a matrix for each
tick, as a node of a distributed sketch. Then the matrices of all tasks are added.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from transom.arrays.arrow import build_batches, by_value, concat_batches, encode_keys, int64s, lists
from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.engine.hours import quoted, read_events
from transom.features.frequency.algorithm.row_hashes import columns_of
from transom.features.frequency.algorithm.tick_matrices import matrices_of
from transom.features.frequency.algorithm.top_items import top_k
from transom.features.frequency.built_in_checks import SHORT
from transom.features.frequency.check_metrics import MISCOUNTED
from transom.features.frequency.resolve import FrequencyBlock
from transom.features.items.bytes import bytes_of, order_keys
from transom.features.items.columns import HOUR_NUMBER, columns_by_name, count_items, flags, without_long
from transom.features.items.tables import item_schema
from transom.ledger.stage import BlockTask, StepRequest
from transom.ledger.task_counters import TaskCounters
from transom.storage.session import to_arrow

TABLE = "tick_matrices"
WHOLE, TICK, ITEM, OTHERS = "hour", "tick", "item", "others"
"""Kinds of rows: the matrix of the hour, the matrix of a tick, a kept item, and all other items."""


def tick_matrices_of(request: StepRequest, block: FrequencyBlock, targets: Sequence[datetime]) -> BlockTask:
    """Return the matrices and items of each target hour of a block."""
    events = read_events(request.pins, targets, {"event_time", *block.item}, block.where)
    counts = count_by_tick(events, block)
    if request.pins.are_few:
        return task_of_counts(block, to_arrow(counts))
    schema = partial_schema(block)
    matrices = partial(partial_matrices, block, schema)
    partials = counts.repartition(*quoted(block.item)).mapInArrow(matrices, from_arrow_schema(schema))
    partials = partials.repartition(HOUR_NUMBER).sortWithinPartitions(HOUR_NUMBER)
    merged = MergedMatrices(block, item_schema(TABLE, block.item))
    return BlockTask(block.name, partials, compute_counting=merged)


def task_of_counts(block: FrequencyBlock, counts: pa.Table) -> BlockTask:
    """Return the task of a block whose counts are all on the driver.

    It computes the matrices hour by hour: those of all hours can need a thousand times the memory of the
    counts.
    """
    merged = MergedMatrices(block, item_schema(TABLE, block.item))
    matrices = partial(partial_matrices, block, partial_schema(block))
    return BlockTask(
        block.name,
        counts.sort_by(HOUR_NUMBER),
        compute_counting=lambda batches, tally: merged(matrices(batches), tally),
    )


def count_by_tick(events: DataFrame, block: FrequencyBlock) -> DataFrame:
    """Return the counts of each item in each tick, as `count_items`. Ticks are numbered within the hour."""
    tick = F.expr(f"(unix_micros(event_time) - unix_micros(hour)) div {block.tick}L").alias("tick")
    return count_items(events, block.item, block.where, block.watched, tick)


def partial_schema(block: FrequencyBlock) -> pa.Schema:
    """Return the schema of `partial_matrices`."""
    kept = [field for field in item_schema(TABLE, block.item) if field.name not in ("hour", "tick")]
    # A key of the shuffle cannot be null, but columns of items are null in rows of other kinds.
    numbers = [(HOUR_NUMBER, pa.int64()), ("place", pa.int64())]
    return pa.schema([*kept, *numbers, ("watched", pa.bool_()), ("long", pa.bool_())])


def partial_matrices(
    block: FrequencyBlock, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the partial rows of each hour, from all counts of a task's items.

    These are a matrix for each tick, the most frequent items, and the largest count of the others.
    """
    table = concat_batches(batches)
    if table is None:
        return
    is_long = flags(table["long"])
    if is_long.any():
        # `MergedMatrices` counts them.
        long = table.filter(pa.array(is_long))
        yield from build_batches(long.num_rows, columns_by_name(long), schema)
        table = table.filter(pa.array(~is_long)).combine_chunks()
    if not table.num_rows:
        return
    item, firsts = encode_keys(table, list(block.item))
    items, shape = table.select(list(block.item)).take(pa.array(firsts)), block.shape
    keys, watched = bytes_of(items), flags(table["watched"])[firsts]
    columns = columns_of(keys, shape)
    hours, tick, records = (int64s(table[name]) for name in (HOUR_NUMBER, "tick", "records"))
    order = np.argsort(hours, kind="stable")
    edges = np.flatnonzero(np.diff(hours[order], prepend=-1, append=-1))
    for begin, end in pairwise(edges):
        rows = order[begin:end]
        hour, counts = int(hours[rows[0]]), records[rows]
        matrices = matrices_of(shape, columns[:, item[rows]], counts, tick[rows], block.ticks)
        of_ticks, of_items = np.zeros(block.ticks, dtype=np.int64), np.zeros(len(keys), dtype=np.int64)
        np.add.at(of_ticks, tick[rows], counts)
        np.add.at(of_items, item[rows], counts)
        for place in np.flatnonzero(of_ticks).tolist():
            cells = lists(matrices[place].reshape(-1), 1)
            row = {"row_kind": TICK, "place": place, "records": int(of_ticks[place]), "cells": cells}
            yield from build_batches(1, row | {HOUR_NUMBER: hour}, schema)
        codes = np.flatnonzero(of_items)
        of_hour = items.take(pa.array(codes)), of_items[codes], [keys[code] for code in codes.tolist()]
        for kind in _kept(block, *of_hour, watched[codes]):
            yield from build_batches(len(kind["records"]), kind | {HOUR_NUMBER: hour}, schema)


@dataclass(frozen=True)
class MergedMatrices:
    """Adds up the partial matrices of hours."""

    block: FrequencyBlock
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch], tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        """Yield the rows of hours, from all their partial rows, sorted by hour."""
        for rows in by_value(batches, HOUR_NUMBER):
            hour = rows[HOUR_NUMBER][0].as_py()
            rows = without_long(rows, self.block.item, tally, SHORT)
            if rows.num_rows:
                yield from self._matrices(hour, _of_kind(rows, TICK), tally)
                yield from self._items(hour, _of_kind(rows, ITEM), _of_kind(rows, OTHERS))

    def _matrices(self, hour: int, rows: pa.Table, tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        shape = self.block.shape
        partials = rows["cells"].combine_chunks().flatten().to_numpy().reshape(-1, shape.rows, shape.columns)
        ticks, place = np.unique(int64s(rows["place"]), return_inverse=True)
        cells = np.zeros((len(ticks), shape.rows, shape.columns), dtype=np.int64)
        np.add.at(cells, place, partials)
        records = np.zeros(len(ticks), dtype=np.int64)
        np.add.at(records, place, int64s(rows["records"]))
        wrong = (cells.sum(axis=2) != records[:, None]).any(axis=1)
        tally.add(MISCOUNTED, [hour], [int(np.count_nonzero(wrong))])
        start, matrices = hour * HOUR_LENGTH + ticks * self.block.tick, lists(cells.reshape(-1), len(ticks))
        of_ticks = {"row_kind": TICK, "tick": start, "records": records, "cells": matrices}
        yield from self._batches(hour, len(ticks), of_ticks)
        matrix = lists(cells.sum(axis=0).reshape(-1), 1)
        whole = {"row_kind": WHOLE, "records": int(records.sum()), "cells": matrix}
        yield from self._batches(hour, 1, whole)

    def _items(self, hour: int, rows: pa.Table, others: pa.Table) -> Iterator[pa.RecordBatch]:
        items = rows.select(list(self.block.item))
        kept, rest = _kept(
            self.block, items, int64s(rows["records"]), order_keys(items), flags(rows["watched"])
        )
        yield from self._batches(hour, len(kept["records"]), kept)
        rest["records"] = rest["records"].clip(int64s(others["records"]).max(initial=0))
        rest["other_item_count"] += int64s(others["other_item_count"]).sum()
        yield from self._batches(hour, 1, rest)

    def _batches(self, hour: int, count: int, columns: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        return build_batches(count, columns | {"hour": hour * HOUR_LENGTH}, self.schema)


def _of_kind(rows: pa.Table, kind: str) -> pa.Table:
    return rows.filter(pc.fill_null(pc.equal(rows["row_kind"], kind), False)).combine_chunks()


def _kept(
    block: FrequencyBlock, items: pa.Table, records: Int64s, keys: Sequence[Any], watched: Bools
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the rows of the items that an hour keeps, watched ones and the top others, and the row of the
    rest."""
    others = np.flatnonzero(~watched)
    top, left_out = top_k(records[others], [keys[place] for place in others.tolist()], block.capacity)
    places = np.concatenate([np.flatnonzero(watched), others[top]])
    kept = {"row_kind": ITEM, "records": records[places], "watched": watched[places]}
    rest = {"records": np.array([left_out]), "other_item_count": np.array([len(items) - len(places)])}
    return columns_by_name(items.take(pa.array(places))) | kept, {"row_kind": OTHERS} | rest
