"""Sync the findings of a table's rows, hour by hour, after any change of the rows. No Spark.

The findings of an hour of a block are a function of the table's rows and of the stream's templates. Each
finding has a hash of both. A run compares the sums of an hour's hashes, and rewrites only the hours that
differ. So an otherwise idle run also repairs the findings that a killed run left.

Rows are read in parts, and findings are written as they are rendered, so the memory does not grow with their
number. Of the findings that are replaced, a hash is in memory.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from transom.arrays.arrow import encode_keys
from transom.findings.from_ledger import Finding
from transom.findings.source import HOUR, MOMENT, FindingSource
from transom.findings.store import NAME, replace
from transom.findings.summaries import MARK, ROWS_AT_A_TIME, TemplateSummaries, plain_schema, summaries_of
from transom.ledger.hash_sums import hash_texts
from transom.ledger.ledger import Ledger
from transom.ledger.run_details import MAX_FINDINGS, FindingChanges
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.tables import ATTEMPTS, Table, in_hours_sql, literal, query, query_batches

BlockHour = tuple[str, datetime]
MarkSums = Mapping[BlockHour, bytes]
"""The sum of the hashes of the marks of each hour with findings."""


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
    summaries: list[TemplateSummaries] = []
    sums: MarkSums = {}
    # Each version of transom writes an hour once, so that two versions do not overwrite each other forever.
    done: set[tuple[BlockHour, bytes | None]] = set()
    while refused < ATTEMPTS:
        # Opened first, so that later commits of others conflict.
        findings = ledger.open(NAME)
        snapshot, rows = _consistent(ledger, source)
        if snapshot is not last_snapshot:
            summaries = [] if rows is None else summaries_of(snapshot, rows, stream, source)
            sums, last_snapshot = _current(summaries), snapshot
        due = {(hour, sums.get(hour)) for hour in _changed(findings, source, sums)} - done
        if not due:
            return bool(done)
        hours = sorted(hour for hour, _ in due)
        try:
            _replace(findings, source, hours, _render(stream, source, summaries, hours), changes)
            done |= due
        except CommitFailedError:
            refused += 1
    raise CommitFailedError(
        f"{source.stage}: findings were written by others at every one of {ATTEMPTS} attempts"
    )


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


def _current(summaries: Iterable[TemplateSummaries]) -> MarkSums:
    """Return the sums of the findings that the rows have."""
    sums: dict[BlockHour, bytes] = {}
    for of_template in summaries:
        for rows in of_template.all():
            names = pa.repeat(of_template.template.block, rows.num_rows)
            _add(sums, pa.table({"block": names, "hour": rows[HOUR], "mark": rows[MARK]}))
    return sums


def _changed(findings: DeltaTable, source: FindingSource, sums: MarkSums) -> set[BlockHour]:
    """Return the hours whose findings are out of date."""
    marks = "concat(finding_id, ' ', source_hash) AS mark"
    published: dict[BlockHour, bytes] = {}
    for batch in query_batches(findings, f"SELECT block, hour, {marks} FROM t WHERE {source.condition}"):
        _add(published, pa.table(batch.cast(plain_schema(batch.schema))))
    return {hour for hour in published.keys() | sums.keys() if published.get(hour) != sums.get(hour)}


def _add(sums: dict[BlockHour, bytes], rows: pa.Table) -> None:
    """Add the hashes of rows with the columns `block`, `hour` and `mark` to the sums of their hours."""
    hours, firsts = encode_keys(rows, ["block", "hour"])
    keys = rows.select(["block", "hour"]).take(firsts).to_pylist()
    hashes = hash_texts(rows["mark"].to_pylist())
    added = np.zeros((len(keys), hashes.shape[1]), dtype=np.uint64)
    np.add.at(added, hours, hashes)
    for key, of_hour in zip(keys, added, strict=True):
        hour = key["block"], key["hour"]
        before = np.frombuffer(sums[hour], dtype=np.uint64) if hour in sums else np.uint64(0)
        sums[hour] = (before + of_hour).tobytes()


def _render(
    stream: Stream,
    source: FindingSource,
    summaries: Iterable[TemplateSummaries],
    hours: Collection[BlockHour],
) -> Iterator[Finding]:
    for of_template in summaries:
        template = of_template.template
        of_block = pa.array([hour for block, hour in hours if block == template.block], MOMENT)
        for rows in of_template.of_hours(of_block):
            for start in range(0, rows.num_rows, ROWS_AT_A_TIME):
                some = rows.slice(start, ROWS_AT_A_TIME)
                for values in zip(*map(_values, some.columns), strict=True):
                    row = dict(zip(some.column_names, values, strict=True))
                    yield source.finding(stream.name, template, row, *row[MARK].split(" "))


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
    if changes is None:
        replace(table, where, findings)
        return
    # A finding that moves from an hour to another one is in both of the hours, and so it is updated.
    version, found = table.version(), FindingChanges()
    before = {
        row["finding_id"]: row["source_hash"]
        for batch in query_batches(table, f"SELECT finding_id, source_hash FROM t WHERE {where}")
        for row in batch.to_pylist()
    }

    def recorded() -> Iterator[Finding]:
        for of in findings:
            known = before.pop(of.finding_id, None)
            if known != of.source_hash:
                found.record("new" if known is None else "updated", of.finding_id, of.severity, of.title)
            yield of

    replace(table, where, recorded())
    texts = _texts(DeltaTable(table.table_uri, version=version), sorted(before)[:MAX_FINDINGS])
    for finding_id in before:
        found.record("withdrawn", finding_id, *texts.get(finding_id, ("", "")))
    changes.add(found)


def _texts(table: DeltaTable, ids: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return severity and title of some findings, by id."""
    if not ids:
        return {}
    where = f"finding_id IN ({', '.join(map(literal, ids))})"
    rows = query(table, f"SELECT finding_id, severity, title FROM t WHERE {where}").to_pylist()
    return {row["finding_id"]: (row["severity"], row["title"]) for row in rows}
