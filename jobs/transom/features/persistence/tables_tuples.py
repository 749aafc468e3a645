"""What is remembered of items at the end of each hour, and which of them its report names: a chain, by one
vectorised pass over many items.

An hour is made of its own pairs of an item and a slot, each counted once by Spark's own operators, and of
what the last hour before it has left (`transom.features.persistence.algorithm.vectorised`). So it reads
neither events nor state of
more than an hour, however long the window is. `persistent_items` is the part of it that is told."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import build_batches, concat_batches, encode_keys, int64s
from transom.arrays.column_batch import MISSING
from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.engine.hour_chains import HourRun, hour_runs
from transom.engine.hours import hour_number, quoted
from transom.features.items.bytes import binary, keys_of, rows_of
from transom.features.items.columns import is_among, item_columns, without_long
from transom.features.items.tables import item_table
from transom.features.persistence.algorithm.item_slot_hash import item_slot_hashes
from transom.features.persistence.algorithm.vectorised import (
    Reported,
    SlotObservations,
    TrackerConfig,
    TrackerState,
    Tuples,
    advance,
)
from transom.features.persistence.check_list import SHORT
from transom.features.persistence.checks import MISCOUNTED, PAIRS, STARTS, miscounted
from transom.features.persistence.resolve import PersistenceBlock
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.ledger.task_counters import TaskCounters

TABLE = "tuples"
AT_A_TIME = 2**17
"""Rows of whole items that are looked at together."""
TUPLE, ITEM, REPORTED, EXITED = "tuple", "item", "reported", "exited"
SLOTS = ("start", "latest")
NUMBERS = ("instance", *SLOTS, "counted", "records", "first", "last", "gap_squares")
STATE = ("row_kind", *NUMBERS, "bits", "since")
"""The columns of the table beside hour, block and item."""
AT = "__hour"


def tuples_of(request: StepRequest, blocks: Mapping[str, PersistenceBlock]) -> StepResult:
    """What every block's target hours leave and tell."""
    shares = []
    for name, targets in request.targets.items():
        block = blocks[name]
        stretches, stored = hour_runs(request, name, TABLE, targets, block.back)
        rows = observe_slots(request.pins.read("events", targets), block)
        if stored:
            left = _state_column(request.pins.read(TABLE, stored), block)
            rows = rows.unionByName(left, allowMissingColumns=True)
        made = PersistenceTracker(block, stretches, schema_of(block))
        shares.append(BlockTask(name, rows.repartition(*quoted(block.item)), compute_counting=made))
    return StepResult(shares)


def observe_slots(events: DataFrame, block: PersistenceBlock) -> DataFrame:
    """The pairs of an item and a slot of some hours, with how often the item was seen, and when first.

    Of an item that is too `long` only the beginnings of its texts are there: nothing remembers it.
    """
    if block.where is not None:
        events = events.where(F.expr(block.where))
    time, length = "unix_micros(event_time)", block.tracking.length
    slot = f"({time} - pmod({time}, {length}L)) div {length}L"
    of_item, long = item_columns(block.item)
    pairs = (
        events.dropna(subset=list(block.item))
        .groupBy(*of_item, long, hour_number().alias(AT), F.expr(slot).alias("slot"))
        .agg(F.count("*").alias("records"), F.min(F.unix_micros("event_time")).alias("first"))
    )
    return pairs.withColumn("watched", is_among(block.item, block.watched))


def _state_column(rows: DataFrame, block: PersistenceBlock) -> DataFrame:
    """What hours have left, in one column, so that pairs carry one that is null."""
    of_block = rows.where((F.col("block") == block.name) & (F.col("row_kind") != EXITED))
    columns = {name: F.unix_micros(name) if name in (*SLOTS, "since") else F.col(name) for name in STATE}
    left = F.struct(*(column.alias(name) for name, column in columns.items())).alias("left")
    return of_block.select(*quoted(block.item), hour_number().alias(AT), left)


@dataclass(frozen=True)
class PersistenceTracker:
    """What a task makes of its partition's pairs, and of what earlier hours have left.

    Attributes:
        runs: the hours that are wanted.
        schema: of what comes out, as `schemas/tables` has it, which tasks do not.
    """

    block: PersistenceBlock
    runs: Sequence[HourRun]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch], tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        """What the hours say of some items, of which these are all rows."""
        table = concat_batches(batches)
        if table is None:
            return
        columns = list(self.block.item)
        table = without_long(table, columns, AT, tally, SHORT)
        item, firsts = encode_keys(table, columns)
        for rows, first, behind in _some_items(item, len(firsts)):
            of_item = table.select(columns).take(pa.array(firsts[first:behind]))
            for state in self._states(table.take(pa.array(rows)), item[rows] - first):
                tally.add(PAIRS, [state.hour], [state.pairs])
                tally.add(STARTS, [state.hour], [state.starts])
                tally.add(MISCOUNTED, [state.hour], [miscounted(state.tuples)])
                yield from self._output(state, of_item)

    def _states(self, rows: pa.Table, item: Int64s) -> Iterator[TrackerState]:
        """What stands at the end of each hour."""
        tracking = self.block.tracking
        is_left = np.zeros(len(item), dtype=bool)
        if "left" in rows.column_names:
            is_left = pc.is_valid(rows["left"]).to_numpy(zero_copy_only=False)
        stored = _stored(rows.filter(pa.array(is_left)), item[is_left], tracking) if is_left.any() else {}
        seen, starts = self._sightings(rows.filter(pa.array(~is_left)), item[~is_left])
        last: tuple[int, TrackerState] | None = None
        for stretch in self.runs:
            nothing = TrackerState(stretch.previous_hour, Tuples.empty(tracking.width), Reported.none())
            state = stretch.state(last, stored, nothing)
            here = (seen.hour >= stretch.begin) & (seen.hour < stretch.until)
            for now in advance(tracking, state, seen.take(here), starts[:, here], stretch.hours):
                yield now
                last = now.hour, now

    def _sightings(self, rows: pa.Table, item: Int64s) -> tuple[SlotObservations, Bools]:
        """Pairs by item and time; and whether the hash of each is below tau, of each instance."""
        block, hour, slot = self.block, int64s(rows[AT]), int64s(rows["slot"])
        order = np.lexsort([slot, hour, item])
        records, first = (int64s(rows[name])[order] for name in ("records", "first"))
        watched = rows["watched"].to_numpy(zero_copy_only=False).astype(bool)[order]
        found = SlotObservations(
            item[order], hour[order], slot[order], records, first // block.tracking.unit, watched
        )
        starts = np.zeros((len(block.seeds), len(order)), dtype=bool)
        hashed = np.flatnonzero(~watched)
        keys = keys_of(rows.select(list(block.item)).take(pa.array(order[hashed])), found.slot[hashed])
        for instance, seed in enumerate(block.seeds):
            starts[instance, hashed] = item_slot_hashes(keys, seed) < block.tracking.params.hash_threshold
        return found, starts

    def _output(self, state: TrackerState, of_item: pa.Table) -> Iterator[pa.RecordBatch]:
        """The rows of an hour."""
        told = state.tuples.take(state.output)
        silent = state.reported.take(~np.isin(state.reported.item, told.item))
        rows = [
            self._columns(TUPLE, state.tuples),
            {**self._columns(ITEM, told), "since": state.reported.take_of(told.item)},
            {"row_kind": REPORTED, **silent.columns()},
            {"row_kind": EXITED, **state.exited.columns()},
        ]
        for columns in rows:
            items = of_item.take(pa.array(columns["item"]))
            given = {
                name: pa.array(held, mask=held == MISSING) if isinstance(held, np.ndarray) else held
                for name, held in columns.items()
            }
            item = {name: items[name] for name in items.column_names}
            yield from build_batches(
                items.num_rows, given | item | {"hour": state.hour * HOUR_LENGTH}, self.schema
            )

    def _columns(self, row: str, tuples: Tuples) -> dict[str, Any]:
        columns = {"row_kind": row, **tuples.columns()}
        columns["bits"] = binary(columns.pop("slots"))
        return {**columns, **{name: columns[name] * self.block.tracking.length for name in SLOTS}}


def _some_items(item: Int64s, many: int) -> Iterator[tuple[Int64s, int, int]]:
    """The rows of items that are looked at together, as many as have `AT_A_TIME` of them, or one; the first
    of these items, and the one behind the last."""
    order = np.argsort(item, kind="stable")
    behind = np.searchsorted(item[order], np.arange(1, many + 1))
    first = 0
    while first < many:
        start = int(behind[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(behind, start + AT_A_TIME, side="right")))
        yield order[start : behind[last - 1]], first, last
        first = last


def _stored(rows: pa.Table, item: Int64s, tracking: TrackerConfig) -> dict[int, TrackerState]:
    """What earlier hours have left, by their numbers."""
    hours, left = int64s(rows[AT]), rows["left"].combine_chunks()
    is_tuple = pc.equal(left.field("row_kind"), TUPLE).to_numpy(zero_copy_only=False)
    numbers = {name: _numbers(left.field(name), 0) for name in NUMBERS}
    numbers |= {name: numbers[name] // tracking.length for name in SLOTS}
    since = _numbers(left.field("since"), MISSING)
    order = np.lexsort([numbers["instance"], numbers["start"], item])
    found = {}
    for hour in np.unique(hours).tolist():
        here = order[hours[order] == hour]
        tuples, others = here[is_tuple[here]], here[~is_tuple[here]]
        # What is told of an item that is watched and not persistent names it not.
        named = others[since[others] != MISSING]
        found[hour] = TrackerState(
            hour,
            Tuples(
                item[tuples],
                **{name: column[tuples] for name, column in numbers.items()},
                slots=rows_of(left.field("bits").take(pa.array(tuples)), tracking.width),
            ),
            Reported(item[named], since[named]),
        )
    return found


def _numbers(column: pa.Array, none: int) -> Int64s:
    found: Int64s = column.cast(pa.int64()).fill_null(none).to_numpy(zero_copy_only=False)
    return found


def schema_of(block: PersistenceBlock) -> pa.Schema:
    """Of the rows of a block."""
    return item_table(TABLE, [block.item]).block_schema()
