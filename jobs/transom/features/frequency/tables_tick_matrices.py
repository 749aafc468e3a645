"""What each hour's records come to: a Count-Min matrix for each of its ticks, and its most frequent items.

Spark counts each item by tick; tasks, each of which has some of the items, hash each of these once and add
what they have seen into a matrix a tick: they are the nodes of a distributed sketch. The matrices of all of
them are added, hour by hour."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import build_batches, by_value, concat_batches, encode_keys, int64s, lists
from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.engine.hours import hour_number, quoted
from transom.features.frequency.algorithm.row_hash_arrays import columns_of
from transom.features.frequency.algorithm.tick_matrices import matrices_of
from transom.features.frequency.algorithm.top_items import top_k_and_watched
from transom.features.frequency.check_list import SHORT
from transom.features.frequency.checks import MISCOUNTED
from transom.features.frequency.resolve import FrequencyBlock
from transom.features.items.bytes import bytes_of, order_keys
from transom.features.items.columns import is_among, item_columns, without_long
from transom.features.items.tables import item_table
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.ledger.task_counters import TaskCounters
from transom.storage.tables import ARROW_TYPES

TABLE = "tick_matrices"
WHOLE, TICK, ITEM, OTHERS = "hour", "tick", "item", "others"
"""Kinds of rows: the matrix of the whole hour, that of a tick, an item, and what is said of all others."""
AT = "__hour"


def tick_matrices_of(request: StepRequest, blocks: Mapping[str, FrequencyBlock]) -> StepResult:
    """What every block's target hours come to."""
    shares = []
    for name, targets in request.targets.items():
        block = blocks[name]
        schema = schema_of(block)
        rows = counts(request.pins.read("events", targets), block).repartition(*quoted(block.item))
        # Columns of items may be null in rows of none; the key of an hour is a number in between.
        between = ", ".join(f"`{field.name}` {_sql_type(field.type)}" for field in _between(schema))
        parts = rows.mapInArrow(PartialMatrices(block, _between(schema)), between)
        parts = parts.repartition(AT).sortWithinPartitions(AT)
        shares.append(BlockTask(name, parts, compute_counting=MergedMatrices(block, schema)))
    return StepResult(shares)


def counts(events: DataFrame, block: FrequencyBlock) -> DataFrame:
    """How often each item was seen in each tick, by its number within the hour."""
    if block.where is not None:
        events = events.where(F.expr(block.where))
    of_item, long = item_columns(block.item)
    tick = F.expr(f"(unix_micros(event_time) - unix_micros(hour)) div {block.tick}L").alias("tick")
    return (
        events.dropna(subset=list(block.item))
        .groupBy(*of_item, long, hour_number().alias(AT), tick)
        .agg(F.count("*").alias("records"))
        .withColumn("watched", is_among(block.item, block.watched))
    )


@dataclass(frozen=True)
class PartialMatrices:
    """What a task counts of its items, of which it has all rows: a matrix for each hour and tick, the most
    frequent items of each hour, and what it has left out of these.

    Attributes:
        schema: of what comes out.
    """

    block: FrequencyBlock
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The parts of hours that a task has seen."""
        table = concat_batches(batches)
        if table is None:
            return
        columns = list(self.block.item)
        # What is too long is told of where the rows are counted, and has to get there.
        is_long = pc.fill_null(table["long"], False)
        if pc.any(is_long).as_py():
            yield from self._long(table.filter(is_long))
            table = table.filter(pc.invert(is_long)).combine_chunks()
        item, firsts = encode_keys(table, columns)
        if not len(firsts):
            return
        of_item = table.select(columns).take(pa.array(firsts))
        keys, shape = bytes_of(of_item), self.block.shape
        of_rows = columns_of(keys, shape.rows, shape.columns, shape.seed)
        watched = table["watched"].to_numpy(zero_copy_only=False).astype(bool)[firsts]
        hour, tick, records = (int64s(table[name]) for name in (AT, "tick", "records"))
        order = np.argsort(hour, kind="stable")
        edges = np.flatnonzero(np.diff(hour[order], prepend=-1, append=-1))
        for begin, end in pairwise(edges):
            here = order[begin:end]
            at, seen = int(hour[here[0]]), records[here]
            matrices = matrices_of(shape, of_rows[:, item[here]], seen, tick[here], self.block.ticks)
            of_ticks = np.zeros(self.block.ticks, dtype=np.int64)
            np.add.at(of_ticks, tick[here], seen)
            yield from self._matrices(at, matrices, of_ticks)
            yield from self._items(at, item[here], seen, keys, watched, of_item)

    def _long(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from build_batches(rows.num_rows, {name: rows[name] for name in rows.column_names}, self.schema)

    def _matrices(self, hour: int, matrices: Int64s, records: Int64s) -> Iterator[pa.RecordBatch]:
        for tick in np.flatnonzero(records).tolist():
            cells = lists(matrices[tick].reshape(-1), 1)
            row = {AT: hour, "row_kind": TICK, "place": tick, "records": int(records[tick]), "cells": cells}
            yield from build_batches(1, row, self.schema)

    def _items(
        self, hour: int, item: Int64s, seen: Int64s, keys: Sequence[bytes], watched: Bools, of_item: pa.Table
    ) -> Iterator[pa.RecordBatch]:
        sums = np.zeros(len(keys), dtype=np.int64)
        np.add.at(sums, item, seen)
        there = np.flatnonzero(sums)
        taken, left_out = top_k_and_watched(
            sums[there], [keys[n] for n in there.tolist()], watched[there], self.block.kept
        )
        some = there[taken]
        items = {name: of_item[name].take(pa.array(some)) for name in of_item.column_names}
        told = {AT: hour, "row_kind": ITEM, "records": sums[some], "watched": watched[some]}
        yield from build_batches(len(some), items | told, self.schema)
        rest = {AT: hour, "row_kind": OTHERS, "records": left_out, "other_item_count": len(there) - len(some)}
        yield from build_batches(1, rest, self.schema)


@dataclass(frozen=True)
class MergedMatrices:
    """What a task adds up of its hours, of which it has all parts."""

    block: FrequencyBlock
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch], tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        """The rows of some hours, one after the other."""
        for rows in by_value(batches, AT):
            hour = rows[AT][0].as_py()
            rows = without_long(rows, list(self.block.item), AT, tally, SHORT)
            if rows.num_rows:
                yield from self._matrices(hour, _of(rows, TICK), tally)
                yield from self._items(hour, _of(rows, ITEM), _of(rows, OTHERS))

    def _matrices(self, hour: int, rows: pa.Table, tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        shape, tick = self.block.shape, int64s(rows["place"])
        parts = rows["cells"].combine_chunks().flatten().to_numpy().reshape(-1, shape.rows, shape.columns)
        ticks, place = np.unique(tick, return_inverse=True)
        cells = np.zeros((len(ticks), shape.rows, shape.columns), dtype=np.int64)
        np.add.at(cells, place, parts)
        records = np.zeros(len(ticks), dtype=np.int64)
        np.add.at(records, place, int64s(rows["records"]))
        wrong = (cells.sum(axis=2) != records[:, None]).any(axis=1)
        tally.add(MISCOUNTED, [hour], [int(np.count_nonzero(wrong))])
        start = hour * HOUR_LENGTH + ticks * self.block.tick
        cells_of_ticks = lists(cells.reshape(-1), len(ticks))
        told = {"row_kind": TICK, "tick": start, "records": records, "cells": cells_of_ticks}
        yield from self._batch(hour, len(ticks), told)
        whole = lists(cells.sum(axis=0).reshape(-1), 1)
        yield from self._batch(hour, 1, {"row_kind": WHOLE, "records": int(records.sum()), "cells": whole})

    def _items(self, hour: int, rows: pa.Table, rest: pa.Table) -> Iterator[pa.RecordBatch]:
        records, of_item = int64s(rows["records"]), rows.select(list(self.block.item))
        watched = rows["watched"].to_numpy(zero_copy_only=False).astype(bool)
        taken, left_out = top_k_and_watched(records, order_keys(of_item), watched, self.block.kept)
        items = {name: of_item[name].take(pa.array(taken)) for name in of_item.column_names}
        yield from self._batch(hour, len(taken), items | {"row_kind": ITEM, "records": records[taken]})
        most = max(left_out, int(int64s(rest["records"]).max(initial=0)))
        many = int(int64s(rest["other_item_count"]).sum()) + len(records) - len(taken)
        yield from self._batch(hour, 1, {"row_kind": OTHERS, "records": most, "other_item_count": many})

    def _batch(self, hour: int, many: int, columns: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        yield from build_batches(many, {**columns, "hour": hour * HOUR_LENGTH}, self.schema)


def _of(rows: pa.Table, kind: str) -> pa.Table:
    return rows.filter(pc.fill_null(pc.equal(rows["row_kind"], kind), False)).combine_chunks()


def _between(schema: pa.Schema) -> pa.Schema:
    """Of what tasks count, before it is added up."""
    more = {AT: pa.int64(), "place": pa.int64(), "watched": pa.bool_(), "long": pa.bool_()}
    kept = [field for field in schema if field.name not in ("hour", "tick")]
    return pa.schema([*kept, *(pa.field(name, kind) for name, kind in more.items())])


def _sql_type(kind: pa.DataType) -> str:
    return next(name for name, one in ARROW_TYPES.items() if one == kind)


def schema_of(block: FrequencyBlock) -> pa.Schema:
    """Of the rows of a block."""
    return item_table(TABLE, [block.item]).block_schema()
