"""The work of finding matches, counted: beside what theory allows, and what the gate says of it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from transom.arrays.arrow import hour_of_end
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.engine.check_builders import built_in
from transom.features.patterns.algorithm.batches import DetectorWindows
from transom.features.patterns.resolve import PatternBlock
from transom.ledger.check import Check
from transom.ledger.stage import TableStep
from transom.ledger.task_counters import TaskCounters
from transom.spec.stream import Stream

LONGEST_BATCH, LONGEST_WINDOW = "longest_batch", "longest_window"
MAX_KEYS = 2**31
"""Above the code of any key of a task: an hour and a key are one number."""
FAILED = "detector_ran"
"""The check of a detector, for which tasks note where it has raised."""
COUNTERS = (
    "windows", "detector_calls", "windows_skipped", "records_shown", "records_allowed", "windows_oversized",
    "records_oversized", LONGEST_WINDOW, LONGEST_BATCH, "detector_failures",
)  # fmt: skip
"""Windows that are not empty; of these the ones that are shown to the detector, and the others; records of
those; how many theory allows; windows at level 0 with a batch of more than 2L records, and their records."""


def with_work(step: TableStep, stream: Stream, blocks: Mapping[str, PatternBlock]) -> TableStep:
    """The step of the matches, with its work counted and held against its bounds."""
    most = {name: block.widening.max_records for name, block in blocks.items()}
    return replace(
        step,
        counters=COUNTERS,
        bounds={"records_shown": "records_allowed"},
        derived={
            **step.derived,
            **_beyond(most),
            "records_beyond": lambda row: max(
                0, row["records_shown"] - row["records_oversized"] - row["records_allowed"]
            ),
        },
        checks=(
            *step.checks,
            *_bounds(stream),
            *built_in(stream, "work_within_bound", metric="records_beyond", at_most=0),
            *built_in(stream, FAILED, metric="detector_failures", at_most=0),
        ),
    )


def with_sizes(step: TableStep, stream: Stream, blocks: Mapping[str, PatternBlock]) -> TableStep:
    """The step of the batches, held against their bound."""
    most = {name: block.widening.max_records for name, block in blocks.items()}
    return replace(step, counters=(LONGEST_BATCH,), derived=_beyond(most), checks=_bounds(stream)[:1])


def _bounds(stream: Stream) -> tuple[Check, ...]:
    return (
        *built_in(stream, "batches_within_bound", metric="batch_beyond", at_most=0),
        *built_in(stream, "windows_within_bound", metric="window_beyond", at_most=0),
    )


def _beyond(most: Mapping[str, int]) -> dict[str, Callable[[Mapping[str, Any]], float | None]]:
    return {
        "batch_beyond": lambda row: max(0, row[LONGEST_BATCH] - 2 * most[row["block"]]),
        "window_beyond": lambda row: max(0, row.get(LONGEST_WINDOW, 0) - 4 * most[row["block"]]),
    }


def hours_of(ends: Int64s) -> Int64s:
    """The hours that moments end in, counted from the epoch."""
    return hour_of_end(ends) // HOUR_LENGTH


def count_batches(tally: TaskCounters, hours: Int64s, many: Int64s) -> None:
    """Counts the records of batches or of parts of them, each in an hour, counted from the epoch."""
    tally.set_max(LONGEST_BATCH, *_largest(hours, many))


class WorkCounter:
    """The windows of a task, counted level by level."""

    def __init__(self, tally: TaskCounters, block: PatternBlock) -> None:
        self.tally, self._block = tally, block
        self._seen: list[Int64s] = []

    def windows(self, shown: DetectorWindows) -> None:
        """Counts the windows of a level."""
        every, seen = hours_of(shown.ends), hours_of(shown.end)
        many = shown.stop - shown.first
        self._seen.append(_distinct(every * MAX_KEYS + shown.keys))
        self._sum("windows", every, np.ones_like(every))
        self._sum("windows_skipped", every, np.ones_like(every))
        self._sum("windows_skipped", seen, -np.ones_like(seen))
        self._sum("detector_calls", seen, np.ones_like(seen))
        self._sum("records_shown", seen, many)
        over, bounded = shown.oversized, ~shown.oversized
        self._sum("windows_oversized", seen[over], np.ones_like(seen[over]))
        self._sum("records_oversized", seen[over], many[over])
        self.tally.set_max(LONGEST_WINDOW, *_largest(seen[bounded], many[bounded]))

    def allowed(self) -> None:
        """Counts what theory allows: of each key with a record in some window of an hour 4L records in every
        window of all levels that ends in it (theorem 2, `2 R(4L) / t` in the unit of time)."""
        pairs = _distinct(np.concatenate(self._seen))
        hours, many = np.unique(pairs // MAX_KEYS, return_counts=True)
        widening = self._block.widening
        lengths = [widening.length(level) for level in range(widening.levels)]
        start = hours * HOUR_LENGTH
        ends = sum((start + HOUR_LENGTH) // length - start // length for length in lengths)
        self.tally.add("records_allowed", hours, many * ends * 4 * widening.max_records)

    def failed(self, end: int, said: str) -> None:
        """Counts a window in which the detector has raised."""
        hour = int(hours_of(np.array([end]))[0])
        self.tally.add("detector_failures", [hour], [1])
        self.tally.note(FAILED, hour, said)

    def _sum(self, name: str, hours: Int64s, amounts: Int64s) -> None:
        of, at = np.unique(hours, return_inverse=True)
        total = np.zeros(len(of), dtype=np.int64)
        np.add.at(total, at, amounts)
        self.tally.add(name, of, total)


def _distinct(numbers: Int64s) -> Int64s:
    """Each number once, ascending; by sorting, which takes a fifth of numpy's own time, by hashes."""
    ordered = np.sort(numbers)
    found: Int64s = ordered[np.append(True, np.diff(ordered) != 0)[: len(ordered)]]
    return found


def _largest(hours: Int64s, amounts: Int64s) -> tuple[Int64s, Int64s]:
    """The largest amount of each hour."""
    of, at = np.unique(hours, return_inverse=True)
    largest = np.zeros(len(of), dtype=np.int64)
    np.maximum.at(largest, at, amounts)
    return of, largest
