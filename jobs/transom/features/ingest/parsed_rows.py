"""The rows of the files that a run parses: Spark frames over the data files that its tasks wrote.

The job that parses the files also aggregates their events by file and hour, so that they are not read again
to be checked.
"""

import pickle
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

from transom.core import rounding
from transom.engine.measurement import aggregate_rows, hashed
from transom.engine.staging import read_staged, require_system
from transom.features.ingest.read_files import (
    FILE,
    REJECTED,
    RESULT,
    FileReader,
    FileReadResult,
    FileReadTask,
    divide,
)
from transom.features.ingest.tables import Tables
from transom.formats.record_format import Field
from transom.formats.typed_columns import LARGEST_INTEGER, MAX_STEPS
from transom.ledger.stage import rows_where
from transom.spec.stream import Stream
from transom.storage.data_files import MOST_HOURS, DataFile, delete_uncommitted
from transom.storage.digest import row_hash_sql
from transom.storage.session import ONE_REDUCER, parallelism, settings, suited_to
from transom.storage.store import Store, cast_to_table
from transom.storage.tables import SPARK_TYPES, LakeError

TABLES = ("events", "rejected")
HOUR = "timestamp_micros(unix_micros(event_time) - pmod(unix_micros(event_time), 3600000000))"
"""The hour of an event, as Spark SQL; `date_trunc` creates several objects for each row."""
BYTES_OF_A_ROW = 10
"""A low estimate of the bytes of a line in a compressed file."""


class ParsedRows:
    """The rows of the files that a run parses.

    Attributes:
        adopted: the data files that the run has begun to commit to `events`.
        aggregates: the aggregates of the events of each parsed file whose data files are divided by hour, by
            path and hour: `count`, `digest`, `bytes`, and the numbers of events that meet conditions.
    """

    def __init__(self, store: Store, stream: Stream) -> None:
        self.store = store
        self.stream = stream
        self.adopted: list[DataFile] = []
        self.aggregates: dict[str, Mapping[datetime, Mapping[str, Any]]] = {}
        self._folders: list[str] = []
        self._persisted: list[DataFrame] = []

    @property
    def columns(self) -> dict[str, str]:
        """The Spark types of an event's columns as read, without derived columns."""
        declared = {name: SPARK_TYPES[of.type] for name, of in self.stream.read_columns.items()}
        return {"event_time": "timestamp", **declared, "source_id": "string", "source_line": "bigint"}

    def parse_files(
        self, tasks: Sequence[FileReadTask], conditions: Mapping[str, str] = MappingProxyType({})
    ) -> dict[str, FileReadResult]:
        """Parse log files in tasks of Spark, and return the results by path.

        Args:
            tasks: the files.
            conditions: conditions, as Spark SQL, whose events are counted in `aggregates`, by name.

        Raises:
            LakeError: Arrow has no file system for the lake.
        """
        for name in TABLES:
            require_system(self.store, name)
        # Recorded before anything is read, so that `discard` deletes the files of a failed task.
        folder = f"read-{uuid.uuid4().hex}"
        self._folders.append(folder)
        spark, rows = self.store.spark, sum(task.file.size for task in tasks) // BYTES_OF_A_ROW
        with suited_to(spark, rows), settings(spark, ONE_REDUCER):
            return self._run(tasks, self._aggregated(tasks, folder, conditions))

    def _aggregated(
        self, tasks: Sequence[FileReadTask], folder: str, conditions: Mapping[str, str]
    ) -> DataFrame:
        """Return the aggregates of each file and hour, and the results of the files."""
        spark = self.store.spark
        number_of = {task.file.path: number for number, task in enumerate(tasks)}
        cores = parallelism(spark)
        shares = [[(number_of[task.file.path], task) for task in share] for share in divide(tasks, cores)]
        tables = {name: self.store.uri(name) for name in TABLES}
        threads = max(cores // len(shares), 1)
        reader = FileReader(shares, self.stream.layout(), self.columns, tables, folder, MOST_HOURS, threads)
        ddl = ", ".join(f"`{name}` {kind}" for name, kind in self.columns.items())
        parsed = spark.range(0, len(shares), 1, len(shares)).mapInArrow(
            reader, f"{ddl}, {FILE} int, {RESULT} binary"
        )
        table = Tables.of(self.stream).events
        rows = with_derived(parsed, self.stream).withColumn("hour", F.expr(HOUR))
        rows = cast_to_table(rows, table, F.col(FILE), F.col(RESULT))
        with_hash = hashed(rows, row_hash_sql(rows.schema, table.digest_columns()), (FILE, RESULT))
        counts = {name: rows_where(condition) for name, condition in conditions.items()}
        # By result, too, which is null for an event: to aggregate a binary value, Spark sorts all rows.
        return aggregate_rows(counts, with_hash, (FILE, "hour", RESULT))

    def _run(self, tasks: Sequence[FileReadTask], aggregated: DataFrame) -> dict[str, FileReadResult]:
        """Read the files, and keep the aggregates of those that are divided by hour."""
        results: dict[str, FileReadResult] = {}
        by_path: dict[str, dict[datetime, dict[str, Any]]] = {}
        for row in aggregated.toArrow().to_pylist():
            number, hour, result = row.pop(FILE), row.pop("hour"), row.pop(RESULT)
            if result is None:
                by_path.setdefault(tasks[number].file.path, {})[hour] = row
            else:
                results[tasks[-1 - number].file.path] = pickle.loads(result)
        if lost := [task.file.path for task in tasks if task.file.path not in results]:
            raise LakeError(f"{lost[0]}: the result of reading it was lost; run the interval again")
        for path, result in results.items():
            of_hours = by_path.get(path, {})
            self.aggregates.pop(path, None)
            if not all(file.hour for file in result.events):
                continue
            if sum(row["count"] for row in of_hours.values()) != sum(file.rows for file in result.events):
                raise LakeError(f"{path}: tasks wrote other rows than they returned; run the interval again")
            self.aggregates[path] = of_hours
        return results

    def events(self, reads: Iterable[FileReadResult]) -> DataFrame:
        """Return the events of files with derived columns and with the name of their data file."""
        files = [file for read in reads for file in read.events]
        return with_derived(read_staged(self.store, "events", self.columns, files), self.stream)

    def rejected(self, reads: Iterable[FileReadResult]) -> DataFrame:
        """Return the rejected lines of files."""
        files = [file for read in reads for file in read.rejected]
        return read_staged(self.store, "rejected", REJECTED, files)

    def persist(self, frame: DataFrame) -> DataFrame:
        """Persist rows that are read several times, until `discard`."""
        self._persisted.append(frame)
        return frame.persist()

    def discard(self) -> None:
        """Delete all data files except those in `adopted`."""
        for frame in self._persisted:
            frame.unpersist()
        for folder in self._folders:
            delete_uncommitted(self.store.uri("events"), folder, self.adopted)
            delete_uncommitted(self.store.uri("rejected"), folder, ())


def with_derived(rows: DataFrame, stream: Stream) -> DataFrame:
    """Return rows with the stream's derived columns.

    Values that a parser would reject become null: integers beyond 2**53, and numbers that are not finite or
    beyond 2**50 steps of the resolution.
    """
    fields = stream.event_columns
    derived = {name: _fit(F.expr(of.sql), fields[name]) for name, of in stream.derived.items()}
    # A Spark Connect server refuses to add nothing.
    return rows.withColumns(derived) if derived else rows


def _fit(value: Column, field: Field) -> Column:
    match field.type:
        case "integer":
            return F.when(value.between(-LARGEST_INTEGER, LARGEST_INTEGER), value)
        case "number":
            return _round(value.cast("double"), field.resolution)
        case _:
            return value.cast(SPARK_TYPES[field.type])


def _round(value: Column, resolution: str) -> Column:
    """Round decimal digits, as parsers do; Spark rounds binary doubles."""
    step = rounding.ratio(resolution)

    def rounded(values: pa.Array) -> pa.Array:
        whole, fits = rounding.steps(values.to_numpy(zero_copy_only=False), step)
        none = ~(fits & (np.abs(whole) <= MAX_STEPS))
        return pa.array(rounding.value(np.where(none, 0, whole), step), mask=none)

    return arrow_udf(rounded, "double", ArrowUDFType.SCALAR)(value)
