"""Split lines of JSON that contain a list of records into a line for each record, with its original text.

Each record is then parsed like a line. Values that columns take from objects around a record are written into
the record, under their whole path.
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
"""Maximum number of characters taken from around a record: each record of the list gets a copy."""
MOST_CHARACTERS = 2**25
"""Maximum number of characters of the records that are yielded together."""
KINDS = {
    "{": "an object", "[": "a list", '"': "a text", "t": "true or false", "f": "true or false", "n": "null",
}  # fmt: skip
"""The kind of a value by its first letter; else it is a number."""


@dataclass(frozen=True)
class Text:
    """Lines, or records in place of lines.

    Attributes:
        strings: the texts; null for one that is refused before parsing.
        raw: the stored text of refused ones.
    """

    strings: pa.Array
    raw: pa.Array
    refused: Rejections


class NoRecords(ValueError):
    """An object, or another value, without a list at the path.

    Attributes:
        actual: what is there instead, and where; None if nothing is there.
    """

    def __init__(self, actual: str | None = None) -> None:
        self.actual = actual
        super().__init__(actual)


def explode_records(lines: Text, path: str, around: Sequence[str] = ()) -> Iterator[Text]:
    """Yield the records of lines, in order, at most `LINES` at a time.

    A line that is already refused, is no JSON (`bad_json`) or has no list at the path (`no_records`) counts
    as one record; an empty list counts as none.

    Args:
        path: the option's value, `Records[]` or `detail.items[]`, or through lists in lists,
            `resourceLogs[].scopeLogs[].logRecords[]`.
        around: paths of values that each record takes from the objects around it, see `record_paths`; a
            record that is an object gets a member with this name if there is a value.
    """
    buffer = _RecordBuffer()
    finder = _Finder(path, around)
    for row, line in enumerate(lines.strings):
        text = line.as_py()
        if lines.refused.any[row]:
            buffer.add_refused(lines.raw[row].as_py(), lines.refused, row)
        else:
            try:
                groups = finder.groups(text)
            except NoRecords as error:
                expected = f"a list at {path}"
                buffer.add_refused(text.encode(), None, 0, "no_records", error.actual, expected)
            except ValueError:
                buffer.add_refused(text.encode(), None, 0, "bad_json", _json_error(text, path), ONE_LINE)
            else:
                for group in groups:
                    copied = group.members()
                    for record in group.records:
                        buffer.add(_text(record), copied)
                        if buffer.is_full:
                            yield buffer.take_all()
        if buffer.is_full:
            yield buffer.take_all()
    if buffer.strings:
        yield buffer.take_all()


class _RecordBuffer:
    """Records that wait to be yielded."""

    def __init__(self) -> None:
        self.strings: list[str | None] = []
        self.raw: list[str | None] = []
        self.characters = 0
        self.refused: list[tuple[int, bytes, object, object, object]] = []

    @property
    def is_full(self) -> bool:
        """Whether the waiting records must be yielded before more are added."""
        return len(self.strings) >= LINES or self.characters >= MOST_CHARACTERS

    def add(self, record: str, members: str) -> None:
        """Add a record with the members that it takes from around it."""
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
        actual: str | None = None,
        expected: str = "",
    ) -> None:
        if known is not None:
            refusal = known.reason[row], known.column[row], known.detail[row]
        else:
            refusal = reason, None, detail(reason, actual, expected)
        self.refused.append((len(self.strings), raw, *refusal))
        self.strings.append(None)
        self.raw.append(None)

    def take_all(self) -> Text:
        """Return the waiting records as arrays, and clear the buffer."""
        raw = [None if text is None else text.encode() for text in self.raw]
        refused = Rejections.none(len(raw))
        for row, line, *refusal in self.refused:
            raw[row] = line
            refused.any[row] = True
            refused.reason[row], refused.column[row], refused.detail[row] = refusal
        waiting = Text(pa.array(self.strings, pa.string()), pa.array(raw, pa.large_binary()), refused)
        self.strings, self.raw, self.characters, self.refused = [], [], 0, []
        return waiting


def _json_error(text: str, path: str) -> str | None:
    """Return why a line is no JSON, and where, in the words for a single record."""
    try:
        parse_json(text, _around(path))
    except ValueError as error:
        return json_error_reason(error)
    return None


def _around(path: str) -> int:
    """Return the depth of nesting around the records of a path."""
    return path.count(".") + path.count("[]") + 1


@dataclass(frozen=True)
class _Group:
    """The records of one list.

    Attributes:
        records: the text of each.
        around: the values taken from the objects around the list, by full path.
    """

    records: list[Raw]
    around: Mapping[str, Raw]

    def members(self) -> str:
        """Return the values taken from around as members of an object."""
        return ",".join(f"{json_text(path)}:{_text(raw)}" for path, raw in sorted(self.around.items()))


class _Finder:
    """Finds the records of lines."""

    def __init__(self, path: str, around: Sequence[str]) -> None:
        self.path = path
        self.lists = lists_of(path)
        self.around_paths = by_level(around, path)

    def groups(self, text: str) -> list[_Group]:
        """Return the lists of records of a line.

        Raises:
            NoRecords: there is no list, or something else in its place; or with lists in lists, no object of
                an outer list has an inner one.
            ValueError: it is no JSON, or is nested too deeply, not counting the path's own levels.
        """
        if too_deep(text, DEEPEST + _around(self.path)):
            raise ValueError("too deep")
        try:
            record = members(text.encode())
        except msgspec.DecodeError:
            # Valid JSON, but no object?
            parse_json(text, _around(self.path))
            raise NoRecords from None
        self.collected: list[_Group] = []
        self.present: set[int] = set()
        self.lacking: set[int] = set()
        self.walk(record, 0, "", {})
        if self.lacking - self.present:
            raise NoRecords
        return self.collected

    def walk(self, record: Mapping[str, Raw], level: int, where: str, around: Mapping[str, Raw]) -> None:
        """Collect the lists to which the object of a level leads.

        Raises:
            NoRecords: there is another value in place of a list, or of an object that leads to one.
        """
        for inside, whole in self.around_paths[level].items():
            value, place = _at(record, inside)
            if value is not None and place == inside:
                around = {**around, whole: value}
        child, place = _at(record, self.lists[level])
        if child is None:
            self.lacking.add(level)
            return
        if place != self.lists[level] or _kind(child) != "a list":
            raise NoRecords(f"{where}{place} is {_kind(child)}")
        self.present.add(level)
        inner = elements(child)
        if level + 1 == len(self.lists):
            self.collected.append(_Group(inner, around))
            return
        for number, element in enumerate(inner):
            element_path = f"{where}{place}[{number}]"
            if _kind(element) != "an object":
                raise NoRecords(f"{element_path} is {_kind(element)}")
            self.walk(members(element), level + 1, f"{element_path}.", around)


def _at(record: Mapping[str, Raw], path: str) -> tuple[Raw | None, str]:
    """Return the value at a path, or at the longest prefix that has one, and its place; None for null. A name
    with dots takes precedence.
    """
    first, dot, rest = path.partition(".")
    if dot and path not in record and first in record:
        if _kind(record[first]) == "an object":
            value, place = _at(members(record[first]), rest)
            return value, f"{first}.{place}"
        path = first
    value = record.get(path)
    return (None if value is None or _kind(value) == "null" else value), path


def _kind(value: Raw) -> str:
    return KINDS.get(chr(memoryview(value)[0]), "a number")


def _text(value: Raw) -> str:
    return bytes(value).decode()
