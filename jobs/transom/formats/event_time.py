"""Compute the time of each event from fields of its record, or from the number of its line.

A local time in the hour that repeats when clocks go back means two instants. The order of lines resolves it:
consecutive lines with such times are a run. If the times of a run go back once, by at least half of the
repeated period, the run is resolved: the lines before are in the first hour, the later ones in the second.
Equal times are no step back, even in a log with one line per hour: two events may have the same time.
Only the event's time is resolved; columns of type `timestamp` always mean the first instant.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core import rounding
from transom.core.intervals import EPOCH
from transom.formats.record_format import RecordFormat, TimeByLineNumber, is_local
from transom.formats.rejections import Int64s, Rejections, int64s, mask
from transom.formats.times import APACHE, LIMIT, REASONS, TIMESTAMP, describe, instants, numbers, out_of_range

_OFFSET = r"[T ].*(?:[Zz]|[+-][0-9]{2}(?::?[0-9]{2}){0,2})$"
_MICROSECOND = timedelta(microseconds=1)
_YEAR = np.int64(365 * 86_400_000_000)
MAX_ADDED = 1e9
"""Limit of the seconds that a field may add to a time: about thirty years."""
ADDED = f"fewer than {MAX_ADDED:.0f} seconds"
FieldReader = Callable[[Sequence[str]], pa.Array]
"""Returns for each line the first value at the paths."""


def repeats(text: pa.Array, micros: Int64s, form: str, zone: str) -> Int64s:
    """Return the shift of each time to its second instant, in microseconds; 0 if it means one instant only.

    Args:
        text: the texts of the times, shape (rows,).
        micros: their earlier instants, in microseconds since 1970, shape (rows,).
        form: iso or a strptime format, as `record_format.is_local` accepts it.
        zone: an IANA zone.
    """
    shifts = np.zeros(len(micros), dtype=np.int64)
    if not len(micros):
        return shifts
    for year in range(int(micros.min() // _YEAR) + 1968, int(micros.max() // _YEAR) + 1972):
        for start, shift in _second_hours(zone, year):
            shifts[(micros >= start - shift) & (micros < start)] = shift
    if form == "iso" and shifts.any():
        shifts[mask(pc.match_substring_regex(text.cast(pa.string()), _OFFSET))] = 0
    return shifts


@cache
def _second_hours(zone: str, year: int) -> tuple[tuple[int, int], ...]:
    """Return the periods of a year in which a zone's clocks repeat times: start and length, in microseconds.

    Search the day in steps of a day, and the second by bisection.
    """
    place = ZoneInfo(zone)

    def lag(second: int) -> timedelta:
        return -(datetime.fromtimestamp(second, place).utcoffset() or timedelta(0))

    periods = []
    first, end = (int(datetime(at, 1, 1, tzinfo=UTC).timestamp()) for at in (year, year + 1))
    for day in range(max(first, 0), end, 86_400):
        shift = lag(day + 86_400) - lag(day)
        if shift > timedelta(0):
            start = day + bisect_right(range(day, day + 86_400), lag(day), key=lag)
            periods.append((start * 1_000_000, shift // _MICROSECOND))
    return tuple(periods)


@dataclass
class Order:
    """Resolves the times of a file, chunk by chunk, in the order of lines.

    >>> times, shifts = np.array([10, 50, 20]), np.array([60, 60, 60])  # in minutes of a repeated hour
    >>> Order().resolve(times, shifts, lines=np.array([1, 2, 3])).tolist()
    [10, 50, 80]

    Attributes:
        ambiguous: the number of unresolved times.
        first_line: the line of the first unresolved time; None if there is none.
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
        columns = (rows, times[rows], shifts[rows], lines[rows])
        for row, time, shift, line in zip(*(column.tolist() for column in columns), strict=True):
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


def by_fields(
    layout: RecordFormat, fields: Mapping[str, pa.Array], read: FieldReader, refused: Rejections
) -> tuple[pa.Array, Int64s | None]:
    """Return the times from fields; refuse lines without one (`missing_time`, `bad_time`, ...).

    Returns:
        The times, where a time in a repeated hour is its first instant; and the shift of each to its second
        instant, in microseconds. The shifts are None if no time is in a repeated hour.
    """
    time = layout.time
    text = read(time.paths)
    if time.more:
        texts = [text, *map(read, time.more)]
        text = pc.binary_join_element_wise(*(part.cast(pa.string()) for part in texts), " ")
    form = APACHE if layout.format == "apache" and time.time_format == "iso" else time.time_format
    refused.add(mask(pc.is_null(text)), "missing_time", expected=_names([time.paths, *time.more], fields))
    times, codes = instants(text, form, time.zone)
    for code in np.unique(codes[codes > 0]).tolist():
        refused.add(codes == code, REASONS[code], values=text, expected=describe(form, REASONS[code]))
    shifts = None
    if time.zone is not None and is_local(form, time.zone):
        shifts = repeats(text, int64s(times), form, time.zone)
        shifts = shifts if shifts.any() else None
    if time.plus:
        extra = read(time.plus)
        seconds, wrong = numbers(extra)
        floats = pc.fill_null(seconds, 0.0).to_numpy(zero_copy_only=False)
        large = ~(np.abs(floats) < MAX_ADDED)
        refused.add(wrong | large, "bad_time", time.plus[0], extra, ADDED)
        micros = int64s(times) + rounding.steps(np.where(large, 0.0, floats), (1, 1_000_000))[0]
        valid = mask(pc.is_valid(times)) & ~large
        bad = valid & out_of_range(micros)
        refused.add(bad, "bad_time", values=text, expected=describe(form))
        times = pa.array(micros, mask=~valid | bad).cast(TIMESTAMP)
    return times, shifts


def by_lines(rule: TimeByLineNumber, start: datetime | None, lines: Int64s, refused: Rejections) -> pa.Array:
    """Return the times from the numbers of the lines; refuse impossible ones (`bad_time`).

    Args:
        rule: the step and the start.
        start: the start of the period in the file's name.
        lines: the numbers of the lines, from 1, shape (rows,).
        refused: receives the refused lines.

    Raises:
        ValueError: times count from the name, and `start` is None.
    """
    first = rule.start
    if first is None:
        if start is None:
            raise ValueError("times count from the file's name, which has none")
        first = (start - EPOCH) // timedelta(microseconds=1)
    # A step may exceed 64 bits. All lines after the limit are refused.
    line_limit = (LIMIT - first) // rule.step + 2
    micros = first + (np.minimum(lines, line_limit) - 1) * min(rule.step, 2 * LIMIT)
    bad = out_of_range(micros)
    refused.add(bad, "bad_time", values=pa.array(lines), expected="a line whose time is from 1970 to 2261")
    return pa.array(micros, mask=bad).cast(TIMESTAMP)


def _names(fields_of: Sequence[Sequence[str]], fields: Mapping[str, pa.Array]) -> str:
    """Return the fields of the time; if the file lacks one of them, also the fields that it has."""
    names = " and ".join(" or ".join(paths) for paths in fields_of)
    if all(any(path in fields for path in paths) for paths in fields_of):
        return names
    return f"{names} among {', '.join(fields)[:200]}"
