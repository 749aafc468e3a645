"""A section of a page: a heading, a chart, and the table of its values. No library of charts or pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_ROWS = 200
"""The maximum number of rows of a table on a page."""
MAX_TEXT = 300
"""The maximum number of characters of a text on a page."""


@dataclass(frozen=True)
class DataTable:
    """The rows below a chart.

    Attributes:
        columns: the names of the columns.
        rows: the values.
        total: the number of rows that there are; greater than that of `rows` if the page skips some.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    total: int

    @classmethod
    def of(
        cls, columns: Iterable[str], rows: Iterable[Sequence[object]], total: int | None = None
    ) -> "DataTable":
        """Return the table of the first `MAX_ROWS` rows.

        Args:
            columns: the names of the columns.
            rows: the values of each row, the most important row first.
            total: the number of rows, if `rows` are not all. Default: the number of `rows`.
        """
        values = [tuple(row) for row in rows]
        return cls(tuple(columns), tuple(values[:MAX_ROWS]), len(values) if total is None else total)


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        title: the heading.
        note: what the values are, which of them are shown, and how exact they are.
        table: the values; None if there are none.
        chart: a Vega-Lite specification; None if there is no chart.
        subject: the block or stage, for a short link to the section.
        feature: the feature of the block, as features may have blocks with the same name.
    """

    title: str
    note: str
    table: DataTable | None = None
    chart: Mapping[str, Any] | None = None
    subject: str = ""
    feature: str = "quality"

    @property
    def anchor(self) -> str:
        """The id of the section on its page."""
        return f"part-{self.feature}-{self.subject}"


def thin(rows: Sequence[Mapping[str, Any]], limit: int, by: str) -> list[Mapping[str, Any]]:
    """Return at most `limit` rows of a sequence: of each part of equal length the row with the largest value.

    So no peak is lost.

    Args:
        rows: the rows, in order.
        limit: the maximum number of rows, 1 or more.
        by: the column with the value; null is the smallest.
    """
    step = -(-len(rows) // limit) or 1
    parts = (rows[start : start + step] for start in range(0, len(rows), step))
    return [max(part, key=lambda row: float("-inf") if row[by] is None else row[by]) for part in parts]
