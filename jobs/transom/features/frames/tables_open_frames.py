"""State and reports of each key's frames. Hours form a chain; one vectorised pass advances many keys.

An hour is computed from its readings and from the states of earlier hours, as far back as a frame may stay
open without a reading (`transom.features.frames.algorithm.vectorised`). `frames` has the reports.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import build_batches, concat_batches, encode_keys, int64s
from transom.arrays.column_batch import FAR_FUTURE, MISSING
from transom.arrays.sorted_index import sort_by_key_and_time
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.engine import hour_chains
from transom.engine.hours import extend_back, quoted, to_ranges
from transom.features.frames.algorithm.readings import OpenFrameState, Readings
from transom.features.frames.algorithm.vectorised import (
    FrameReports,
    advance,
    period_frames,
)
from transom.features.frames.check_metrics import (
    AWAY,
    COUNTED,
    GROW,
    MISCOUNTED,
    miscounted,
    moves_away_from_target,
)
from transom.features.frames.resolve import ResolvedFrames
from transom.features.frames.source_rows import FLAG_BITS, MOMENT, VALUE, order_of, readings_of
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.ledger.task_counters import NOTES, TaskCounters
from transom.storage.tables import Table

TABLE = "open_frames"
AT_A_TIME = 2**17
"""Maximum number of readings that are processed together, if they are of several keys or hours."""
STATE, PARTIAL, FINAL = "state", "partial", "final"
STATE_COLUMN = "__state"
STATE_COLUMNS = tuple(name for name in OpenFrameState.none().columns() if name != "key")
TIMES = ("hour", "first", "last", "before", "first_null", "last_null", "start", "end", "peak")


def open_frames_of(request: StepRequest, blocks: Mapping[str, ResolvedFrames]) -> StepResult:
    """Return the states and the reports of the target hours of every block."""
    tasks = []
    for name, targets in request.targets.items():
        block, turns, earlier = blocks[name], 0, set[datetime]()
        hours = block.hours_of(targets)
        rows = readings_of(request, block, hours)
        if block.framing.begins:
            # The last requested hour has the state of all known keys.
            runs, earlier = hour_chains.hour_runs(request, name, TABLE, targets, block.back)
            distance = max((run.begin - run.previous_hour for run in runs), default=1)
            turns = HOUR_LENGTH // block.framing.every * distance
        elif block.period is None:
            earlier = extend_back(targets, block.back) & request.rows.get((name, TABLE), {}).keys()
            earlier = earlier.difference(targets)
        if earlier:
            states = _state_column(request.pins.read(TABLE, earlier), block)
            rows = rows.unionByName(states, allowMissingColumns=True)
        frames = FrameBuilder(block, tuple(to_ranges(hours)), schema_of(block), turns)
        tasks.append(BlockTask(name, rows, compute_counting=frames, by=[*block.key]))
    return StepResult(tasks)


def _state_column(rows: DataFrame, block: ResolvedFrames) -> DataFrame:
    """Return the states of hours in one column, so that readings have only one null in addition."""
    columns = {name: F.unix_micros(name) if name in TIMES else F.col(name) for name in STATE_COLUMNS}
    columns["fragments"] = F.col("fragment")
    numbers = [
        F.coalesce(column.cast("bigint"), F.lit(FAR_FUTURE if name == "low" else MISSING))
        for name, column in columns.items()
    ]
    of_block = rows.where((F.col("block") == block.name) & (F.col("row_kind") == STATE))
    return of_block.select(*quoted(block.key), F.array(*numbers).alias(STATE_COLUMN))


@dataclass(frozen=True)
class FrameBuilder:
    """Computes the rows of a task's keys from their readings and earlier states.

    Attributes:
        block: the kind of frame.
        runs: the hours to compute as ranges, in microseconds, ascending.
        schema: the schema of the rows, as tasks do not read table descriptions.
        turns: the number of missing readings that a key may have in an hour and in the hours before it that
            were not requested; 0 if these begin no frame.
    """

    block: ResolvedFrames
    runs: Sequence[tuple[int, int]]
    schema: pa.Schema
    turns: int = 0

    def __call__(self, batches: Iterable[pa.RecordBatch], counters: TaskCounters) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some keys, from all their readings and states."""
        table = concat_batches(batches)
        if table is None:
            return
        codes, firsts = encode_keys(table, list(self.block.key))
        keys, states = table.select(list(self.block.key)).take(pa.array(firsts)), OpenFrameState.none()
        if STATE_COLUMN in table.column_names:
            stored = pc.is_valid(table[STATE_COLUMN])
            is_state = stored.to_numpy(zero_copy_only=False)
            states = _states(table[STATE_COLUMN].filter(stored), codes[is_state])
            table, codes = table.filter(pc.invert(stored)), codes[~is_state]
        readings = _readings(table, codes, self.block)
        for first, stop in _key_ranges(readings.key, len(firsts), self.turns):
            # Codes start from 0, so that a code and a time fit into one number.
            some = readings.take(slice(*np.searchsorted(readings.key, [first, stop])))
            some = replace(some, key=some.key - first)
            known = states.take((states.key >= first) & (states.key < stop))
            known = replace(known, key=known.key - first)
            some_keys = keys.slice(first, stop - first)
            self._count_away(some, some_keys, counters)
            try:
                for reports, state in self._advanced(some, known, stop - first):
                    self._count_wrong(reports, some, some_keys, counters)
                    kind = pc.if_else(pa.array(reports.final), FINAL, PARTIAL)
                    yield from self._rows(reports.columns(), kind, some_keys)
                    # If there is no value, `low` is null in the table.
                    low = np.where(state.low == FAR_FUTURE, MISSING, state.low)
                    changed = {"low": low, "fragment": state.fragments}
                    yield from self._rows(state.columns() | changed, STATE, some_keys)
            except OverflowError as error:
                raise OverflowError(f"frames.{self.block.name}: {error}") from None

    def _count_away(self, readings: Readings, keys: pa.Table, counters: TaskCounters) -> None:
        """Count readings that move the sum of a minimal frame away from its target."""
        away = moves_away_from_target(readings, self.block)
        away = away[np.argsort(readings.time[away], kind="stable")]
        hours, firsts, counts = np.unique(
            readings.time[away] // HOUR_LENGTH, return_index=True, return_counts=True
        )
        counters.add(AWAY, hours, counts)
        for hour, first, count in zip(hours.tolist(), firsts.tolist(), counts.tolist(), strict=True):
            # Only the first ones of each hour: `note` keeps no more.
            for row in away[first : first + min(count, NOTES)].tolist():
                time, key = np.datetime64(int(readings.time[row]), "us"), _key_text(keys, readings.key[row])
                counters.note(GROW, hour, f"{time} {key}: {readings.value[row]} steps")

    def _count_wrong(
        self, reports: FrameReports, readings: Readings, keys: pa.Table, counters: TaskCounters
    ) -> None:
        """Count frames whose readings differ from those between their ends."""
        for row in miscounted(reports, readings, self.block).tolist():
            hour, first = int(reports.hour[row]) // HOUR_LENGTH, np.datetime64(int(reports.first[row]), "us")
            counters.add(MISCOUNTED, [hour], [1])
            key = _key_text(keys, reports.key[row])
            counters.note(COUNTED, hour, f"{key}, from {first}: {reports.new[row]} readings are reported")

    def _advanced(
        self, readings: Readings, states: OpenFrameState, key_count: int
    ) -> Iterator[tuple[FrameReports, OpenFrameState]]:
        """Yield the reports and states of one range of hours after the other."""
        block = self.block
        for begin, until in self._ranges(readings, key_count):
            inside = readings.take((readings.time >= begin) & (readings.time < until))
            if block.period is not None:
                longest = block.spec.longest
                frames = period_frames(block.framing, inside, begin, until, block.overlap, longest)
                yield frames, OpenFrameState.none()
                continue
            earlier = states.take(states.hour < begin)
            order = np.lexsort([earlier.hour, earlier.key])
            latest = earlier.take(order[np.diff(earlier.key[order], append=-1) != 0])
            reports, new_states = advance(block.framing, latest, inside, begin, until)
            states = latest.and_then(states.take(states.hour >= begin)).and_then(new_states)
            yield reports, new_states

    def _ranges(self, readings: Readings, key_count: int) -> Iterator[tuple[int, int]]:
        """Yield the runs, cut at hours if they have many readings."""
        for begin, until in self.runs:
            if self.block.period is not None or self.turns:
                hours = self.block.period or max(1, AT_A_TIME // (self.turns * key_count))
                yield from pairwise([*range(begin, until, hours * HOUR_LENGTH), until])
                continue
            cuts: list[int] = []
            if len(readings.time) > 2 * AT_A_TIME:
                times = readings.time[(readings.time >= begin) & (readings.time < until)]
                hour, first = np.unique(times // HOUR_LENGTH, return_index=True)
                part = first // AT_A_TIME
                cuts = (hour[np.diff(part, prepend=part[:1]) > 0] * HOUR_LENGTH).tolist()
            yield from pairwise([begin, *cuts, until])

    def _rows(self, columns: dict[str, Any], kind: Any, keys: pa.Table) -> Iterator[pa.RecordBatch]:
        key = columns.pop("key")
        of_key = keys.take(pa.array(key))
        arrays = {name: pa.array(column, mask=column == MISSING) for name, column in columns.items()}
        arrays |= dict(zip(of_key.column_names, of_key.columns, strict=True))
        yield from build_batches(len(key), {**arrays, "row_kind": kind}, self.schema)


def _key_text(keys: pa.Table, code: int) -> str:
    return ", ".join(map(str, keys.slice(int(code), 1).to_pylist()[0].values()))


def _key_ranges(key: Int64s, count: int, extra: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of keys that are processed together: up to `AT_A_TIME` readings, or one key.

    Args:
        key: the key of each reading, ascending.
        count: the number of keys.
        extra: the number of further readings of each key.
    """
    numbers = np.arange(count + 1)
    total = np.searchsorted(key, numbers) + extra * numbers
    first = 0
    while first < count:
        fitting = int(np.searchsorted(total, total[first] + AT_A_TIME, side="right")) - 1
        stop = max(first + 1, fitting)
        yield first, stop
        first = stop


def _readings(table: pa.Table, codes: Int64s, block: ResolvedFrames) -> Readings:
    """Return the readings by key and time, one for each time of a key."""
    order, key, moment = sort_by_key_and_time(codes, int64s(table[MOMENT]))
    value = table[VALUE].combine_chunks().fill_null(MISSING).to_numpy(zero_copy_only=False)[order]
    time = moment >> FLAG_BITS
    if block.picks and ((np.diff(key) == 0) & (np.diff(time) == 0)).any():
        # Value and flags break ties in place, so that the result does not depend on the order of rows.
        places = [int64s(table[name])[order] for name in reversed(order_of(block))]
        turns = np.lexsort([moment, value, *places, time, key])
        differs = (np.diff(key[turns]) != 0) | (np.diff(time[turns]) != 0)
        first = block.spec.on_duplicate_time == "first"
        chosen = turns[np.append(True, differs) if first else np.append(differs, True)]
        key, time, moment, value = key[chosen], time[chosen], moment[chosen], value[chosen]
    flags = ((moment & (1 << bit)) != 0 for bit in range(FLAG_BITS))
    return Readings(key, time, value, *flags)


def _states(rows: pa.ChunkedArray, codes: Int64s) -> OpenFrameState:
    numbers = rows.combine_chunks().flatten().to_numpy().reshape(-1, len(STATE_COLUMNS))
    columns = dict(zip(STATE_COLUMNS, np.ascontiguousarray(numbers.T), strict=True))
    return OpenFrameState(key=codes, **columns | {"held": columns["held"] != 0})


def schema_of(block: ResolvedFrames) -> pa.Schema:
    """Return the schema of the rows of a block."""
    return Table.load(TABLE).declare(key=block.key).block_schema()
