"""Lines of JSON each of which holds a list of records: a line for every record, as it stands there.

The records are found by their texts, and each is read by itself, as a line is. What a column takes from the
objects around a record is written into it, under its whole path.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from msgspec import Raw

from transom.formats.json.lines import DEEPEST, json_error_reason, json_text, parse_json, too_deep
from transom.formats.json.members import elements, members
from transom.formats.json.record_paths import by_level, lists_of
from transom.formats.lines import LINES
from transom.formats.typed_columns import Rejections, detail

ONE_LINE = "an object a line, not one over several lines"
LONGEST_AROUND = 2**16
"""Characters that may be taken from around a record: each record of the list gets a copy."""
MOST_CHARACTERS = 2**25
"""Characters of records that are given at a time."""
KINDS = {
    "{": "an object", "[": "a list", '"': "a text", "t": "true or false", "f": "true or false", "n": "null",
}  # fmt: skip
"""What a value is by its first letter; else it is a number."""


@dataclass(frozen=True)
class Text:
    """Lines, or records that stand for lines.

    Attributes:
        strings: null where one is refused before it is parsed.
        raw: what is kept of one that is refused.
    """

    strings: pa.Array
    raw: pa.Array
    refused: Rejections


class NoRecords(ValueError):
    """An object, or another value, without a list at the path.

    Attributes:
        seen: what is there instead, and where; None where nothing is there.
    """

    def __init__(self, seen: str | None = None) -> None:
        self.seen = seen
        super().__init__(seen)


def explode_records(lines: Text, path: str, around: Sequence[str] = ()) -> Iterator[Text]:
    """The records of lines, in their order, at most `LINES` at a time.

    A line that is refused already, is no JSON (`bad_json`) or has no list at the path (`no_records`) counts
    as one record; a list without records counts as none.

    Args:
        path: as the option has it, `Records[]` or `detail.items[]`, or through lists in lists,
            `resourceLogs[].scopeLogs[].logRecords[]`.
        around: paths of what each record takes from the objects around it, as in `record_paths`; a record
            that is an object gets a member of that name, where there is a value.
    """
    held = _RecordBuffer()
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
                    taken = group.members()
                    for record in group.records:
                        held.add(_text(record), taken)
                        if held.is_full:
                            yield held.take_all()
        if held.is_full:
            yield held.take_all()
    if held.strings:
        yield held.take_all()


class _RecordBuffer:
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
        known: Rejections | None,
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

    def take_all(self) -> Text:
        """What waits, as arrays."""
        raw = [None if text is None else text.encode() for text in self.raw]
        refused = Rejections.none(len(raw))
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
        parse_json(text, _around(path))
    except ValueError as error:
        return json_error_reason(error)
    return None


def _around(path: str) -> int:
    """The arrays and objects in which the records of a path stand."""
    return path.count(".") + path.count("[]") + 1


@dataclass(frozen=True)
class _Group:
    """The records of one list.

    Attributes:
        records: the text of each.
        around: what is taken from the objects around the list, by its full path.
    """

    records: list[Raw]
    around: Mapping[str, Raw]

    def members(self) -> str:
        """Return what is taken from around, as members of an object."""
        return ",".join(f"{json_text(path)}:{_text(raw)}" for path, raw in sorted(self.around.items()))


class _Finder:
    """Looks for the records of lines."""

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
        try:
            record = members(text.encode())
        except msgspec.DecodeError:
            # Sound, and no object?
            parse_json(text, _around(self.path))
            raise NoRecords from None
        self.found: list[_Group] = []
        self.met: set[int] = set()
        self.lacking: set[int] = set()
        self.walk(record, 0, "", {})
        if self.lacking - self.met:
            raise NoRecords
        return self.found

    def walk(self, record: Mapping[str, Raw], level: int, where: str, around: Mapping[str, Raw]) -> None:
        """Note the lists that the object of a level leads to.

        Raises:
            NoRecords: something else is where a list, or an object that leads to one, should be.
        """
        for inside, whole in self.wanted[level].items():
            value, place = _at(record, inside)
            if value is not None and place == inside:
                around = {**around, whole: value}
        found, place = _at(record, self.lists[level])
        if found is None:
            self.lacking.add(level)
            return
        if place != self.lists[level] or _kind(found) != "a list":
            raise NoRecords(f"{where}{place} is {_kind(found)}")
        self.met.add(level)
        inner = elements(found)
        if level + 1 == len(self.lists):
            self.found.append(_Group(inner, around))
            return
        for number, element in enumerate(inner):
            here = f"{where}{place}[{number}]"
            if _kind(element) != "an object":
                raise NoRecords(f"{here} is {_kind(element)}")
            self.walk(members(element), level + 1, f"{here}.", around)


def _at(record: Mapping[str, Raw], path: str) -> tuple[Raw | None, str]:
    """Return what is at a path, or at a beginning of it that leads no further, and that place; None of null.

    A name with dots goes first.
    """
    first, dot, rest = path.partition(".")
    if dot and path not in record and first in record:
        if _kind(record[first]) == "an object":
            found, place = _at(members(record[first]), rest)
            return found, f"{first}.{place}"
        path = first
    found = record.get(path)
    return (None if found is None or _kind(found) == "null" else found), path


def _kind(value: Raw) -> str:
    return KINDS.get(chr(memoryview(value)[0]), "a number")


def _text(value: Raw) -> str:
    return bytes(value).decode()
