"""The findings of an interval, in pages, with their states and silences."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from transom.alerts.delivery import GONE
from transom.charts.section import Cells, DataTable
from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.engine.selection import MAX_READ
from transom.features.registry import FINDING_ORDER
from transom.findings.from_ledger import SEVERITIES, Finding
from transom.findings.store import NAME, about_sql, finding_of_row, rank_sql, reported_sql
from transom.ledger.run_records import NAME_SQL
from transom.spec.notify import SilenceSpec
from transom.spec.stream import Stream
from transom.storage.tables import instant, literal
from transom.views.finding_groups import FindingGroup, grouped
from transom.views.open_stream import OpenStream
from transom.views.runs import RUNS, may_have_written, requested
from transom.views.silences import Silences

State = Literal["new", "earlier", "undated", "withdrawn"]
STATES: Mapping[State, str] = {
    "new": "one of these hours reported it first",
    "earlier": "an earlier hour reported it first",
    "undated": "it is about files that belong to no hour",
    "withdrawn": "it was reported, and is no longer there: its rows have changed, or its cause is gone",
}
"""The states of findings, with their meanings. Whether one is ongoing is another question: each may be."""
FILTERS = ("state", "severity", "kind", "block", "silenced")
"""The filters with a few values, of which a page shows the numbers."""
ANSWERS = ("yes", "no")
"""The values of the filter `silenced`."""
PER_PAGE = 50
"""The number of findings on a page."""
MAX_WITHDRAWN = 1_000
"""The maximum number of withdrawn findings of an interval; the last ones count."""
DELIVERIES = "deliveries"
"""The table of messages about findings; without it, only runs have the withdrawn ones."""
WITHDRAWN = f"recipient = 'page' AND hash = '{GONE}'"
"""The SQL condition of messages to the page that a finding is no longer there."""
NOT_KEPT = "not kept"
"""The kind of a withdrawn finding of which no message was sent."""
COLUMNS = (
    "state", "severity", "kind", "stage", "block", "title", "key", "item", "start_time", "end_time",
    "ongoing", "exactness", "evidence", "first_hour", "hour", "finding_id", "withdrawn because of",
    "silenced",
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
        silence: the silence that holds back its messages now; else None.
    """

    finding: Finding
    state: State
    withdrawal: Withdrawal | None = None
    silence: SilenceSpec | None = None

    @property
    def values(self) -> Mapping[str, str | None]:
        """The values that filters compare."""
        of = self.finding
        silenced = ANSWERS[self.silence is None]
        return {
            "state": self.state, "severity": of.severity, "kind": of.kind, "block": of.block,
            "silenced": silenced,
        }  # fmt: skip


@dataclass(frozen=True)
class FindingsPage:
    """A page of findings.

    Attributes:
        rows: the findings of the page, the worst first, withdrawn ones last.
        total: the number of findings that meet the filters, withdrawn ones among them.
        withdrawn: the number of withdrawn findings that meet the filters.
        page: the number of the page, from 1.
        pages: the number of pages, 1 or more.
        choices: for each of `FILTERS` its values, with the number of findings of the interval and key that
            have each.
        severities: the number of findings of the interval and key by severity, the worst first, without
            withdrawn ones.
    """

    rows: list[FindingRow]
    total: int
    withdrawn: int
    page: int
    pages: int
    choices: Mapping[str, Mapping[str, int]]
    severities: Mapping[str, int]

    @property
    def groups(self) -> list[FindingGroup[FindingRow]]:
        """The findings of the page, those of the same key or item together."""
        return grouped(self.rows, lambda row: row.finding, lambda row: row.state == "withdrawn")


@dataclass(frozen=True)
class FindingFilter:
    """The findings that a reader wants; None is any.

    Attributes:
        interval: the hours that reported them.
        key: the text of each column of a key or item.
        state: one of `STATES`.
        severity: the severity.
        kind: the kind.
        block: the block.
        silenced: one of `ANSWERS`: whether a silence holds back messages now.
    """

    interval: Interval
    key: Mapping[str, str] = field(default_factory=dict)
    state: str | None = None
    severity: str | None = None
    kind: str | None = None
    block: str | None = None
    silenced: str | None = None

    @property
    def wanted(self) -> Mapping[str, str]:
        """The values of `FILTERS` that are given."""
        values: Mapping[str, str | None] = {name: getattr(self, name) for name in FILTERS}
        return {name: value for name, value in values.items() if value is not None}

    def rows_sql(self, stream: Stream, silences: Silences) -> str:
        """Return the SQL of the findings of the interval and the key, with `state` and `silenced`."""
        start, end = instant(self.interval.start), instant(self.interval.end)
        first = "coalesce(first_hour, start_time)"
        state = (
            f"CASE WHEN {first} IS NULL THEN 'undated' "
            f"WHEN {first} >= {start} AND {first} < {end} THEN 'new' ELSE 'earlier' END"
        )
        where = f"{reported_sql(self.interval)} AND {about_sql(stream, self.key)}"
        return f"SELECT *, {state} AS state, {silences.sql} AS silenced FROM t WHERE {where}"

    @property
    def kept_sql(self) -> str:
        """The SQL condition that a row of `rows_sql` meets the other filters."""
        terms = (f"{name} = {literal(value)}" for name, value in self.wanted.items())
        return " AND ".join(terms) or "TRUE"

    def keeps(self, row: FindingRow) -> bool:
        """Return whether a row meets all filters except the interval and the key."""
        return self.wanted.items() <= row.values.items()


def findings_of(opened: OpenStream, filters: FindingFilter, page: int = 1) -> FindingsPage:
    """Return a page of the findings that an interval reported.

    Args:
        opened: the stream.
        filters: which findings.
        page: the number of the page, from 1; a page after the last one has no rows.
    """
    silences = Silences(opened.stream)
    table, withdrawn = opened.tables.pin(NAME), _withdrawn(opened, filters, silences)
    choices: dict[str, Counter[str]] = {name: Counter() for name in FILTERS}
    groups = table.rows(_groups(filters, opened.stream, silences)) if table else []
    groups += [{**row.values, "count": 1, "kept": filters.keeps(row)} for row in withdrawn]
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
        selected = table.rows(_selected(filters, opened.stream, silences, PER_PAGE, first))
        rows += (_row(row, silences) for row in selected)
    after = first + len(rows) - (total - len(gone))
    rows += gone[max(0, after) : max(0, after + PER_PAGE - len(rows))]
    # Groups come in any order.
    ordered: dict[str, int] = {name: severities[name] for name in SEVERITIES if severities[name]}
    return FindingsPage(rows, total, len(gone), page, max(1, -(-total // PER_PAGE)), choices, ordered)


def table_of(opened: OpenStream, filters: FindingFilter) -> DataTable:
    """Return all findings of `findings_of` as one table, for `csv.lines`."""
    silences, table = Silences(opened.stream), opened.tables.pin(NAME)
    gone = [row for row in _withdrawn(opened, filters, silences) if filters.keeps(row)]
    selected = _selected(filters, opened.stream, silences)
    counts = table.rows(f"SELECT count(*) AS total FROM ({selected})") if table else []
    total = sum(row["total"] for row in counts) + len(gone)

    def rows() -> Iterator[Cells]:
        for batch in table.batches(_selected(filters, opened.stream, silences, MAX_READ)) if table else ():
            yield from (_cells(_row(row, silences)) for row in batch.to_pylist())
        yield from map(_cells, gone)

    return DataTable(COLUMNS, (), total, download=rows)


def withdrawn_by_id(opened: OpenStream, finding_id: str) -> FindingRow | None:
    """Return a withdrawn finding as its last message described it; None if it is not withdrawn."""
    is_it, silences = f"finding_id = {literal(finding_id)}", Silences(opened.stream)
    rows = _messages(opened, is_it, silences) or _of_runs(opened, "TRUE", is_it, silences)
    return next(iter(rows), None)


def _groups(filters: FindingFilter, stream: Stream, silences: Silences) -> str:
    """Return the SQL of the numbers of findings for each combination of values."""
    names = ", ".join(FILTERS)
    kept = f"coalesce({filters.kept_sql}, FALSE) AS kept"
    rows = filters.rows_sql(stream, silences)
    return f"SELECT {names}, count(*) AS count, {kept} FROM ({rows}) GROUP BY {names}"


def _selected(
    filters: FindingFilter, stream: Stream, silences: Silences, limit: int | None = None, offset: int = 0
) -> str:
    """Return the SQL of the findings that meet all filters, the worst first."""
    order = f" ORDER BY {rank_sql(FINDING_ORDER)} LIMIT {limit} OFFSET {offset}"
    rows = f"SELECT * FROM ({filters.rows_sql(stream, silences)}) WHERE {filters.kept_sql}"
    return rows if limit is None else f"{rows}{order}"


def _row(row: Mapping[str, Any], silences: Silences) -> FindingRow:
    finding = finding_of_row(row)
    return FindingRow(finding, row["state"], None, silences.of(finding))


def _cells(row: FindingRow) -> Cells:
    of, reason = row.finding, row.withdrawal.reason if row.withdrawal else None
    return (
        row.state, of.severity, of.kind, of.stage, of.block, of.title, of.key, of.item, of.start_time,
        of.end_time, of.ongoing, of.exactness, " | ".join(of.evidence), of.first_hour, of.hour,
        of.finding_id, reason, None if row.silence is None else row.silence.text,
    )  # fmt: skip


def _withdrawn(opened: OpenStream, filters: FindingFilter, silences: Silences) -> list[FindingRow]:
    """Return the last withdrawn findings of an interval and a key, the last one first."""
    start, end = instant(filters.interval.start), instant(filters.interval.end)
    hours = f"(first_hour IS NULL OR (first_hour < {end} AND last_hour >= {start}))"
    rows = _messages(opened, f"{hours} AND {about_sql(opened.stream, filters.key)}", silences)
    if filters.key:
        # Runs do not have the keys of findings.
        return rows
    of_runs = f"(({may_have_written(filters.interval)}) OR ({requested(filters.interval)}))"
    return rows + _of_runs(opened, of_runs, "TRUE", silences)


def _messages(opened: OpenStream, where: str, silences: Silences) -> list[FindingRow]:
    """Return the withdrawn findings whose messages to the page meet an SQL condition, the last one first.

    In its message, one from the ledger has ended instead: the finding was true. It is gone all the same.
    """
    table = opened.tables.pin(DELIVERIES)
    if table is None:
        return []
    # A finding may be raised again.
    ids = f"SELECT finding_id FROM t WHERE {WITHDRAWN} AND {where}"
    place = "row_number() OVER (PARTITION BY finding_id ORDER BY sequence DESC)"
    last = f"SELECT *, {place} AS __place FROM t WHERE recipient = 'page' AND finding_id IN ({ids})"
    rows = table.rows(
        f"SELECT * FROM ({last}) WHERE __place = 1 AND hash = '{GONE}' "
        f"ORDER BY time DESC, finding_id LIMIT {MAX_WITHDRAWN}"
    )
    # A run may have raised one again and not yet written the message.
    found = _ids_in(opened, NAME, "TRUE", rows)
    return [_of_message(row, silences) for row in rows if row["finding_id"] not in found]


def _of_runs(opened: OpenStream, runs: str, where: str, silences: Silences) -> list[FindingRow]:
    """Return the withdrawn findings that only runs have, the last one first.

    They are those whose withdrawal has no message: the task that sends messages has not run since.

    Args:
        opened: the stream.
        runs: the SQL condition of the runs.
        where: the SQL condition of the findings.
        silences: the silences of the stream.
    """
    table = opened.tables.pin(RUNS)
    if table is None or not {"findings", "finding_counts", "first_hour"} <= table.columns.keys():
        return []
    each = (
        f"SELECT {NAME_SQL} AS name, stage, finished_at, unnest(findings) AS changed FROM t "
        f"WHERE {runs} AND array_has(map_keys(finding_counts), 'withdrawn')"
    )
    names = ("finding_id", "severity", "title", "change")
    fields = ", ".join(f"changed['{name}'] AS {name}" for name in names)
    place = "row_number() OVER (PARTITION BY finding_id ORDER BY finished_at DESC) AS __place"
    listed = f"SELECT name, stage, finished_at, {fields} FROM ({each})"
    ranked = f"SELECT *, {place} FROM ({listed}) WHERE change = 'withdrawn' AND {where}"
    rows = table.rows(
        f"SELECT * FROM ({ranked}) WHERE __place = 1 "
        f"ORDER BY finished_at DESC, finding_id LIMIT {MAX_WITHDRAWN}"
    )
    others = _ids_in(opened, NAME, "TRUE", rows) | _ids_in(opened, DELIVERIES, WITHDRAWN, rows)
    return [_of_run(row, silences) for row in rows if row["finding_id"] not in others]


def _ids_in(opened: OpenStream, name: str, where: str, rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return which ids of findings a table has in rows that meet an SQL condition."""
    of, table = ", ".join(literal(row["finding_id"]) for row in rows), opened.tables.pin(name)
    if table is None or not of:
        return set()
    found = table.rows(f"SELECT finding_id FROM t WHERE {where} AND finding_id IN ({of})")
    return {row["finding_id"] for row in found}


def _of_message(row: Mapping[str, Any], silences: Silences) -> FindingRow:
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
    withdrawal = Withdrawal(reason, row["time"].astimezone(UTC))
    return FindingRow(finding, "withdrawn", withdrawal, silences.of(finding))


def _of_run(row: Mapping[str, Any], silences: Silences) -> FindingRow:
    finding = Finding(
        row["stage"], UNKNOWN_HOUR, row["finding_id"], NOT_KEPT, None, row["severity"], row["title"], None,
        None, False, (), exactness="",
    )  # fmt: skip
    withdrawal = Withdrawal(f"by run {row['name']}", row["finished_at"].astimezone(UTC))
    return FindingRow(finding, "withdrawn", withdrawal, silences.of(finding))
