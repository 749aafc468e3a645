"""Sync the findings of a table's rows, hour by hour, after any change of the rows. No Spark.

The findings of an hour of a block are a function of the table's rows and of the stream's templates. Each
finding has a hash of both. A run compares the sums of an hour's hashes, and rewrites only the hours that
differ. So an otherwise idle run also repairs the findings that a killed run left.

The memory is bounded, however many findings there are: rows are read in parts, and findings are written as
they are rendered. Only findings that replace others are compared in memory, with those that they replace.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from transom.arrays.arrow import encode_keys
from transom.findings.from_ledger import Finding
from transom.findings.source import HOUR, MOMENT, FindingSource
from transom.findings.store import NAME, replace
from transom.findings.summaries import MARK, ROWS_AT_A_TIME, Summaries, plain_schema, summaries_of
from transom.ledger.hash_sums import hash_texts
from transom.ledger.ledger import Ledger
from transom.ledger.run_details import FindingChanges, SeenFinding
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
    summaries: list[Summaries] = []
    sums: MarkSums = {}
    # Each version of transom writes an hour once, so that two versions do not overwrite each other forever.
    done: set[tuple[BlockHour, bytes | None]] = set()
    with TemporaryDirectory(prefix="transom-findings-") as folder:
        while refused < ATTEMPTS:
            # Opened first, so that later commits of others conflict.
            findings = ledger.open(NAME)
            snapshot, rows = _consistent(ledger, source)
            if snapshot is not last_snapshot:
                own = Path(folder) / str(refused)
                summaries = [] if rows is None else [*summaries_of(snapshot, rows, stream, source, own)]
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


def _current(summaries: Iterable[Summaries]) -> MarkSums:
    """Return the sums of the findings that the rows have."""
    sums: dict[BlockHour, bytes] = {}
    for block in summaries:
        for rows in block:
            names = pa.repeat(block.template.block, rows.num_rows)
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
    stream: Stream, source: FindingSource, summaries: Iterable[Summaries], hours: Collection[BlockHour]
) -> Iterator[Finding]:
    for block in summaries:
        own = pa.array([hour for name, hour in hours if name == block.template.block], MOMENT)
        if not len(own):
            continue
        for rows in block:
            due = rows.filter(pc.is_in(rows[HOUR], own))
            for start in range(0, due.num_rows, ROWS_AT_A_TIME):
                some = due.slice(start, ROWS_AT_A_TIME)
                for values in zip(*map(_values, some.columns), strict=True):
                    row = dict(zip(some.column_names, values, strict=True))
                    yield source.finding(stream.name, block.template, row, *row[MARK].split(" "))


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
    # A finding that moves from an hour to another one is in both of the hours, and so it is updated.
    before, found = _seen(table, where) if changes is not None else {}, FindingChanges()

    def passing() -> Iterator[Finding]:
        for of in findings:
            seen = SeenFinding(of.severity, of.title, of.source_hash)
            found.record(of.finding_id, before.pop(of.finding_id, None), seen)
            yield of

    replace(table, where, passing())
    if changes is not None:
        for finding_id, seen in before.items():
            found.record(finding_id, seen, None)
        changes.add(found)


def _seen(table: DeltaTable, where: str) -> dict[str, SeenFinding]:
    rows = query(table, f"SELECT finding_id, severity, title, source_hash FROM t WHERE {where}").to_pylist()
    return {row["finding_id"]: SeenFinding(row["severity"], row["title"], row["source_hash"]) for row in rows}
