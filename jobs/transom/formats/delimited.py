"""Parse delimited text: CSV with or without a header, and Zeek's TSV with its header lines.

A record is a line. `transom.formats.separated_values` splits lines.
"""

import re
from collections.abc import Callable, Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.field_drift import FieldDrift
from transom.formats.lines import some_hold
from transom.formats.parsed_records import ParsedRecords
from transom.formats.record_format import RecordFormat
from transom.formats.separated_values import Separated, separated
from transom.formats.typed_columns import Rejections, mask

SEPARATOR = re.compile(r"\\x([0-9a-fA-F]{2})")
"""The form of a character of Zeek's separator."""
ONCE = "a header that has this name once; else name the columns by `header: false`, `names` and `skip`"
"""The expected header, for a header that names a used column twice."""


class Csv:
    """Delimited values; a line of the file names the columns.

    If that line cannot be read, the file has no header. A quote counts at the beginning of a value, and
    extends to the next quote that is not doubled. The lines of `skip`, those above the one that names the
    columns, and those that begin with `comment` are header lines.
    """

    def __init__(self, layout: RecordFormat) -> None:
        options = layout.options
        self._separated = separated(str(options.get("delimiter", ",")), str(options.get("quote", '"')))
        names = options.get("names")
        self.names: list[str] | None = (
            [str(name) for name in names] if isinstance(names, (list, tuple)) else None
        )
        header, skip = options.get("header", True), options.get("skip", 0)
        self.comment = str(options.get("comment", ""))
        self.named_by = header if isinstance(header, int) and not isinstance(header, bool) else 0
        """The number of the line that names the columns, from 1; 0 if it is not chosen by number."""
        self.skipped = max(skip if isinstance(skip, int) else 0, self.named_by)
        """The number of following lines that are header lines, independent of their content."""
        self.has_header = bool(header)
        self.awaits_header = self.has_header and not self.named_by
        self._line = 0
        self.shown = FieldDrift(layout)
        self._selected = None if layout.keep_rest else layout.paths
        self._once = layout.paths
        self._twice: str | None = None

    @property
    def columns(self) -> frozenset[str]:
        """The names in the header."""
        return frozenset(self.names or ())

    def header(self, text: pa.Array) -> int:
        """Return the number of header lines at the beginning, and read the names in them."""
        for count, value in enumerate(text):
            line = value.as_py()
            if self.skipped:
                self.skipped -= 1
                self._line += 1
                if self._line == self.named_by:
                    self._read_names(line)
            elif self.comment and line is not None and line.startswith(self.comment):
                continue
            elif self.awaits_header and line != "":
                self.awaits_header = False
                self._read_names(line)
                if self.names is None:
                    return count
            else:
                return count
        return len(text)

    def _read_names(self, line: str | None) -> None:
        if line is not None and self.comment and line.startswith(self.comment):
            line = line.removeprefix(self.comment).lstrip(" ")
        self.names = self._separated.split_line(line) if line else None
        self._note_twice()

    def _note_twice(self) -> None:
        self._twice = _named_twice(self.names or (), self._once)

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return every column as text. An empty value is null, also in quotes, as some files quote every
        value."""
        names = self.names
        if names is None:
            refused.add(mask(pc.is_valid(text)), "no_header")
            return ParsedRecords({})
        if self._twice is not None:
            return _ambiguous(self._twice, text, refused)
        columns = self._separated.columns(text, names, self._selected, "", refused)
        if not refused.any.all():
            self.shown.show(names, declared=not self.has_header)
        return ParsedRecords(columns)


def _named_twice(names: Sequence[str], used: Collection[str]) -> str | None:
    """Return the first used name that a header has twice; None if there is none."""
    return next((name for name in names if name in used and names.count(name) > 1), None)


def _ambiguous(name: str, text: pa.Array, refused: Rejections) -> ParsedRecords:
    """Refuse lines under a header that has a name twice: its values are ambiguous."""
    nonempty = mask(pc.not_equal(text, ""))
    refused.add(nonempty, "ambiguous_header", name, pa.repeat(pa.scalar(name), len(text)), ONCE)
    return ParsedRecords({})


def _character(code: re.Match[str]) -> str:
    return chr(int(code[1], 16))


def read_marked(text: pa.Array, directive: Callable[[str], None]) -> int:
    """Read the lines at the beginning that start with `#`, and return their number."""
    count = 0
    for value in text:
        line = value.as_py()
        if line is None or not line.startswith("#"):
            break
        directive(line)
        count += 1
    return count


class ZeekTsv:
    """Zeek's tab-separated logs. A header line anywhere applies from there on."""

    def __init__(self, layout: RecordFormat) -> None:
        self._separated = Separated("\t")
        self.unset = "-"
        self.empty = "(empty)"
        self.names: list[str] | None = None
        self._all_names: set[str] = set()
        self.shown = FieldDrift(layout)
        self._selected = None if layout.keep_rest else layout.paths
        self._once = layout.paths
        self._twice: str | None = None

    @property
    def columns(self) -> frozenset[str]:
        """Every name in a header."""
        return frozenset(self._all_names)

    def header(self, text: pa.Array) -> int:
        """Read the header lines at the beginning, and return their number."""
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
                self._all_names |= set(values)
                self._twice = _named_twice(values, self._once)
            case "#unset_field" if values:
                self.unset = values[0]
            case "#empty_field" if values:
                self.empty = values[0]

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return every column as text; the unset field is null."""
        if self.names is None:
            refused.add(mask(pc.is_valid(text)), "no_header")
            return ParsedRecords({})
        if self._twice is not None:
            return _ambiguous(self._twice, text, refused)
        columns = self._separated.columns(text, self.names, self._selected, self.unset, refused)
        if some_hold(text, self.empty):
            columns = {
                name: pc.if_else(pc.equal(values, self.empty), "", values) for name, values in columns.items()
            }
        if not refused.any.all():
            self.shown.show(self.names)
        return ParsedRecords(columns)
