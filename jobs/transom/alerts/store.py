"""The table `deliveries`. No Spark."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from transom.alerts.comparison import Recipient
from transom.alerts.delivery import GONE, Delivery, Status
from transom.findings.from_ledger import KINDS, Finding
from transom.findings.store import NAME as FINDINGS
from transom.findings.store import finding_of_row
from transom.storage.tables import Table, TableFolder, instant, literal, query, read_rows, retry

NAME = "deliveries"
MAX_ROWS = 100_000
"""The maximum number of findings that a commit is about."""
SCATTERED = 64
"""The maximum number of data files of a recipient; more are merged."""


def deliveries(tables: TableFolder, where: str = "TRUE") -> list[Delivery]:
    """Return the rows that meet an SQL condition; none if there is no table."""
    try:
        return list(map(Delivery.of_row, read_rows(tables.open(NAME), where)))
    except TableNotFoundError:
        return []


def create(tables: TableFolder) -> None:
    """Create the table if it does not exist, and that of findings."""
    tables.create(Table.load(NAME), Table.load(FINDINGS))


@dataclass(frozen=True)
class Differences:
    """The findings that perhaps differ from the last messages about them, at most `MAX_ROWS` of each part.

    Attributes:
        present: the findings that are new or differ.
        last: the last messages about those that differ.
        absent: the last messages about findings that are gone.
    """

    present: list[Finding]
    last: list[Delivery]
    absent: list[Delivery]


def differences(
    table: DeltaTable,
    findings: DeltaTable,
    recipient: Recipient,
    silent: str = "FALSE",
    since: datetime | None = None,
) -> Differences:
    """Compare the findings with the last messages to a recipient. There may be millions; few differ.

    Args:
        table: the table `deliveries`.
        findings: the table `findings`.
        recipient: the recipient.
        silent: the SQL condition that a silence matches a last message, in the table `l`.
        since: if given, findings that ended before it are omitted.
    """
    last = (
        "(SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY finding_id ORDER BY sequence DESC) "
        f"AS place FROM d WHERE recipient = {literal(recipient.name)}) WHERE place = 1)"
    )
    accepted = f"t.severity IN ({_listed(recipient.severities)})"
    if recipient.kinds is not None:
        accepted += f" AND t.kind IN ({_listed(recipient.kinds)})"
    # As `content_hash`.
    changed = (
        f"(t.severity <> l.severity OR (t.kind NOT IN ({_listed(KINDS)}) AND (t.ongoing <> l.ongoing "
        "OR (NOT t.ongoing AND t.end_time IS DISTINCT FROM l.end_time))))"
    )
    # As `due`.
    resumed = f"l.status = 'silenced' AND t.ongoing AND NOT {silent}"
    differs = (
        f"CASE WHEN l.finding_id IS NULL OR l.hash = '{GONE}' THEN {accepted} "
        f"WHEN {resumed} THEN NOT l.muted OR ({accepted}) ELSE {changed} END "
        f"AND {_recent('t.hour', 't', since)}"
    )
    absent = f"l.hash <> '{GONE}' AND {_recent('l.last_hour', 'l', since)}"

    def rows(columns: str, source: str, where: str) -> list[dict[str, Any]]:
        # In one order, so that the differing findings have their last messages.
        on = f"{source} ON t.finding_id = l.finding_id WHERE {where}"
        sql = f"SELECT {columns}.* FROM {on} ORDER BY {columns}.finding_id LIMIT {MAX_ROWS}"
        found: list[dict[str, Any]] = query(findings, sql, d=table).to_pylist()
        return found

    # With a RIGHT JOIN and `t.finding_id IS NULL`, DataFusion sometimes omits rows.
    return Differences(
        list(map(finding_of_row, rows("t", f"t LEFT JOIN {last} l", differs))),
        list(map(Delivery.of_row, rows("l", f"t JOIN {last} l", differs))),
        list(map(Delivery.of_row, rows("l", f"{last} l LEFT ANTI JOIN t", absent))),
    )


def _recent(hour: str, table: str, since: datetime | None) -> str:
    """Return the SQL condition that a finding has not ended before a time, as `comparison.grouped`."""
    if since is None:
        return "TRUE"
    return f"({table}.end_time IS NULL OR greatest({hour}, {table}.end_time) >= {instant(since)})"


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(map(literal, sorted(texts)))


def unsent(table: DeltaTable, recipient: str) -> list[Delivery]:
    """Return the rows of messages to a recipient that are not recorded as sent."""
    where = f"recipient = {literal(recipient)} AND status IN ('sending', 'failed')"
    return list(map(Delivery.of_row, read_rows(table, where)))


def claim(table: DeltaTable, recipient: str, rows: Sequence[Delivery]) -> None:
    """Add rows, and replace those that are there, in one commit.

    Raises:
        CommitFailedError: the table has changed since it was opened.
    """
    once = CommitProperties(max_commit_retries=0)
    on = (
        f"t.recipient = {literal(recipient)} AND s.recipient = t.recipient "
        "AND s.finding_id = t.finding_id AND s.sequence = t.sequence"
    )
    source = pa.Table.from_pylist(list(map(vars, rows)), schema=Table.load(NAME).arrow_schema())
    merge = table.merge(source, on, source_alias="s", target_alias="t", commit_properties=once)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def record(
    tables: TableFolder, recipient: str, run_id: str, messages: Iterable[str], status: Status, now: datetime
) -> None:
    """Record the status of the rows of messages that a run was sending.

    What arrived is sent, also if another run has claimed it meanwhile. What failed may be another run's by
    now, which records it itself.
    """
    where = f"recipient = {literal(recipient)} AND message IN ({_listed(messages)}) AND " + (
        "status IN ('sending', 'failed')"
        if status == "sent"
        else f"status = 'sending' AND run_id = {literal(run_id)}"
    )
    updates = {"status": literal(status), "changed_at": instant(now)}
    retry(lambda: tables.open(NAME).update(updates=updates, predicate=where))


def compact(tables: TableFolder, recipient: str) -> None:
    """Merge the files of a recipient if there are many."""
    table = tables.open(NAME)
    files = pa.table(table.get_add_actions(flatten=True))["partition.recipient"].to_pylist()
    if files.count(recipient) > SCATTERED:
        with suppress(CommitFailedError):
            table.optimize.compact([("recipient", "=", recipient)])
