"""The table `findings`. No Spark.

Each stage has its own rows. Those from its ledger are a function of the ledger's state, computed at the end
of every run. So an otherwise idle run repairs the findings that a killed run left. Most runs write nothing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from itertools import islice
from operator import attrgetter
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.findings.from_ledger import KINDS, SEVERITIES, Finding, Severity, from_ledger
from transom.findings.text import key_text, value_in_key
from transom.ledger.ledger import Ledger
from transom.ledger.run_details import Change, FindingChanges
from transom.spec.checks import OF_INGEST, BuiltIn
from transom.spec.feature import USUAL_PLACE, FindingOrder
from transom.spec.stream import Stream
from transom.storage.tables import ATTEMPTS, Table, TableFolder, instant, literal, query, read_rows

NAME = "findings"
FINDINGS_AT_A_TIME = 1_000
"""The maximum number of findings that are Python objects while they are written."""
FILE_SIZE = 4 * 2**20
"""The approximate maximum size of a file, in bytes: a file is in memory until it is complete."""
_BY_ID = attrgetter("finding_id")
_COLUMNS = tuple(field.name for field in fields(Finding))


def findings(
    root: str | TableFolder,
    interval: Interval | None = None,
    kinds: Iterable[str] | None = None,
    order: Sequence[FindingOrder] = (),
) -> list[Finding]:
    """Return findings, the worst first. There may be millions of alerts.

    Args:
        root: the stream's folder in the lake, or its tables.
        interval: if given, only findings that its hours reported, and those that belong to no hour. Hours
            from the first hour of a finding to its last hour or its end count as reporting it.
        kinds: the kinds to return. Default: all.
        order: the kinds with their own rank.
    """
    rows = _ask(root, f"SELECT * FROM t WHERE {reported_sql(interval, kinds)} ORDER BY {rank_sql(order)}")
    return list(map(finding_of_row, rows))


def select_findings(
    root: str,
    limit: int,
    per_group: int,
    order: Sequence[FindingOrder],
    interval: Interval | None = None,
    about: str = "TRUE",
) -> tuple[list[Finding], str | None]:
    """Return some findings of each kind and block, so that many of one kind do not hide another.

    Args:
        root: as of `findings`.
        limit: the maximum number in all, 1 or more; the worst one of each kind and block is always included.
        per_group: the maximum number of a kind and block, 1 or more.
        order: as of `findings`.
        interval: as of `findings`.
        about: a further SQL condition, such as that of `about_sql`.

    Returns:
        The findings, and a line of text that counts the others; None if there are no others.
    """
    rank = rank_sql(order)
    groups = (
        f"SELECT *, row_number() OVER (PARTITION BY kind, block ORDER BY {rank}) AS __place, "
        "count(*) OVER (PARTITION BY kind, block) AS __count "
        f"FROM t WHERE {reported_sql(interval)} AND {about}"
    )
    # The first ones of all groups come first, then the second ones, and so on.
    rows = _ask(
        root,
        f"SELECT * FROM (SELECT *, row_number() OVER (ORDER BY __place, {rank}) AS __turn FROM ({groups}) "
        f"WHERE __place <= {per_group}) WHERE __turn <= {limit} OR __place = 1 ORDER BY {rank}",
    )
    selected = Counter((row["kind"], row["block"], row["__count"]) for row in rows)
    more = [(kind, block or "", total - count) for (kind, block, total), count in selected.items()]
    more = sorted((group for group in more if group[2]), key=lambda group: (-group[2], *group[:2]))
    texts = (f"{count} {kind}{f' of {block}' if block else ''}" for kind, block, count in more)
    rest = f"... and {sum(count for *_, count in more)} more in the table findings: {', '.join(texts)}"
    return list(map(finding_of_row, rows)), rest if more else None


def count_findings(root: str, interval: Interval | None = None, where: str = "TRUE") -> int:
    """Return the number of findings that meet an SQL condition; other arguments as of `findings`."""
    rows = _ask(root, f"SELECT count(*) AS count FROM t WHERE {reported_sql(interval)} AND {where}")
    return sum(row["count"] for row in rows)


def count_by_severity(
    root: str, stages: Iterable[str], interval: Interval | None = None
) -> dict[tuple[str, Severity], int]:
    """Return the number of findings of each stage and severity, also where it is 0; arguments as of
    `findings`."""
    rows = _ask(
        root,
        f"SELECT stage, severity, count(*) AS count FROM t WHERE {reported_sql(interval)} "
        "GROUP BY stage, severity",
    )
    counts = {(row["stage"], row["severity"]): row["count"] for row in rows}
    return {
        (stage, severity): counts.get((stage, severity), 0) for stage in stages for severity in SEVERITIES
    }


def count_by_block(root: str, severity: Severity, interval: Interval) -> dict[tuple[str, str | None], int]:
    """Return the number of findings of a severity by kind and block, the most first; arguments as of
    `findings`."""
    rows = _ask(
        root,
        f"SELECT kind, block, count(*) AS count FROM t WHERE {reported_sql(interval)} "
        f"AND severity = {literal(severity)} GROUP BY kind, block ORDER BY count DESC, kind, block",
    )
    return {(row["kind"], row["block"]): row["count"] for row in rows}


def stages(root: str | TableFolder) -> set[str]:
    """Return the stages with findings; `root` as of `findings`."""
    return {row["stage"] for row in _ask(root, "SELECT DISTINCT stage FROM t")}


def _ask(root: str | TableFolder, sql: str) -> list[dict[str, Any]]:
    try:
        table = (TableFolder(root) if isinstance(root, str) else root).open(NAME)
    except TableNotFoundError:
        return []
    rows: list[dict[str, Any]] = query(table, sql).to_pylist()
    return rows


def rank_sql(order: Iterable[FindingOrder]) -> str:
    """Return the SQL order of findings: by severity, urgency, and the place of the kind; the worst first."""
    worst = f"ongoing AND severity = '{SEVERITIES[0]}'"
    places = ["CASE WHEN FALSE THEN 0"]
    times = ["CASE WHEN FALSE THEN start_time"]
    for kind in order:
        places += [f"WHEN kind = '{kind.kind}' AND {worst} THEN -1"] if kind.urgent else []
        places.append(f"WHEN kind = '{kind.kind}' THEN {kind.place}")
        times += [f"WHEN kind = '{kind.kind}' THEN start_time"] if kind.latest_first else []
    severities = " ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(SEVERITIES))
    return (
        f"CASE severity {severities} END, {' '.join(places)} ELSE {USUAL_PLACE} END, "
        f"{' '.join(times)} END DESC NULLS LAST, start_time NULLS FIRST, finding_id"
    )


def reported_sql(interval: Interval | None, kinds: Iterable[str] | None = None) -> str:
    """Return the SQL condition that an interval reported a finding; arguments as of `findings`."""
    where = "TRUE"
    if kinds is not None:
        where += f" AND kind IN ({', '.join(map(literal, kinds))})"
    if interval is not None:
        start, end = instant(interval.start), instant(interval.end)
        # A finding that is reported long after its end belongs to the hours that report it.
        first = "coalesce(first_hour, start_time)"
        last = "greatest(hour + INTERVAL '1 hour', end_time)"
        where += f" AND (start_time IS NULL OR end_time IS NULL OR ({first} < {end} AND {start} < {last}))"
    return where


def about_sql(stream: Stream, subject: Mapping[str, str]) -> str:
    """Return the SQL condition that the key or item of a finding has some values.

    The text of a key has no column if there is only one. So the columns are those of the finding's block.

    Args:
        stream: the stream.
        subject: the text of each column; empty for any key, and none.
    """
    if not subject:
        return "TRUE"
    blocks: dict[tuple[str, ...], list[str]] = {}
    for feature in stream.features:
        for name in stream.blocks(feature.block):
            of = f"(stage = {literal(feature.name)} AND block = {literal(name)})"
            blocks.setdefault(tuple(feature.subject(stream, name)), []).append(of)
    terms = (
        f"(({' OR '.join(of)}) AND {_has_values_sql(columns, subject)})"
        for columns, of in blocks.items()
        if subject.keys() <= {*columns}
    )
    return f"({' OR '.join(terms) or 'FALSE'})"


def _has_values_sql(columns: Sequence[str], subject: Mapping[str, str]) -> str:
    """Return the SQL condition that `key_text` has written some values of these columns."""
    text = "coalesce(key, item)"
    if subject.keys() == {*columns}:
        return f"{text} = {literal(key_text(columns, subject) or '')}"
    terms = []
    for place, column in enumerate(columns):
        if column in subject:
            # The next column ends the value, which may have a comma.
            after = f", {columns[place + 1]}=" if place + 1 < len(columns) else ""
            part = literal(f"{', ' if place else ''}{column}={value_in_key(columns, subject[column])}{after}")
            terms.append(
                f"starts_with({text}, {part})"
                if not place
                else f"strpos({text}, {part}) > 0"
                if after
                else f"ends_with({text}, {part})"
            )
    return " AND ".join(terms)


def sync_ledger_findings(
    ledger: Ledger,
    stream: str,
    stage: str,
    stale: Mapping[PartitionKey, PartitionState | None],
    rules: Mapping[str, BuiltIn] = OF_INGEST,
    noun: str = "events",
    changes: FindingChanges | None = None,
) -> bool:
    """Bring a stage's findings up to date with its ledger; return whether something was written.

    The table is opened before the ledger is read. After a commit, successful or not, everything is repeated
    until there is nothing to write. So a slow run cannot replace the findings of a later run by older ones.

    Args:
        ledger: the ledger of the stream.
        stream: the name of the stream.
        stage: the name of the stage.
        stale: the stale partitions that the run did not compute, with their states; those whose state has
            changed since do not count.
        rules: as of `from_ledger`.
        noun: as of `from_ledger`.
        changes: records the findings that change.

    Raises:
        CommitFailedError: every attempt conflicted with another commit.
    """
    ledger.create(Table.load(NAME))
    own = f"stage = {literal(stage)} AND kind IN ({', '.join(map(literal, KINDS))})"
    written = False
    for _ in range(ATTEMPTS):
        table = ledger.open(NAME)
        snapshot = ledger.snapshot([stage])
        if any(entry.status == "blocked" for _, entry in snapshot.troubled()):
            snapshot = ledger.snapshot()
        same = [partition for partition, entry in stale.items() if snapshot.get(partition) == entry]
        current = from_ledger(stream, stage, snapshot, ledger.failures(snapshot, stage), same, rules, noun)
        published = list(map(finding_of_row, read_rows(table, own)))
        if sorted(published, key=_BY_ID) == sorted(current, key=_BY_ID):
            return written
        try:
            replace(table, own, current)
            written = True
            if changes is not None:
                _record(changes, published, current)
        except CommitFailedError:
            continue
    raise CommitFailedError(f"{stage}: findings were written by others at every one of {ATTEMPTS} attempts")


def _record(changes: FindingChanges, before: Iterable[Finding], after: Iterable[Finding]) -> None:
    known, current = ({of.finding_id: of for of in findings} for findings in (before, after))
    for id, of in (known | current).items():
        if current.get(id) != known.get(id):
            change: Change = "withdrawn" if id not in current else "updated" if id in known else "new"
            changes.record(change, id, of.severity, of.title)


def replace(table: DeltaTable, condition: str, findings: Iterable[Finding]) -> None:
    """Replace the findings that meet an SQL condition. They are written while they are iterated over.

    Raises:
        CommitFailedError: the table has changed since it was opened. The findings must then be computed again
            from a newer ledger and newer rows.
        DeltaError: the iteration raises an error; nothing is committed.
    """
    write_deltalake(
        table,
        pa.RecordBatchReader.from_batches(Table.load(NAME).arrow_schema(), _batches(findings)),
        mode="overwrite",
        predicate=condition,
        target_file_size=FILE_SIZE,
        commit_properties=CommitProperties(max_commit_retries=0),
    )


def _batches(findings: Iterable[Finding]) -> Iterator[pa.RecordBatch]:
    remaining = iter(findings)
    while (rows := to_arrow(islice(remaining, FINDINGS_AT_A_TIME))).num_rows:
        yield from rows.to_batches()


def to_arrow(findings: Iterable[Finding]) -> pa.Table:
    """Return findings as rows of the table."""
    rows = [vars(finding) | {"evidence": list(finding.evidence)} for finding in findings]
    return pa.Table.from_pylist(rows, schema=Table.load(NAME).arrow_schema())


def finding_of_row(row: Mapping[str, Any]) -> Finding:
    """Return the finding of a row of the table."""
    values = {name: row[name] for name in _COLUMNS} | {"evidence": tuple(row["evidence"] or ())}
    times = {name: time.astimezone(UTC) for name, time in values.items() if isinstance(time, datetime)}
    return Finding(**values | times)
