"""Patterns of file paths: which files belong to a stream, and the times and captures in their names.

A pattern is a path with three kinds of placeholders, none of which matches a `/`:

- parts of a time, as in strftime: `%Y %y %m %b %d %j %H %M %S`, and `%%` for a percent sign;
- `{name}`, a text of at least one character that becomes a column of the events. A name with an empty text
  belongs to the stream and fails a check;
- `*`, any text, possibly empty.

Everything else is literal: colons, spaces, brackets, plus signs, also in the path of a URI, which is not
percent-encoded. A part or a capture that appears twice must match the same text both times.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Literal
from zoneinfo import ZoneInfo

from transom.core.file_names import split_name
from transom.core.intervals import hour_of

Unit = Literal["year", "month", "day", "hour", "minute", "second"]

_UNITS: dict[str, Unit] = {
    "Y": "year", "y": "year", "m": "month", "b": "month", "d": "day", "j": "day",
    "H": "hour", "M": "minute", "S": "second",
}  # fmt: skip
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# ASCII digits only: int() accepts digits of any script, and two names must not mean the same hour.
_DIGITS = {"Y": "[0-9]{4}", "j": "[0-9]{3}", "b": "(?i:" + "|".join(_MONTHS) + ")"}
_MAX_LENGTHS: dict[Unit, timedelta] = {
    "year": timedelta(days=366), "month": timedelta(days=31), "day": timedelta(days=1),
    "hour": timedelta(hours=1), "minute": timedelta(minutes=1), "second": timedelta(seconds=1),
}  # fmt: skip
_STAR = "_star"
_HOLE = re.compile(r"%(?P<part>.?)|\{(?P<capture>[^{}/]*)\}|(?P<star>\*+)|(?P<brace>[{}])")


def split_scheme(path: str) -> tuple[str, str]:
    """Return a URI's scheme, with its `://`, and the rest; for a path without a scheme "" and the path.

    >>> split_scheme("s3://bucket/web.log")
    ('s3://', 'bucket/web.log')
    """
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path)
    return (scheme[0], path[scheme.end() :]) if scheme else ("", path)


@dataclass(frozen=True)
class Match:
    """The parts of a file's name.

    Attributes:
        captures: the text of each `{name}`.
        start: the start of the period of the name's time, UTC; None without a time.
        end: its end, exclusive; None without a time.
        unit: the finest part of the time; None without a time.
        varies: the text of each `*`, without compression and rotation suffixes.
        empty: the captures with an empty text, which is an error.
    """

    captures: dict[str, str]
    start: datetime | None = None
    end: datetime | None = None
    unit: Unit | None = None
    varies: tuple[str, ...] = field(default=(), compare=False)
    empty: tuple[str, ...] = ()

    @property
    def hour(self) -> datetime | None:
        """The hour, in UTC, in which the period begins; None without a time."""
        return None if self.start is None else hour_of(self.start)


class PathPattern:
    """A compiled pattern.

    >>> match = PathPattern("web/{host}/%Y-%m-%d/%H.log").match("web/a1/2024-05-06/07.log")
    >>> match.captures, str(match.start)
    ({'host': 'a1'}, '2024-05-06 07:00:00+00:00')

    Attributes:
        base: the longest leading folder without a placeholder; all files of the stream are below it. "" if a
            relative pattern has none.
        captures: the names of the captures, in order of appearance.
        unit: the finest part of the time; None if the pattern has no time.
        text: the pattern, as written.
    """

    def __init__(
        self, text: str, zone: str = "UTC", covers: timedelta | None = None, *, ends: bool = False
    ) -> None:
        """Compile a pattern.

        Args:
            text: the pattern.
            zone: the IANA zone of its time parts.
            covers: the length of a file's period; None is the length of the finest time part.
            ends: whether the time in a name is the end of the period; then `covers` is required.

        Raises:
            ValueError: an empty pattern, a `..` or an empty folder in it, an unknown time part, a time with a
                gap (a day without a year), a capture that is no identifier, a stray brace, `**`.
        """
        self.text, self._zone, self._covers, self._ends = text, ZoneInfo(zone), covers, ends
        _check_folders(text)
        parts, captures = list[str](), list[str]()
        self._regex = _compiled(text, parts, captures)
        # The fallback: of two ways to split a name, the one without empty texts wins.
        self._loose = _compiled(text, [], [], quantifier="*") if captures else self._regex
        self.captures = tuple(captures)
        self._stars = tuple(name for name in self._regex.groupindex if name.startswith(_STAR))
        self._parts = tuple(parts)
        self.unit = _finest(parts, text)
        first_hole = next((hole.start() for hole in _HOLE.finditer(text) if hole["part"] != "%"), None)
        folder = text[:first_hole].rpartition("/")
        self.base = (folder[0] or folder[1]).replace("%%", "%")

    def __repr__(self) -> str:
        return f"PathPattern({self.text!r}, {self._zone.key!r})"

    def match(self, path: str) -> Match | None:
        """Return the parts of a path that starts where the pattern does; None for no file of the stream.

        A name whose time does not exist (month 13) is no match. A local hour that a clock change repeats is a
        period of two hours. A skipped local hour is read as if the clock did not change.
        """
        if (match := self._regex.fullmatch(path) or self._loose.fullmatch(path)) is None:
            return None
        captures = {name: match[name] for name in self.captures}
        plain = len(split_name(path)[0])
        varies = tuple(path[match.start(star) : min(match.end(star), plain)] for star in self._stars)
        empty = tuple(name for name, text in captures.items() if not text)
        if self.unit is None:
            return Match(captures, varies=varies, empty=empty)
        try:
            begin = _local_start({part: match[f"_{part}"] for part in self._parts})
            start, end = self._period(begin, self.unit)
        except (ValueError, OverflowError):
            return None
        if start >= end:  # a skipped local hour: the clock jumps over the whole period
            end = start + (_advance(begin, self.unit) - begin)
        return Match(captures, start, end, self.unit, varies, empty)

    def tail(self, depth: int) -> "PathPattern | None":
        """Return the pattern of the last `depth` parts of a path; None if their time has a gap."""
        parts = split_scheme(self.text)[1].strip("/").split("/")
        try:
            return PathPattern("/".join(parts[-depth:]), self._zone.key, self._covers, ends=self._ends)
        except ValueError:
            return None

    def words_of_empty(self, names: Iterable[str]) -> str:
        """Return the message for a name with empty captures."""
        empty = ", ".join(f"{{{name}}}" for name in names)
        return f"{empty} of source.path, {self.text}, must have a text in each name; it is empty in this one"

    def _period(self, begin: datetime, unit: Unit) -> tuple[datetime, datetime]:
        """Return start and end, UTC, of the period of a wall-clock time in a name."""
        if self._covers is None:
            return self._utc(begin), self._utc(_advance(begin, unit))
        first, last = (begin - self._covers, begin) if self._ends else (begin, begin + self._covers)
        if not self._covers % timedelta(days=1):
            return self._utc(first), self._utc(last)
        # Shorter periods are elapsed time, also across a clock change.
        named = self._utc(begin)
        return (named - self._covers, named) if self._ends else (named, named + self._covers)

    def format_hour_path(self, start: datetime) -> str:
        """Return the pattern with the time of the period that begins then; captures and `*` remain."""
        local = start.astimezone(self._zone)
        if self._ends and self._covers is not None:
            whole_days = not self._covers % timedelta(days=1)
            local = local + self._covers if whole_days else (start + self._covers).astimezone(self._zone)
        return _HOLE.sub(lambda hole: local.strftime(hole[0]) if hole["part"] else hole[0], self.text)

    def can_name(self, hour: datetime) -> bool:
        """Return whether a name can mean a time in an hour: not in the second of a repeated local hour."""
        if not hour.astimezone(self._zone).fold:
            return True
        # Offsets of zones are multiples of a quarter of an hour.
        times = (hour + timedelta(minutes=minutes) for minutes in (0, 15, 30, 45))
        matches = (self.match(self.format_hour_path(time)) for time in times)
        return any(match is None or match.hour in (None, hour) for match in matches)

    def can_contain(self, folder: str) -> bool:
        """Return whether a folder may contain files of the stream, at any depth."""
        depth, folders = folder.count("/") + 1, self.text.split("/")[:-1]
        return depth <= len(folders) and bool(_compiled("/".join(folders[:depth]), [], []).fullmatch(folder))

    def _utc(self, local: datetime) -> datetime:
        return local.replace(tzinfo=self._zone).astimezone(UTC)


def _check_folders(text: str) -> None:
    if not text or text.endswith("/"):
        raise ValueError(f"must name files, not a folder; got {text!r}")
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError(f"must not hold control characters; got {text!r}")
    scheme, rest = split_scheme(text)
    folders = rest.split("/") if scheme else rest.removeprefix("/").split("/")
    if ".." in folders:
        raise ValueError(f"must not climb with `..`; got {text!r}")
    if scheme and re.search(r"[%{}*]", folders[0]):
        raise ValueError(f"must not hold a hole in a URI's bucket or host; got {text!r}")
    # An empty first folder after a scheme is a URI without a host: file:///landing.
    if "." in folders or "" in (folders[1:] if scheme else folders):
        raise ValueError(f"must not hold an empty folder or `.`; got {text!r}")


def _compiled(text: str, parts: list[str], captures: list[str], quantifier: str = "+") -> re.Pattern[str]:
    """Return the regular expression of a pattern; append its time parts and captures to the two lists."""
    pattern, end = "", 0
    for hole in _HOLE.finditer(text):
        pattern += re.escape(text[end : hole.start()])
        end = hole.end()
        part, capture = hole["part"], hole["capture"]
        if part == "%":
            pattern += "%"
        elif part is not None:
            if part not in _UNITS:
                known = " ".join(f"%{name}" for name in _UNITS)
                raise ValueError(f"unknown time part %{part}; known: {known}; got {text!r}")
            pattern += f"(?P=_{part})" if part in parts else f"(?P<_{part}>{_DIGITS.get(part, '[0-9]{2}')})"
            parts.append(part)
        elif capture is not None:
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", capture):
                near = get_close_matches(capture.lower(), captures, n=1)
                hint = f"; nearest: {near[0]}" if near else ""
                rule = "a capture is lower-case letters, digits and underscores, a letter first"
                raise ValueError(f"{rule}; got {{{capture}}}{hint} in {text!r}")
            pattern += f"(?P={capture})" if capture in captures else f"(?P<{capture}>[^/]{quantifier})"
            captures += [] if capture in captures else [capture]
        elif hole["star"] == "*":
            pattern += f"(?P<{_STAR}{hole.start()}>[^/]*)"
        elif hole["star"]:
            raise ValueError(f"`**` is not known, `*` stays inside a folder; got {text!r}")
        else:
            raise ValueError(f"a brace without its partner; got {text!r}")
    return re.compile(pattern + re.escape(text[end:]), re.DOTALL)


def _finest(parts: list[str], text: str) -> Unit | None:
    """Return the finest unit. Refuse a time with a gap, which would mean many hours."""
    if not parts:
        return None
    units: set[Unit] = {_UNITS[part] for part in parts}
    units |= {"month"} if "j" in parts else set()
    order = list(_MAX_LENGTHS)
    finest = max(units, key=order.index)
    if gaps := [unit for unit in order[: order.index(finest)] if unit not in units]:
        raise ValueError(f"a time with its {finest} must also have its {gaps[0]}; got {text!r}")
    return finest


def _local_start(parts: dict[str, str]) -> datetime:
    """Return the wall-clock start of the period, without a zone; raise a ValueError if there is none."""
    numbers = {
        part: int(text) if text.isdigit() else _MONTHS.index(text.lower()) + 1 for part, text in parts.items()
    }
    short = numbers.get("y", 0)
    year = numbers.get("Y", short + (1900 if short >= 69 else 2000))  # POSIX, strptime
    month, day = numbers.get("m", numbers.get("b", 1)), numbers.get("d", 1)
    hour, minute, second = (numbers.get(part, 0) for part in "HMS")
    begin = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001, as `_utc` adds the zone
    if "j" in numbers:
        begin = begin.replace(month=1, day=1) + timedelta(days=numbers["j"] - 1)
    actual = {"Y": begin.year, "y": begin.year % 100, "m": begin.month, "b": begin.month, "d": begin.day}
    if any(numbers.get(part, number) != number for part, number in actual.items()):
        raise ValueError("parts of the time contradict each other")
    return begin


def _advance(begin: datetime, unit: Unit) -> datetime:
    """Return the end of the unit that begins at a time."""
    end = begin + _MAX_LENGTHS[unit]
    if unit == "year":
        return end.replace(month=1, day=1)
    return end.replace(day=1) if unit == "month" else end
