"""The tables of the ingest stage, and the rows that a run puts into them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.features.ingest.file_decisions import Decisions
from transom.features.ingest.file_records import FileRecord
from transom.features.ingest.read_files import FileReadResult
from transom.features.ingest.staged_rows import StagedRows
from transom.spec.stream import Stream
from transom.storage.store import PinnedTables, cast_to_table
from transom.storage.tables import SPARK_TYPES, Table


def event_types(stream: Stream) -> dict[str, str]:
    """The Spark types of the columns that a stream declares, captures included."""
    return {name: SPARK_TYPES[field.type] for name, field in stream.event_columns.items()}


@dataclass(frozen=True)
class Tables:
    """The tables of a stream's ingest."""

    events: Table
    duplicates: Table
    rejected: Table
    files: Table

    @classmethod
    def of(cls, stream: Stream) -> "Tables":
        """The tables, with the columns that the stream declares."""
        types = event_types(stream)
        events, duplicates = (Table.load(name).declare(columns=types) for name in ("events", "duplicates"))
        return cls(events, duplicates, Table.load("rejected"), Table.load("files"))

    def as_recorded(self, pins: PinnedTables) -> "Tables":
        """These tables with the columns as well that they have of earlier specifications. What is read again
        holds nothing in them; rows that stay, because their file is another run's to read, or gone, have to
        be what they were when the specification is put back."""
        return replace(
            self, events=pins.current_schema(self.events), duplicates=pins.current_schema(self.duplicates)
        )

    def __iter__(self) -> Iterator[Table]:
        return iter((self.events, self.duplicates, self.rejected, self.files))


def candidates(
    tables: Tables,
    pins: PinnedTables,
    decisions: Decisions,
    reads: Mapping[str, FileReadResult],
    rows: StagedRows,
    stored: Mapping[str, Sequence[datetime]],
) -> DataFrame:
    """Every record of the hours that are published, whether it will stand in `events` or in `duplicates`.

    Args:
        stored: for each table, the hours of them in which it holds rows.
    """
    table = tables.events
    frames = [
        frame
        for name in ("events", "duplicates")
        for frame in _staying(name, table, pins, decisions, stored[name])
    ]
    entering = [reads[path] for path in decisions.added.values()]
    if any(read.events for read in entering):
        new = rows.events(entering).withColumn("hour", F.date_trunc("hour", "event_time"))
        frames.append(cast_to_table(new, table))
    return _union(frames, pins, table)


def repeated_before(
    tables: Tables, pins: PinnedTables, decisions: Decisions, stored: Mapping[str, Sequence[datetime]]
) -> DataFrame:
    """The duplicates that stand in the hours that are published, of the sources that stay."""
    table = tables.duplicates
    return _union(_staying(table.name, table, pins, decisions, stored[table.name]), pins, table)


def rejected(
    table: Table,
    pins: PinnedTables,
    decisions: Decisions,
    reads: Mapping[str, FileReadResult],
    rows: StagedRows,
    stored: Mapping[str, Sequence[datetime]],
    files: Mapping[str, FileRecord],
) -> DataFrame:
    """Rejected lines as they will stand, each in the hour that its file belongs to."""
    frames = _staying(table.name, table, pins, decisions, stored[table.name])
    with_lines = {source: path for source, path in decisions.added.items() if reads[path].rejected}
    if with_lines:
        # A rejected line has no time of its own.
        hours = {source: files[path].hour for source, path in with_lines.items()}
        new = rows.rejected(reads[path] for path in with_lines.values())
        frames.append(cast_to_table(new.withColumn("hour", _lookup("source_id", hours)), table))
    return _union(frames, pins, table)


def file_rows(table: Table, files: Sequence[FileRecord]) -> pa.Table:
    """The rows of `files`."""
    return pa.Table.from_pylist([file.row() for file in files], schema=table.arrow_schema())


def _staying(
    name: str, form: Table, pins: PinnedTables, decisions: Decisions, stored: Sequence[datetime]
) -> list[DataFrame]:
    if not stored:
        return []
    rows = cast_to_table(pins.read(name, stored), form)
    leaving = sorted(decisions.removed.keys() | decisions.added.keys())
    return [rows.where(~F.col("source_id").isin(leaving)) if leaving else rows]


def _union(frames: Sequence[DataFrame], pins: PinnedTables, table: Table) -> DataFrame:
    if not frames:
        ddl = ", ".join(f"`{name}` {kind}" for name, kind in table.columns.items())
        return pins.store.spark.createDataFrame([], ddl)
    return reduce(DataFrame.unionByName, frames)


def _lookup(column: str, values: Mapping[Any, Any]) -> Column:
    pairs = [F.lit(item) for pair in values.items() for item in pair]
    return F.create_map(*pairs)[F.col(column)]
