"""Paths of a log's files: which files belong to a stream, and what their names say.

A pattern is a path with three kinds of holes, none of which crosses a `/`:

- parts of a time, as in strftime: `%Y %y %m %b %d %j %H %M %S`, and `%%` for a percent sign;
- `{name}`, a text of at least one character that becomes a column of the events: a name in which it is empty
  is the stream's, and wrong;
- `*`, any text, also none.

All else stands for itself: colons, spaces, brackets, plus signs, in a URI's path too, where nothing is
percent-encoded. A part or a capture that appears twice must say the same both times.
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
# ASCII digits only: int() takes any script's digits, and two names must not mean one hour by that.
_DIGITS = {"Y": "[0-9]{4}", "j": "[0-9]{3}", "b": "(?i:" + "|".join(_MONTHS) + ")"}
_CHAIN: tuple[Unit, ...] = ("year", "month", "day", "hour", "minute", "second")
_CAPTURE = re.compile(r"[a-z][a-z0-9_]{0,62}")
_STAR = "_star"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HOLE = re.compile(r"%(?P<part>.?)|\{(?P<capture>[^{}/]*)\}|(?P<star>\*+)|(?P<brace>[{}])")


def split_scheme(path: str) -> tuple[str, str]:
    """Return a URI's scheme, with its `://`, and the rest; "" and the path where it is no URI."""
    scheme = _SCHEME.match(path)
    return (scheme[0], path[scheme.end() :]) if scheme else ("", path)


@dataclass(frozen=True)
class Match:
    """What a file's name says.

    Attributes:
        captures: the text of each `{name}`.
        start: the beginning of the stretch that the name's time declares, UTC; None without a time.
        end: its end, exclusive.
        unit: the finest part of the time, None without a time.
        varies: the text of each `*`, without what packing and rotation add at the end of a name.
        empty: the captures that have no text, which the name must have.
    """

    captures: dict[str, str]
    start: datetime | None = None
    end: datetime | None = None
    unit: Unit | None = None
    varies: tuple[str, ...] = field(default=(), compare=False)
    empty: tuple[str, ...] = ()

    @property
    def hour(self) -> datetime | None:
        """The hour, in UTC, in which the declared stretch begins; None without a time."""
        return None if self.start is None else hour_of(self.start)


class PathPattern:
    """A compiled pattern.

    Attributes:
        text: the pattern as written.
        base: the leading folder that holds no hole and below which all files of the stream are; ""
            where a relative pattern has none.
        captures: the names of the captures, in order of appearance.
        unit: the finest part of the time, None where the pattern has none.
    """

    def __init__(
        self, text: str, zone: str = "UTC", covers: timedelta | None = None, *, ends: bool = False
    ) -> None:
        """Compile a pattern whose time parts are written in an IANA zone.

        Args:
            text: the pattern.
            zone: of its time parts.
            covers: how long the period of a file is; that of the finest time part if None.
            ends: whether a name says the end of the period; `covers` is required then.

        Raises:
            ValueError: an empty pattern, a `..` or an empty folder in it, an unknown time part, a time
                with a gap (a day without a year), a capture that is no identifier, a stray brace, `**`.
        """
        self.text = text
        self._zone = ZoneInfo(zone)
        self._covers, self._ends = covers, ends
        _check_folders(text)
        parts: list[str] = []
        captures: list[str] = []
        self._regex = _compiled(text, parts, captures)
        # Tried where the other does not match: of two splits of a name, the one without an empty text counts.
        self._loose = _compiled(text, [], [], least="*") if captures else self._regex
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
        """Return what the path says, or None where it is not a file of the stream.

        The path must be written as the pattern is: both relative to the same root, or both absolute.
        A name whose time does not exist (month 13) is no match. A local hour that a clock change
        repeats gives a stretch of two hours; one that it skips is read as if the clock had not changed.
        """
        found = self._regex.fullmatch(path) or self._loose.fullmatch(path)
        if found is None:
            return None
        captures = {name: found[name] for name in self.captures}
        plain = len(split_name(path)[0])
        varies = tuple(path[found.start(star) : min(found.end(star), plain)] for star in self._stars)
        empty = tuple(name for name, text in captures.items() if not text)
        if self.unit is None:
            return Match(captures, varies=varies, empty=empty)
        try:
            begin = _local_start({part: found[f"_{part}"] for part in self._parts})
            start, end = self._period(begin, self.unit)
        except (ValueError, OverflowError):
            return None
        if start >= end:  # a skipped local hour: the clock jumps over the whole stretch
            end = start + (_advance(begin, self.unit) - begin)
        return Match(captures, start, end, self.unit, varies, empty)

    def tail(self, depth: int) -> "PathPattern | None":
        """Return the pattern of the last parts of a path; None where they say a time with a gap, as where the
        date stands in a folder above.

        Args:
            depth: how many parts, at least one.
        """
        parts = split_scheme(self.text)[1].strip("/").split("/")
        try:
            return PathPattern("/".join(parts[-depth:]), self._zone.key, self._covers, ends=self._ends)
        except ValueError:
            return None

    def words_of_empty(self, names: Iterable[str]) -> str:
        """Return what is wrong with a name in which captures have no text, for a person."""
        holes = ", ".join(f"{{{name}}}" for name in names)
        return f"{holes} of source.path, {self.text}, must have a text in each name; it is empty in this one"

    def _period(self, begin: datetime, unit: Unit) -> tuple[datetime, datetime]:
        """Return the start and the end, UTC, of the period of a file whose name says a wall-clock time."""
        if self._covers is None:
            return self._utc(begin), self._utc(_advance(begin, unit))
        first, last = (begin - self._covers, begin) if self._ends else (begin, begin + self._covers)
        if not self._covers % timedelta(days=1):
            return self._utc(first), self._utc(last)
        # Shorter periods go by elapsed time, also where the clock changes.
        named = self._utc(begin)
        return (named - self._covers, named) if self._ends else (named, named + self._covers)

    def format_hour_path(self, start: datetime) -> str:
        """Return what the name of a file looks like; captures and `*` stand as they do in the pattern.

        Args:
            start: of the period that it covers, such as an hour.
        """
        local = start.astimezone(self._zone)
        if self._ends and self._covers is not None:
            whole_days = not self._covers % timedelta(days=1)
            local = local + self._covers if whole_days else (start + self._covers).astimezone(self._zone)
        return _HOLE.sub(lambda hole: local.strftime(hole[0]) if hole["part"] else hole[0], self.text)

    def can_name(self, hour: datetime) -> bool:
        """Return whether the name of a file can say a time in an hour.

        A local hour that a clock change repeats has one name, which means the first of the two.
        """
        if not hour.astimezone(self._zone).fold:
            return True
        # Zones are off by whole quarters of an hour.
        matches = (
            self.match(self.format_hour_path(hour + quarter * timedelta(minutes=15))) for quarter in range(4)
        )
        return any(match is None or match.hour in (None, hour) for match in matches)

    def can_contain(self, folder: str) -> bool:
        """Whether a folder, written as the pattern is, may hold files of the stream, at whatever depth."""
        depth = folder.count("/") + 1
        folders = self.text.split("/")[:-1]
        return depth <= len(folders) and bool(_compiled("/".join(folders[:depth]), [], []).fullmatch(folder))

    def _utc(self, local: datetime) -> datetime:
        return local.replace(tzinfo=self._zone).astimezone(UTC)


def _check_folders(text: str) -> None:
    if not text or text.endswith("/"):
        raise ValueError(f"must name files, not a folder; got {text!r}")
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
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


def _compiled(text: str, parts: list[str], captures: list[str], least: str = "+") -> re.Pattern[str]:
    """Return the expression of a pattern; its time parts and captures are added to the two lists.

    Args:
        least: `+` where a capture has a text, `*` where it may be empty.
    """
    pattern, at, stars = "", 0, 0
    for hole in _HOLE.finditer(text):
        pattern += re.escape(text[at : hole.start()])
        at = hole.end()
        if hole["part"] == "%":
            pattern += "%"
        elif hole["part"] is not None:
            pattern += _time_part(hole["part"], parts, text)
        elif hole["capture"] is not None:
            pattern += _capture(hole["capture"], captures, text, least)
        elif hole["star"] == "*":
            pattern += f"(?P<{_STAR}{stars}>[^/]*)"
            stars += 1
        elif hole["star"]:
            raise ValueError(f"`**` is not known, `*` stays inside a folder; got {text!r}")
        else:
            raise ValueError(f"a brace without its partner; got {text!r}")
    return re.compile(pattern + re.escape(text[at:]), re.DOTALL)


def _time_part(part: str, parts: list[str], text: str) -> str:
    if part not in _UNITS:
        known = " ".join(f"%{name}" for name in _UNITS)
        raise ValueError(f"unknown time part %{part}; known: {known}; got {text!r}")
    if part in parts:
        return f"(?P=_{part})"
    parts.append(part)
    return f"(?P<_{part}>{_DIGITS.get(part, '[0-9]{2}')})"


def _capture(name: str, captures: list[str], text: str, least: str) -> str:
    if not _CAPTURE.fullmatch(name):
        near = get_close_matches(name.lower(), captures, n=1)
        hint = f"; nearest: {near[0]}" if near else ""
        raise ValueError(
            f"a capture is lower-case letters, digits and underscores, a letter first; got {{{name}}}{hint} "
            f"in {text!r}"
        )
    if name in captures:
        return f"(?P={name})"
    captures.append(name)
    return f"(?P<{name}>[^/]{least})"


def _finest(parts: list[str], text: str) -> Unit | None:
    """Return the finest unit, refusing a time with a gap: it would name many hours."""
    if not parts:
        return None
    units = {_UNITS[part] for part in parts}
    if "j" in parts:
        units.add("month")
    finest = max(units, key=_CHAIN.index)
    for unit in _CHAIN[: _CHAIN.index(finest)]:
        if unit not in units:
            raise ValueError(f"a time with its {finest} must also have its {unit}; got {text!r}")
    return finest


def _local_start(parts: dict[str, str]) -> datetime:
    """Return the wall-clock beginning of the stretch, without a zone.

    Raises:
        ValueError: no such time, or parts that contradict each other (%m beside %j or %b).
    """
    year = int(parts["Y"]) if "Y" in parts else _century(int(parts["y"]))
    if "y" in parts and year % 100 != int(parts["y"]):
        raise ValueError("the two years differ")
    if "j" in parts:
        # The zone is the pattern's, and is put on by the caller; so below.
        begin = datetime(year, 1, 1) + timedelta(days=int(parts["j"]) - 1)  # noqa: DTZ001
        month, day = begin.month, begin.day
        if begin.year != year or int(parts.get("m", month)) != month or int(parts.get("d", day)) != day:
            raise ValueError("the day of the year is not that date")
    else:
        named = _MONTHS.index(parts["b"].lower()) + 1 if "b" in parts else None
        month, day = int(parts.get("m", named or 1)), int(parts.get("d", 1))
    if "b" in parts and _MONTHS.index(parts["b"].lower()) + 1 != month:
        raise ValueError("the two months differ")
    hour, minute, second = (int(parts.get(part, 0)) for part in ("H", "M", "S"))
    return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001


def _century(year: int) -> int:
    return year + (1900 if year >= 69 else 2000)  # strptime's rule, from POSIX


def _advance(begin: datetime, unit: Unit) -> datetime:
    if unit == "year":
        return begin.replace(year=begin.year + 1)
    if unit == "month":
        return (begin + timedelta(days=31)).replace(day=1)
    if unit == "day":
        return begin + timedelta(days=1)
    if unit == "hour":
        return begin + timedelta(hours=1)
    return begin + (timedelta(minutes=1) if unit == "minute" else timedelta(seconds=1))
