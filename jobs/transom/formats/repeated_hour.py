"""The hour that comes twice when clocks go back: which of the two a local time means, by the order of lines.

A local time of such an hour is two instants. Lines that stand together in it are a run. As long as the
times of a run do not go back by half of what the clock repeats, nothing tells which of the two they mean;
where they do so once, the lines before it are of the first hour and those from there on of the second.
Equal times are no such sign, also where a log has one line an hour: two events may be of one moment. Only
the event's time is looked at; columns of type `timestamp` always mean the first.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.intervals import EPOCH

Int64s = npt.NDArray[np.int64]

_OFFSET = r"[T ].*(?:[Zz]|[+-][0-9]{2}(?::?[0-9]{2}){0,2})$"
_MICROSECOND = timedelta(microseconds=1)
_YEAR = np.int64(365 * 86_400_000_000)


def repeats(text: pa.Array, micros: Int64s, form: str, zone: str) -> Int64s:
    """Return how much later each time is if it means the second of two hours; 0 where it means one instant.

    Args:
        text: the times as they are written, shape (rows,).
        micros: the earlier instants that they mean, in microseconds since 1970, shape (rows,).
        form: iso or a strptime format, as `layout.is_local` accepts it.
        zone: an IANA zone.
    """
    found = np.zeros(len(micros), dtype=np.int64)
    if not len(micros):
        return found
    for start, end in _second_hours(zone, int(micros.min()), int(micros.max())):
        shift = end - start
        found[(micros >= start - shift) & (micros < start)] = shift
    if form == "iso" and found.any():
        said = pc.match_substring_regex(text.cast(pa.string()), _OFFSET)
        found[pc.fill_null(said, False).to_numpy(zero_copy_only=False)] = 0
    return found


def _second_hours(zone: str, first: int, last: int) -> list[tuple[int, int]]:
    years = range(int(first // _YEAR) + 1968, int(last // _YEAR) + 1972)
    return [hour for year in years for hour in _of_year(zone, year)]


@cache
def _of_year(zone: str, year: int) -> tuple[tuple[int, int], ...]:
    """Return the stretches of a year, in microseconds, in which a zone's clocks show times again.

    Clocks that go back do so once or twice a year; a step of a day finds where, halving it finds when.
    """
    place = ZoneInfo(zone)

    def offset(moment: datetime) -> timedelta:
        return moment.astimezone(place).utcoffset() or timedelta(0)

    found = []
    day = datetime(max(year, 1970), 1, 1, tzinfo=UTC)
    while day.year == max(year, 1970):
        low, high = day, day + timedelta(days=1)
        day = high
        shift = offset(low) - offset(high)
        if shift <= timedelta(0):
            continue
        while high - low > timedelta(seconds=1):
            middle = low + (high - low) // 2
            low, high = (low, middle) if offset(middle) < offset(low) else (middle, high)
        change = high.replace(microsecond=0)
        start = (change - EPOCH) // _MICROSECOND
        found.append((start, start + shift // _MICROSECOND))
    return tuple(found)


@dataclass
class Order:
    """Resolves the times of a file, chunk by chunk in the order of its lines.

    Attributes:
        ambiguous: how many times nothing has told.
        first_line: the line of the first of them, None where there is none.
    """

    ambiguous: int = 0
    first_line: int | None = None
    _last: int | None = field(default=None, repr=False)
    _backs: int = field(default=0, repr=False)
    _open: int = field(default=0, repr=False)
    _open_line: int | None = field(default=None, repr=False)

    def resolve(self, times: Int64s, shifts: Int64s, lines: Int64s) -> Int64s:
        """Return the instants that some times mean.

        Args:
            times: the earlier instants, in microseconds, shape (rows,).
            shifts: as `repeats` returns them, shape (rows,).
            lines: the numbers of the lines, ascending, shape (rows,).
        """
        twice = shifts > 0
        if not len(times):
            return times
        if not twice.any():
            self._close()
            return times
        before = np.r_[self._last if self._last is not None else times[0], times[:-1]]
        goes_on = twice & np.r_[self._last is not None, twice[:-1]]
        back = goes_on & (before - times >= shifts // 2)
        begins = twice & ~goes_on
        # How often the times of a run have gone back, up to each of its lines.
        total = np.cumsum(back)
        carried = np.int64(self._backs if goes_on[0] else 0)
        at_begin = np.maximum.accumulate(np.where(begins, total - back, -carried))
        backs = np.where(twice, total - at_begin, 0)
        run = np.cumsum(begins)
        if not goes_on[0]:
            self._close()
        self._count(backs, twice, run, lines)
        self._last = int(times[-1]) if twice[-1] else None
        resolved: Int64s = np.where(backs == 1, times + shifts, times)
        return resolved

    def end(self) -> None:
        """Note that the file ends."""
        self._close()

    def _count(self, backs: Int64s, twice: npt.NDArray[np.bool_], run: Int64s, lines: Int64s) -> None:
        """Count the times that nothing tells: of a run that never goes back, or has gone back twice."""
        rows = np.flatnonzero(twice)
        numbers, index = np.unique(run[rows], return_inverse=True)
        most = np.zeros(len(numbers), dtype=np.int64)
        np.maximum.at(most, index, backs[rows])
        last = index[-1] if twice[-1] else -1
        if self._last is not None and twice[0]:
            if most[0] > 0:
                self._open, self._open_line = 0, None
            elif last != 0:
                self._report(self._open, self._open_line)
                self._open, self._open_line = 0, None
        untold = (backs[rows] > 1) | ((most[index] == 0) & (index != last))
        if untold.any():
            self._report(int(untold.sum()), int(lines[rows[untold][0]]))
        if twice[-1]:
            self._backs = int(backs[-1])
            waits = (most[index] == 0) & (index == last)
            if waits.any():
                self._open += int(waits.sum())
                self._open_line = self._open_line or int(lines[rows[waits][0]])
        else:
            self._backs = 0

    def _close(self) -> None:
        self._report(self._open, self._open_line)
        self._last, self._backs, self._open, self._open_line = None, 0, 0, None

    def _report(self, rows: int, line: int | None) -> None:
        self.ambiguous += rows
        if rows and line is not None:
            self.first_line = line if self.first_line is None else min(self.first_line, line)
