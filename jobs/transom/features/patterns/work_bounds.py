"""Counters of the work of a detector, with the bound of theorem 2 (Tolpin, section 4.2)."""

import numpy as np

from transom.arrays.arrow import hour_of_end
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.features.patterns.algorithm.batches import DetectorWindows
from transom.features.patterns.algorithm.widening import Widening
from transom.ledger.task_counters import TaskCounters

LONGEST_BATCH, LONGEST_WINDOW = "longest_batch", "longest_window"
MAX_KEYS = 2**31
"""Larger than the code of any key of a task, so that one number can combine an hour and a key."""
FAILED = "detector_ran"
"""The check for which tasks record the failures of a detector."""
COUNTERS = (
    "windows", "detector_calls", "windows_skipped", "records_shown", "records_allowed", "windows_oversized",
    "records_oversized", LONGEST_WINDOW, LONGEST_BATCH, "detector_failures",
)  # fmt: skip
"""Windows with records. Calls of the detector, which are the windows that it gets. The other windows. Records
that it gets, and their bound. Windows at level 0 with a batch of more than 2L records, and their records. The
longest other window and the longest batch, in records. Failures of the detector."""


def hours_of(ends: Int64s) -> Int64s:
    """Return the hours in which windows end, as numbers since the epoch."""
    return hour_of_end(ends) // HOUR_LENGTH


def set_max(counters: TaskCounters, name: str, hours: Int64s, amounts: Int64s) -> None:
    """Raise the maximum of a counter in each hour; hours may repeat."""
    distinct, number = np.unique(hours, return_inverse=True)
    largest = np.zeros(len(distinct), dtype=np.int64)
    np.maximum.at(largest, number, amounts)
    counters.set_max(name, distinct, largest)


class WorkCounter:
    """Counts the windows of a task, level by level.

    Args:
        counters: the counters of the task.
    """

    def __init__(self, counters: TaskCounters, widening: Widening) -> None:
        self.counters, self._widening = counters, widening
        self._hours_and_keys: list[Int64s] = []

    def add_windows(self, windows: DetectorWindows) -> None:
        """Count the windows of a level."""
        all_hours, hours = hours_of(windows.ends), hours_of(windows.end)
        sizes, over = windows.stop - windows.first, windows.oversized
        self._hours_and_keys.append(_distinct(all_hours * MAX_KEYS + windows.keys))
        for name, of, amounts in (
            ("windows", all_hours, np.ones_like(all_hours)),
            ("windows_skipped", all_hours, np.ones_like(all_hours)),
            ("windows_skipped", hours, -np.ones_like(hours)),
            ("detector_calls", hours, np.ones_like(hours)),
            ("records_shown", hours, sizes),
            ("windows_oversized", hours[over], np.ones_like(hours[over])),
            ("records_oversized", hours[over], sizes[over]),
        ):
            distinct, number = np.unique(of, return_inverse=True)
            self.counters.add(name, distinct, np.bincount(number, amounts, len(distinct)))
        set_max(self.counters, LONGEST_WINDOW, hours[~over], sizes[~over])

    def add_allowed(self) -> None:
        """Count the records that theorem 2 allows, `2 * R(4 * L) / t` per unit of time.

        Each key with a record in a window of an hour has 4L records in each window that ends in the hour.
        """
        hours, keys = np.unique(
            _distinct(np.concatenate(self._hours_and_keys)) // MAX_KEYS, return_counts=True
        )
        widening, start = self._widening, hours * HOUR_LENGTH
        lengths = map(widening.length, range(widening.levels))
        windows = sum((start + HOUR_LENGTH) // length - start // length for length in lengths)
        self.counters.add("records_allowed", hours, keys * windows * 4 * widening.max_records)

    def add_failure(self, end: int, message: str) -> None:
        """Count a window in which the detector raised."""
        hour = int(hours_of(np.array([end]))[0])
        self.counters.add("detector_failures", [hour], [1])
        self.counters.note(FAILED, hour, message)


def _distinct(numbers: Int64s) -> Int64s:
    """Return distinct numbers, ascending: five times as fast as `np.unique`, which hashes."""
    ordered = np.sort(numbers)
    distinct: Int64s = ordered[np.append(True, np.diff(ordered) != 0)[: len(ordered)]]
    return distinct
