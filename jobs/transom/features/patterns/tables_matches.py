"""The table `matches`: the matches in the windows that end in an hour, level by level."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

from transom.arrays.arrow import common_codes
from transom.core.exact_sums import Int64s
from transom.engine.hours import extend_back, to_ranges
from transom.features.patterns import custom_detector, tables_batches
from transom.features.patterns.algorithm.batches import (
    DetectorWindows,
    KeyedRecords,
    keep_first_and_last,
    windows_to_detect,
)
from transom.features.patterns.algorithm.detected_matches import detect_matches
from transom.features.patterns.custom_detector import Detector, Record
from transom.features.patterns.match_rows import LevelMatches, find_instances, rows_of
from transom.features.patterns.records import PatternRecords, by_key, of_batches, of_events
from transom.features.patterns.resolve import PatternBlock
from transom.features.patterns.work_bounds import LONGEST_BATCH, WorkCounter, hours_of, set_max
from transom.ledger.input_hashes import partitions_read
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.ledger.task_counters import TaskCounters

TABLE = "matches"


def matches_of(request: StepRequest, blocks: Mapping[str, PatternBlock]) -> StepResult:
    """Return the matches in the windows that end in the target hours of each pattern."""
    requested = request.rows.get(("events", "events"), {}).keys()
    tasks = []
    for name, targets in request.targets.items():
        block = blocks[name]
        hours = extend_back(targets, block.reach_of_events) & requested
        rows = of_events(request.pins.read("events", hours), block)
        hours = {read.hour for hour in targets for read in partitions_read(block.reads_of_batches, hour)}
        hours &= request.rows.get((name, tables_batches.TABLE), {}).keys()
        if hours:
            rows = rows.unionByName(of_batches(request.pins.read(tables_batches.TABLE, hours), block))
        detector = _ship(block.detector) if block.detector else None
        finder = MatchFinder(block, to_ranges(targets), detector, block.schema(TABLE))
        tasks.append(BlockTask(name, by_key(rows, block), compute_counting=finder))
    return StepResult(tasks)


def _ship(path: str) -> Detector:
    """Return a detector that is sent to tasks with its module, which other machines may not have."""
    detector = custom_detector.load_detector(path)
    module = sys.modules.get(getattr(detector, "__module__", None) or "")
    if module is not None and getattr(module, "__file__", None):
        cloudpickle.register_pickle_by_value(module)
    return detector


@dataclass(frozen=True)
class MatchFinder:
    """Computes the rows of a task.

    Attributes:
        ranges: `(a, b]` in microseconds; the windows that end in one of them are searched.
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
            yield from rows_of(matches, records, self.block, self.schema)
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
            for detected in detect_matches(pattern, widening, level, windows, rows.time, bits, of_level):
                matches, steps = find_instances(pattern, detected, rows.time, bits, of_level)
                yield LevelMatches(level, detected.end, [places[match] for match in matches], steps)

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
            yield LevelMatches(level, np.array(ends, dtype=np.int64), matches, [()] * len(ends))

    def _detected(
        self, level: int, windows: DetectorWindows, shown: Sequence[Record], work: WorkCounter
    ) -> Iterator[tuple[Int64s, int]]:
        """Yield what the detector returns: the rows of each match, and the end of its window.

        If the detector raises, the window's key and bounds are noted, and the other windows go on.
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
    """Return codes of the columns that steps compare. Columns of one type have common codes."""
    assert block.pattern is not None
    by_type: dict[str, list[str]] = {}
    for column in block.pattern.columns:
        by_type.setdefault({**block.key, **block.carried}[column], []).append(column)
    codes: dict[str, Int64s] = {}
    for columns in by_type.values():
        values = [records.table[block.record_column(column)] for column in columns]
        codes |= zip(columns, common_codes(values), strict=True)
    return codes
