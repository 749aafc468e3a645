"""The tables of the ingest stage, and the rows that a run writes into them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.engine.measurement import SIZE, hashed
from transom.engine.staging import require_written
from transom.features.ingest.deduplicate import IS_DUPLICATE, compares, mark_duplicates
from transom.features.ingest.file_decisions import Decisions
from transom.features.ingest.file_records import FileRecord
from transom.features.ingest.parsed_rows import ParsedRows
from transom.features.ingest.read_files import FileReadResult
from transom.spec.stream import Stream
from transom.storage import digest as digests
from transom.storage.data_files import DataFile
from transom.storage.store import PinnedTables, cast_to_table
from transom.storage.tables import SPARK_TYPES, Table

SCATTERED = 4
"""Up to this average number of files in an hour, each writes its own data file; more are gathered first."""


@dataclass(frozen=True)
class Tables:
    """The tables of a stream's ingest."""

    events: Table
    duplicates: Table
    rejected: Table
    files: Table

    @classmethod
    def of(cls, stream: Stream) -> "Tables":
        """Return the tables with the columns that the stream declares."""
        types = {name: SPARK_TYPES[field.type] for name, field in stream.event_columns.items()}
        events, duplicates = (Table.load(name).declare(columns=types) for name in ("events", "duplicates"))
        return cls(events, duplicates, Table.load("rejected"), Table.load("files"))

    def as_recorded(self, pins: PinnedTables) -> "Tables":
        """Return these tables with the columns of earlier specifications, too.

        Rows that are not read again keep their values, in case a specification is restored. New rows have
        nulls.
        """
        events, duplicates = map(pins.current_schema, (self.events, self.duplicates))
        return replace(self, events=events, duplicates=duplicates)

    def __iter__(self) -> Iterator[Table]:
        return iter((self.events, self.duplicates, self.rejected, self.files))


@dataclass(frozen=True)
class HourRows:
    """The rows of the hours that a run publishes.

    Attributes:
        tables: the tables of ingest.
        pins: the tables at fixed versions.
        decisions: the decisions on files.
        reads: the results of reading, by path.
        rows: the rows of the results.
        stored: the published hours in which a table has rows, by table.
    """

    tables: Tables
    pins: PinnedTables
    decisions: Decisions
    reads: Mapping[str, FileReadResult]
    rows: ParsedRows
    stored: Mapping[str, Sequence[datetime]]

    @property
    def compared(self) -> bool:
        """Whether events are compared, or were: duplicates may appear and disappear."""
        return compares(self.rows.stream) or bool(self.stored["duplicates"])

    @property
    def gathered(self) -> bool:
        """Whether new rows of an hour come from few files on average; one task reads each file."""
        hours = [hour for path in self.decisions.added.values() for hour in self.reads[path].hours.tolist()]
        return not self.compared and len(hours) <= SCATTERED * len(set(hours))

    def adopt_files(self, hours: Collection[datetime]) -> list[DataFile] | None:
        """Return the data files that the run commits to `events` unchanged; None if their rows change, or one
        has several hours. Raise as `require_written`."""
        files = [file for path in self.decisions.added.values() for file in self.reads[path].events]
        changed, adopted = self.stored["events"] or self.rows.stream.derived, set(hours)
        if changed or not self.gathered or not all(file.hour for file in files):
            return None
        files = [file for file in files if file.hour in adopted]
        require_written(self.rows.store, "events", files)
        self.rows.adopted = files
        return files

    def by_table(self, files: Mapping[str, FileRecord]) -> tuple[dict[str, DataFrame], dict[str, int]]:
        """Return the rows of all tables but `files`, and the change in the number of duplicates by source."""
        stream, tables = self.rows.stream, self.tables
        records, rejected = self._records(), self._rejected(files)
        if not self.compared:
            return {"events": records, "duplicates": records.where(F.lit(False)), "rejected": rejected}, {}
        records = self.rows.persist(mark_duplicates(records, stream))
        duplicates = cast_to_table(records.where(IS_DUPLICATE), tables.duplicates)
        before = _union(self._staying("duplicates", tables.duplicates), self.pins, tables.duplicates)
        events = records.where(~F.col(IS_DUPLICATE)).drop(IS_DUPLICATE)
        signed = [
            rows.select("source_id", F.lit(sign).alias("sign"))
            for rows, sign in ((duplicates, 1), (before, -1))
        ]
        deltas = reduce(DataFrame.unionByName, signed).groupBy("source_id").agg(F.sum("sign").alias("delta"))
        by_table = {"events": events, "duplicates": duplicates, "rejected": rejected}
        return by_table, {row["source_id"]: row["delta"] for row in deltas.toArrow().to_pylist()}

    def _records(self) -> DataFrame:
        """Return all records of the hours, events and duplicates."""
        table = self.tables.events
        frames = [frame for name in ("events", "duplicates") for frame in self._staying(name, table)]
        entering = [self.reads[path] for path in self.decisions.added.values()]
        if any(read.events for read in entering):
            new = self.rows.events(entering).withColumn("hour", F.date_trunc("hour", "event_time"))
            frames.append(cast_to_table(new, table))
        return _union(frames, self.pins, table)

    def _rejected(self, files: Mapping[str, FileRecord]) -> DataFrame:
        """Return the rejected lines. They have no time, so their hour is that of their file."""
        table = self.tables.rejected
        frames = self._staying("rejected", table)
        paths = {source: path for source, path in self.decisions.added.items() if self.reads[path].rejected}
        if paths:
            pairs = [F.lit(item) for source, path in paths.items() for item in (source, files[path].hour)]
            new = self.rows.rejected(self.reads[path] for path in paths.values())
            new = new.withColumn("hour", F.create_map(*pairs)[F.col("source_id")])
            frames.append(cast_to_table(new, table))
        return _union(frames, self.pins, table)

    def _staying(self, name: str, schema: Table) -> list[DataFrame]:
        """Return the kept rows of a table, in the schema of another one."""
        if not self.stored[name]:
            return []
        rows = cast_to_table(self.pins.read(name, self.stored[name]), schema)
        leaving = sorted(self.decisions.removed.keys() | self.decisions.added.keys())
        return [rows.where(~F.col("source_id").isin(leaving)) if leaving else rows]


def hashed_rows(tables: Tables, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Return the hashed rows of all tables, as `measure` reads them."""

    def of_table(table: Table) -> DataFrame:
        rows = frames[table.name]
        with_hash = hashed(rows, digests.row_hash_sql(rows.schema, table.digest_columns()))
        return with_hash.select(F.lit(table.name).alias("table"), "hour", digests.HASH, SIZE)

    return reduce(DataFrame.unionByName, map(of_table, tables))


def file_rows(table: Table, files: Sequence[FileRecord]) -> pa.Table:
    """Return rows of `files` in Arrow."""
    return pa.Table.from_pylist([*map(vars, files)], schema=table.arrow_schema())


def _union(frames: Sequence[DataFrame], pins: PinnedTables, table: Table) -> DataFrame:
    if not frames:
        ddl = ", ".join(f"`{name}` {kind}" for name, kind in table.columns.items())
        return pins.store.spark.createDataFrame([], ddl)
    return reduce(DataFrame.unionByName, frames)
