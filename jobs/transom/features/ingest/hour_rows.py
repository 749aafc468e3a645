"""The rows of the hours that a run of ingest publishes."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property, partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.core.partitions import merge_digests
from transom.engine.measurement import RunRows, hashed
from transom.engine.staging import require_written
from transom.engine.task_sums import RowMeasures, TaskSums
from transom.features.ingest.deduplicate import IS_DUPLICATE, compares, mark_duplicates
from transom.features.ingest.file_decisions import Decisions
from transom.features.ingest.file_records import FileRecord
from transom.features.ingest.parsed_rows import ParsedRows
from transom.features.ingest.read_files import FileReadResult
from transom.features.ingest.tables import Tables
from transom.storage import digest as digests
from transom.storage.data_files import DataFile, sort_by_hour
from transom.storage.driver_io import SIZE
from transom.storage.store import PinnedTables, cast_to_table
from transom.storage.tables import Table

Read = Callable[[], DataFrame]
SCATTERED = 4
"""Up to this average number of files in an hour, each writes its own data file; more are gathered first."""


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

    @cached_property
    def _unchanged(self) -> list[DataFile] | None:
        """The data files with the rows of `events`; None if their rows change, or one has several hours."""
        files = [file for path in self._added for file in self.reads[path].events]
        changes = self.stored["events"] or self.rows.stream.derived
        return files if not changes and self.gathered and all(file.hour for file in files) else None

    @property
    def _is_measured(self) -> bool:
        """Whether reading the files has aggregated all their events, and no others stay."""
        paths = {path for path in self._added if self.reads[path].events}
        return not self.compared and not self.stored["events"] and self.rows.aggregates.keys() >= paths

    @property
    def _rejects(self) -> bool:
        return bool(self.stored["rejected"]) or any(self.reads[path].rejected for path in self._added)

    @property
    def needs_spark(self) -> bool:
        """Whether Spark reads or writes rows; failed checks apart, whose rows it looks for."""
        return not self._is_measured or self._rejects or self._unchanged is None

    def adopt_files(self, hours: Collection[datetime]) -> list[DataFile] | None:
        """Return the data files that the run commits to `events` unchanged; None if their rows change, or one
        has several hours. Raise as `require_written`."""
        if self._unchanged is None:
            return None
        adopted = set(hours)
        files = [file for file in self._unchanged if file.hour in adopted]
        require_written(self.rows.store, "events", files)
        self.rows.adopted = files
        return files

    def by_table(self, files: Mapping[str, FileRecord]) -> tuple[dict[str, Read], dict[str, int]]:
        """Return functions that read the rows of all tables but `files`, and the change in the number of
        duplicates by source."""
        stream, tables, rejected = self.rows.stream, self.tables, cache(partial(self._rejected, files))
        if not self.compared:
            records = cache(self._records)
            none = cache(partial(_union, (), self.pins, tables.duplicates))
            return {"events": records, "duplicates": none, "rejected": rejected}, {}
        marked = self.rows.persist(mark_duplicates(self._records(), stream))
        duplicates = cast_to_table(marked.where(IS_DUPLICATE), tables.duplicates)
        before = _union(self._staying("duplicates", tables.duplicates), self.pins, tables.duplicates)
        events = marked.where(~F.col(IS_DUPLICATE)).drop(IS_DUPLICATE)
        signed = [
            rows.select("source_id", F.lit(sign).alias("sign"))
            for rows, sign in ((duplicates, 1), (before, -1))
        ]
        deltas = reduce(DataFrame.unionByName, signed).groupBy("source_id").agg(F.sum("sign").alias("delta"))
        by_table: dict[str, Read] = {
            "events": lambda: events,
            "duplicates": lambda: duplicates,
            "rejected": rejected,
        }
        return by_table, {row["source_id"]: row["delta"] for row in deltas.toArrow().to_pylist()}

    def aggregated(self, frames: Mapping[str, Read], files: pa.Table) -> RunRows:
        """Return the hashed rows of all tables, with what is already aggregated of `events` and `files`.

        Args:
            frames: the functions of `by_table`, and one for `files`.
            files: the rows of `files`.
        """
        read = cache(partial(hashed_rows, self.tables, frames))
        if not self._is_measured:
            return RunRows(read)
        by_hour: dict[datetime, list[Mapping[str, Any]]] = {}
        for path in self._added:
            for hour, row in self.rows.aggregates.get(path, {}).items():
                by_hour.setdefault(hour, []).append(row)
        events = [
            {
                "table": "events",
                "hour": hour,
                "count": sum(row["count"] for row in rows),
                "digest": merge_digests(row["digest"] for row in rows),
                "bytes": sum(row["bytes"] for row in rows),
            }
            for hour, rows in by_hour.items()
        ]
        of_files = measure_on_driver(self.tables.files, files)
        others = partial(hashed_rows, [self.tables.rejected], frames) if self._rejects else None
        return RunRows(read, [*events, *of_files], others)

    @property
    def _added(self) -> Collection[str]:
        return self.decisions.added.values()

    def _records(self) -> DataFrame:
        """Return all records of the hours, events and duplicates."""
        table = self.tables.events
        frames = [frame for name in ("events", "duplicates") for frame in self._staying(name, table)]
        entering = [self.reads[path] for path in self._added]
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


def measure_on_driver(table: Table, rows: pa.Table) -> list[dict[str, Any]]:
    """Return the aggregates of rows on the driver, by hour, as `aggregate_rows` returns them."""
    measures = RowMeasures(table.digest_columns(), len(table.columns), {})
    sums = TaskSums(measures)
    for batch in rows.combine_chunks().to_batches():
        sums.add(*sort_by_hour(batch, "hour"))
    by_hour = measures.by_hour(sums.by_hour).items()
    return [{"table": table.name, "hour": hour, **aggregates} for hour, aggregates in by_hour]


def hashed_rows(tables: Iterable[Table], frames: Mapping[str, Read]) -> DataFrame:
    """Return the hashed rows of some tables, as `measure` reads them."""

    def of_table(table: Table) -> DataFrame:
        rows = frames[table.name]()
        with_hash = hashed(rows, digests.row_hash_sql(rows.schema, table.digest_columns()))
        return with_hash.select(F.lit(table.name).alias("table"), "hour", digests.HASH, SIZE)

    return reduce(DataFrame.unionByName, map(of_table, tables))


def _union(frames: Sequence[DataFrame], pins: PinnedTables, table: Table) -> DataFrame:
    if not frames:
        ddl = ", ".join(f"`{name}` {kind}" for name, kind in table.columns.items())
        return pins.store.spark.createDataFrame([], ddl)
    return reduce(DataFrame.unionByName, frames)
