"""A set of hours, stored as intervals: a year without a gap is one interval."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Set
from datetime import datetime

import numpy as np

from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR, Interval, merge_hours, moment_of, number_of


class HourSet(Set[datetime]):
    """A set of hours, stored as intervals: ascending, with a gap between neighbours."""

    def __init__(self, intervals: Iterable[Interval] = ()) -> None:
        self.intervals = list(intervals)
        self._starts = [interval.start for interval in self.intervals]

    @classmethod
    def of(cls, hours: Iterable[datetime]) -> "HourSet":
        """Return the set of some hours.

        >>> hours = HourSet.of(moment_of(number) for number in (3, 0, 1))
        >>> len(hours), len(hours.intervals)
        (3, 2)
        """
        return hours if isinstance(hours, cls) else cls(merge_hours(hours))

    @classmethod
    def of_numbers(cls, numbers: Int64s) -> "HourSet":
        """Return the set of hours with some numbers since the epoch, ascending and without repeats."""
        runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
        return cls(Interval(moment_of(int(run[0])), moment_of(int(run[-1]) + 1)) for run in runs if len(run))

    @classmethod
    def _from_iterable(cls, it: Iterable[datetime]) -> set[datetime]:  # type: ignore[override]
        return set(it)

    def __contains__(self, hour: object) -> bool:
        if not isinstance(hour, datetime):
            return False
        at = bisect_right(self._starts, hour) - 1
        return at >= 0 and hour in self.intervals[at]

    def __iter__(self) -> Iterator[datetime]:
        return (hour for interval in self.intervals for hour in interval.hours())

    def __len__(self) -> int:
        return sum(map(len, self.intervals))

    @property
    def numbers(self) -> Int64s:
        """The numbers of the hours since the epoch, ascending."""
        ends = ((number_of(interval.start), number_of(interval.end)) for interval in self.intervals)
        parts = [np.arange(*pair, dtype=np.int64) for pair in ends]
        return np.concatenate([np.array([], dtype=np.int64), *parts])

    @property
    def last(self) -> datetime | None:
        """The last hour; None if the set is empty."""
        return self.intervals[-1].end - HOUR if self.intervals else None

    def last_before(self, moment: datetime) -> datetime | None:
        """Return the last hour that begins before a moment; None if there is none."""
        at = bisect_left(self._starts, moment) - 1
        return None if at < 0 else min(self.intervals[at].end, moment) - HOUR

    def first_from(self, moment: datetime) -> datetime | None:
        """Return the first hour at or after a moment; None if there is none."""
        at = bisect_left(self._starts, moment)
        return moment if moment in self else self._starts[at] if at < len(self._starts) else None

    def since(self, moment: datetime) -> "HourSet":
        """Return the hours at or after a moment."""
        later = (interval for interval in self.intervals if interval.end > moment)
        return HourSet(Interval(max(interval.start, moment), interval.end) for interval in later)

    def within(self, interval: Interval) -> "HourSet":
        """Return the hours of an interval.

        >>> hours = HourSet.of(moment_of(number) for number in (0, 1, 2, 5))
        >>> list(map(number_of, hours.within(Interval(moment_of(1), moment_of(6)))))
        [1, 2, 5]
        """
        shared = (
            (max(own.start, interval.start), min(own.end, interval.end))
            for own in self.intervals[max(bisect_right(self._starts, interval.start) - 1, 0) :]
            if own.start < interval.end
        )
        return HourSet(Interval(start, end) for start, end in shared if start < end)

    def minus(self, others: "HourSet") -> "HourSet":
        """Return the hours that are not in another set."""
        remaining = []
        for interval in self.intervals:
            start = interval.start
            for other in others.intervals[max(bisect_right(others._starts, start) - 1, 0) :]:
                if other.start >= interval.end:
                    break
                if other.start > start:
                    remaining.append(Interval(start, other.start))
                start = max(start, other.end)
            if start < interval.end:
                remaining.append(Interval(start, interval.end))
        return HourSet(remaining)
