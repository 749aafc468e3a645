"""A section of a page: a heading, a chart, and the table of its values. No library of charts or pages."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

MAX_ROWS = 200
"""The maximum number of rows of a table on a page."""
RAW_ROWS = 20
"""The number of raw lines at a time: each has all fields of an event."""
MAX_TEXT = 300
"""The maximum number of characters of a text on a page."""


Cells = tuple[object, ...]


@dataclass(frozen=True)
class DataTable:
    """The rows below a chart.

    Attributes:
        columns: the names of the columns.
        rows: the values of the rows on this page.
        total: the number of rows that there are; greater than that of `rows` if the page skips some.
        first: the number of the first row on this page, from 1.
        download: yields the values of all rows, up to a limit; None if there are no others than `rows`.
        meanings: what columns mean, by the names of those whose meaning is known.
        per_page: the maximum number of rows on a page.
        is_raw: whether its rows are raw lines, which a page does not wrap.
    """

    columns: tuple[str, ...]
    rows: tuple[Cells, ...]
    total: int
    first: int = 1
    download: Callable[[], Iterator[Cells]] | None = field(default=None, compare=False, repr=False)
    meanings: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    per_page: int = MAX_ROWS
    is_raw: bool = False

    @classmethod
    def of(
        cls,
        columns: Iterable[str],
        rows: Iterable[Sequence[object]],
        total: int | None = None,
        first: int = 1,
        download: Callable[[], Iterator[Cells]] | None = None,
        meanings: Mapping[str, str] | None = None,
    ) -> "DataTable":
        """Return the table of the first `MAX_ROWS` rows.

        Args:
            columns: the names of the columns.
            rows: the values of each row, the most important row first.
            total: the number of rows, if `rows` are not all. Default: the number of `rows`.
            first: the number of the first row, from 1.
            download: as of the class.
            meanings: as of the class; those of other columns do not count.
        """
        values = iter(rows)
        shown = tuple(tuple(row) for row in islice(values, MAX_ROWS))
        count = len(shown) + sum(1 for _ in values) if total is None else total
        names = tuple(columns)
        known = {name: (meanings or {})[name] for name in names if name in (meanings or {})}
        return cls(names, shown, count, first, download, known)

    @property
    def last(self) -> int:
        """The number of the last row on this page; less than `first` if there is none."""
        return self.first + len(self.rows) - 1

    @property
    def pages(self) -> int:
        """The number of pages, 1 or more."""
        return max(1, -(-self.total // self.per_page))

    @property
    def all_rows(self) -> Iterator[Cells]:
        """The values of all rows, up to a limit."""
        return iter(self.rows) if self.download is None else self.download()


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        title: the heading.
        note: the answer: what was found, and which values are shown.
        table: the values; None if there are none.
        chart: a Vega-Lite specification; None if there is no chart.
        subject: the block or stage, for a short link to the section.
        feature: the feature of the block, as features may have blocks with the same name.
        guarantee: how the values are meant, and how exact they are; a page has it after them.
        file: the rows of a download; None if they are those of `table`.
        file_of: what the rows of `file` are about.
        orders: the orders of the table that a reader can choose, with a text for each.
    """

    title: str
    note: str
    table: DataTable | None = None
    chart: Mapping[str, Any] | None = None
    subject: str = ""
    feature: str = "quality"
    guarantee: str = ""
    file: DataTable | None = None
    file_of: str = ""
    orders: Mapping[str, str] = field(default_factory=dict)

    @property
    def download(self) -> DataTable | None:
        """The table of a download."""
        return self.table if self.file is None else self.file

    @property
    def anchor(self) -> str:
        """The id of the section on its page."""
        return f"part-{self.feature}-{self.subject}"


def thin(rows: Sequence[Mapping[str, Any]], limit: int, by: str) -> list[Mapping[str, Any]]:
    """Return a sequence; if it has more than `limit` rows, the extremes of each of `limit // 2` parts.

    So neither a peak nor a trough is lost. Of the rows without a value, which break a line, each part keeps
    the first one.

    Args:
        rows: the rows, in order.
        limit: the maximum number of rows with a value, 2 or more.
        by: the column with the value; null is no value.
    """
    if len(rows) <= limit:
        return list(rows)
    step = -(-len(rows) // (limit // 2))
    kept: list[Mapping[str, Any]] = []
    for start in range(0, len(rows), step):
        places = range(start, min(start + step, len(rows)))
        valued = [place for place in places if rows[place][by] is not None]
        empty = (place for place in places if rows[place][by] is None)
        chosen = {*islice(empty, 1)}
        if valued:
            values = [rows[place][by] for place in valued]
            chosen |= {valued[values.index(extreme(values))] for extreme in (min, max)}
        kept += (rows[place] for place in sorted(chosen))
    return kept
