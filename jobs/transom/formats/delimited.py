"""Parse delimited text: CSV with or without a header, W3C's extended log format, and Zeek's TSV.

A record is a line (`transom.formats.separated`).
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.lines import any_contains
from transom.formats.parser import ParsedRecords, Parser, run_starts
from transom.formats.record_format import RecordFormat
from transom.formats.rejections import Int64s, Rejections, mask
from transom.formats.separated import Separated
from transom.formats.typed_columns import value_types

SEPARATOR = re.compile(r"\\x([0-9a-fA-F]{2})")
"""An escaped character of Zeek's separator."""
FIELDS = "#Fields:"
"""The beginning of the line of W3C's format that names the fields. Blanks separate the names, with any
delimiter."""
ONCE = "a header that has this name once; else name the columns by `header: false`, `names` and `skip`"
"""The expected header, for a header that names a used column twice."""


class Delimited(Parser):
    """Delimited values under names, by default with header lines that begin with `#`, anywhere in a file.

    Attributes:
        names: the names of the values of the following lines; None if no line has named them.
        unset: the text that means no value.
        empty: the text that means the empty text; None if there is no such text.
        has_header: whether lines of the file name the values.
    """

    unset = ""
    empty: str | None = None
    has_header = True

    def __init__(self, layout: RecordFormat) -> None:
        super().__init__(layout)
        options = layout.options
        delimiter, quote = str(options.get("delimiter", ",")), str(options.get("quote", '"'))
        self.rule = Separated(delimiter, quote, trim=options.get("trim") is True)
        self.names: Sequence[str] | None = None
        self._all_names: set[str] = set()
        self._selected = None if layout.keep_rest else layout.paths
        # The rest of a record has every value as text.
        self._types = {} if layout.keep_rest else value_types(layout)

    @property
    def columns(self) -> frozenset[str]:
        """Every name in a header."""
        return frozenset(self._all_names)

    def set_names(self, names: Sequence[str] | None) -> None:
        """Set the names of the following lines."""
        self.names = names
        self._all_names.update(names or ())

    def header_starts(self, text: pa.Array) -> Int64s:
        """Return the first line of each run of lines that begin with `#`."""
        return run_starts(mask(pc.starts_with(text, "#")))

    def read_header(self, line: str | None) -> bool:
        """Return whether a line begins with `#`, and apply it."""
        if line is None or not line.startswith("#"):
            return False
        self.directive(line)
        return True

    def directive(self, line: str) -> None:
        """Apply a header line."""

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return every column, as text or typed; the unset text is null. Refuse lines under a header that has
        a used name twice."""
        return self._parse(text, refused, self._types)

    def parse_as_text(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return the same as `parse`, with every column as text."""
        return self._parse(text, refused, {})

    def _parse(self, text: pa.Array, refused: Rejections, types: Mapping[str, pa.DataType]) -> ParsedRecords:
        names = self.names
        if names is None:
            refused.add(mask(pc.is_valid(text)), "no_header")
            return ParsedRecords({})
        twice = next((name for name in names if name in self.drift.paths and names.count(name) > 1), None)
        if twice is not None:
            values = pa.repeat(pa.scalar(twice), len(text))
            refused.add(mask(pc.not_equal(text, "")), "ambiguous_header", twice, values, ONCE)
            return ParsedRecords({})
        columns = self.rule.columns(text, names, self._selected, self.unset, refused, types)
        if self.empty is not None and any_contains(text, self.empty):
            for name, array in columns.items():
                if pa.types.is_string(array.type):
                    columns[name] = pc.if_else(pc.equal(array, self.empty), "", array)
        if not refused.any.all():
            self.drift.observe(names, declared=not self.has_header)
        return ParsedRecords(columns)


class Csv(Delimited):
    """Delimited values; a line of the file names the columns.

    If that line cannot be read, the file has no header. For quotes see `Separated`. An empty value is null,
    also in quotes, as some files quote every value. The lines of `skip`, those above the one that names the
    columns, and those that begin with `comment` are header lines.
    """

    def __init__(self, layout: RecordFormat) -> None:
        super().__init__(layout)
        names, header = layout.options.get("names"), layout.options.get("header", True)
        skip = layout.options.get("skip", 0)
        if isinstance(names, (list, tuple)):
            self.set_names([str(name) for name in names])
        self.has_header = bool(header)
        # The number of the line that names the columns, from 1; 0 if it is not chosen by number.
        self._named_by = header if isinstance(header, int) and not isinstance(header, bool) else 0
        # The number of following lines that are header lines, independent of their content.
        self._skipped = max(skip if isinstance(skip, int) else 0, self._named_by)
        self._awaits_header = self.has_header and not self._named_by
        self._line = 0

    def header_starts(self, text: pa.Array) -> Int64s:
        """Return the lines at which comments or the line with the names may begin."""
        comments = self._comments(text)
        starts = run_starts(comments)
        if self._awaits_header:
            lines = np.flatnonzero(~mask(pc.equal(text, "")) & ~comments)
            starts = np.r_[starts, lines[lines >= self._skipped][:1]]
        return starts

    def read_header(self, line: str | None) -> bool:
        """Return whether a line is a header line, and read the names in it."""
        is_comment = Parser.read_header(self, line)
        if self._skipped:
            self._skipped -= 1
            self._line += 1
            if self._line == self._named_by:
                self._read_names(line)
            return True
        if is_comment or not self._awaits_header or line == "":
            return is_comment
        self._awaits_header = False
        self._read_names(line)
        return self.names is not None

    def _read_names(self, line: str | None) -> None:
        if line is not None and self._comment and line.startswith(self._comment):
            line = line.removeprefix(self._comment).lstrip(" ")
        self.set_names(self.rule.split_line(line) if line else None)


class W3c(Delimited):
    """W3C's extended log format, as of IIS. Names apply to the lines after them."""

    def directive(self, line: str) -> None:
        """Read the names of fields."""
        if line.startswith(FIELDS):
            self.set_names(line.removeprefix(FIELDS).split())


class ZeekTsv(Delimited):
    """Zeek's tab-separated logs. A header line may be anywhere and applies to the lines after it."""

    unset, empty = "-", "(empty)"

    def __init__(self, layout: RecordFormat) -> None:
        super().__init__(layout)
        self.rule = Separated("\t")

    def directive(self, line: str) -> None:
        """Read the separator, the names of fields, and the texts for unset and empty values."""
        if line.startswith("#separator "):
            separator = SEPARATOR.sub(lambda code: chr(int(code[1], 16)), line.removeprefix("#separator "))
            self.rule = Separated(separator or "\t")
            return
        name, *values = line.split(self.rule.separator)
        match name:
            case "#fields":
                self.set_names(values)
            case "#unset_field" if values:
                self.unset = values[0]
            case "#empty_field" if values:
                self.empty = values[0]
