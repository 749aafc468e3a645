"""The table `tuples`: the tuples at the end of each hour, and the items of its report.

Hours form a chain. Each is computed from its own pairs of an item and a slot, and from the tuples of the last
hour before it (`transom.features.persistence.algorithm.vectorised`). Spark counts the pairs; a task advances
all tuples of its items.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import build_batches, encode_keys, int64s
from transom.arrays.column_batch import MISSING
from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.engine.hour_chains import ChainTask, hour_runs
from transom.engine.hours import hour_number, quoted, read_events
from transom.features.items.bytes import binary, bytes_of, rows_of
from transom.features.items.columns import (
    HOUR_NUMBER,
    columns_by_name,
    count_items,
    flags,
    without_long,
)
from transom.features.items.tables import item_schema
from transom.features.persistence.algorithm.item_slot_hash import item_slot_hashes
from transom.features.persistence.algorithm.vectorised import (
    Reported,
    SlotObservations,
    TrackerConfig,
    TrackerState,
    Tuples,
    advance,
)
from transom.features.persistence.built_in_checks import SHORT
from transom.features.persistence.check_metrics import MISCOUNTED, PAIRS, STARTS, miscounted
from transom.features.persistence.resolve import PersistenceBlock
from transom.ledger.stage import BlockTask, StepRequest
from transom.ledger.task_counters import TaskCounters
from transom.storage.block_rows import BlockRows
from transom.storage.session import to_arrow

TABLE = "tuples"
MAX_ROWS = 2**17
"""Maximum number of rows that are processed at once, if they are of more than one item."""
TUPLE, ITEM, REPORTED, EXITED = "tuple", "item", "reported", "exited"
"""Kinds of rows: a tuple; an item of the hour's report; an item of the last report in an hour without one; an
item of the previous report that is not in the hour's."""
SLOTS = ("start", "latest")
"""Columns of `Tuples` with slots."""
NUMBERS = ("instance", *SLOTS, "counted", "records", "first", "last", "gap_squares")
"""Columns of `Tuples` with a number in each row."""
STATE = ("row_kind", *NUMBERS, "bits", "since")
"""Columns of stored state."""


def tuples_of(request: StepRequest, block: PersistenceBlock, targets: Sequence[datetime]) -> BlockTask:
    """Return the tuples and the report of each target hour of a block."""
    runs, stored = hour_runs(request, block.name, TABLE, targets, block.back)
    rows: DataFrame | pa.Table = observe_slots(
        read_events(request.pins, targets, {"event_time", *block.item}, block.where), block
    )
    columns = {of: of for of in ("hour", *block.item, *STATE)}
    state = BlockRows(TABLE, block.name, stored, columns, only={"row_kind": [TUPLE, ITEM, REPORTED]})
    few = state.on_driver(request.pins) if request.pins.are_few else None
    if few is not None:
        rows = pa.concat_tables([to_arrow(rows), _in_struct(few, block)], promote_options="default")
    elif stored:
        left = _as_struct(state.in_spark(request.pins), block)
        rows = rows.unionByName(left, allowMissingColumns=True)
    tracker = PersistenceTracker(block, runs, item_schema(TABLE, block.item))
    return BlockTask(block.name, rows, compute_counting=tracker, by=[*block.item])


def observe_slots(events: DataFrame, block: PersistenceBlock) -> DataFrame:
    """Return the pairs of an item and a slot in each hour, as `count_items`, with their first time."""
    time, length = "unix_micros(event_time)", block.tracking.length
    slot = F.expr(f"({time} - pmod({time}, {length}L)) div {length}L").alias("slot")
    first = F.min(F.unix_micros("event_time")).alias("first")
    return count_items(events, block.item, block.where, block.watched, slot, first)


def _as_struct(rows: DataFrame, block: PersistenceBlock) -> DataFrame:
    """Return stored state in one column, so that pairs have only one null in addition."""
    return rows.select(*quoted(block.item), hour_number().alias(HOUR_NUMBER), F.struct(*STATE).alias("left"))


def _in_struct(rows: pa.Table, block: PersistenceBlock) -> pa.Table:
    """Return what `_as_struct` returns, on the driver."""
    left = pa.StructArray.from_arrays([rows[name].combine_chunks() for name in STATE], STATE)
    hour = pa.array(int64s(rows["hour"]) // HOUR_LENGTH)
    return rows.select(list(block.item)).append_column(HOUR_NUMBER, hour).append_column("left", left)


@dataclass(frozen=True)
class PersistenceTracker(ChainTask):
    """Advances the items of a task from hour to hour."""

    block: PersistenceBlock

    def rows(self, table: pa.Table, tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the hours, from all pairs and stored state of some items."""
        columns = list(self.block.item)
        table = without_long(table, columns, tally, SHORT)
        item, firsts = encode_keys(table, columns)
        for rows, begin, end in _portions(item, len(firsts)):
            items = table.select(columns).take(pa.array(firsts[begin:end]))
            for state in self._states(table.take(pa.array(rows)), item[rows] - begin):
                tally.add(PAIRS, [state.hour], [state.pairs])
                tally.add(STARTS, [state.hour], [state.starts])
                tally.add(MISCOUNTED, [state.hour], [miscounted(state.tuples)])
                yield from self._output(state, items)

    def _states(self, rows: pa.Table, item: Int64s) -> Iterator[TrackerState]:
        """Yield the state at the end of each target hour."""
        tracking = self.block.tracking
        is_state = np.zeros(len(item), dtype=bool)
        if "left" in rows.column_names:
            is_state = pc.is_valid(rows["left"]).to_numpy(zero_copy_only=False)
        stored = _stored(rows.filter(pa.array(is_state)), item[is_state], tracking) if is_state.any() else {}
        seen, starts = self._observations(rows.filter(pa.array(~is_state)), item[~is_state])
        last: dict[int | None, TrackerState] = {}
        for run in self.runs:
            empty = TrackerState(run.previous_hour, Tuples.empty(tracking.width), Reported.none())
            state = (stored | last).get(run.ahead, empty)
            of_run = (seen.hour >= run.begin) & (seen.hour < run.until)
            for now in advance(tracking, state, seen.take(of_run), starts[:, of_run], run.hours):
                yield now
                last = {now.hour: now}

    def _observations(self, rows: pa.Table, item: Int64s) -> tuple[SlotObservations, Bools]:
        """Return pairs by item and time, and whether the hash of each is below `tau` in each instance."""
        block, hour, slot = self.block, int64s(rows[HOUR_NUMBER]), int64s(rows["slot"])
        order = np.lexsort([slot, hour, item])
        records, first = int64s(rows["records"])[order], int64s(rows["first"])[order]
        watched = flags(rows["watched"])[order]
        seen = SlotObservations(
            item[order], hour[order], slot[order], records, first // block.tracking.unit, watched
        )
        starts = np.zeros((len(block.seeds), len(order)), dtype=bool)
        hashed = np.flatnonzero(~watched)
        keys = bytes_of(rows.select(list(block.item)).take(pa.array(order[hashed])), seen.slot[hashed])
        for instance, seed in enumerate(block.seeds):
            starts[instance, hashed] = item_slot_hashes(keys, seed) < block.tracking.params.hash_threshold
        return seen, starts

    def _output(self, state: TrackerState, items: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the rows of an hour."""
        output = state.tuples.take(state.output)
        silent = state.reported.take(~np.isin(state.reported.item, output.item))
        for kind, columns in (
            (TUPLE, self._columns(state.tuples)),
            (ITEM, self._columns(output) | {"since": state.reported.since_of(output.item)}),
            (REPORTED, silent.columns()),
            (EXITED, state.exited.columns()),
        ):
            of_item = items.take(pa.array(columns["item"]))
            arrays = {
                name: pa.array(values, mask=values == MISSING) if isinstance(values, np.ndarray) else values
                for name, values in columns.items()
            }
            fixed = {"row_kind": kind, "hour": state.hour * HOUR_LENGTH}
            yield from build_batches(of_item.num_rows, arrays | columns_by_name(of_item) | fixed, self.schema)

    def _columns(self, tuples: Tuples) -> dict[str, Any]:
        columns = tuples.columns()
        columns["bits"] = binary(columns.pop("slots"))
        return columns | {name: columns[name] * self.block.tracking.length for name in SLOTS}


def _portions(item: Int64s, count: int) -> Iterator[tuple[Int64s, int, int]]:
    """Yield rows of whole items, up to `MAX_ROWS` at once or those of one item, with the range `[begin, end)`
    of the codes of their items."""
    order = np.argsort(item, kind="stable")
    stops = np.append(0, np.searchsorted(item[order], np.arange(1, count + 1)))
    begin = 0
    while begin < count:
        end = max(begin + 1, int(np.searchsorted(stops, stops[begin] + MAX_ROWS, side="right")) - 1)
        yield order[stops[begin] : stops[end]], begin, end
        begin = end


def _stored(rows: pa.Table, item: Int64s, tracking: TrackerConfig) -> dict[int | None, TrackerState]:
    """Return the stored states, by the numbers of their hours."""
    hours, state = int64s(rows[HOUR_NUMBER]), rows["left"].combine_chunks()
    is_tuple = pc.equal(state.field("row_kind"), TUPLE).to_numpy(zero_copy_only=False)
    numbers = {name: _numbers(state.field(name), 0) for name in NUMBERS}
    numbers |= {name: numbers[name] // tracking.length for name in SLOTS}
    since = _numbers(state.field("since"), MISSING)
    order = np.lexsort([numbers["instance"], numbers["start"], item])
    states: dict[int | None, TrackerState] = {}
    for hour in np.unique(hours).tolist():
        of_hour = order[hours[order] == hour]
        tuples, others = of_hour[is_tuple[of_hour]], of_hour[~is_tuple[of_hour]]
        # A watched item may have a row without being persistent.
        reported = others[since[others] != MISSING]
        columns = {name: column[tuples] for name, column in numbers.items()}
        slots = rows_of(state.field("bits").take(pa.array(tuples)), tracking.width)
        states[hour] = TrackerState(
            hour, Tuples(item[tuples], **columns, slots=slots), Reported(item[reported], since[reported])
        )
    return states


def _numbers(column: pa.Array, null: int) -> Int64s:
    numbers: Int64s = column.cast(pa.int64()).fill_null(null).to_numpy(zero_copy_only=False)
    return numbers
