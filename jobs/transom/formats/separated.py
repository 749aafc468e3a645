"""Split lines into values by a separator.

Arrow splits lines, whole columns at a time. It interprets a carriage return and a byte order mark
differently, and has no separators of several bytes or of line ends; such lines are split one by one. A quote
that is open at the end of its line would extend into later lines, so Arrow gets no such line.
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
from transom.formats.record_format import BLANKS
from transom.formats.rejections import Int64s, Mask, Rejections, mask, take_indices
from transom.formats.typed_columns import FALSE, TRUE

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
