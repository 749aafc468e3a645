"""A table as CSV, in which no cell is a formula."""

from collections.abc import Iterator

from transom.charts.section import DataTable

MAX_LINES = 100_000
"""The maximum number of rows of a download; a last line says how many are left out."""


def lines(table: DataTable) -> Iterator[str]:
    """Yield the header and all rows of a table as CSV, a line at a time, in UTF-8 and with line ends.

    A spreadsheet takes a text that begins with `=`, `+`, `-`, `@` or a control character as a formula. Such a
    text gets a leading `'`. Numbers stay numbers.
    """
    raise NotImplementedError
