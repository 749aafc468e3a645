"""Split lines at a separator, whole columns at a time, with Arrow's reader of delimited text.

Lines with a carriage return or a byte order mark, which Arrow interprets differently, and separators of
several bytes or of line ends are split one by one. Arrow would close a quote that is open at the end of its
line in a later line, so such lines are found first.
"""

import re
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from transom.formats.lines import MARK, joined, some_hold
from transom.formats.record_format import BLANKS
from transom.formats.typed_columns import Mask, Rejections, mask


class Separated:
    """A rule that splits a line into values.

    A quote counts at the beginning of a value, and extends to the next quote that is not doubled.
    """

    def __init__(self, separator: str, quote: str | None = None) -> None:
        self.separator = separator
        self.quote = quote
        signs = [sign for sign in (separator, quote) if sign is not None]
        self._arrow = all(len(sign.encode()) == 1 and sign not in "\r\n" for sign in signs)
        comma = re.escape(separator)
        if quote is not None:
            mark = re.escape(quote)
            # A value that begins with a quote must be closed: it is not read as one without quotes.
            self._value = re.compile(
                rf"(?:{mark}((?:[^{mark}]|{mark}{mark})*+){mark}|(?!{mark}))([^{comma}]*)(?:{comma}|\Z)"
            )
            value = rf"(?:{mark}(?:[^{mark}]|{mark}{mark})*{mark}(?:[^{mark}{comma}][^{comma}]*)?"
            value += rf"|[^{mark}{comma}][^{comma}]*|)"
            self._closed = rf"^{value}(?:{comma}{value})*$"

    def split_line(self, line: str) -> list[str] | None:
        """Return the values of a line; None if a quote is open at its end."""
        if self.quote is None:
            return line.split(self.separator)
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

    def columns(
        self,
        text: pa.Array,
        names: Sequence[str],
        selected: Collection[str] | None,
        unset: str,
        refused: Rejections,
    ) -> dict[str, pa.Array]:
        """Return the values of lines, a column for each name.

        Null if a line is refused, empty or null, and for names that are not selected.

        Args:
            text: lines, without line ends.
            names: of the values, in order; of equal names the last one counts.
            selected: the names to read; None for all.
            unset: the text that means no value.
            refused: receives the lines with another number of values (`field_count`), and those with a quote
                that is open at the end (`unterminated_quote`).
        """
        width = len(names)
        places = {name: place for place, name in enumerate(names) if selected is None or name in selected}
        nonempty = mask(pc.not_equal(text, ""))
        slow = nonempty & (self._misread(text) | (width == 0))
        rows = np.flatnonzero(nonempty & ~slow & ~self._open(text, refused))
        lines = text if len(rows) == len(text) else text.take(pa.array(rows))
        table, bad = self._at_once(lines, width, [str(place) for place in places.values()], unset)
        for row, count in bad:
            refused.add_one(int(rows[row]), "field_count", count, str(width))
        rows = np.delete(rows, [row for row, _ in bad])
        singly = self._singly(text, np.flatnonzero(slow).tolist(), width, refused)
        positions = None
        if len(rows) < len(text):
            order = np.full(len(text), -1)
            order[[*rows.tolist(), *singly]] = np.arange(len(rows) + len(singly))
            positions = pa.array(order, mask=order < 0)
        columns = dict.fromkeys(names, pa.nulls(len(text), pa.string()))
        for name, place in places.items():
            own = [None if row[place] == unset else row[place] for row in singly.values()]
            values = pa.concat_arrays([*table.column(str(place)).chunks, pa.array(own, pa.string())])
            columns[name] = values if positions is None else values.take(positions)
        return columns

    def _misread(self, text: pa.Array) -> Mask:
        """Return which lines Arrow would interpret differently."""
        if not self._arrow:
            return np.ones(len(text), dtype=bool)
        misread = mask(pc.starts_with(text, MARK.decode()))
        return misread | mask(pc.match_substring(text, "\r")) if some_hold(text, "\r") else misread

    def _open(self, text: pa.Array, refused: Rejections) -> Mask:
        """Return which lines end inside a quote, and refuse them."""
        unclosed = np.zeros(len(text), dtype=bool)
        if self.quote is not None and some_hold(text, self.quote):
            quoted = np.flatnonzero(mask(pc.match_substring(text, self.quote)))
            unclosed[quoted] = ~mask(pc.match_substring_regex(text.take(pa.array(quoted)), self._closed))
            refused.add(unclosed, "unterminated_quote")
        return unclosed

    def _at_once(
        self, lines: pa.Array, width: int, selected: list[str], unset: str
    ) -> tuple[pa.Table, list[tuple[int, int]]]:
        """Return the columns, named by position, of the lines with the right number of values; and for the
        other lines their position and their number of values.
        """
        bad: list[tuple[int, int]] = []

        def skip(row: csv.InvalidRow) -> str:
            bad.append((row.number - 1, row.actual_columns))
            return "skip"

        names = [str(place) for place in range(width)]
        if not len(lines):
            return pa.table({name: pa.array([], pa.string()) for name in names}), bad
        data = joined(lines)
        table = csv.read_csv(
            pa.BufferReader(data),
            csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
            csv.ParseOptions(
                delimiter=self.separator,
                quote_char=False if self.quote is None else self.quote,
                ignore_empty_lines=False,
                invalid_row_handler=skip,
            ),
            csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[unset],
                strings_can_be_null=True,
                include_columns=selected,
            ),
        )
        return table, bad

    def _singly(
        self, text: pa.Array, rows: Iterable[int], width: int, refused: Rejections
    ) -> dict[int, list[str]]:
        read = {}
        for row in rows:
            values = self.split_line(text[row].as_py())
            if values is None:
                refused.add_one(row, "unterminated_quote")
            elif len(values) != width:
                refused.add_one(row, "field_count", len(values), str(width))
            else:
                read[row] = values
        return read


class Aligned(Separated):
    """Values with any number of blanks and tabs between them, and around the line. An empty value must be
    quoted."""

    def __init__(self, quote: str) -> None:
        super().__init__(" ", quote)
        mark = re.escape(quote)
        self._of_blanks = rf"[ \t]*({mark}(?:[^{mark}]|{mark}{mark})*{mark}[^ \t]*|[^ \t]+)[ \t]*"
        self._one_value = re.compile(self._of_blanks)

    def split_line(self, line: str) -> list[str] | None:
        """Return the values of a line; None if a quote is open at its end."""
        plain = self._one_value.sub(r"\1 ", line).rstrip(" \t")
        return super().split_line(plain) if plain else []

    def columns(
        self,
        text: pa.Array,
        names: Sequence[str],
        selected: Collection[str] | None,
        unset: str,
        refused: Rejections,
    ) -> dict[str, pa.Array]:
        """Return the columns, as for values with one blank between them."""
        plain = pc.utf8_rtrim(pc.replace_substring_regex(text, self._of_blanks, r"\1 "), " \t")
        none = mask(pc.and_(pc.equal(plain, ""), pc.not_equal(text, "")))
        refused.add(none, "field_count", None, pa.repeat(pa.scalar("0"), len(text)), str(len(names)))
        return super().columns(plain, names, selected, unset, refused)


def separated(delimiter: str, quote: str) -> Separated:
    """Return the rule for a delimiter of CSV."""
    return Aligned(quote) if delimiter == BLANKS else Separated(delimiter, quote)
