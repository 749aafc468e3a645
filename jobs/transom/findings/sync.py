"""Sync the findings of a table's rows, hour by hour, after any change of the rows. No Spark.

The findings of an hour of a block are a function of the table's rows and of the stream's templates. Each
finding has a hash of both. A run compares hashes and rewrites only the hours that differ. So an otherwise
idle run also repairs the findings that a killed run left.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import reduce
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import READABLE
from transom.findings.from_ledger import Finding
from transom.findings.source import HOUR, IDENTITY, MOMENT, VERSION, FindingSource, FindingTemplate
from transom.findings.store import NAME, replace
from transom.findings.text import short_hash
from transom.ledger.input_hashes import fingerprint
from transom.ledger.ledger import Ledger
from transom.ledger.run_details import FindingChanges, SeenFinding
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.endings import SuppressSpec
from transom.spec.stream import Stream
from transom.storage.tables import ATTEMPTS, Table, in_hours_sql, literal, query

MAX_ROWS_PER_COMMIT = 250_000
"""The maximum number of findings in a commit, unless a single hour has more."""
ROWS_AT_A_TIME = 10_000
"""The maximum number of rows that are Python objects at a time while they are hashed."""

BlockHour = tuple[str, datetime]
MARK = "__mark"
"""The column with a finding's id and a hash of its row and template."""
Marks = tuple[str, ...]
Summary = tuple[FindingTemplate, pa.Table]
"""A template, and a table with a row for each finding from `FindingTemplate.summarize`, and its mark."""


def sync_table_findings(
    ledger: Ledger, stream: Stream, source: FindingSource, changes: FindingChanges | None = None
) -> bool:
    """Bring the findings of a source up to date with its table's rows; return whether some were written.

    After a conflict with another commit, everything is computed again.

    Args:
        ledger: the ledger of the stream.
        stream: the stream.
        source: the source.
        changes: records the findings that change.

    Raises:
        CommitFailedError: every attempt conflicted with another commit.
    """
    ledger.create(Table.load(NAME))
    refused, last_snapshot = 0, None
    summaries: list[Summary] = []
    # Each version of transom writes an hour once, so that two versions do not overwrite each other forever.
    done: set[tuple[BlockHour, Marks]] = set()
    while refused < ATTEMPTS:
        # Opened first, so that later commits of others conflict.
        findings = ledger.open(NAME)
        snapshot, rows = _consistent(ledger, source)
        if snapshot is not last_snapshot:
            summaries = [] if rows is None else list(_summaries(snapshot, rows, stream, source))
            last_snapshot = snapshot
        changed = _changed(findings, source, summaries)
        due = {hour: marks for hour, marks in changed.items() if (hour, marks) not in done}
        if not due:
            return bool(done)
        try:
            # After a commit the table is at the version of this commit: a later one of others conflicts.
            for hours in _portions(due):
                _replace(findings, source, hours, _render(stream, source, summaries, hours), changes)
                done |= {(hour, due[hour]) for hour in hours}
        except CommitFailedError:
            refused += 1
    raise CommitFailedError(
        f"{source.stage}: findings were written by others at every one of {ATTEMPTS} attempts"
    )


def _portions(due: Mapping[BlockHour, Marks]) -> Iterator[list[BlockHour]]:
    """Yield the hours of each commit, in order."""
    portion, total = list[BlockHour](), 0
    for hour, marks in due.items():
        if portion and total + len(marks) > MAX_ROWS_PER_COMMIT:
            yield portion
            portion, total = [], 0
        portion.append(hour)
        total += len(marks)
    if portion:
        yield portion


def _consistent(ledger: Ledger, source: FindingSource) -> tuple[LedgerSnapshot, DeltaTable | None]:
    """Return the ledger of the stage and the table as of one moment; None if the table does not exist.

    Rows change only between a claim and a publication, and both change the ledger.
    """
    while True:
        snapshot = ledger.snapshot([source.stage])
        try:
            rows = ledger.open(source.table)
        except TableNotFoundError:
            rows = None
        if ledger.snapshot([source.stage]) is snapshot:
            return snapshot, rows


def _summaries(
    snapshot: LedgerSnapshot, table: DeltaTable, stream: Stream, source: FindingSource
) -> Iterator[Summary]:
    for template in source.templates(stream):
        entries = snapshot.series(source.stage, template.block, source.table)
        readable = (h for h in reversed(list(entries)) if entries[h].state_before_claim().status in READABLE)
        published = _rows_of_block(snapshot, table, source, template)
        rows = template.summarize(published, entries, next(readable, UNKNOWN_HOUR))
        rows = _without_suppressed(rows, template, source.stage, stream.suppress)
        block = f"{stream.name}/{source.stage}/{source.kind}/{template.block}"
        words = fingerprint([VERSION, block, asdict(template)])
        # Python objects of all rows would need ten times the memory of the rows.
        marks = [_marks(batch, block, words) for batch in rows.to_batches(max_chunksize=ROWS_AT_A_TIME)]
        yield template, rows.append_column(MARK, pa.chunked_array(marks, pa.string()))


def _without_suppressed(
    rows: pa.Table, template: FindingTemplate, stage: str, suppress: Iterable[SuppressSpec]
) -> pa.Table:
    """Return the rows of a summary whose findings the stream file does not suppress.

    An end is compared with the end of a finding, so that a finding which goes on after it is raised, and no
    older one.
    """
    for entry in suppress:
        if (entry.stage, entry.block) == (stage, template.block):
            values = {column: pa.scalar(value) for column, value in entry.key.items()}
            # A column that the table does not have yet is of nulls, as text.
            same = [pc.equal(rows[column].cast(value.type), value) for column, value in values.items()]
            if entry.until is not None:
                before = pc.less if template.ends_inside else pc.less_equal
                same.append(before(rows[template.end], pa.scalar(entry.until, MOMENT)))
            suppressed = reduce(pc.and_kleene, same, pa.repeat(True, len(rows)))
            rows = rows.filter(pc.invert(pc.fill_null(suppressed, False)))
    return rows


def _marks(rows: pa.RecordBatch, block: str, words: str) -> pa.Array:
    # Times as numbers: formatting is slow.
    plain = (c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in rows.columns)
    hashes = (short_hash(f"{words}{row}") for row in zip(*(c.to_pylist() for c in plain), strict=True))
    ids = (short_hash(f"{block}/{identity}") for identity in rows[IDENTITY].to_pylist())
    marks = [f"{id} {source_hash}" for id, source_hash in zip(ids, hashes, strict=True)]
    return pa.array(marks, pa.string())


def _of_hours(summary: Summary, hours: Iterable[BlockHour]) -> pa.Table:
    template, rows = summary
    own = [hour for block, hour in hours if block == template.block]
    return rows.filter(pc.is_in(rows[HOUR], pa.array(own, MOMENT)))


def _rows_of_block(
    snapshot: LedgerSnapshot, table: DeltaTable, source: FindingSource, template: FindingTemplate
) -> pa.Table:
    # Hours that a run is replacing are read from the version before the run.
    replaced: dict[int, list[datetime]] = {}
    for partition, entry in snapshot.having(["writing"], [source.table]):
        if partition.block == template.block and entry.previous_version is not None:
            replaced.setdefault(entry.previous_version, []).append(partition.hour)
    parts = [_read(table, template, f"NOT {in_hours_sql(chain(*replaced.values()))}")]
    for version, hours in replaced.items():
        parts.append(_read(DeltaTable(table.table_uri, version=version), template, in_hours_sql(hours)))
    return _with_plain_texts(pa.concat_tables(parts, promote_options="default"))


def _read(table: DeltaTable, template: FindingTemplate, where: str) -> pa.Table:
    existing = {field.name for field in table.schema().fields}
    names = dict.fromkeys(("hour", *template.columns, *template.key, *template.item))
    columns = (f'"{name}"' if name in existing else f'NULL AS "{name}"' for name in names)
    where = f"block = {literal(template.block)} AND {template.condition} AND {where}"
    return query(table, f"SELECT {', '.join(columns)} FROM t WHERE {where}")


def _with_plain_texts(rows: pa.Table) -> pa.Table:
    """Return rows whose text views and null columns are cast to strings, which many Arrow functions need."""
    views = (pa.string_view(), pa.null())
    fields = [field.with_type(pa.string()) if field.type in views else field for field in rows.schema]
    return rows.cast(pa.schema(fields))


def _changed(
    findings: DeltaTable, source: FindingSource, summaries: Collection[Summary]
) -> dict[BlockHour, Marks]:
    """Return the hours whose findings are out of date, ascending, with the marks of their new findings."""
    marks = "concat(finding_id, ' ', source_hash) AS mark"
    sql = f"SELECT block, hour, {marks} FROM t WHERE {source.condition}"
    published = _with_plain_texts(query(findings, sql))
    known = published["mark"]
    current = pa.chunked_array([chunk for _, rows in summaries for chunk in rows[MARK].chunks], pa.string())
    gone = published.filter(pc.invert(pc.is_in(known, current)))
    hours = set(zip(gone["block"].to_pylist(), gone["hour"].to_pylist(), strict=True))
    for template, rows in summaries:
        new = rows[HOUR].filter(pc.invert(pc.is_in(rows[MARK], known)))
        hours |= {(template.block, hour) for hour in pc.unique(new).to_pylist()}
    changed: dict[BlockHour, list[str]] = {hour: [] for hour in sorted(hours)}
    for summary in summaries:
        own = _of_hours(summary, changed)
        for hour, mark in zip(own[HOUR].to_pylist(), own[MARK].to_pylist(), strict=True):
            changed[summary[0].block, hour].append(mark)
    return {hour: tuple(sorted(marks)) for hour, marks in changed.items()}


def _render(
    stream: Stream, source: FindingSource, summaries: Collection[Summary], hours: Collection[BlockHour]
) -> Iterator[Finding]:
    for summary in summaries:
        own = _of_hours(summary, hours)
        for values in zip(*map(_values, own.columns), strict=True):
            row = dict(zip(own.column_names, values, strict=True))
            yield source.finding(stream.name, summary[0], row, *row[MARK].split(" "))


def _values(column: pa.ChunkedArray) -> Iterator[Any]:
    if not pa.types.is_timestamp(column.type):
        return iter(column.to_pylist())
    # Many rows have the same few times, and a datetime is slow to create.
    encoded = column.combine_chunks().dictionary_encode()
    times = [time.astimezone(UTC) for time in encoded.dictionary.to_pylist()]
    return (None if place is None else times[place] for place in encoded.indices.to_pylist())


def _replace(
    table: DeltaTable,
    source: FindingSource,
    hours: Collection[BlockHour],
    findings: Iterable[Finding],
    changes: FindingChanges | None,
) -> None:
    where = " OR ".join(
        f"(block = {literal(block)} AND {in_hours_sql(hour for _, hour in own)})"
        for block, own in groupby(hours, itemgetter(0))
    )
    where = f"{source.condition} AND ({where})"
    before, after = _seen(table, where) if changes is not None else {}, dict[str, SeenFinding]()

    def passing() -> Iterator[Finding]:
        for of in findings:
            after[of.finding_id] = SeenFinding(of.severity, of.title, of.source_hash)
            yield of

    replace(table, where, passing())
    if changes is not None:
        changes.record(before, after)


def _seen(table: DeltaTable, where: str) -> dict[str, SeenFinding]:
    rows = query(table, f"SELECT finding_id, severity, title, source_hash FROM t WHERE {where}").to_pylist()
    return {row["finding_id"]: SeenFinding(row["severity"], row["title"], row["source_hash"]) for row in rows}
