"""Resolve local times in the hour that repeats when clocks go back, by the order of lines.

A local time in such an hour means two instants. Consecutive lines with such times are a run. While the times
of a run do not go back by half of the repeated period, they cannot be resolved. If they go back once, the
lines before are in the first hour and the later ones in the second. Equal times are no such sign, even in a
log with one line per hour: two events may have the same time. Only the event's time is resolved; columns of
type `timestamp` always mean the first instant.
"""

from dataclasses import dataclass
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
    """Return the shift of each time to its second instant; 0 if it means one instant only.

    Args:
        text: the texts of the times, shape (rows,).
        micros: their earlier instants, in microseconds since 1970, shape (rows,).
        form: iso or a strptime format, as `layout.is_local` accepts it.
        zone: an IANA zone.
    """
    shifts = np.zeros(len(micros), dtype=np.int64)
    if not len(micros):
        return shifts
    for start, end in _second_hours(zone, int(micros.min()), int(micros.max())):
        shift = end - start
        shifts[(micros >= start - shift) & (micros < start)] = shift
    if form == "iso" and shifts.any():
        has_offset = pc.match_substring_regex(text.cast(pa.string()), _OFFSET)
        shifts[pc.fill_null(has_offset, False).to_numpy(zero_copy_only=False)] = 0
    return shifts


def _second_hours(zone: str, first: int, last: int) -> list[tuple[int, int]]:
    years = range(int(first // _YEAR) + 1968, int(last // _YEAR) + 1972)
    return [hour for year in years for hour in _of_year(zone, year)]


@cache
def _of_year(zone: str, year: int) -> tuple[tuple[int, int], ...]:
    """Return the periods of a year, in microseconds, in which a zone's clocks repeat times.

    Clocks go back at most once or twice a year; steps of a day find the day, bisection the second.
    """
    place = ZoneInfo(zone)

    def offset(moment: datetime) -> timedelta:
        return moment.astimezone(place).utcoffset() or timedelta(0)

    periods = []
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
        periods.append((start, start + shift // _MICROSECOND))
    return tuple(periods)


@dataclass
class Order:
    """Resolves the times of a file, chunk by chunk, in the order of lines.

    Attributes:
        ambiguous: the number of unresolved times.
        first_line: the line of the first of them, None if there is none.
    """

    ambiguous: int = 0
    first_line: int | None = None
    _last: int | None = None
    _backs: int = 0
    _waiting: int = 0
    _waiting_line: int | None = None

    def resolve(self, times: Int64s, shifts: Int64s, lines: Int64s) -> Int64s:
        """Return the resolved instants of times.

        Args:
            times: the earlier instants, in microseconds, shape (rows,).
            shifts: the result of `repeats`, shape (rows,).
            lines: the numbers of the lines, ascending, shape (rows,).
        """
        resolved, previous_row = times.copy(), -1
        # A loop is enough: these are the rows of two hours a year.
        rows = np.flatnonzero(shifts)
        of_rows = zip(
            *(column.tolist() for column in (rows, times[rows], shifts[rows], lines[rows])), strict=True
        )
        for row, time, shift, line in of_rows:
            if row > previous_row + 1:
                self.end()
            if self._last is not None and self._last - time >= shift // 2:
                self._backs, self._waiting, self._waiting_line = self._backs + 1, 0, None
            if self._backs == 0:
                self._waiting, self._waiting_line = self._waiting + 1, self._waiting_line or line
            elif self._backs == 1:
                resolved[row] += shift
            else:
                self._report(1, line)
            self._last, previous_row = time, row
        if previous_row + 1 < len(times):
            self.end()
        return resolved

    def end(self) -> None:
        """End a run; also called at the end of the file."""
        self._report(self._waiting, self._waiting_line)
        self._last, self._backs, self._waiting, self._waiting_line = None, 0, 0, None

    def _report(self, rows: int, line: int | None) -> None:
        self.ambiguous += rows
        if rows and line is not None:
            self.first_line = line if self.first_line is None else min(self.first_line, line)
