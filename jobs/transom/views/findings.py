"""The findings of an interval, in pages: new, ongoing and withdrawn ones."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from transom.charts.section import Cells, DataTable
from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.engine.selection import MAX_READ
from transom.features.registry import FINDING_ORDER
from transom.findings.from_ledger import Finding
from transom.findings.store import NAME, about_sql, finding_of_row, rank_sql, reported_sql
from transom.storage.tables import instant, literal
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
MAX_WITHDRAWN = 1_000
"""The maximum number of withdrawn findings of an interval; the last ones count."""
DELIVERIES = "deliveries"
"""The table of messages about findings; without it, no finding is withdrawn."""
COLUMNS = (
    "state", "severity", "kind", "stage", "block", "title", "key", "item", "start_time", "end_time",
    "ongoing", "exactness", "evidence", "first_hour", "hour", "finding_id", "withdrawn because of",
)  # fmt: skip
"""The columns of a download of findings."""


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
        finding: the finding; of a withdrawn one, as its last message describes it.
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
        severities: the number of findings of the interval and key by severity, without withdrawn ones.
    """

    rows: list[FindingRow]
    total: int
    page: int
    pages: int
    choices: Mapping[str, Mapping[str, int]]
    severities: Mapping[str, int]


@dataclass(frozen=True)
class _Filters:
    """The findings that a reader wants; None is any.

    Attributes:
        interval: the hours.
        about: the SQL condition that a finding has the key.
    """

    interval: Interval
    about: str
    state: str | None
    severity: str | None
    kind: str | None
    block: str | None

    @property
    def selected(self) -> str:
        """The SQL condition that a finding is one of the interval and the key."""
        return f"{reported_sql(self.interval)} AND {self.about}"

    @property
    def kept(self) -> str:
        """The SQL condition of the other filters, except the state."""
        values = {"severity": self.severity, "kind": self.kind, "block": self.block}
        terms = (f"{name} = {literal(value)}" for name, value in values.items() if value is not None)
        return " AND ".join(terms) or "TRUE"

    @property
    def state_sql(self) -> str:
        """The SQL expression of the state of a finding that is not withdrawn."""
        start, end = instant(self.interval.start), instant(self.interval.end)
        return f"CASE WHEN first_hour >= {start} AND first_hour < {end} THEN 'new' ELSE 'ongoing' END"

    def keeps(self, row: FindingRow) -> bool:
        """Return whether a row meets all filters except the interval and the key."""
        of = row.finding
        pairs = ((self.severity, of.severity), (self.kind, of.kind), (self.block, of.block))
        return self.state in (None, row.state) and all(wanted in (None, value) for wanted, value in pairs)


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
    filters = _Filters(interval, about_sql(opened.stream, key or {}), state, severity, kind, block)
    table, withdrawn = opened.tables.pin(NAME), _withdrawn(opened, filters)
    choices: dict[str, Counter[str]] = {name: Counter() for name in ("state", "severity", "kind", "block")}
    groups = table.rows(_groups(filters)) if table else []
    groups += [
        {**vars(row.finding), "state": row.state, "count": 1, "kept": filters.keeps(row)} for row in withdrawn
    ]
    severities = Counter[str]()
    for group in groups:
        severities[group["severity"]] += group["count"] if group["state"] != "withdrawn" else 0
        for name, counts in choices.items():
            if group[name] is not None:
                counts[group[name]] += group["count"]
    gone = [row for row in withdrawn if filters.keeps(row)]
    total = sum(group["count"] for group in groups if group["kept"])
    first, rows = (page - 1) * PER_PAGE, list[FindingRow]()
    if table:
        rows += map(_row, table.rows(_selected(filters, PER_PAGE, first)))
    after = first + len(rows) - (total - len(gone))
    rows += gone[max(0, after) : max(0, after + PER_PAGE - len(rows))]
    return FindingsPage(rows, total, page, max(1, -(-total // PER_PAGE)), choices, +severities)


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
    filters = _Filters(interval, about_sql(opened.stream, key or {}), state, severity, kind, block)
    table = opened.tables.pin(NAME)
    gone = [row for row in _withdrawn(opened, filters) if filters.keeps(row)]
    counts = table.rows(f"SELECT count(*) AS total FROM ({_selected(filters)})") if table else []
    total = sum(row["total"] for row in counts) + len(gone)

    def rows() -> Iterator[Cells]:
        for batch in table.batches(_selected(filters, MAX_READ)) if table else ():
            yield from (_cells(_row(row)) for row in batch.to_pylist())
        yield from map(_cells, gone)

    return DataTable(COLUMNS, (), total, download=rows)


def withdrawn_by_id(opened: OpenStream, finding_id: str) -> FindingRow | None:
    """Return a withdrawn finding as its last message described it; None if it is not withdrawn."""
    rows = _messages(opened, f"finding_id = {literal(finding_id)}")
    return next(iter(rows), None)


def _groups(filters: _Filters) -> str:
    """Return the SQL of the numbers of findings for each combination of values."""
    state = "TRUE" if filters.state is None else f"state = {literal(filters.state)}"
    names = "state, severity, kind, block"
    rows = f"SELECT *, {filters.state_sql} AS state FROM t WHERE {filters.selected}"
    kept = f"coalesce({filters.kept} AND {state}, FALSE) AS kept"
    return f"SELECT {names}, count(*) AS count, {kept} FROM ({rows}) GROUP BY {names}"


def _selected(filters: _Filters, limit: int | None = None, offset: int = 0) -> str:
    """Return the SQL of the findings that meet all filters, the worst first."""
    state = "TRUE" if filters.state is None else f"state = {literal(filters.state)}"
    rows = f"SELECT *, {filters.state_sql} AS state FROM t WHERE {filters.selected} AND {filters.kept}"
    limited = "" if limit is None else f" ORDER BY {rank_sql(FINDING_ORDER)} LIMIT {limit} OFFSET {offset}"
    return f"SELECT * FROM ({rows}) WHERE {state}{limited}"


def _row(row: Mapping[str, Any]) -> FindingRow:
    return FindingRow(finding_of_row(row), row["state"])


def _cells(row: FindingRow) -> Cells:
    of, reason = row.finding, row.withdrawal.reason if row.withdrawal else None
    return (
        row.state, of.severity, of.kind, of.stage, of.block, of.title, of.key, of.item, of.start_time,
        of.end_time, of.ongoing, of.exactness, " | ".join(of.evidence), of.first_hour, of.hour,
        of.finding_id, reason,
    )  # fmt: skip


def _withdrawn(opened: OpenStream, filters: _Filters) -> list[FindingRow]:
    """Return the last withdrawn findings of an interval and a key, the last one first."""
    start, end = instant(filters.interval.start), instant(filters.interval.end)
    hours = f"(first_hour IS NULL OR (first_hour < {end} AND last_hour >= {start}))"
    return _messages(opened, f"{hours} AND {filters.about}")


def _messages(opened: OpenStream, where: str) -> list[FindingRow]:
    """Return the withdrawn findings whose messages to the page meet an SQL condition, the last one first."""
    table = opened.tables.pin(DELIVERIES)
    if table is None:
        return []
    # A finding may be raised again.
    ids = f"SELECT finding_id FROM t WHERE recipient = 'page' AND state = 'withdrawn' AND {where}"
    place = "row_number() OVER (PARTITION BY finding_id ORDER BY sequence DESC)"
    last = f"SELECT *, {place} AS __place FROM t WHERE recipient = 'page' AND finding_id IN ({ids})"
    rows = table.rows(
        f"SELECT * FROM ({last}) WHERE __place = 1 AND state = 'withdrawn' "
        f"ORDER BY time DESC, finding_id LIMIT {MAX_WITHDRAWN}"
    )
    # A run may have raised one again and not yet written the message.
    current = opened.tables.pin(NAME)
    found = set[str]()
    if current and rows:
        of = ", ".join(literal(row["finding_id"]) for row in rows)
        found = {
            row["finding_id"] for row in current.rows(f"SELECT finding_id FROM t WHERE finding_id IN ({of})")
        }
    return [_of_message(row) for row in rows if row["finding_id"] not in found]


def _of_message(row: Mapping[str, Any]) -> FindingRow:
    finding = finding_of_row(
        {
            **row,
            "hour": row["last_hour"] or UNKNOWN_HOUR,
            "evidence": (),
            "exactness": "",
            "source_hash": None,
        }
    )
    reason = row["reason"] or "its rows are computed again, and it no longer follows from them"
    return FindingRow(finding, "withdrawn", Withdrawal(reason, row["time"].astimezone(UTC)))
