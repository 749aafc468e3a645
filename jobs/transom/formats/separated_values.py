"""Lines split at a separator, whole columns at a time, by Arrow's reader of delimited text.

It splits lines as they are to be split, but for those that hold what it takes for something else (a
carriage return, a byte order mark) and for separators of several bytes or of line ends: these are split one
by one. A quote that is open at the end of its line it would close in a later one, so these are found first.
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
    """How values are told apart in a line.

    A quote counts where a value begins, and there to the next quote that is not doubled.
    """

    def __init__(self, separator: str, quote: str | None = None) -> None:
        self.separator = separator
        self.quote = quote
        signs = [sign for sign in (separator, quote) if sign is not None]
        self._arrow = all(len(sign.encode()) == 1 and sign not in "\r\n" for sign in signs)
        comma = re.escape(separator)
        if quote is not None:
            mark = re.escape(quote)
            # A value that begins with a quote has to be closed: it is not read as one without quotes.
            self._value = re.compile(
                rf"(?:{mark}((?:[^{mark}]|{mark}{mark})*+){mark}|(?!{mark}))([^{comma}]*)(?:{comma}|\Z)"
            )
            value = rf"(?:{mark}(?:[^{mark}]|{mark}{mark})*{mark}(?:[^{mark}{comma}][^{comma}]*)?"
            value += rf"|[^{mark}{comma}][^{comma}]*|)"
            self._closed = rf"^{value}(?:{comma}{value})*$"

    def one(self, line: str) -> list[str] | None:
        """The values of a line; None if a quote is open at its end."""
        if self.quote is None:
            return line.split(self.separator)
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

    def columns(
        self,
        text: pa.Array,
        names: Sequence[str],
        wanted: Collection[str] | None,
        unset: str,
        refused: Rejections,
    ) -> dict[str, pa.Array]:
        """The values of lines, a column for each name.

        Null where a line is refused, empty or null, and where the name is not wanted.

        Args:
            text: lines, without line ends.
            names: of the values, in their order; of several with one name the last is taken.
            wanted: names whose values are asked for; None for all.
            unset: the value that means that there is none.
            refused: gains the lines that have another number of values (`field_count`), and those in which
                a quote is open at the end (`unterminated_quote`).
        """
        width = len(names)
        places = {name: place for place, name in enumerate(names) if wanted is None or name in wanted}
        there = mask(pc.not_equal(text, ""))
        alone = there & (self._misread(text) | (width == 0))
        rows = np.flatnonzero(there & ~alone & ~self._open(text, refused))
        lines = text if len(rows) == len(text) else text.take(pa.array(rows))
        table, bad = self._at_once(lines, width, [str(place) for place in places.values()], unset)
        for row, found in bad:
            refused.add_one(int(rows[row]), "field_count", found, str(width))
        rows = np.delete(rows, [row for row, _ in bad])
        singly = self._singly(text, np.flatnonzero(alone).tolist(), width, refused)
        taken = None
        if len(rows) < len(text):
            order = np.full(len(text), -1)
            order[[*rows.tolist(), *singly]] = np.arange(len(rows) + len(singly))
            taken = pa.array(order, mask=order < 0)
        columns = dict.fromkeys(names, pa.nulls(len(text), pa.string()))
        for name, place in places.items():
            own = [None if row[place] == unset else row[place] for row in singly.values()]
            values = pa.concat_arrays([*table.column(str(place)).chunks, pa.array(own, pa.string())])
            columns[name] = values if taken is None else values.take(taken)
        return columns

    def _misread(self, text: pa.Array) -> Mask:
        """Which lines Arrow would read otherwise."""
        if not self._arrow:
            return np.ones(len(text), dtype=bool)
        found = mask(pc.starts_with(text, MARK.decode()))
        return found | mask(pc.match_substring(text, "\r")) if some_hold(text, "\r") else found

    def _open(self, text: pa.Array, refused: Rejections) -> Mask:
        """Which lines end inside a quote; they are refused."""
        found = np.zeros(len(text), dtype=bool)
        if self.quote is not None and some_hold(text, self.quote):
            quoted = np.flatnonzero(mask(pc.match_substring(text, self.quote)))
            found[quoted] = ~mask(pc.match_substring_regex(text.take(pa.array(quoted)), self._closed))
            refused.add(found, "unterminated_quote")
        return found

    def _at_once(
        self, lines: pa.Array, width: int, wanted: list[str], unset: str
    ) -> tuple[pa.Table, list[tuple[int, int]]]:
        """Columns, named by their places, of the lines that have as many values as they should.

        And the others, by their number among these, with the number of their values.
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
                include_columns=wanted,
            ),
        )
        return table, bad

    def _singly(
        self, text: pa.Array, rows: Iterable[int], width: int, refused: Rejections
    ) -> dict[int, list[str]]:
        read = {}
        for row in rows:
            values = self.one(text[row].as_py())
            if values is None:
                refused.add_one(row, "unterminated_quote")
            elif len(values) != width:
                refused.add_one(row, "field_count", len(values), str(width))
            else:
                read[row] = values
        return read


class Aligned(Separated):
    """Values with any number of blanks and tabs between them; such before the first and behind the last value
    are no part of one. A value that is empty has to be quoted."""

    def __init__(self, quote: str) -> None:
        super().__init__(" ", quote)
        mark = re.escape(quote)
        self._of_blanks = rf"[ \t]*({mark}(?:[^{mark}]|{mark}{mark})*{mark}[^ \t]*|[^ \t]+)[ \t]*"
        self._one_of_blanks = re.compile(self._of_blanks)

    def one(self, line: str) -> list[str] | None:
        """The values of a line; None if a quote is open at its end."""
        plain = self._one_of_blanks.sub(r"\1 ", line).rstrip(" \t")
        return super().one(plain) if plain else []

    def columns(
        self,
        text: pa.Array,
        names: Sequence[str],
        wanted: Collection[str] | None,
        unset: str,
        refused: Rejections,
    ) -> dict[str, pa.Array]:
        """As of values with one blank between them."""
        plain = pc.utf8_rtrim(pc.replace_substring_regex(text, self._of_blanks, r"\1 "), " \t")
        none = mask(pc.and_(pc.equal(plain, ""), pc.not_equal(text, "")))
        refused.add(none, "field_count", None, pa.repeat(pa.scalar("0"), len(text)), str(len(names)))
        return super().columns(plain, names, wanted, unset, refused)


def separated(delimiter: str, quote: str) -> Separated:
    """Return how values are told apart by a delimiter of CSV."""
    return Aligned(quote) if delimiter == BLANKS else Separated(delimiter, quote)
