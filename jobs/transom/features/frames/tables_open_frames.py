"""What each hour leaves of a key's frames, and tells of them: a chain, by one vectorised pass over many keys.

An hour is made of its readings and of what the hours before it have left, as far back as a frame may stay
open without one (`transom.features.frames.algorithm.vectorised`). `frames` is the part of it that is told."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import as_type, concat_batches, encode_keys, int64s
from transom.arrays.column_batch import FAR_FUTURE, MISSING
from transom.arrays.sorted_index import sort_by_key_and_time
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.engine import hour_chains as chained
from transom.engine.hours import extend_back, quoted, to_ranges
from transom.features.frames.algorithm.hourly_fragments import grouped_cumsum
from transom.features.frames.algorithm.readings import OpenFrameState, Readings
from transom.features.frames.algorithm.vectorised import FrameReports, advance, frames_of_period_vectorised
from transom.features.frames.checks import AWAY, COUNTED, GROW, MISCOUNTED, miscounted, moves_away_from_target
from transom.features.frames.readings import order_of, readings_of
from transom.features.frames.resolve import ResolvedFrames
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.ledger.task_counters import NOTES, TaskCounters
from transom.storage.tables import Table

TABLE = "open_frames"
AT_A_TIME = 2**17
"""Readings of whole keys that are looked at together; of one key, of whole hours."""
STATE, PARTIAL, FINAL = "state", "partial", "final"
FLAGS = ("lacking", "holds", "starts", "ends")
STATE_COLUMNS = tuple(name for name in OpenFrameState.none().columns() if name != "key")
TIMES = ("hour", "first", "last", "before", "first_null", "last_null", "start", "end", "peak")


def open_frames_of(request: StepRequest, blocks: Mapping[str, ResolvedFrames]) -> StepResult:
    """What every kind's target hours leave and tell."""
    shares = []
    for name, targets in request.targets.items():
        block, turns = blocks[name], 0
        hours, earlier = block.hours_of(targets), set[datetime]()
        rows = _in_short(readings_of(request, block, hours), block)
        if block.framing.begins:
            # The last hour before has left all keys that are known.
            stretches, earlier = chained.hour_runs(request, name, TABLE, targets, block.back)
            turns = (
                HOUR_LENGTH
                // block.framing.every
                * max((one.begin - one.previous_hour for one in stretches), default=1)
            )
        elif block.period is None:
            earlier = extend_back(targets, block.back) & request.rows.get((name, TABLE), {}).keys()
            earlier = earlier.difference(targets)
        if earlier:
            left = _state_column(request.pins.read(TABLE, earlier), block)
            rows = rows.unionByName(left, allowMissingColumns=True)
        rows = rows.repartition(*quoted(block.key)) if block.key else rows.repartition(1)
        frames = FrameBuilder(block, tuple(to_ranges(hours)), schema_of(block), turns)
        shares.append(BlockTask(name, rows, compute_counting=frames))
    return StepResult(shares)


def _in_short(readings: DataFrame, block: ResolvedFrames) -> DataFrame:
    """Readings in as few columns as can be: all of them are sent to where their key is, at a cost a column.
    A time in microseconds leaves the bits for some flags: the last of Spark's is below 2^58."""
    flags = (F.col(name).cast("bigint") * F.lit(1 << bit) for bit, name in enumerate(FLAGS))
    moment = reduce(add, flags, F.col("time") * F.lit(1 << len(FLAGS))).alias("moment")
    order = quoted(order_of(block)) if block.picks else []
    return readings.select(*quoted(block.key), moment, "value", *order)


def _state_column(rows: DataFrame, block: ResolvedFrames) -> DataFrame:
    """What hours have left, in one column, so that readings carry one that is null."""
    columns = [
        F.unix_micros(name) if name in TIMES else F.col("fragment" if name == "fragments" else name)
        for name in STATE_COLUMNS
    ]
    empty = {"low": FAR_FUTURE}
    numbers = [
        F.coalesce(column.cast("bigint"), F.lit(empty.get(name, MISSING)))
        for name, column in zip(STATE_COLUMNS, columns, strict=True)
    ]
    of_block = rows.where((F.col("block") == block.name) & (F.col("row_kind") == STATE))
    return of_block.select(*quoted(block.key), F.array(*numbers).alias("left"))


@dataclass(frozen=True)
class FrameBuilder:
    """What a task makes of its partition's readings, and of what earlier hours have left.

    Attributes:
        runs: the hours that are wanted, from and to, in microseconds, in order.
        schema: of what comes out, as `schemas/tables` has it, which tasks do not.
        turns: where missing readings may begin frames, how many are made of a key with an hour: its own, and
            those of the hours before it that nobody has asked for.
    """

    block: ResolvedFrames
    runs: Sequence[tuple[int, int]]
    schema: pa.Schema
    turns: int = 0

    def __call__(self, batches: Iterable[pa.RecordBatch], tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        """What the hours say of some keys, of which these are all rows."""
        table = concat_batches(batches)
        if table is None:
            return
        keys, firsts = encode_keys(table, list(self.block.key))
        left = OpenFrameState.none()
        of_key = table.select(list(self.block.key)).take(pa.array(firsts))
        if "left" in table.column_names:
            stored = pc.is_valid(table["left"])
            held = stored.to_numpy(zero_copy_only=False)
            left = _lefts(table["left"].filter(stored), keys[held])
            table, keys = table.filter(pc.invert(stored)), keys[~held]
        readings = _readings(table, keys, self.block)
        for lowest, highest in _some_keys(readings.key, len(firsts), self.turns):
            some = readings.take(slice(*np.searchsorted(readings.key, [lowest, highest])))
            known = left.take((left.key >= lowest) & (left.key < highest))
            self._look_for_others(some, of_key, tally)
            try:
                for reports, rest in self._advanced(some, known, lowest, highest - lowest):
                    self._count_again(reports, some, of_key, tally)
                    yield from _output_rows(reports, of_key, self.schema)
                    yield from _state_rows(rest, of_key, self.schema)
            except OverflowError as error:
                raise OverflowError(f"frames.{self.block.name}: {error}") from None

    def _look_for_others(self, readings: Readings, of_key: pa.Table, tally: TaskCounters) -> None:
        """Counts readings that lead away from what frames are to come to."""
        away = moves_away_from_target(readings, self.block)
        hours = readings.time[away] // HOUR_LENGTH
        tally.add(AWAY, *np.unique(hours, return_counts=True))
        # The first of each hour, as the tasks of a run keep them, too.
        of_hour = np.lexsort([readings.time[away], hours])
        place = grouped_cumsum(hours[of_hour], np.ones(len(away), dtype=np.int64))
        for row in away[of_hour[place <= NOTES]].tolist():
            key = ", ".join(map(str, of_key.slice(int(readings.key[row]), 1).to_pylist()[0].values()))
            time = np.datetime64(int(readings.time[row]), "us")
            tally.note(
                GROW, int(readings.time[row]) // HOUR_LENGTH, f"{time} {key}: {readings.value[row]} steps"
            )

    def _count_again(
        self, reports: FrameReports, readings: Readings, of_key: pa.Table, tally: TaskCounters
    ) -> None:
        for row in miscounted(reports, readings, self.block).tolist():
            hour = int(reports.hour[row]) // HOUR_LENGTH
            tally.add(MISCOUNTED, [hour], [1])
            key = ", ".join(map(str, of_key.slice(int(reports.key[row]), 1).to_pylist()[0].values()))
            first = np.datetime64(int(reports.first[row]), "us")
            tally.note(COUNTED, hour, f"{key}, from {first}: {reports.new[row]} readings are told")

    def _advanced(
        self, readings: Readings, left: OpenFrameState, lowest: int, many: int
    ) -> Iterator[tuple[FrameReports, OpenFrameState]]:
        """What stretch after stretch tells and leaves of many keys."""
        # Codes of the few keys at hand are small, so that they and times fit into one number.
        readings, left = replace(readings, key=readings.key - lowest), replace(left, key=left.key - lowest)
        block = self.block
        for begin, until in self._pieces(readings, many):
            if block.period is not None:
                some = readings.take((readings.time >= begin) & (readings.time < until))
                found = frames_of_period_vectorised(
                    block.framing, some, begin, until, block.overlap, block.longest
                )
                yield replace(found, key=found.key + lowest), OpenFrameState.none()
                continue
            inside = (readings.time >= begin) & (readings.time < until)
            before = _latest(left.take(left.hour < begin))
            reports, rest = advance(block.framing, before, readings.take(inside), begin, until)
            left = before.and_then(left.take(left.hour >= begin)).and_then(rest)
            yield replace(reports, key=reports.key + lowest), replace(rest, key=rest.key + lowest)

    def _pieces(self, readings: Readings, many: int) -> Iterator[tuple[int, int]]:
        """The stretches, cut at hours where there is much in one."""
        for begin, until in self.runs:
            if self.block.period is not None:
                for start in range(begin, until, self.block.period * HOUR_LENGTH):
                    yield start, start + self.block.period * HOUR_LENGTH
                continue
            if self.turns:
                step = max(1, AT_A_TIME // (self.turns * many)) * HOUR_LENGTH
                yield from ((start, min(start + step, until)) for start in range(begin, until, step))
                continue
            if len(readings.time) > 2 * AT_A_TIME:
                times = readings.time[(readings.time >= begin) & (readings.time < until)]
                hours, first = np.unique(times // HOUR_LENGTH, return_index=True)
                cuts = hours[np.append(False, np.diff(first // AT_A_TIME) > 0)[: len(hours)]] * HOUR_LENGTH
                for cut in cuts.tolist():
                    if begin < cut < until:
                        yield begin, cut
                        begin = cut
            yield begin, until


def _some_keys(key: Int64s, many: int, least: int) -> Iterator[tuple[int, int]]:
    """Keys that are looked at together, from and to: as many as have `AT_A_TIME` readings, or one.

    Args:
        least: how many a key counts for beside its own.
    """
    if not many:
        return
    behind = np.searchsorted(key, np.arange(1, many + 1)) + least * np.arange(1, many + 1)
    first = 0
    while first < many:
        start = int(behind[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(behind, start + AT_A_TIME, side="right")))
        yield first, last
        first = last


def _latest(rows: OpenFrameState) -> OpenFrameState:
    """Of each key what its latest hour has left."""
    order = np.lexsort([rows.hour, rows.key])
    return rows.take(order[np.append(np.diff(rows.key[order]) != 0, True)[: len(order)]])


def _numbers(column: pa.ChunkedArray) -> Int64s:
    found: Int64s = column.combine_chunks().fill_null(MISSING).to_numpy(zero_copy_only=False)
    return found


def _readings(table: pa.Table, keys: Int64s, block: ResolvedFrames) -> Readings:
    """The readings by key and time, one a time."""
    order, key, moment = sort_by_key_and_time(keys, int64s(table["moment"]))
    value = _numbers(table["value"])[order]
    time = moment >> len(FLAGS)
    if block.picks and ((np.diff(key) == 0) & (np.diff(time) == 0)).any():
        # The last two tell nothing apart but what is one to every frame; moments of one time, the flags.
        picks = [int64s(table[name])[order] for name in reversed(order_of(block))]
        turns = np.lexsort([moment, value, *picks, time, key])
        differs = (np.diff(key[turns]) != 0) | (np.diff(time[turns]) != 0)
        kept = turns[
            np.append(True, differs) if block.on_duplicate_time == "first" else np.append(differs, True)
        ]
        key, time, moment, value = key[kept], time[kept], moment[kept], value[kept]
    held = ((moment & (1 << bit)) != 0 for bit in range(len(FLAGS)))
    return Readings(key, time, value, *held)


def _lefts(rows: pa.ChunkedArray, keys: Int64s) -> OpenFrameState:
    numbers = rows.combine_chunks().flatten().to_numpy().reshape(-1, len(STATE_COLUMNS))
    columns = dict(zip(STATE_COLUMNS, np.ascontiguousarray(numbers.T), strict=True))
    return OpenFrameState(key=keys, **columns | {"held": columns["held"] != 0})


def _output_rows(reports: FrameReports, keys: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    columns = reports.columns()
    row = pc.if_else(pa.array(columns.pop("final")), FINAL, PARTIAL)
    return _rows({**columns, "row_kind": row}, keys, schema)


def _state_rows(left: OpenFrameState, keys: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    columns = left.columns()
    columns["fragment"] = columns.pop("fragments")
    columns["low"] = np.where(left.low == FAR_FUTURE, MISSING, left.low)
    return _rows({**columns, "row_kind": pa.repeat(STATE, len(left.key))}, keys, schema)


def _rows(columns: dict[str, Any], keys: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    key = columns.pop("key")
    if not len(key):
        return
    of_key = keys.take(pa.array(key))
    arrays = []
    for field in schema:
        if field.name in keys.column_names:
            arrays.append(as_type(of_key[field.name], field.type))
        elif field.name in columns:
            of = columns[field.name]
            numbers = isinstance(of, np.ndarray) and of.dtype == np.int64
            arrays.append(as_type(pa.array(of, mask=of == MISSING) if numbers else of, field.type))
        else:
            arrays.append(pa.nulls(len(key), field.type))
    yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=65536)


def schema_of(block: ResolvedFrames) -> pa.Schema:
    """Of the rows of a kind of frame."""
    return Table.load(TABLE).declare(key=block.key).block_schema()
