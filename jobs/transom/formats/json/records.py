"""Split lines of JSON that contain a list of records into a line for each record, with its original text.

Each record is then parsed like a line. Values that columns take from objects around a record are written into
the record, under their whole path.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Raw

from transom.formats.json.lines import json_error_reason, json_text, members, parse_json, refuse_too_deep
from transom.formats.json.record_paths import by_level, lists_of
from transom.formats.lines import LINES, Text
from transom.formats.rejections import Rejections, detail

ONE_LINE = "an object a line, not one over several lines"
MAX_AROUND = 2**16
"""Maximum number of characters taken from around a record: each record of the list gets a copy."""
MAX_CHARACTERS = 2**25
"""Maximum number of characters of the records that are yielded together."""
_LIST = msgspec.json.Decoder(list[Raw])
KINDS = {
    "{": "an object", "[": "a list", '"': "a text", "t": "true or false", "f": "true or false", "n": "null",
}  # fmt: skip
"""The kind of a value by its first letter; else it is a number."""
_Row = tuple[str | None, bytes, str | None, str | None, str | None]
"""A record: its text, None if it is refused; its bytes; reason, column and detail of the refusal."""
_Group = tuple[list[Raw], str]
"""The records of one list, and the values taken from the objects around it, as members of an object."""


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
    rows, characters = list[_Row](), 0
    for row in _rows(lines, _Finder(path, around)):
        rows.append(row)
        characters += len(row[0] or "")
        if len(rows) >= LINES or characters >= MAX_CHARACTERS:
            yield _text(rows)
            rows, characters = [], 0
    if rows:
        yield _text(rows)


def _text(rows: Sequence[_Row]) -> Text:
    strings, raw, *refusals = zip(*rows, strict=True)
    reason, column, message = (np.array(part, dtype=object) for part in refusals)
    refused = Rejections(reason, column, message, np.array([text is None for text in strings]))
    return Text(pa.array(strings, pa.string()), pa.array(raw, pa.large_binary()), refused)


def _rows(lines: Text, finder: "_Finder") -> Iterator[_Row]:
    """Yield the records of lines."""
    for row, line in enumerate(lines.strings):
        refused = lines.refused
        if refused.any[row]:
            yield None, lines.raw[row].as_py(), refused.reason[row], refused.column[row], refused.detail[row]
            continue
        text = line.as_py()
        try:
            groups = finder.groups(text)
        except NoRecords as error:
            yield _refused(text.encode(), "no_records", error.actual, f"a list at {finder.path}")
        except ValueError as error:
            yield _refused(text.encode(), "bad_json", json_error_reason(error), ONE_LINE)
        else:
            for records, around in groups:
                yield from (_row(bytes(record), around) for record in records)


def _row(raw: bytes, around: str) -> _Row:
    """Return a record with the members that it takes from around it."""
    record = raw.decode()
    if len(around) > MAX_AROUND:
        expected = f"at most {MAX_AROUND} characters from around a record"
        return _refused(raw, "line_too_long", len(around), expected)
    if around and record[0] == "{":
        comma = "," if record[1:-1].strip(" \t\r\n") else ""
        record = f"{record[:-1]}{comma}{around}}}"
    return record, raw, None, None, None


def _refused(raw: bytes, reason: str, actual: object, expected: str) -> _Row:
    return None, raw, reason, None, detail(reason, actual, expected)


class _Finder:
    """Finds the records of lines.

    Attributes:
        path: the path of the records.
        depth: of nesting around them.
    """

    def __init__(self, path: str, around: Sequence[str]) -> None:
        self.path = path
        self.depth = path.count(".") + path.count("[]") + 1
        self._lists = lists_of(path)
        self._around_paths = by_level(around, path)

    def groups(self, text: str) -> list[_Group]:
        """Return the lists of records of a line.

        Raises:
            NoRecords: there is no list, or something else in its place; or with lists in lists, no object of
                an outer list has an inner one.
            ValueError: it is no JSON, or is nested too deeply, not counting the path's own levels.
        """
        refuse_too_deep(text, self.depth)
        try:
            record = members(text.encode())
        except msgspec.DecodeError:
            # Valid JSON, but no object?
            parse_json(text, self.depth)
            raise NoRecords from None
        self._groups: list[_Group] = []
        self._present: set[int] = set()
        self._lacking: set[int] = set()
        self._collect(record, 0, "", {})
        if self._lacking - self._present:
            raise NoRecords
        return self._groups

    def _collect(self, record: Mapping[str, Raw], level: int, where: str, around: Mapping[str, Raw]) -> None:
        """Collect the lists to which the object of a level leads.

        Raises:
            NoRecords: there is another value in place of a list, or of an object that leads to one.
        """
        for inside, whole in self._around_paths[level].items():
            value, place = _at(record, inside)
            if value is not None and place == inside:
                around = {**around, whole: value}
        child, place = _at(record, self._lists[level])
        if child is None:
            self._lacking.add(level)
            return
        if place != self._lists[level] or _kind(child) != "a list":
            raise NoRecords(f"{where}{place} is {_kind(child)}")
        self._present.add(level)
        inner = _LIST.decode(child)
        if level + 1 == len(self._lists):
            values = (f"{json_text(path)}:{bytes(value).decode()}" for path, value in sorted(around.items()))
            self._groups.append((inner, ",".join(values)))
            return
        for number, element in enumerate(inner):
            element_path = f"{where}{place}[{number}]"
            if _kind(element) != "an object":
                raise NoRecords(f"{element_path} is {_kind(element)}")
            self._collect(members(element), level + 1, f"{element_path}.", around)


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
