"""The plain parser of a log: lines, their content, and reasons for rejection."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from transom.formats.record_format import RecordFormat

LONGEST_LINE = 2**20
Record = Mapping[str, str | None]
"""A line's fields by path, as text; None if the line has no value."""


class Refused(Exception):
    """The line is no event.

    Attributes:
        detail: the reason as text, with the value concerned, if any.
    """

    def __init__(
        self,
        reason: str,
        value: object = None,
        column: str | None = None,
        expected: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.column = column
        output = [reason.replace("_", " ")]
        output += [] if value is None else [f": {str(value)[:200]}"]
        output += [] if expected is None else [f"; expected {expected}"]
        self.detail = "".join(output) if output[1:] else None


@dataclass
class Found:
    """The content of a line.

    Attributes:
        fields: by path.
        shown: names in the record, with a value or without.
        own: names from the format or the specification, not from the file.
        rest: further values of the record, in addition to the columns and the time.
    """

    fields: Record
    shown: set[str]
    own: set[str]
    rest: str | None


def read_paths(layout: RecordFormat) -> set[str]:
    """Return every path that a column or the time reads."""
    time = layout.time
    paths = [*time.paths, *time.plus, *(path for more in time.more for path in more)]
    return {*paths, *(path for column in layout.fields for path in column.paths)}


def unread_fields(fields: Record, layout: RecordFormat) -> str | None:
    """Return the fields with a value that nothing reads, as JSON."""
    rest = {
        name: value for name, value in fields.items() if value is not None and name not in read_paths(layout)
    }
    if not rest:
        return None
    return json.dumps(rest, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def lines(data: bytes) -> list[bytes]:
    """Split bytes into lines. A line ends at a line feed, which the last one may lack; one carriage return
    before the end is removed too.

    A byte order mark at the file's beginning belongs to no line, nor do the NUL bytes before a line.
    """
    cut = [line.lstrip(b"\0") for line in data.split(b"\n")]
    cut[0] = cut[0].removeprefix(b"\xef\xbb\xbf")
    if cut[-1] == b"":
        cut.pop()
    return [line.removesuffix(b"\r") for line in cut]


def is_comment(text: str, layout: RecordFormat) -> bool:
    """Return whether a line begins with the option `comment`."""
    return "comment" in layout.options and text.startswith(str(layout.options["comment"]))


def text_of(line: object, longest: int = LONGEST_LINE) -> str:
    """Return a line as text."""
    assert isinstance(line, bytes)
    if not line:
        raise Refused("empty")
    if len(line) > longest:
        raise Refused("line_too_long", len(line), expected=f"at most {longest} bytes")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise Refused("not_utf8") from None
    if "\0" in text:
        raise Refused("nul_byte", expected="text, which has no NUL bytes inside of a line")
    return text
