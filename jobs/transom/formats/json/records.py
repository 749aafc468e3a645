"""Split lines of JSON that contain a list of records into a line for each record, with its original text.

Each record is then parsed like a line. Values of objects around a record that columns use are written into
the record, under their full path.
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
"""Maximum number of characters from around a record: each record of the list gets a copy."""
MAX_CHARACTERS = 2**25
"""Maximum number of characters of the records that are yielded together."""
_LIST = msgspec.json.Decoder(list[Raw])
KINDS = {
    "{": "an object", "[": "a list", '"': "a text", "t": "true or false", "f": "true or false", "n": "null",
}  # fmt: skip
"""The kind of a value by its first letter; else it is a number."""
_Members = Mapping[str, Raw]
_Row = tuple[str | None, bytes, str | None, str | None, str | None]
"""A record: its text, None if it is refused; its bytes; reason, column and detail of the refusal."""
_Group = tuple[list[Raw], str]
"""The records of one list, and the values from the objects around it, as members of an object."""


class NoRecords(ValueError):
    """There is no list at the path. The argument describes the value that is there, if any."""


def explode_records(lines: Text, path: str, around: Sequence[str] = ()) -> Iterator[Text]:
    """Yield the records of lines, in order, at most `LINES` at a time.

    A line that is already refused, is not JSON (`bad_json`) or has no list at the path (`no_records`) counts
    as one record; an empty list counts as none.

    >>> from transom.formats.lines import ByteBlock, decode
    >>> lines = decode(ByteBlock(b'{"Records": [{"a": 1}, {"a": 2}]}'))
    >>> [text.strings.to_pylist() for text in explode_records(lines, "Records[]")]
    [['{"a": 1}', '{"a": 2}']]

    Args:
        lines: the lines.
        path: the option's value: `Records[]`, `detail.items[]`, or through lists in lists
            `resourceLogs[].scopeLogs[].logRecords[]`.
        around: paths of values around the record, see `record_paths`. A record that is an object gets a
            member with this name if there is a value.
    """
    rows, characters = list[_Row](), 0
    for row in _rows(lines, path, by_level(around, path)):
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


def _rows(lines: Text, path: str, around_paths: Sequence[Mapping[str, str]]) -> Iterator[_Row]:
    """Yield the records of lines."""
    for row, line in enumerate(lines.strings):
        refused = lines.refused
        if refused.any[row]:
            yield None, lines.raw[row].as_py(), refused.reason[row], refused.column[row], refused.detail[row]
            continue
        text = line.as_py()
        try:
            groups = _groups(text, path, around_paths)
        except NoRecords as error:
            yield _refused(text.encode(), "no_records", next(iter(error.args), None), f"a list at {path}")
        except ValueError as error:
            yield _refused(text.encode(), "bad_json", json_error_reason(error), ONE_LINE)
        else:
            for records, around in groups:
                yield from (_row(bytes(record), around) for record in records)


def _row(raw: bytes, around: str) -> _Row:
    """Return a record with the members from around it."""
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


def _groups(text: str, path: str, around_paths: Sequence[Mapping[str, str]]) -> list[_Group]:
    """Return the lists of records of a line.

    Args:
        around_paths: the paths of values around the records, see `by_level`.

    Raises:
        NoRecords: there is no list, or another value in its place. With lists in lists: no object of an
            outer list has an inner one.
        ValueError: the text is not JSON, or is nested too deeply, without the levels of the path.
    """
    depth, lists = path.count(".") + path.count("[]") + 1, lists_of(path)
    present, lacking = set[int](), set[int]()

    def collect(record: _Members, level: int, where: str, around: _Members) -> Iterator[_Group]:
        """Yield the lists to which the object of a level leads."""
        for inside, whole in around_paths[level].items():
            value, place = _at(record, inside)
            if value is not None and place == inside:
                around = {**around, whole: value}
        child, place = _at(record, lists[level])
        if child is None:
            lacking.add(level)
            return
        if place != lists[level] or _kind(child) != "a list":
            raise NoRecords(f"{where}{place} is {_kind(child)}")
        present.add(level)
        inner = _LIST.decode(child)
        if level + 1 == len(lists):
            values = (f"{json_text(name)}:{bytes(value).decode()}" for name, value in sorted(around.items()))
            yield inner, ",".join(values)
            return
        for number, element in enumerate(inner):
            element_path = f"{where}{place}[{number}]"
            if _kind(element) != "an object":
                raise NoRecords(f"{element_path} is {_kind(element)}")
            yield from collect(members(element), level + 1, f"{element_path}.", around)

    refuse_too_deep(text, depth)
    try:
        record = members(text.encode())
    except msgspec.DecodeError:
        # It may be JSON, but no object.
        parse_json(text, depth)
        raise NoRecords from None
    groups = list(collect(record, 0, "", {}))
    if lacking - present:
        raise NoRecords
    return groups


def _at(record: _Members, path: str) -> tuple[Raw | None, str]:
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
