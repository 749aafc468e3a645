"""What patterns match: the windows that end in an hour, level by level, and what a detector finds in them."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

from transom.arrays.arrow import common_codes
from transom.core.exact_sums import Bools, Int64s
from transom.engine.hours import extend_back, to_ranges
from transom.features.patterns import tables_batches as batches
from transom.features.patterns.algorithm.batches import keep_first_and_last, windows_to_detect
from transom.features.patterns.algorithm.detected_matches import detect_matches
from transom.features.patterns.custom_detection import CustomDetection
from transom.features.patterns.custom_detector import Detector
from transom.features.patterns.detector_path import function
from transom.features.patterns.match_rows import LevelMatches, rows_of
from transom.features.patterns.record_rows import of_batches, of_events, of_one_key, union
from transom.features.patterns.records import PatternRecords
from transom.features.patterns.resolve import PatternBlock
from transom.features.patterns.work_bounds import WorkCounter, count_batches, hours_of
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.ledger.staleness import partitions_read
from transom.ledger.task_counters import TaskCounters

TABLE = "matches"


def matches_of(request: StepRequest, blocks: Mapping[str, PatternBlock]) -> StepResult:
    """What is found in the windows that end in every pattern's target hours."""
    due = request.rows.get(("events", "events"), {})
    shares = []
    for name, targets in request.targets.items():
        block = blocks[name]
        hours = extend_back(targets, block.reach_of_events) & due.keys()
        rows = [of_events(request.pins.read("events", hours), block)]
        hours = {read.hour for hour in targets for read in partitions_read(block.reads_of_batches, hour)}
        hours &= request.rows.get((name, batches.TABLE), {}).keys()
        if hours:
            rows.append(of_batches(request.pins.read(batches.TABLE, hours), block))
        counted = MatchFinder(block, to_ranges(targets), shipped(block.detector))
        shares.append(BlockTask(name, of_one_key(union(rows), block), compute_counting=counted))
    return StepResult(shares)


def shipped(path: str | None) -> Detector | None:
    """A detector as tasks are sent it: with its module, which their machines need not have."""
    if path is None:
        return None
    found = function(path)
    module = sys.modules.get(getattr(found, "__module__", None) or "")
    if module is not None and getattr(module, "__file__", None):
        cloudpickle.register_pickle_by_value(module)
    return found


@dataclass(frozen=True)
class MatchFinder:
    """What a task makes of its partition's records.

    Attributes:
        ranges: windows that end in them are wanted, `(a, b]` in microseconds.
        detector: a function of the operator's own; None where the block has a pattern.
    """

    block: PatternBlock
    ranges: Sequence[tuple[int, int]]
    detector: Detector | None

    def __call__(self, batches: Iterable[pa.RecordBatch], tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        """The matches of some keys, of which these are all records."""
        records = PatternRecords.gathered(batches, self.block)
        if records is None:
            return
        work = WorkCounter(tally, self.block)
        by = self._by_pattern if self.detector is None else self._by_detector
        for found in by(records, work):
            if len(found.end):
                yield from rows_of(found, records, self.block)
        work.allowed()

    def _by_pattern(self, records: PatternRecords, work: WorkCounter) -> Iterator[LevelMatches]:
        block, pattern, takes = self.block, self.block.pattern, records.takes
        assert pattern is not None
        codes = common_codes_of(records, block)
        opens, closes = (takes & pattern.opening) != 0, (takes & pattern.closing) != 0
        for level, places, cut in self._levels(records, work):
            rows = records.rows(places, cut)
            needs = [((takes[places] >> step.bit & 1).astype(bool), step.times) for step in pattern.steps]
            windows = windows_to_detect(
                rows, level, block.widening, self.ranges, opens[places], closes[places], needs
            )
            work.windows(windows)
            of_level = {name: code[places] for name, code in codes.items()}
            time, bits = records.time[places], takes[places]
            for seen in detect_matches(pattern, block.widening, level, windows, time, bits, of_level):
                yield LevelMatches.of_sightings(level, seen, places, records, pattern, codes)

    def _by_detector(self, records: PatternRecords, work: WorkCounter) -> Iterator[LevelMatches]:
        assert self.detector is not None
        detection = CustomDetection(self.block, records, self.detector)
        for level, places, cut in self._levels(records, work):
            windows = windows_to_detect(records.rows(places, cut), level, self.block.widening, self.ranges)
            work.windows(windows)
            yield detection.matches(level, places, cut, windows, work.failed)

    def _levels(self, records: PatternRecords, work: WorkCounter) -> Iterator[tuple[int, Int64s, Bools]]:
        """The rows of each level's batches, and where they are cut."""
        widening, lowest = self.block.widening, self.block.lowest
        places = np.flatnonzero(~records.stored)
        cut = np.zeros(len(places), dtype=bool)
        for level in range(widening.levels):
            if level == lowest:
                places = np.flatnonzero(records.stored)
                cut = records.cut[places]
            if level:
                left = keep_first_and_last(
                    records.rows(places, cut), widening.length(level), widening.max_records
                )
                count_batches(work.tally, hours_of(left.end), left.count)
                places, cut = places[left.retained], left.cut[left.retained]
            yield level, places, cut


def common_codes_of(records: PatternRecords, block: PatternBlock) -> dict[str, Int64s]:
    """Codes of what the steps compare: of columns of one type, equal where the values are."""
    assert block.pattern is not None
    by_kind: dict[str, list[str]] = {}
    for column in block.pattern.columns:
        by_kind.setdefault({**block.key, **block.carried}[column], []).append(column)
    return {
        column: code
        for columns in by_kind.values()
        for column, code in zip(
            columns, common_codes([records.table[block.record_column(name)] for name in columns]), strict=True
        )
    }
