"""Summaries: a row for each finding of a table's rows, with a mark that changes with its row or template."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property, reduce
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import READABLE
from transom.findings.row_parts import PART, Parts, divide, part_sql
from transom.findings.source import IDENTITY, MOMENT, VERSION, FindingSource, FindingTemplate, States
from transom.findings.text import short_hash
from transom.ledger.input_hashes import fingerprint
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.endings import SuppressSpec
from transom.spec.stream import Stream
from transom.storage.tables import in_hours_sql, literal, query_batches

ROWS_AT_A_TIME = 10_000
"""The maximum number of rows that are Python objects at a time."""
MARK = "__mark"
"""The column with a finding's id and a hash of its row and template."""


@dataclass(frozen=True)
class Summaries:
    """The summaries of a template, part by part.

    A single part is summarized once; many parts in each iteration, as the summaries do not fit in memory.

    Attributes:
        stream: the stream.
        source: the source of the template.
        template: the template.
        entries: the states of the hours of the block's table.
        last: the last published hour of the block's table.
        parts: the rows.
    """

    stream: Stream
    source: FindingSource
    template: FindingTemplate
    entries: States
    last: datetime
    parts: Parts

    def __iter__(self) -> Iterator[pa.Table]:
        if len(self.parts) == 1:
            return iter([self._only])
        return (self._summarize(part()) for part in self.parts)

    @cached_property
    def _only(self) -> pa.Table:
        return self._summarize(self.parts[0]())

    def _summarize(self, rows: pa.Table) -> pa.Table:
        """Return a row for each finding from `FindingTemplate.summarize`, with its mark."""
        template, stage = self.template, self.source.stage
        summary = template.summarize(rows, self.entries, self.last)
        summary = _without_suppressed(summary, template, stage, self.stream.suppress)
        block = f"{self.stream.name}/{stage}/{self.source.kind}/{template.block}"
        words = fingerprint([VERSION, block, asdict(template)])
        # Python objects of all rows would need ten times the memory of the rows.
        marks = [_marks(batch, block, words) for batch in summary.to_batches(max_chunksize=ROWS_AT_A_TIME)]
        return summary.append_column(MARK, pa.chunked_array(marks, pa.string()))


def summaries_of(
    snapshot: LedgerSnapshot, table: DeltaTable, stream: Stream, source: FindingSource, folder: Path
) -> Iterator[Summaries]:
    """Yield the summaries of each template.

    Args:
        snapshot: the ledger of the source's stage.
        table: the table of the source, at the moment of the ledger.
        stream: the stream.
        source: the source.
        folder: an empty folder, for rows that do not fit in memory.
    """
    for number, template in enumerate(source.templates(stream)):
        entries = snapshot.series(source.stage, template.block, source.table)
        readable = (h for h in reversed(list(entries)) if entries[h].state_before_claim().status in READABLE)
        parts = _parts_of_block(snapshot, table, source, template, folder / str(number))
        yield Summaries(stream, source, template, entries, next(readable, UNKNOWN_HOUR), parts)


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


def _parts_of_block(
    snapshot: LedgerSnapshot,
    table: DeltaTable,
    source: FindingSource,
    template: FindingTemplate,
    folder: Path,
) -> Parts:
    """Return the published rows of a block; the rows of a finding are in one part."""
    # Hours that a run is replacing are read from the version before the run.
    replaced: dict[int, list[datetime]] = {}
    for partition, entry in snapshot.having(["writing"], [source.table]):
        if partition.block == template.block and entry.previous_version is not None:
            replaced.setdefault(entry.previous_version, []).append(partition.hour)
    readers = [_read(table, template, f"NOT {in_hours_sql(chain(*replaced.values()))}")]
    for version, hours in replaced.items():
        readers.append(_read(DeltaTable(table.table_uri, version=version), template, in_hours_sql(hours)))
    # An earlier version has no other columns.
    schema = plain_schema(readers[0].schema)
    return divide((batch.cast(schema) for batch in chain(*readers)), schema, folder)


def _read(table: DeltaTable, template: FindingTemplate, where: str) -> pa.RecordBatchReader:
    existing = {field.name for field in table.schema().fields}
    names = dict.fromkeys(("hour", *template.columns, *template.key, *template.item))
    columns = (f'"{name}"' if name in existing else f'NULL AS "{name}"' for name in names)
    part = part_sql(name for name in template.grouped if name in existing)
    where = f"block = {literal(template.block)} AND {template.condition} AND {where}"
    return query_batches(table, f"SELECT {', '.join(columns)}, {part} AS {PART} FROM t WHERE {where}")


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with strings for text views and null columns, as many Arrow functions need them."""
    views = (pa.string_view(), pa.null())
    return pa.schema([field.with_type(pa.string()) if field.type in views else field for field in schema])
