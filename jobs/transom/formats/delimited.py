"""Delimited text: CSV with or without a header, and Zeek's TSV with its header lines.

A record is a line. How lines are split is told in `transom.formats.separated`.
"""

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.drift import Names
from transom.formats.layout import Layout
from transom.formats.lines import some_hold
from transom.formats.rest import Records
from transom.formats.separated import Separated
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
        self._separated = Separated(str(options.get("delimiter", ",")), str(options.get("quote", '"')))
        names = options.get("names")
        self.names: list[str] | None = (
            [str(name) for name in names] if isinstance(names, (list, tuple)) else None
        )
        self.has_header = self.awaits_header = bool(options.get("header", True))
        self.shown = Names(layout)
        self._wanted = None if layout.keep_rest else layout.paths

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
        self.names = None if line is None else self._separated.one(line)
        return 0 if self.names is None else 1

    def parse(self, text: pa.Array, refused: Refusals) -> Records:
        """Every column as text; an empty value is null, or a file that quotes everything had no nulls."""
        names = self.names
        if names is None:
            refused.add(mask(pc.is_valid(text)), "no_header")
            return Records({})
        columns = self._separated.columns(text, names, self._wanted, "", refused)
        if not refused.any.all():
            self.shown.show(names, declared=not self.has_header)
        return Records(columns)


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
        self._separated = Separated("\t")
        self.unset = "-"
        self.empty = "(empty)"
        self.names: list[str] | None = None
        self.seen: set[str] = set()
        self.shown = Names(layout)
        self._wanted = None if layout.keep_rest else layout.paths

    @property
    def columns(self) -> frozenset[str]:
        """Every name that a header gave."""
        return frozenset(self.seen)

    def header(self, text: pa.Array) -> int:
        """Reads the header lines that these lines begin with."""
        return read_marked(text, self._directive)

    def _directive(self, line: str) -> None:
        if line.startswith("#separator "):
            separator = SEPARATOR.sub(_character, line.removeprefix("#separator "))
            self._separated = Separated(separator or "\t")
            return
        name, *values = line.split(self._separated.separator)
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
        columns = self._separated.columns(text, self.names, self._wanted, self.unset, refused)
        if some_hold(text, self.empty):
            columns = {
                name: pc.if_else(pc.equal(values, self.empty), "", values) for name, values in columns.items()
            }
        if not refused.any.all():
            self.shown.show(self.names)
        return Records(columns)
