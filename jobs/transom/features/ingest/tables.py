"""The tables of the ingest stage, and the rows that a run puts into them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.engine.metrics import SIZE, hashed
from transom.features.ingest.deduplicate import IS_DUPLICATE, compares, mark_duplicates
from transom.features.ingest.file_decisions import Decisions
from transom.features.ingest.file_records import FileRecord
from transom.features.ingest.read_files import FileReadResult
from transom.features.ingest.staged_rows import StagedRows
from transom.spec.stream import Stream
from transom.storage import digest as digests
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


@dataclass(frozen=True)
class HourRows:
    """The rows of the hours that a run publishes.

    Attributes:
        stored: for each table, the hours of them in which it holds rows.
    """

    tables: Tables
    pins: PinnedTables
    decisions: Decisions
    reads: Mapping[str, FileReadResult]
    rows: StagedRows
    stored: Mapping[str, Sequence[datetime]]

    def by_table(self, files: Mapping[str, FileRecord]) -> tuple[dict[str, DataFrame], dict[str, int] | None]:
        """Return the rows of every table but `files`; and how many duplicates more each source has, None
        where the stream compares no records."""
        stream, tables = self.rows.stream, self.tables
        records, rejected = self._records(), self._rejected(files)
        if not compares(stream) and not self.stored["duplicates"]:
            return {"events": records, "duplicates": records.where(F.lit(False)), "rejected": rejected}, None
        records = self.rows.persist(mark_duplicates(records, stream))
        duplicates = cast_to_table(records.where(IS_DUPLICATE), tables.duplicates)
        before = _union(self._staying("duplicates", tables.duplicates), self.pins, tables.duplicates)
        events = records.where(~F.col(IS_DUPLICATE)).drop(IS_DUPLICATE)
        by_table = {"events": events, "duplicates": duplicates, "rejected": rejected}
        return by_table, _duplicate_deltas(duplicates, before)

    def _records(self) -> DataFrame:
        """Every record of the hours, whether it will stand in `events` or in `duplicates`."""
        table = self.tables.events
        frames = [frame for name in ("events", "duplicates") for frame in self._staying(name, table)]
        entering = [self.reads[path] for path in self.decisions.added.values()]
        if any(read.events for read in entering):
            new = self.rows.events(entering).withColumn("hour", F.date_trunc("hour", "event_time"))
            frames.append(cast_to_table(new, table))
        return _union(frames, self.pins, table)

    def _rejected(self, files: Mapping[str, FileRecord]) -> DataFrame:
        """Rejected lines as they will stand, each in the hour that its file belongs to."""
        table = self.tables.rejected
        frames = self._staying("rejected", table)
        with_lines = {
            source: path for source, path in self.decisions.added.items() if self.reads[path].rejected
        }
        if with_lines:
            # A rejected line has no time of its own.
            hours = {source: files[path].hour for source, path in with_lines.items()}
            new = self.rows.rejected(self.reads[path] for path in with_lines.values())
            frames.append(cast_to_table(new.withColumn("hour", _lookup("source_id", hours)), table))
        return _union(frames, self.pins, table)

    def _staying(self, name: str, form: Table) -> list[DataFrame]:
        """The rows of a table that stay, in the form of a table."""
        if not self.stored[name]:
            return []
        rows = cast_to_table(self.pins.read(name, self.stored[name]), form)
        leaving = sorted(self.decisions.removed.keys() | self.decisions.added.keys())
        return [rows.where(~F.col("source_id").isin(leaving)) if leaving else rows]


def hashed_rows(tables: Tables, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of all tables together, as `measure` takes them."""
    of_tables = (
        hashed(rows, digests.row_hash_sql(rows.schema, table.digest_columns())).select(
            F.lit(table.name).alias("table"), "hour", digests.HASH, SIZE
        )
        for table, rows in ((table, frames[table.name]) for table in tables)
    )
    return reduce(DataFrame.unionByName, of_tables)


def file_rows(table: Table, files: Sequence[FileRecord]) -> pa.Table:
    """The rows of `files`."""
    return pa.Table.from_pylist([*map(vars, files)], schema=table.arrow_schema())


def _duplicate_deltas(now: DataFrame, before: DataFrame) -> dict[str, int]:
    """How many duplicates more each source has than before."""
    signed = [rows.select("source_id", F.lit(sign).alias("sign")) for rows, sign in ((now, 1), (before, -1))]
    counts = reduce(DataFrame.unionByName, signed).groupBy("source_id").agg(F.sum("sign").alias("more"))
    return {row["source_id"]: row["more"] for row in counts.toArrow().to_pylist()}


def _union(frames: Sequence[DataFrame], pins: PinnedTables, table: Table) -> DataFrame:
    if not frames:
        ddl = ", ".join(f"`{name}` {kind}" for name, kind in table.columns.items())
        return pins.store.spark.createDataFrame([], ddl)
    return reduce(DataFrame.unionByName, frames)


def _lookup(column: str, values: Mapping[Any, Any]) -> Column:
    pairs = [F.lit(item) for pair in values.items() for item in pair]
    return F.create_map(*pairs)[F.col(column)]
