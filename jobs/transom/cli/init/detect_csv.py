"""Read lines as a table of delimited values, as a job does, and find the lines above its records."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transom.cli.init.infer_types import NOTHING, NUMBER, TRUTH, ColumnType, kind_of, skeleton, times_of
from transom.formats.record_format import BLANKS, EPOCHS
from transom.formats.separated_values import Separated, separated

DELIMITERS = ("\t", ";", ",", "|", " ", BLANKS)
OF_BLANKS = DELIMITERS[-2:]
"""The blanks among them: one blank, and any number of blanks."""
COMMENTS = ("#", "//", "%", "!")
"""Beginnings of lines that are no records of a table."""
MAX_LINES_ABOVE = 50
"""Maximum number of lines above the first record."""
LONGEST_RECORD = 200
"""Maximum number of lines of a record."""


@dataclass(frozen=True)
class DelimitedTable:
    """Lines as rows of the same number of values.

    Attributes:
        rows: the rows, without lines with another number of values.
        places: the line of each row, from 1.
        above: the number of lines before the first row that are neither rows nor comments.
        odd: the number of such lines after it.
        comment: the beginning of comment lines; empty if there are none.
        comments: the texts of comment lines, by their number from 1.
    """

    delimiter: str
    rows: list[list[str]]
    places: list[int]
    above: int
    odd: int
    comment: str
    comments: dict[int, str]

    @property
    def share(self) -> float:
        """The share of rows among the lines from the first row on."""
        return len(self.rows) / (len(self.rows) + self.odd)

    @property
    def first_line(self) -> int:
        """The number of the first line that is no comment, from 1."""
        numbers = (number for number in range(1, len(self.comments) + 2) if number not in self.comments)
        return next(numbers)

    @property
    def is_comment_above(self) -> bool:
        """Whether all lines before the first row are comments."""
        return all(number in self.comments for number in range(1, self.places[0]))

    def is_comment_below(self, head: "Head") -> bool:
        """Return whether all lines between the names and the first record are comments."""
        return all(number in self.comments for number in range(head.names_line + 1, head.data_line))


@dataclass(frozen=True)
class Head:
    """The lines above the records of a table.

    Attributes:
        names: the column names; None if no line has them.
        names_line: the number of that line, from 1.
        data_row: the first row that is a record.
        data_line: the number of its line, from 1.
    """

    names: list[str] | None
    names_line: int
    data_row: int
    data_line: int


def table_of(lines: Sequence[str], delimiter: str) -> DelimitedTable | None:
    """Return lines as a table; None if most of them have a single value."""
    parts = separated(delimiter, '"')
    for comment in (*(sign for sign in COMMENTS if any(line.startswith(sign) for line in lines)), ""):
        comments = {
            number: line.removeprefix(comment).lstrip(" ")
            for number, line in enumerate(lines, 1)
            if comment and line.startswith(comment)
        }
        if len(comments) > len(lines) / 2:
            continue
        read = {
            number: parts.split_line(line) for number, line in enumerate(lines, 1) if number not in comments
        }
        widths = Counter(len(row) for row in read.values() if row is not None)
        if not widths:
            continue
        width = max(widths, key=lambda width: (widths[width], width))
        fitting = [(number, row) for number, row in read.items() if row is not None and len(row) == width]
        first = fitting[0][0]
        above = sum(number < first for number in read)
        # Values may also begin with such a sign.
        if width < 2 or any(
            number > first and _width(parts, text) == width for number, text in comments.items()
        ):
            continue
        if above > MAX_LINES_ABOVE:
            continue
        odd = len(read) - len(fitting) - above
        places, rows = [number for number, _ in fitting], [row for _, row in fitting]
        return DelimitedTable(delimiter, rows, places, above, odd, comment, comments)
    return None


def _width(parts: Separated, text: str) -> int:
    return len(parts.split_line(text) or ())


def head_of(table: DelimitedTable) -> Head:
    """Return the line that names the columns of a table, and the beginning of its records.

    A line above the records, such as names or units, has no value of the type of its column.
    """
    rows = table.rows
    kinds = _kinds(rows[len(rows) // 2 :] if len(rows) > 3 else rows[1:])
    data = 0
    if any(kind is not None and kind.type != "string" for kind in kinds):
        while data < min(len(rows) - 1, MAX_LINES_ABOVE) and _is_above(rows[data], kinds):
            data += 1
    elif is_header(_numbered(rows[0]), rows[1:]):
        data = 1
    if data:
        named = next((at for at in range(data) if _names_all(rows[at])), 0)
        return Head(rows[named], table.places[named], data, table.places[data % len(rows)])
    for number in sorted(table.comments, reverse=True):
        names = separated(table.delimiter, '"').split_line(table.comments[number])
        fits = number < table.places[0] and names is not None and len(names) == len(rows[0])
        if fits and names is not None and is_header(names, rows):
            return Head(names, number, 0, table.places[0])
    return Head(None, 0, 0, table.places[0])


def _kinds(rows: Sequence[Sequence[str]]) -> list[ColumnType | None]:
    """Return the kind of each column, None where it has no values."""
    columns = ([row[index] for row in rows if row[index]] for index in range(len(rows[0]) if rows else 0))
    return [kind_of(column) if column else None for column in columns]


def _is_above(row: Sequence[str], kinds: Sequence[ColumnType | None]) -> bool:
    """Return whether no value of a row has the type of its column, and some value has another one."""
    typed = [
        (cell, kind)
        for cell, kind in zip(row, kinds, strict=True)
        if kind is not None and kind.type != "string" and cell and cell not in NOTHING
    ]
    return bool(typed) and not any(_is_of(kind, cell) for cell, kind in typed)


def _is_of(kind: ColumnType, cell: str) -> bool:
    if kind.type in ("integer", "number") or kind.form in EPOCHS:
        return NUMBER.fullmatch(cell) is not None or re.fullmatch(r"[-+]?[0-9.,]+", cell) is not None
    if kind.type == "boolean":
        return cell in TRUTH
    return times_of([cell]) is not None or skeleton(cell) == skeleton("2024-05-01 10:00:00")


def _names_all(row: Sequence[str]) -> bool:
    return len(set(row)) == len(row) and all(re.search("[^\\W\\d]", cell) for cell in row)


def _numbered(names: Sequence[str]) -> list[str]:
    """Return names in which missing and repeated ones are replaced by unique ones."""
    return [
        name if name.strip() and names.count(name) == 1 else f"{name or 'field'}_{place}"
        for place, name in enumerate(names, 1)
    ]


def is_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a line names the fields: its texts are distinct, no numbers, and no values of their
    column."""
    if len(set(first)) < len(first) or not all(cell.strip() for cell in first):
        return False
    if any(re.search(r"[^\W\d]|_", cell) is None for cell in first):
        return False
    for index, name in enumerate(first):
        column = [row[index] for row in rows if row[index]]
        if column and kind_of([name]).type != kind_of(column).type:
            return True
    return all(name not in {row[index] for row in rows} for index, name in enumerate(first)) and all(
        re.fullmatch(r"[^\W\d@]?[\w .@()/%-]*", name) for name in first
    )


def records_of(lines: Sequence[str], delimiter: str) -> tuple[list[list[str]], int]:
    """Return the records in lines, where a quoted value may continue in the next line.

    Returns:
        The records, and how many of them have several lines. A line whose quote is never closed, before a
        delimiter or at a line's end, is a record with a single value.
    """
    records: list[list[str]] = []
    over = at = 0
    while at < len(lines):
        record, count = next(
            ((row, count) for count, row in _read(lines[at : at + LONGEST_RECORD], delimiter)),
            ([lines[at]], 1),
        )
        records.append(record)
        over += count > 1
        at += count
    return records, over


def _read(lines: Sequence[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first record of lines with its number of lines, if it is valid."""
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter, strict=True)
    try:
        row = next(reader, None)
    except csv.Error:
        return
    if row is not None:
        yield reader.line_num, row
