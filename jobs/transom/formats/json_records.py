"""Lines of JSON each of which holds a list of records: a line for every record, as it stands there.

The records are found by their places: what is read of them here is thrown away, and each is read again
by itself, as a line is.
"""

import json
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from transom.formats.json_lines import DEEPEST, loaded, refuse_constant, too_deep, why
from transom.formats.lines import LINES
from transom.formats.typed import Refusals, detail

BLANK = re.compile(r"[ \t\r\n]*")
ONE_LINE = "an object a line, not one over several lines"
# Numbers stay text: how long they are, and whether a double holds them, is for the record's reading to say.
DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=refuse_constant)


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
    """An object, or another value, without a list at the path."""


def spread(lines: Text, path: str) -> Iterator[Text]:
    """The records of lines, in their order, at most `LINES` at a time.

    A line that is refused already, is no JSON (`bad_json`) or has no list at the path (`no_records`) counts
    as one record; a list without records counts as none.

    Args:
        path: as the option has it, `Records[]` or `detail.items[]`.
    """
    held = _Held()
    for row, line in enumerate(lines.strings):
        text = line.as_py()
        if lines.refused.any[row]:
            held.add_refused(lines.raw[row].as_py(), lines.refused, row)
        else:
            try:
                places = _records(text, path.removesuffix("[]"))
            except NoRecords:
                held.add_refused(text.encode(), None, 0, "no_records", expected=f"a list at {path}")
            except ValueError:
                held.add_refused(text.encode(), None, 0, "bad_json", _seen(text, path), ONE_LINE)
            else:
                for start, end in zip(places[0::2], places[1::2], strict=True):
                    held.strings.append(text[start:end])
                    if len(held.strings) == LINES:
                        yield held.taken()
        if len(held.strings) == LINES:
            yield held.taken()
    if held.strings:
        yield held.taken()


class _Held:
    """Records that wait to be given."""

    def __init__(self) -> None:
        self.strings: list[str | None] = []
        self.refused: list[tuple[int, bytes, object, object, object]] = []

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

    def taken(self) -> Text:
        """What waits, as arrays."""
        raw = [None if text is None else text.encode() for text in self.strings]
        refused = Refusals.none(len(raw))
        for row, line, *said in self.refused:
            raw[row] = line
            refused.any[row] = True
            refused.reason[row], refused.column[row], refused.detail[row] = said
        found = Text(pa.array(self.strings, pa.string()), pa.array(raw, pa.large_binary()), refused)
        self.strings, self.refused = [], []
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
    return path.count(".") + 2


def _records(text: str, path: str) -> "array[int]":
    """Where the records of a line begin and end.

    Raises:
        NoRecords: there is no list.
        ValueError: it is no JSON, or one deeper than records may be, the path's own brackets aside.
    """
    if too_deep(text, DEEPEST + _around(path)):
        raise ValueError("too deep")
    at = _blank(text, 0)
    found, end = (
        _inside(text, at, path) if text[at : at + 1] == "{" else (None, DECODER.raw_decode(text, at)[1])
    )
    if _blank(text, end) != len(text):
        raise ValueError("more than one value")
    if found is None:
        raise NoRecords
    return found


def _inside(text: str, at: int, path: str) -> tuple["array[int] | None", int]:
    """The places of the records in an object, and its end. A member named as the whole path goes first."""
    first, dot, rest = path.partition(".")
    whole: array[int] | None = None
    part: array[int] | None = None
    named = False
    at = _blank(text, at + 1)
    if text[at : at + 1] == "}":
        return None, at + 1
    while True:
        if text[at : at + 1] != '"':
            raise ValueError("a name is missing")
        name, at = DECODER.raw_decode(text, at)
        at = _blank(text, _after(text, at, ":"))
        sign = text[at : at + 1]
        if name == path:
            named = True
            whole, at = _elements(text, at) if sign == "[" else (None, DECODER.raw_decode(text, at)[1])
        elif name == first and dot:
            part, at = _inside(text, at, rest) if sign == "{" else (None, DECODER.raw_decode(text, at)[1])
        else:
            at = DECODER.raw_decode(text, at)[1]
        at = _blank(text, at)
        if text[at : at + 1] == "}":
            return whole if named else part, at + 1
        at = _blank(text, _after(text, at, ","))


def _elements(text: str, at: int) -> tuple["array[int]", int]:
    """The places of the values in a list, and its end."""
    places = array("q")
    at = _blank(text, at + 1)
    if text[at : at + 1] == "]":
        return places, at + 1
    while True:
        end = DECODER.raw_decode(text, at)[1]
        places.extend((at, end))
        at = _blank(text, end)
        if text[at : at + 1] == "]":
            return places, at + 1
        at = _blank(text, _after(text, at, ","))


def _after(text: str, at: int, sign: str) -> int:
    at = _blank(text, at)
    if text[at : at + 1] != sign:
        raise ValueError(f"{sign} is missing")
    return at + 1


def _blank(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    return at if found is None else found.end()
