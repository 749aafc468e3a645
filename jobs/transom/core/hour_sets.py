"""A set of hours, of which a year without a gap is one stretch."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Set
from datetime import datetime

import numpy as np
import numpy.typing as npt

from transom.core.intervals import HOUR, Interval, merge_hours, moment_of

Int64s = npt.NDArray[np.int64]


class HourSet(Set[datetime]):
    """Hours, as the fewest stretches that hold them.

    Args:
        stretches: in order, with a gap between each two.
    """

    def __init__(self, stretches: Iterable[Interval] = ()) -> None:
        self.stretches = list(stretches)
        self._starts = [stretch.start for stretch in self.stretches]

    @classmethod
    def of(cls, hours: Iterable[datetime]) -> "HourSet":
        """Return a set of some hours."""
        return hours if isinstance(hours, cls) else cls(merge_hours(hours))

    @classmethod
    def of_numbers(cls, numbers: Int64s) -> "HourSet":
        """Return a set of hours that are counted from the epoch, in order and each once."""
        breaks = np.flatnonzero(np.diff(numbers) > 1)
        starts = numbers[np.r_[0, breaks + 1]].tolist() if len(numbers) else []
        ends = numbers[np.r_[breaks, len(numbers) - 1]].tolist() if len(numbers) else []
        return cls(
            Interval(moment_of(start), moment_of(end + 1)) for start, end in zip(starts, ends, strict=True)
        )

    @classmethod
    def _from_iterable(cls, it: Iterable[datetime]) -> set[datetime]:  # type: ignore[override]
        return set(it)

    def __contains__(self, hour: object) -> bool:
        if not isinstance(hour, datetime):
            return False
        at = bisect_right(self._starts, hour) - 1
        return at >= 0 and hour in self.stretches[at]

    def __iter__(self) -> Iterator[datetime]:
        """The hours, in order."""
        return (hour for stretch in self.stretches for hour in stretch.hours())

    def __len__(self) -> int:
        return sum(map(len, self.stretches))

    @property
    def last(self) -> datetime | None:
        """The last hour; None where there is none."""
        return self.stretches[-1].end - HOUR if self.stretches else None

    def last_before(self, moment: datetime) -> datetime | None:
        """The last hour that begins before a moment; None where there is none."""
        at = bisect_left(self._starts, moment) - 1
        return None if at < 0 else min(self.stretches[at].end, moment) - HOUR

    def first_from(self, moment: datetime) -> datetime | None:
        """The first hour from a moment on; None where there is none."""
        if moment in self:
            return moment
        at = bisect_left(self._starts, moment)
        return self._starts[at] if at < len(self._starts) else None

    def since(self, moment: datetime) -> "HourSet":
        """The hours from a moment on."""
        kept = (stretch for stretch in self.stretches if stretch.end > moment)
        return HourSet(Interval(max(stretch.start, moment), stretch.end) for stretch in kept)

    def minus(self, others: "HourSet") -> "HourSet":
        """The hours that others do not have."""
        left = []
        for stretch in self.stretches:
            start = stretch.start
            for other in others.stretches[max(bisect_right(others._starts, start) - 1, 0) :]:
                if other.start >= stretch.end:
                    break
                if other.start > start:
                    left.append(Interval(start, other.start))
                start = max(start, other.end)
            if start < stretch.end:
                left.append(Interval(start, stretch.end))
        return HourSet(left)
