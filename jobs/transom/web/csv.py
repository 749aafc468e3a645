"""A table as CSV, in which no cell is a formula."""

import csv
import io
from collections.abc import Iterable, Iterator
from datetime import datetime

from transom.charts.section import DataTable
from transom.core.terminal import escape_control_chars
from transom.engine.selection import MAX_READ
from transom.findings.text import as_text

FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The characters with which a formula begins in some spreadsheet."""


def lines(table: DataTable) -> Iterator[str]:
    """Yield the header and all rows of a table as CSV, a line at a time.

    A spreadsheet takes a text that begins with one of `FORMULA` as a formula. Such a text gets a leading `'`.
    Numbers stay numbers. Characters that are not printable are escaped, as on a page. If the table has more
    than `MAX_READ` rows, a last line has the number of all.
    """
    yield _line(map(_cell, table.columns))
    count = 0
    for row in table.all_rows:
        count += 1
        yield _line(map(_cell, row))
    if table.total > count:
        yield _line([f"The first {count:,} of {table.total:,} rows: a download has at most {MAX_READ:,}."])


def _line(cells: Iterable[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | int | float | datetime):
        return as_text(value)
    text = value if isinstance(value, str) else str(value)
    text = escape_control_chars(text)
    return f"'{text}" if text.startswith(FORMULA) else text
