"""Parse delimited text: CSV with or without a header, W3C's extended log format, and Zeek's TSV.

A record is a line. Arrow splits lines, whole columns at a time. It interprets a carriage return and a byte
order mark differently, and has no separators of several bytes or of line ends; such lines are split one by
one. A quote that is open at the end of its line would extend into later lines, so Arrow gets no such line.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from transom.formats.lines import MARK, any_contains, joined
from transom.formats.parser import ParsedRecords, Parser, run_starts
from transom.formats.record_format import BLANKS, RecordFormat
from transom.formats.rejections import Int64s, Mask, Rejections, mask, take_indices
from transom.formats.typed_columns import FALSE, TRUE, value_types

SEPARATOR = re.compile(r"\\x([0-9a-fA-F]{2})")
"""An escaped character of Zeek's separator."""
FIELDS = "#Fields:"
"""The beginning of the line of W3C's format that names the fields. Blanks separate the names, with any
delimiter."""
ONCE = "a header that has this name once; else name the columns by `header: false`, `names` and `skip`"
"""The expected header, for a header that names a used column twice."""
MARKED = "\x1f"
"""The character that replaces a delimiter which Arrow cannot split by."""


class Separated:
    """A rule that splits a line into values.

    A quote only counts at the beginning of a value, and extends to the next quote that is not doubled.

    >>> Separated(",", '"').split_line('a,"b, c",')
    ['a', 'b, c', '']
    >>> Separated(" | ", '"', trim=True).split_line('a  | "b | c" |')
    ['a', 'b | c', '']
    """

    def __init__(self, separator: str, quote: str | None = None, *, trim: bool = False) -> None:
        """Create a rule.

        Args:
            separator: the text between values. With a quote, `BLANKS` means any number of blanks and tabs,
                also around the line; then an empty value must be quoted.
            quote: the character around values; None if values have no quotes.
            trim: whether to remove blanks around values. Then one blank may be in two separators, and the
                line's ends count as blanks. Needs a quote.
        """
        self._padded = None
        self._trim = trim
        self._marks = quote is not None and separator != BLANKS and (trim or len(separator) > 1)
        if separator == BLANKS and quote is not None:
            mark, separator = re.escape(quote), " "
            self._padded = rf"[ \t]*({mark}(?:[^{mark}]|{mark}{mark})*{mark}[^ \t]*|[^ \t]+)[ \t]*"
        self.separator, self.quote = separator, quote
        signs = [sign for sign in (MARKED if self._marks else separator, quote) if sign is not None]
        self._arrow = all(len(sign.encode()) == 1 and sign not in "\r\n" for sign in signs)
        comma = re.escape(separator)
        if quote is not None:
            mark = re.escape(quote)
            self._quoted = re.compile(rf"{mark}((?:[^{mark}]|{mark}{mark})*+){mark}")
            # A value that begins with a quote must be closed: it is not read as one without quotes.
            self._value = re.compile(
                rf"(?:{mark}((?:[^{mark}]|{mark}{mark})*+){mark}|(?!{mark}))([^{comma}]*)(?:{comma}|\Z)"
            )
            value = rf"(?:{mark}(?:[^{mark}]|{mark}{mark})*{mark}(?:[^{mark}{comma}][^{comma}]*)?"
            value += rf"|[^{mark}{comma}][^{comma}]*|)"
            self._closed = rf"^{value}(?:{comma}{value})*$"

    def split_line(self, line: str) -> list[str] | None:
        """Return the values of a line; None if a quote is open at its end."""
        if self._padded is not None:
            line = re.sub(self._padded, r"\1 ", line).rstrip(" \t")
            if not line:
                return []
        if self.quote is None:
            return line.split(self.separator)
        if self._marks:
            return self._split_by_text(line, self.quote)
        values, at = [], 0
        while True:
            match = self._value.match(line, at)
            if match is None:
                return None
            inside, after = match.groups()
            values.append(after if inside is None else inside.replace(self.quote * 2, self.quote) + after)
            if match.end() == match.end(2):
                return values
            at = match.end()

    def _split_by_text(self, line: str, quote: str) -> list[str] | None:
        """Return the values of a line whose delimiter may have several characters."""
        line, shared = (f" {line} ", self.separator.endswith(" ")) if self._trim else (line, False)
        values, at = [], 0
        while True:
            start = at
            while self._trim and line.startswith(" ", start):
                start += 1
            inside = None
            if line.startswith(quote, start):
                inside = self._quoted.match(line, start)
                if inside is None:
                    return None
                at = start = inside.end()
            end = line.find(self.separator, at)
            after = line[start:] if end < 0 else line[start:end]
            if self._trim:
                after = after.strip(" ") if inside is None else after.rstrip(" ")
            values.append(after if inside is None else inside[1].replace(quote * 2, quote) + after)
            if end < 0:
                return values
            at = end + len(self.separator) - shared

    def _mark(self, text: pa.Array) -> pa.Array:
        """Return lines without quotes with `MARKED` as their delimiter."""
        if not self._trim:
            return pc.replace_substring(text, self.separator, MARKED)
        text = pc.binary_join_element_wise(" ", text, " ", "")
        marked = self.separator.replace(self.separator.strip(" "), MARKED)
        # Delimiters may share a blank: every second one is left by the first pass.
        for _ in range(2):
            text = pc.replace_substring(text, self.separator, marked)
        return text

    def columns(
        self,
        text: pa.Array,
        names: Sequence[str],
        selected: Collection[str] | None,
        unset: str,
        refused: Rejections,
        types: Mapping[str, pa.DataType] = MappingProxyType({}),
    ) -> dict[str, pa.Array]:
        """Return the values of lines, a column for each name.

        Values are null in lines that are refused, empty or null, and for names that are not selected.
        Columns are text, or all of the given types if every value has its type.

        Args:
            text: lines, without line ends, shape (lines,).
            names: the names of the values, in order; of equal names the last one counts.
            selected: the names to read; None is all.
            unset: the text that means no value.
            refused: receives the lines with another number of values (`field_count`), and those with a quote
                that is open at the end (`unterminated_quote`).
            types: the types of values to try, by name: int64, float64 or bool.
        """
        width = len(names)
        if self._padded is not None:
            plain = pc.utf8_rtrim(pc.replace_substring_regex(text, self._padded, r"\1 "), " \t")
            no_value = mask(pc.and_(pc.equal(plain, ""), pc.not_equal(text, "")))
            refused.add(no_value, "field_count", None, pa.repeat(pa.scalar("0"), len(text)), str(width))
            text = plain
        places = {name: place for place, name in enumerate(names) if selected is None or name in selected}
        nonempty = mask(pc.not_equal(text, ""))
        slow = nonempty & (self._misread(text) | (width == 0))
        if self._marks:
            rows, types = np.flatnonzero(nonempty & ~slow), {}
            lines = self._mark(text.take(pa.array(rows)))
        else:
            rows = np.flatnonzero(nonempty & ~slow & ~self._refuse_open(text, refused))
            lines = text if len(rows) == len(text) else text.take(pa.array(rows))
        kinds = {
            str(place): pa.string() if slow.any() else types.get(name, pa.string())
            for name, place in places.items()
        }
        table, bad = self._by_arrow(lines, width, kinds, unset)
        for row, count in bad:
            refused.add_one(int(rows[row]), "field_count", count, str(width))
        rows = np.delete(rows, [row for row, _ in bad])
        singly = {}
        for row in np.flatnonzero(slow).tolist():
            values = self.split_line(text[row].as_py())
            if values is None:
                refused.add_one(row, "unterminated_quote")
            elif len(values) != width:
                refused.add_one(row, "field_count", len(values), str(width))
            else:
                singly[row] = values
        indices = take_indices(np.r_[rows, list(singly)].astype(np.int64), len(text))
        columns = dict.fromkeys(names, pa.nulls(len(text), pa.string()))
        for name, place in places.items():
            column = table.column(str(place)).combine_chunks()
            if singly:
                others = [None if values[place] == unset else values[place] for values in singly.values()]
                column = pa.concat_arrays([column, pa.array(others, pa.string())])
            columns[name] = column if len(rows) == len(text) else column.take(indices)
        return columns

    def _misread(self, text: pa.Array) -> Mask:
        """Return which lines Arrow would interpret differently."""
        if not self._arrow:
            return np.ones(len(text), dtype=bool)
        misread = mask(pc.starts_with(text, MARK.decode()))
        for sign in (self.quote, MARKED) if self._marks else ():
            misread |= mask(pc.match_substring(text, sign))
        return misread | mask(pc.match_substring(text, "\r")) if any_contains(text, "\r") else misread

    def _refuse_open(self, text: pa.Array, refused: Rejections) -> Mask:
        """Return which lines end inside a quote, and refuse them."""
        unclosed = np.zeros(len(text), dtype=bool)
        if self.quote is not None and any_contains(text, self.quote):
            quoted = np.flatnonzero(mask(pc.match_substring(text, self.quote)))
            unclosed[quoted] = ~mask(pc.match_substring_regex(text.take(pa.array(quoted)), self._closed))
            refused.add(unclosed, "unterminated_quote")
        return unclosed

    def _by_arrow(
        self, lines: pa.Array, width: int, kinds: Mapping[str, pa.DataType], unset: str
    ) -> tuple[pa.Table, list[tuple[int, int]]]:
        """Return the columns, named by position, of the lines with the right number of values; and for the
        other lines their position and their number of values.

        Args:
            lines: the lines, none of them empty.
            width: the number of values.
            kinds: the types of the columns to return, by position. If a value has another type, all columns
                are text.
            unset: as of `columns`.
        """
        bad: list[tuple[int, int]] = []

        def skip(row: csv.InvalidRow) -> str:
            bad.append((row.number - 1, row.actual_columns))
            return "skip"

        names = [str(place) for place in range(width)]
        if not len(lines):
            return pa.table({name: pa.array([], kinds.get(name, pa.string())) for name in names}), bad
        data = joined(lines)
        read = csv.ReadOptions(use_threads=False, block_size=data.size + 1, column_names=names)
        separator, quote = (MARKED, None) if self._marks else (self.separator, self.quote)
        parse = csv.ParseOptions(delimiter=separator, quote_char=quote or False)
        parse.ignore_empty_lines, parse.invalid_row_handler = False, skip
        convert = csv.ConvertOptions(check_utf8=False, null_values=[unset], strings_can_be_null=True)
        convert.true_values, convert.false_values = TRUE, FALSE
        convert.include_columns = list(kinds)
        texts = dict.fromkeys(names, pa.string())
        typed = any(kind != pa.string() for kind in kinds.values()) and self._is_strict(data)
        for types in [{**texts, **kinds}, texts] if typed else [texts]:
            convert.column_types = types
            bad.clear()
            with suppress(pa.ArrowInvalid) if types is not texts else nullcontext():
                table = csv.read_csv(pa.BufferReader(data), read, parse, convert)
                doubles = (column for column in table.columns if pa.types.is_floating(column.type))
                if all(pc.all(pc.is_finite(column)).as_py() is not False for column in doubles):
                    break
        return self._trimmed(table, unset) if self._trim else table, bad

    @staticmethod
    def _trimmed(table: pa.Table, unset: str) -> pa.Table:
        """Return the columns, all of text, without blanks around their values."""
        null = pa.scalar(None, pa.string())
        trimmed = (pc.utf8_trim(column, " ") for column in table.columns)
        columns = [pc.if_else(pc.equal(column, unset), null, column) for column in trimmed]
        return pa.table(columns, table.column_names)

    def _is_strict(self, data: pa.Buffer) -> bool:
        """Return whether no value begins or ends with a blank or tab, or begins like a hexadecimal number:
        Arrow reads numbers of these forms."""
        letters = np.frombuffer(data, np.uint8)
        signs = {sign for sign in ("\n", self.separator, self.quote) if sign is not None}
        is_edge = np.zeros(256, dtype=bool)
        is_edge[[ord(sign) for sign in signs]] = True

        def beside(places: Int64s, step: int) -> npt.NDArray[np.uint8]:
            at = places + step
            inside = (at >= 0) & (at < len(letters))
            return np.where(inside, letters[np.clip(at, 0, len(letters) - 1)], ord("\n"))

        if self.quote is not None and self.separator in " \t" and (letters == ord(self.quote)).any():
            return False
        for blank in {" ", "\t"} - signs:
            places = np.flatnonzero(letters == ord(blank))
            if (is_edge[beside(places, -1)] | is_edge[beside(places, 1)]).any():
                return False
        places = np.flatnonzero((letters | 32) == ord("x"))
        places = places[beside(places, -1) == ord("0")]
        is_edge[ord("-")] = True
        return not is_edge[beside(places, -2)].any()


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
        comment, skip = layout.options.get("comment", ""), layout.options.get("skip", 0)
        if isinstance(names, (list, tuple)):
            self.set_names([str(name) for name in names])
        self.has_header = bool(header)
        self._comment = str(comment)
        # The number of the line that names the columns, from 1; 0 if it is not chosen by number.
        self._named_by = header if isinstance(header, int) and not isinstance(header, bool) else 0
        # The number of following lines that are header lines, independent of their content.
        self._skipped = max(skip if isinstance(skip, int) else 0, self._named_by)
        self._awaits_header = self.has_header and not self._named_by
        self._line = 0

    def header_starts(self, text: pa.Array) -> Int64s:
        """Return the lines at which comments or the line with the names may begin."""
        comments = np.zeros(len(text), dtype=bool)
        if self._comment:
            comments = mask(pc.starts_with(text, self._comment))
        starts = run_starts(comments)
        if self._awaits_header:
            lines = np.flatnonzero(~mask(pc.equal(text, "")) & ~comments)
            starts = np.r_[starts, lines[lines >= self._skipped][:1]]
        return starts

    def read_header(self, line: str | None) -> bool:
        """Return whether a line is a header line, and read the names in it."""
        is_comment = self._comment != "" and line is not None and line.startswith(self._comment)
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
