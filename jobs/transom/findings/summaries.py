"""Summaries: a row for each finding of a table's rows, with a mark that changes with its row or template."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import datetime
from functools import reduce
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import READABLE
from transom.findings.row_parts import PART, Parts, divide, part_sql
from transom.findings.source import HOUR, IDENTITY, MOMENT, VERSION, FindingSource, FindingTemplate, States
from transom.findings.text import short_hash
from transom.ledger.input_hashes import fingerprint
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.endings import SuppressSpec
from transom.spec.stream import Stream
from transom.storage.tables import in_hours_sql, literal, query_batches

ROWS_AT_A_TIME = 2_000
"""The maximum number of rows that are Python objects at a time."""
MAX_ROWS = 2**14
"""The maximum number of rows that are kept in memory for a source; of more, a part at a time is in memory."""
MARK = "__mark"
"""The column with a finding's id and a hash of its row and template."""


class TemplateSummaries:
    """The summaries of a template, part by part: a row for each finding, with its mark.

    A single part is summarized once. Of several, each is summarized in every iteration, as all summaries need
    too much memory.

    Args:
        stream: the stream.
        source: the source of the template.
        template: the template.
        entries: the states of the hours of the block's table.
        last: the last published hour of the block's table.
        parts: the rows.
    """

    def __init__(
        self,
        stream: Stream,
        source: FindingSource,
        template: FindingTemplate,
        entries: States,
        last: datetime,
        parts: Parts,
    ) -> None:
        self.template = template
        self._entries, self._last = entries, last
        self._suppress = [
            of for of in stream.suppress if (of.stage, of.block) == (source.stage, template.block)
        ]
        self._block = f"{stream.name}/{source.stage}/{source.kind}/{template.block}"
        self._words = fingerprint([VERSION, self._block, asdict(template)])
        self._only = self._marked(self._summarize(parts[0]())) if len(parts) == 1 else None
        self._parts = [] if self._only is not None else parts
        self._hours: list[pa.Array] = []
        self.row_count = 0 if self._only is None else self._only.num_rows

    def all(self) -> Iterator[pa.Table]:
        """Yield all summaries."""
        if self._only is not None:
            yield self._only
            return
        self._hours = []
        for part in self._parts:
            summary = self._summarize(part())
            self._hours.append(pc.unique(summary[HOUR]))
            yield self._marked(summary)

    def of_hours(self, hours: pa.Array) -> Iterator[pa.Table]:
        """Yield the summaries of some hours; `all` must have been iterated over before."""
        if self._only is not None:
            yield self._only.filter(pc.is_in(self._only[HOUR], hours))
        for part, own in zip(self._parts, self._hours, strict=True):
            if pc.any(pc.is_in(own, hours)).as_py():
                summary = self._summarize(part())
                yield self._marked(summary.filter(pc.is_in(summary[HOUR], hours)))

    def _summarize(self, rows: pa.Table) -> pa.Table:
        summary = self.template.summarize(rows, self._entries, self._last)
        return _without_suppressed(summary, self.template, self._suppress)

    def _marked(self, summary: pa.Table) -> pa.Table:
        # Python objects of all rows would need ten times the memory of the rows.
        batches = summary.to_batches(max_chunksize=ROWS_AT_A_TIME)
        marks = [_marks(batch, self._block, self._words) for batch in batches]
        return summary.append_column(MARK, pa.chunked_array(marks, pa.string()))


def summaries_of(
    snapshot: LedgerSnapshot, table: DeltaTable, stream: Stream, source: FindingSource
) -> list[TemplateSummaries]:
    """Return the summaries of each template of a source.

    Args:
        snapshot: the ledger of the source's stage.
        table: the table of the source, at the moment of the ledger.
        stream: the stream.
        source: the source.
    """
    summaries, limit = list[TemplateSummaries](), MAX_ROWS
    for template in source.templates(stream):
        entries = snapshot.series(source.stage, template.block, source.table)
        readable = (h for h in reversed(list(entries)) if entries[h].state_before_claim().status in READABLE)
        parts = _parts_of_block(snapshot, table, source, template, limit)
        last = next(readable, UNKNOWN_HOUR)
        summaries.append(TemplateSummaries(stream, source, template, entries, last, parts))
        limit = max(0, limit - summaries[-1].row_count)
    return summaries


def _without_suppressed(
    rows: pa.Table, template: FindingTemplate, suppress: Iterable[SuppressSpec]
) -> pa.Table:
    """Return the rows of a summary whose findings the stream file does not suppress.

    An end is compared with the end of a finding, so that a finding which goes on after it is raised, and no
    older one.
    """
    for entry in suppress:
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
    limit: int,
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
    return divide((batch.cast(schema) for batch in chain(*readers)), schema, limit)


def _read(table: DeltaTable, template: FindingTemplate, where: str) -> pa.RecordBatchReader:
    existing = {field.name for field in table.schema().fields}
    names = dict.fromkeys(("hour", *template.columns, *template.key, *template.item))
    columns = (f'"{name}"' if name in existing else f'NULL AS "{name}"' for name in names)
    where = f"block = {literal(template.block)} AND {template.condition} AND {where}"
    rows = f"SELECT {', '.join(columns)} FROM t WHERE {where}"
    return query_batches(table, f"SELECT *, {part_sql(template.grouped)} AS {PART} FROM ({rows})")


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with strings for text views and null columns, as many Arrow functions need them."""
    views = (pa.string_view(), pa.null())
    return pa.schema([field.with_type(pa.string()) if field.type in views else field for field in schema])
