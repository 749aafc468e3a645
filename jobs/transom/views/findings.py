"""The findings of an interval, in pages: new, ongoing and withdrawn ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from transom.charts.section import DataTable
from transom.core.intervals import Interval
from transom.findings.from_ledger import Finding
from transom.views.open_stream import OpenStream

State = Literal["new", "ongoing", "withdrawn"]
STATES: Mapping[State, str] = {
    "new": "the first hour that reported it is one of these hours",
    "ongoing": "an earlier hour reported it first",
    "withdrawn": "it was reported, and the rows are no longer so",
}
"""The states of findings, with their meanings."""
PER_PAGE = 50
"""The number of findings on a page."""


@dataclass(frozen=True)
class Withdrawal:
    """Why and when a finding was withdrawn.

    Attributes:
        reason: the file or run that caused it.
        time: when it was withdrawn.
    """

    reason: str
    time: datetime


@dataclass(frozen=True)
class FindingRow:
    """A finding of a page.

    Attributes:
        finding: the finding; of a withdrawn one, what its last message said.
        state: its state in the interval.
        withdrawal: of a withdrawn finding, why; else None.
    """

    finding: Finding
    state: State
    withdrawal: Withdrawal | None = None


@dataclass(frozen=True)
class FindingsPage:
    """A page of findings.

    Attributes:
        rows: the findings of the page, the worst first, withdrawn ones last.
        total: the number of findings that meet the filters.
        page: the number of the page, from 1.
        pages: the number of pages, 1 or more.
        choices: for each of the filters state, severity, kind and block its values, with the number of
            findings of the interval and key that have each.
    """

    rows: list[FindingRow]
    total: int
    page: int
    pages: int
    choices: Mapping[str, Mapping[str, int]]


def findings_of(
    opened: OpenStream,
    interval: Interval,
    *,
    state: str | None = None,
    severity: str | None = None,
    kind: str | None = None,
    block: str | None = None,
    key: Mapping[str, str] | None = None,
    page: int = 1,
) -> FindingsPage:
    """Return a page of the findings that an interval reported.

    Args:
        opened: the stream.
        interval: the hours.
        state: one of `STATES`. Default: all; so for the other filters.
        severity: the severity.
        kind: the kind.
        block: the block.
        key: the text of each column of a key or item.
        page: the number of the page, from 1; a page after the last one has no rows.
    """
    raise NotImplementedError


def table_of(
    opened: OpenStream,
    interval: Interval,
    *,
    state: str | None = None,
    severity: str | None = None,
    kind: str | None = None,
    block: str | None = None,
    key: Mapping[str, str] | None = None,
) -> DataTable:
    """Return all findings of `findings_of` as one table, for `csv.lines`."""
    raise NotImplementedError
