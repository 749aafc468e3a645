"""Delimited text: CSV with or without a header, and Zeek's TSV with its header lines.

A record is a line. Lines without quotes are split whole columns at a time, the few with quotes one by
one. The standard library's reader will not do for these: it takes a carriage return inside a line for
its end, refuses long values, and takes the end of a line for a closing quote.
"""

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.drift import Names
from transom.formats.layout import Layout
from transom.formats.rest import Records
from transom.formats.typed import Refusals, mask

SEPARATOR = re.compile(r"\\x([0-9a-fA-F]{2})")
"""How Zeek writes a character of its separator."""


class Csv:
    """Comma- or otherwise separated values; the first line that is not empty names the columns.

    Where that line cannot be read it and all others have no header. A quote counts where a value begins,
    and there to the next quote that is not doubled.
    """

    def __init__(self, layout: Layout) -> None:
        options = layout.options
        self.delimiter = str(options.get("delimiter", ","))
        self.quote = str(options.get("quote", '"'))
        names = options.get("names")
        self.names: list[str] | None = (
            [str(name) for name in names] if isinstance(names, (list, tuple)) else None
        )
        self.has_header = self.awaits_header = bool(options.get("header", True))
        self.shown = Names(layout)
        mark, comma = re.escape(self.quote), re.escape(self.delimiter)
        # A value that begins with a quote has to be closed: it is not read as one without quotes.
        self._value = re.compile(
            rf"(?:{mark}((?:[^{mark}]|{mark}{mark})*+){mark}|(?!{mark}))([^{comma}]*)(?:{comma}|\Z)"
        )

    @property
    def columns(self) -> frozenset[str]:
        """The names that the header gave."""
        return frozenset(self.names or ())

    def header(self, text: pa.Array) -> int:
        """Takes the names from the file's first line that is not empty; how many lines that is of these."""
        if not self.awaits_header or not len(text) or text[0].as_py() == "":
            return 0
        self.awaits_header = False
        line = text[0].as_py()
        self.names = None if line is None else self._one(line)
        return 0 if self.names is None else 1

    def parse(self, text: pa.Array, refused: Refusals) -> Records:
        """Every column as text; an empty value is null, or a file that quotes everything had no nulls."""
        names = self.names
        if names is None:
            refused.add(mask(pc.is_valid(text)), "no_header")
            return Records({})
        quoted = mask(pc.match_substring(text, self.quote))
        parts = pc.split_pattern(
            pc.if_else(pa.array(quoted), pa.scalar(None, text.type), text), self.delimiter
        )
        counts = pc.list_value_length(parts)
        refused.add(mask(pc.not_equal(counts, len(names))), "field_count", None, counts, str(len(names)))
        sound = pc.if_else(
            pc.fill_null(pc.equal(counts, len(names)), False), parts, pa.scalar(None, parts.type)
        )
        columns = {}
        rows: dict[int, list[str] | None] = {}
        for index in np.flatnonzero(quoted).tolist():
            rows[index] = self._record(index, text[index].as_py(), len(names), refused)
        for position, name in enumerate(names):
            values = pc.list_element(
                pc.if_else(pc.is_valid(sound), sound, _nulls(parts.type, len(names))), position
            )
            if rows:
                changed = values.to_pylist()
                for index, row in rows.items():
                    changed[index] = row[position] if row is not None else None
                values = pa.array(changed, pa.string())
            columns[name] = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
        if not refused.any.all():
            self.shown.show(names, declared=not self.has_header)
        return Records(columns)

    def _one(self, line: str) -> list[str] | None:
        """The values of a line; None if a quote is open at its end."""
        values, at = [], 0
        while True:
            found = self._value.match(line, at)
            if found is None:
                return None
            inside, after = found.groups()
            values.append(after if inside is None else inside.replace(self.quote * 2, self.quote) + after)
            if found.end() == found.end(2):
                return values
            at = found.end()

    def _record(self, index: int, line: str, width: int, refused: Refusals) -> list[str] | None:
        row = self._one(line)
        if row is None:
            refused.add_one(index, "unterminated_quote")
        elif len(row) != width:
            refused.add_one(index, "field_count", len(row), str(width))
            return None
        return row


def _nulls(kind: pa.DataType, width: int) -> pa.Scalar:
    return pa.scalar([None] * width, kind)


def _character(code: re.Match[str]) -> str:
    return chr(int(code[1], 16))


def read_marked(text: pa.Array, directive: Callable[[str], None]) -> int:
    """Reads the lines that begin with `#`, as far as these begin with such; how many they are."""
    count = 0
    for value in text:
        line = value.as_py()
        if line is None or not line.startswith("#"):
            break
        directive(line)
        count += 1
    return count


class ZeekTsv:
    """Zeek's own tab-separated logs. Header lines anywhere hold from there on."""

    def __init__(self, layout: Layout) -> None:
        self.separator = "\t"
        self.unset = "-"
        self.empty = "(empty)"
        self.names: list[str] | None = None
        self.seen: set[str] = set()
        self.shown = Names(layout)

    @property
    def columns(self) -> frozenset[str]:
        """Every name that a header gave."""
        return frozenset(self.seen)

    def header(self, text: pa.Array) -> int:
        """Reads the header lines that these lines begin with."""
        return read_marked(text, self._directive)

    def _directive(self, line: str) -> None:
        if line.startswith("#separator "):
            self.separator = SEPARATOR.sub(_character, line.removeprefix("#separator ")) or "\t"
            return
        name, *values = line.split(self.separator)
        match name:
            case "#fields":
                self.names = values
                self.seen |= set(values)
            case "#unset_field" if values:
                self.unset = values[0]
            case "#empty_field" if values:
                self.empty = values[0]

    def parse(self, text: pa.Array, refused: Refusals) -> Records:
        """Every column as text; the unset field is null."""
        if self.names is None:
            refused.add(mask(pc.is_valid(text)), "no_header")
            return Records({})
        width = len(self.names)
        parts = pc.split_pattern(text, self.separator)
        counts = pc.list_value_length(parts)
        refused.add(mask(pc.not_equal(counts, width)), "field_count", None, counts, str(width))
        sound = pc.if_else(pc.fill_null(pc.equal(counts, width), False), parts, _nulls(parts.type, width))
        columns = {}
        for position, name in enumerate(self.names):
            values = pc.list_element(sound, position)
            values = pc.if_else(pc.equal(values, self.unset), pa.scalar(None, pa.string()), values)
            columns[name] = pc.if_else(pc.equal(values, self.empty), "", values)
        if not refused.any.all():
            self.shown.show(self.names)
        return Records(columns)
