"""Lines of JSON each of which holds a list of records: a line for every record, as it stands there.

The records are found by their places: what is read of them here is thrown away, and each is read again
by itself, as a line is. What a column takes from the objects around a record is written into it, under
its whole path.
"""

import json
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from transom.formats.json.lines import (
    DEEPEST,
    SURROGATE,
    Raw,
    json_text,
    loaded,
    refuse_constant,
    too_deep,
    value_at,
    why,
)
from transom.formats.json.record_paths import by_level, lists_of
from transom.formats.lines import LINES
from transom.formats.typed_columns import Refusals, detail

BLANK = re.compile(r"[ \t\r\n]*")
ONE_LINE = "an object a line, not one over several lines"
# Numbers stay text: how long they are, and whether a double holds them, is for the record's reading to say.
DECODER = json.JSONDecoder(parse_float=Raw, parse_int=Raw, parse_constant=refuse_constant)
LONGEST_AROUND = 2**16
"""Characters that may be taken from around a record: each record of the list gets a copy."""
MOST_CHARACTERS = 2**25
"""Characters of records that are given at a time."""
KINDS: Mapping[type, str] = {dict: "an object", list: "a list", bool: "true or false", Raw: "a number"}


@dataclass(frozen=True)
class Text:
    """Lines, or records that stand for lines.

    Attributes:
        strings: null where one is refused before it is parsed.
        raw: what is kept of one that is refused.
    """

    strings: pa.Array
    raw: pa.Array
    refused: Refusals


class NoRecords(ValueError):
    """An object, or another value, without a list at the path.

    Attributes:
        seen: what is there instead, and where; None where nothing is there.
    """

    def __init__(self, seen: str | None = None) -> None:
        self.seen = seen
        super().__init__(seen)


def spread(lines: Text, path: str, around: Sequence[str] = ()) -> Iterator[Text]:
    """The records of lines, in their order, at most `LINES` at a time.

    A line that is refused already, is no JSON (`bad_json`) or has no list at the path (`no_records`) counts
    as one record; a list without records counts as none.

    Args:
        path: as the option has it, `Records[]` or `detail.items[]`, or through lists in lists,
            `resourceLogs[].scopeLogs[].logRecords[]`.
        around: paths of what each record takes from the objects around it, as in `record_paths`; a record
            that is an object gets a member of that name, where there is a value.
    """
    held = _Held()
    finder = _Finder(path, around)
    for row, line in enumerate(lines.strings):
        text = line.as_py()
        if lines.refused.any[row]:
            held.add_refused(lines.raw[row].as_py(), lines.refused, row)
        else:
            try:
                groups = finder.groups(text)
            except NoRecords as error:
                expected = f"a list at {path}"
                held.add_refused(text.encode(), None, 0, "no_records", error.seen, expected)
            except ValueError:
                held.add_refused(text.encode(), None, 0, "bad_json", _seen(text, path), ONE_LINE)
            else:
                for group in groups:
                    members = group.members()
                    for start, end in zip(group.places[0::2], group.places[1::2], strict=True):
                        held.add(text[start:end], members)
                        if held.is_full:
                            yield held.taken()
        if held.is_full:
            yield held.taken()
    if held.strings:
        yield held.taken()


class _Held:
    """Records that wait to be given."""

    def __init__(self) -> None:
        self.strings: list[str | None] = []
        self.raw: list[str | None] = []
        self.characters = 0
        self.refused: list[tuple[int, bytes, object, object, object]] = []

    @property
    def is_full(self) -> bool:
        """Whether what waits is to be given before more is added."""
        return len(self.strings) >= LINES or self.characters >= MOST_CHARACTERS

    def add(self, record: str, members: str) -> None:
        """Adds a record with the members that it takes from around it."""
        if len(members) > LONGEST_AROUND:
            expected = f"at most {LONGEST_AROUND} characters from around a record"
            self.add_refused(record.encode(), None, 0, "line_too_long", str(len(members)), expected)
            return
        whole = record
        if members and record[0] == "{":
            comma = "," if record[1:-1].strip(" \t\r\n") else ""
            whole = f"{record[:-1]}{comma}{members}}}"
        self.strings.append(whole)
        self.raw.append(record)
        self.characters += len(whole)

    def add_refused(
        self,
        raw: bytes,
        known: Refusals | None,
        row: int,
        reason: str = "",
        seen: str | None = None,
        expected: str = "",
    ) -> None:
        if known is not None:
            said = known.reason[row], known.column[row], known.detail[row]
        else:
            said = reason, None, detail(reason, seen, expected)
        self.refused.append((len(self.strings), raw, *said))
        self.strings.append(None)
        self.raw.append(None)

    def taken(self) -> Text:
        """What waits, as arrays."""
        raw = [None if text is None else text.encode() for text in self.raw]
        refused = Refusals.none(len(raw))
        for row, line, *said in self.refused:
            raw[row] = line
            refused.any[row] = True
            refused.reason[row], refused.column[row], refused.detail[row] = said
        found = Text(pa.array(self.strings, pa.string()), pa.array(raw, pa.large_binary()), refused)
        self.strings, self.raw, self.characters, self.refused = [], [], 0, []
        return found


def _seen(text: str, path: str) -> str | None:
    """Why a line is no JSON, and where, as one that is a record by itself would say it."""
    try:
        loaded(text, _around(path))
    except ValueError as error:
        return why(error)
    return None


def _around(path: str) -> int:
    """The arrays and objects in which the records of a path stand."""
    return path.count(".") + path.count("[]") + 1


@dataclass
class _Group:
    """The records of one list.

    Attributes:
        places: where each begins and ends.
        around: what is taken from the objects around the list, by its full path.
    """

    places: "array[int]"
    around: dict[str, Any] = field(default_factory=dict)

    def members(self) -> str:
        """Return what is taken from around, as members of an object; those without a value are left out."""
        found = {path: value for path, value in sorted(self.around.items()) if value is not None}
        text = ",".join(f"{json_text(path)}:{json_text(value)}" for path, value in found.items())
        return SURROGATE.sub("\ufffd", text)


@dataclass
class _Lists:
    """The lists that an object leads to.

    Attributes:
        met: levels at which there is a list.
        lacking: levels at which an object has none.
    """

    groups: list[_Group] = field(default_factory=list)
    met: set[int] = field(default_factory=set)
    lacking: set[int] = field(default_factory=set)

    def add(self, other: "_Lists") -> None:
        self.groups += other.groups
        self.met |= other.met
        self.lacking |= other.lacking


@dataclass(frozen=True)
class _Other:
    """What stands where a list, or an object that leads to one, is looked for.

    Attributes:
        seen: the place, and what is there.
    """

    seen: str


_Result = _Lists | _Other | None


class _Finder:
    """Looks for the records of lines, by one walk over the text of each."""

    def __init__(self, path: str, around: Sequence[str]) -> None:
        self.path = path
        self.lists = lists_of(path)
        self.wanted = by_level(around, path)

    def groups(self, text: str) -> list[_Group]:
        """Return the lists of records of a line.

        Raises:
            NoRecords: there is no list: it is not there, or something else is, or of lists in lists no object
                of an outer list has an inner one.
            ValueError: it is no JSON, or one deeper than records may be, the path's own brackets aside.
        """
        if too_deep(text, DEEPEST + _around(self.path)):
            raise ValueError("too deep")
        at = _blank(text, 0)
        if text[at : at + 1] == "{":
            found, end = self.object(text, at, 0, "")
        else:
            found, end = None, DECODER.raw_decode(text, at)[1]
        if _blank(text, end) != len(text):
            raise ValueError("more than one value")
        if isinstance(found, _Other):
            raise NoRecords(found.seen)
        if found is None or found.lacking - found.met:
            raise NoRecords
        return found.groups

    def object(self, text: str, at: int, level: int, where: str) -> tuple[_Result, int]:
        """Return what the object of a level leads to, and where it ends."""
        wanted = self.wanted[level]
        found, values, end = self.inside(text, at, self.lists[level], level, where, frozenset(wanted))
        if isinstance(found, _Lists):
            for group in found.groups:
                group.around |= {wanted[path]: value for path, value in values.items()}
        return found, end

    def inside(
        self, text: str, at: int, path: str, level: int, where: str, wanted: frozenset[str]
    ) -> tuple[_Result, dict[str, Any], int]:
        """Return what a path leads to in an object, the values at wanted paths, and where the object ends.

        A member named as the whole path goes first; of two members of one name the last counts.
        """
        first, dot, rest = path.partition(".")
        whole: _Result = None
        part: _Result = None
        named = False
        held: dict[str, Any] = {}
        below: dict[str, Any] = {}
        at = _blank(text, at + 1)
        closed = text[at : at + 1] == "}"
        while not closed:
            if text[at : at + 1] != '"':
                raise ValueError("a name is missing")
            name, at = DECODER.raw_decode(text, at)
            at = _blank(text, _after(text, at, ":"))
            sign = text[at : at + 1]
            if name == path and sign == "[":
                whole, at = self.elements(text, at, level, f"{where}{path}")
            elif name == first and dot and sign == "{":
                further = frozenset(p.removeprefix(f"{name}.") for p in wanted if p.startswith(f"{name}."))
                part, below, at = self.inside(text, at, rest, level, f"{where}{name}.", further)
            else:
                value, at = DECODER.raw_decode(text, at)
                if name == path:
                    whole = _other(value, f"{where}{path}")
                elif name == first and dot:
                    part, below = _other(value, f"{where}{name}"), {}
                if any(p == name or p.startswith(f"{name}.") for p in wanted):
                    held[name] = value
            named |= name == path
            at = _blank(text, at)
            closed = text[at : at + 1] == "}"
            if not closed:
                at = _blank(text, _after(text, at, ","))
        values = {p: value_at(held, p) for p in wanted}
        for p, value in below.items():
            if f"{first}.{p}" not in held:
                values[f"{first}.{p}"] = value
        return whole if named else part, values, at + 1

    def elements(self, text: str, at: int, level: int, where: str) -> tuple[_Lists | _Other, int]:
        """Return the records of a list, or what its objects lead to, and where the list ends."""
        last = level + 1 == len(self.lists)
        places = array("q")
        found = _Lists([_Group(places)] if last else [], {level})
        other: _Other | None = None
        at = _blank(text, at + 1)
        closed = text[at : at + 1] == "]"
        number = 0
        while not closed:
            if last:
                end = DECODER.raw_decode(text, at)[1]
                places.extend((at, end))
            elif text[at : at + 1] == "{":
                inner, end = self.object(text, at, level + 1, f"{where}[{number}].")
                if isinstance(inner, _Lists):
                    found.add(inner)
                elif inner is None:
                    found.lacking.add(level + 1)
                else:
                    other = other or inner
            else:
                value, end = DECODER.raw_decode(text, at)
                other = other or _Other(f"{where}[{number}] is {_kind(value)}")
            number += 1
            at = _blank(text, end)
            closed = text[at : at + 1] == "]"
            if not closed:
                at = _blank(text, _after(text, at, ","))
        return other or found, at + 1


def _other(value: Any, where: str) -> _Other | None:
    return None if value is None else _Other(f"{where} is {_kind(value)}")


def _kind(value: Any) -> str:
    return "null" if value is None else KINDS.get(type(value), "a text")


def _after(text: str, at: int, sign: str) -> int:
    at = _blank(text, at)
    if text[at : at + 1] != sign:
        raise ValueError(f"{sign} is missing")
    return at + 1


def _blank(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    return at if found is None else found.end()
