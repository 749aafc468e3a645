"""What patterns match: the windows that end in an hour, level by level, and what a detector finds in them."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

from transom.arrays.arrow import common_codes
from transom.core.exact_sums import Bools, Int64s
from transom.engine.hours import reached, stretches_of
from transom.features.patterns import tables_batches as batches
from transom.features.patterns.algorithm.batches import shown, trimmed
from transom.features.patterns.algorithm.detected_matches import sightings
from transom.features.patterns.custom_detection import Detection
from transom.features.patterns.custom_detector import Detector
from transom.features.patterns.detector_path import function
from transom.features.patterns.match_rows import Found, rows_of
from transom.features.patterns.record_rows import of_batches, of_events, of_one_key, union
from transom.features.patterns.records import Records
from transom.features.patterns.resolve import PatternBlock
from transom.features.patterns.work_bounds import Counted, count_batches, hours_of
from transom.ledger.stage import Computed, Request, Share
from transom.ledger.staleness import reached_by
from transom.ledger.task_counters import Tally

TABLE = "matches"


def matches_of(request: Request, blocks: Mapping[str, PatternBlock]) -> Computed:
    """What is found in the windows that end in every pattern's target hours."""
    due = request.rows.get(("events", "events"), {})
    shares = []
    for name, targets in request.targets.items():
        block = blocks[name]
        hours = reached(targets, block.reach_of_events) & due.keys()
        rows = [of_events(request.pins.read("events", hours), block)]
        hours = {read.hour for hour in targets for read in reached_by(block.reads_of_batches, hour)}
        hours &= request.rows.get((name, batches.TABLE), {}).keys()
        if hours:
            rows.append(of_batches(request.pins.read(batches.TABLE, hours), block))
        counted = Matches(block, stretches_of(targets), shipped(block.detector))
        shares.append(Share(name, of_one_key(union(rows), block), counted=counted))
    return Computed(shares)


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
class Matches:
    """What a task makes of its partition's records.

    Attributes:
        stretches: windows that end in them are wanted, `(a, b]` in microseconds.
        detector: a function of the operator's own; None where the block has a pattern.
    """

    block: PatternBlock
    stretches: Sequence[tuple[int, int]]
    detector: Detector | None

    def __call__(self, batches: Iterable[pa.RecordBatch], tally: Tally) -> Iterator[pa.RecordBatch]:
        """The matches of some keys, of which these are all records."""
        records = Records.gathered(batches, self.block)
        if records is None:
            return
        work = Counted(tally, self.block)
        by = self._by_pattern if self.detector is None else self._by_detector
        for found in by(records, work):
            if len(found.end):
                yield from rows_of(found, records, self.block)
        work.allowed()

    def _by_pattern(self, records: Records, work: Counted) -> Iterator[Found]:
        block, pattern, takes = self.block, self.block.pattern, records.takes
        assert pattern is not None
        codes = common_codes_of(records, block)
        opens, closes = (takes & pattern.opening) != 0, (takes & pattern.closing) != 0
        for level, places, cut in self._levels(records, work):
            rows = records.rows(places, cut)
            needs = [((takes[places] >> step.bit & 1).astype(bool), step.times) for step in pattern.steps]
            windows = shown(rows, level, block.widening, self.stretches, opens[places], closes[places], needs)
            work.windows(windows)
            of_level = {name: code[places] for name, code in codes.items()}
            time, bits = records.time[places], takes[places]
            for seen in sightings(pattern, block.widening, level, windows, time, bits, of_level):
                yield Found.of_sightings(level, seen, places, records, pattern, codes)

    def _by_detector(self, records: Records, work: Counted) -> Iterator[Found]:
        assert self.detector is not None
        detection = Detection(self.block, records, self.detector)
        for level, places, cut in self._levels(records, work):
            windows = shown(records.rows(places, cut), level, self.block.widening, self.stretches)
            work.windows(windows)
            yield detection.found(level, places, cut, windows, work.failed)

    def _levels(self, records: Records, work: Counted) -> Iterator[tuple[int, Int64s, Bools]]:
        """The rows of each level's batches, and where they are cut."""
        widening, lowest = self.block.widening, self.block.lowest
        places = np.flatnonzero(~records.stored)
        cut = np.zeros(len(places), dtype=bool)
        for level in range(widening.levels):
            if level == lowest:
                places = np.flatnonzero(records.stored)
                cut = records.cut[places]
            if level:
                left = trimmed(records.rows(places, cut), widening.length(level), widening.most)
                count_batches(work.tally, hours_of(left.end), left.many)
                places, cut = places[left.kept], left.cut[left.kept]
            yield level, places, cut


def common_codes_of(records: Records, block: PatternBlock) -> dict[str, Int64s]:
    """Codes of what the steps compare: of columns of one type, equal where the values are."""
    assert block.pattern is not None
    by_kind: dict[str, list[str]] = {}
    for column in block.pattern.columns:
        by_kind.setdefault({**block.key, **block.carried}[column], []).append(column)
    return {
        column: code
        for columns in by_kind.values()
        for column, code in zip(
            columns, common_codes([records.table[block.held(name)] for name in columns]), strict=True
        )
    }
