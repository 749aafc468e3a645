"""The table `matches`: the matches in the windows that end in an hour, level by level."""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import functions as F

from transom.arrays.arrow import build_batches, common_codes, hour_of_end
from transom.core.exact_sums import Int64s
from transom.engine.hours import extend_back, quoted, to_ranges
from transom.features.patterns import custom_detector, tables_batches
from transom.features.patterns.algorithm.batches import (
    DetectorWindows,
    KeyedRecords,
    detect_matches,
    keep_first_and_last,
    windows_to_detect,
)
from transom.features.patterns.algorithm.instance_search import smallest
from transom.features.patterns.algorithm.pattern import EventPattern, RecordSequence
from transom.features.patterns.custom_detector import Detector, Record
from transom.features.patterns.records import PatternRecords, events_of
from transom.features.patterns.resolve import RECORD, PatternBlock
from transom.features.patterns.work_bounds import LONGEST_BATCH, WorkCounter, hours_of, set_max
from transom.ledger.input_hashes import partitions_read
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.ledger.task_counters import TaskCounters

TABLE = "matches"
Codes = Mapping[str, Int64s]
LevelMatches = tuple[int, Int64s, Sequence[Int64s], Sequence[Sequence[int]]]
"""Matches of a level: the level; for each match the end of its window in microseconds, the places of its
records, and for each step of the pattern the index, among these, of the step's first record."""


def matches_of(request: StepRequest, blocks: Mapping[str, PatternBlock]) -> StepResult:
    """Return the matches in the windows that end in the target hours of each pattern."""
    requested = request.rows.get(("events", "events"), {}).keys()
    tasks = []
    for name, targets in request.targets.items():
        block = blocks[name]
        hours = extend_back(targets, block.reach_of_events) & requested
        rows = events_of(request.pins, hours, block)
        hours = {read.hour for hour in targets for read in partitions_read(block.reads_of_batches, hour)}
        hours &= request.rows.get((name, tables_batches.TABLE), {}).keys()
        if hours:
            stored = request.pins.read(tables_batches.TABLE, hours).where(F.col("block") == name)
            columns = [F.lit(True).alias("stored"), *quoted(block.record_columns)]
            rows = rows.unionByName(stored.select(*columns))
        detector = _ship(block.detector) if block.detector else None
        finder = MatchFinder(block, to_ranges(targets), detector, block.schema(TABLE))
        isolated = detector is not None
        key = [*block.key]
        tasks.append(BlockTask(name, rows, compute_counting=finder, by=key, isolated=isolated))
    return StepResult(tasks)


def _ship(path: str) -> Detector:
    """Return a detector that is sent to tasks together with its module, as other machines may lack it."""
    detector = custom_detector.load_detector(path)
    module = sys.modules.get(getattr(detector, "__module__", None) or "")
    if module is not None and getattr(module, "__file__", None):
        cloudpickle.register_pickle_by_value(module)
    return detector


@dataclass(frozen=True)
class MatchFinder:
    """The function of a task: the matches of some keys.

    Attributes:
        ranges: `(a, b]` in microseconds; windows that end in one of them are searched.
        detector: the custom detector; None if the block has a pattern.
        schema: `block.schema(TABLE)`.
    """

    block: PatternBlock
    ranges: Sequence[tuple[int, int]]
    detector: Detector | None
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch], counters: TaskCounters) -> Iterator[pa.RecordBatch]:
        """Yield the matches of some keys, given all their records."""
        records = PatternRecords.gathered(batches, self.block)
        if records is None:
            return
        work = WorkCounter(counters, self.block.widening)
        find = self._by_pattern if self.detector is None else self._by_detector
        for matches in find(records, work):
            yield from match_rows(matches, records, self.block, self.schema)
        work.add_allowed()

    def _by_pattern(self, records: PatternRecords, work: WorkCounter) -> Iterator[LevelMatches]:
        widening, pattern = self.block.widening, self.block.pattern
        assert pattern is not None
        codes = common_codes_of(records, self.block)
        for level, places, rows in self._levels(records, work):
            bits = records.takes[places]
            opens, closes = (bits & pattern.opening) != 0, (bits & pattern.closing) != 0
            needs = [((bits >> step.bit & 1).astype(bool), step.times) for step in pattern.steps]
            windows = windows_to_detect(rows, level, widening, self.ranges, opens, closes, needs)
            work.add_windows(windows)
            of_level = {name: code[places] for name, code in codes.items()}
            for first, last, end in detect_matches(
                pattern, widening, level, windows, rows.time, bits, of_level
            ):
                spans = zip(first, last, strict=True)
                matches, steps = find_instances(pattern, spans, rows.time, bits, of_level)
                yield level, end, [places[match] for match in matches], steps

    def _by_detector(self, records: PatternRecords, work: WorkCounter) -> Iterator[LevelMatches]:
        widening, shown = self.block.widening, records.shown(self.block)
        for level, places, rows in self._levels(records, work):
            windows = windows_to_detect(rows, level, widening, self.ranges)
            work.add_windows(windows)
            ends, matches = [], []
            for match, end in self._detected(level, windows, [shown[place] for place in places], work):
                a, b = match[0], match[-1]
                first, last = int(rows.time[a]), int(rows.time[b])
                near = last - first <= widening.max_length and b - a < widening.max_records
                is_first = near and end == widening.end_of(level, last)
                if is_first and widening.level_of(first, last) == level and not rows.cut[a:b].any():
                    ends.append(end)
                    matches.append(places[match])
            yield level, np.array(ends, dtype=np.int64), matches, [()] * len(ends)

    def _detected(
        self, level: int, windows: DetectorWindows, shown: Sequence[Record], work: WorkCounter
    ) -> Iterator[tuple[Int64s, int]]:
        """Yield the matches that the detector returns: the rows of each, and the end of its window.

        If the detector raises, count the failure with the window's key and bounds, and continue.
        """
        assert self.detector is not None
        length = 2 * self.block.widening.length(level)
        for first, stop, end in zip(windows.first, windows.stop, windows.end.tolist(), strict=True):
            try:
                matches = custom_detector.matches_in(self.detector, shown[first:stop])
            except (Exception, SystemExit) as error:
                key = [f"{name}={shown[first][name]!r}" for name in self.block.key]
                times = np.datetime_as_string(np.array([end - length, end], "datetime64[us]"), unit="s")
                window = f"window {' to '.join(times)}: {custom_detector.format_failure(error)}"
                work.add_failure(end, ", ".join([*key, window]))
            else:
                yield from ((first + np.array(match), end) for match in matches)

    def _levels(
        self, records: PatternRecords, work: WorkCounter
    ) -> Iterator[tuple[int, Int64s, KeyedRecords]]:
        """Yield each level with the rows of its batches, and their places among all records."""
        widening = self.block.widening
        for level in range(widening.levels):
            if level in (0, self.block.lowest):
                places = np.flatnonzero(records.stored if level else ~records.stored)
                rows = records.take(places)
            if level:
                cut = keep_first_and_last(rows, widening.length(level), widening.max_records)
                set_max(work.counters, LONGEST_BATCH, hours_of(cut.end), cut.count)
                places, rows = places[cut.retained], cut.rows
            yield level, places, rows


def common_codes_of(records: PatternRecords, block: PatternBlock) -> dict[str, Int64s]:
    """Return the codes of the columns that steps compare. Columns of one type have common codes."""
    assert block.pattern is not None
    by_type: dict[str, list[str]] = {}
    for column in block.pattern.columns:
        by_type.setdefault({**block.key, **block.carried}[column], []).append(column)
    codes: dict[str, Int64s] = {}
    for columns in by_type.values():
        values = [records.table[block.record_column(column)] for column in columns]
        codes |= zip(columns, common_codes(values), strict=True)
    return codes


def find_instances(
    pattern: EventPattern, spans: Iterable[tuple[int, int]], time: Int64s, bits: Int64s, codes: Codes
) -> tuple[list[Int64s], list[list[int]]]:
    """Find the records of each match whose first and last row are known.

    Args:
        spans: the first and the last row of each match.
        time: the times of the level's rows, as in `RecordWindows`.
        bits: the conditions that they meet, as in `RecordWindows`.
        codes: the codes of their values, as in `RecordWindows`.

    Returns:
        The rows of each match, and for each step of the pattern the index, among these, of its first record.
    """
    places, steps = [], []
    for first, last in spans:
        rows = slice(first, last + 1)
        compared = {name: code[rows].tolist() for name, code in codes.items()}
        instance = smallest(pattern, RecordSequence(time[rows].tolist(), bits[rows].tolist(), compared))
        places.append(first + np.array(instance.places))
        steps.append([instance.steps.index(step.name) for step in pattern.steps])
    return places, steps


def match_rows(
    matches: LevelMatches, records: PatternRecords, block: PatternBlock, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some matches; `schema` is `block.schema("matches")`."""
    level, end, places, firsts = matches
    count = len(end)
    if not count:
        return
    bounds = np.cumsum([0, *map(len, places)])
    matched = np.concatenate(places)
    rows, time = records.table.take(pa.array(matched)), records.time[matched]
    keys = rows.select(list(block.key)).take(pa.array(bounds[:-1]))
    steps = block.pattern.steps if block.pattern else ()
    first_of = {
        step.name: bounds[:-1] + [first[number] for first in firsts] for number, step in enumerate(steps)
    }
    times = {name: time[at].tolist() for name, at in first_of.items()}
    agreed = sorted({(earlier, column) for step in steps for _, earlier, column in step.agrees})
    values: dict[str, list[str | None]] = {}
    for step, column in agreed:
        texts = rows[block.record_column(column)].take(pa.array(first_of[step])).cast(pa.string())
        values[f"{step}.{column}"] = texts.to_pylist()

    def lists(array: pa.Array) -> pa.ListArray:
        return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), array)

    columns = {
        "hour": hour_of_end(end),
        "match_id": _ids(block.name, keys, rows, bounds),
        **{name: keys[name] for name in block.key},
        "level": level,
        "first_time": time[bounds[:-1]],
        "last_time": time[bounds[1:] - 1],
        "detected_at": end,
        "detection_delay_s": (end - time[bounds[1:] - 1]) / 1_000_000,
        "steps": pa.array(
            [
                [{"id": s.name, "time": times[s.name][i], "count": s.times} for s in steps]
                for i in range(count)
            ],
            schema.field("steps").type,
        ),
        "bindings": pa.array(
            [[{"name": name, "value": of[i]} for name, of in values.items()] for i in range(count)],
            schema.field("bindings").type,
        ),
        **{
            column: lists(rows[block.record_column(name)].combine_chunks())
            for name, column in zip(block.keep, block.kept_columns(), strict=True)
        },
        "records": lists(rows.select(list(RECORD)).to_struct_array().combine_chunks()),
    }
    yield from build_batches(count, columns, schema)


def _ids(pattern: str, keys: pa.Table, rows: pa.Table, bounds: Int64s) -> pa.Array:
    """Return the id of each match: a hash of the pattern, the key and the records."""
    time, line = (rows[name].cast(pa.int64()).to_pylist() for name in ("event_time", "source_line"))
    records = list(zip(time, rows["source_id"].to_pylist(), line, strict=True))
    # A table without columns loses its number of rows.
    of_key = keys.to_pylist() if keys.num_columns else [{}] * (len(bounds) - 1)
    texts = (
        json.dumps([pattern, list(key.values()), records[first:stop]], default=str)
        for key, first, stop in zip(of_key, bounds[:-1], bounds[1:], strict=True)
    )
    return pa.array([hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts], pa.string())
