"""The rows of the files that a run parses: Spark frames over the data files that its tasks wrote.

The tasks that parse the files also measure their events by file and hour, so that they are not read again to
be checked. Events with derived columns are: Spark computes these from the data files.
"""

import os
import pickle
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

from transom.core import rounding
from transom.engine.arrow_metrics import arrow_metrics
from transom.engine.staging import read_staged, require_system
from transom.engine.task_sums import RowMeasures
from transom.features.ingest.read_files import (
    REJECTED,
    RESULTS,
    FileReader,
    FileReadResult,
    FileReadTask,
    SharesReader,
    divide,
)
from transom.features.ingest.tables import Tables
from transom.formats.record_format import Field
from transom.formats.typed_columns import LARGEST_INTEGER, MAX_STEPS
from transom.ledger.stage import rows_where
from transom.spec.stream import Stream
from transom.storage import driver_io as small
from transom.storage.data_files import MOST_HOURS, DataFile, delete_uncommitted
from transom.storage.session import parallelism, suited_to
from transom.storage.store import Store
from transom.storage.tables import SPARK_TYPES

TABLES = ("events", "rejected")
BYTES_OF_A_ROW = 10
"""A low estimate of the bytes of a line in a compressed file."""


class ParsedRows:
    """The rows of the files that a run parses.

    Attributes:
        adopted: the data files that the run has begun to commit to `events`.
        aggregates: the aggregates of the events of each file that was measured, by path and hour: `count`,
            `digest`, `bytes`, and the numbers of events that meet conditions, if Arrow can compute them.
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
        """Parse log files, and return the results by path: few bytes on the driver, others in tasks of Spark.

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
        measures, size = self._measures(conditions), sum(task.file.size for task in tasks)
        tables = {name: self.store.uri(name) for name in TABLES}
        reader = FileReader(self.stream.layout(), self.columns, tables, folder, measures, MOST_HOURS)
        if size <= small.MAX_DRIVER_BYTES:
            # A job of Spark takes longer than to read them.
            self.store.expect_session()
            reader = replace(reader, threads=os.cpu_count() or 1)
            results = {task.file.path: reader.read(task) for task in tasks}
        else:
            with suited_to(self.store.spark, size // BYTES_OF_A_ROW):
                results = self._in_tasks(reader, tasks)
        for path, result in results.items():
            self.aggregates.pop(path, None)
            if measures is not None and all(file.hour for file in result.events):
                self.aggregates[path] = measures.by_hour(result.sums)
        return results

    def _measures(self, conditions: Mapping[str, str]) -> RowMeasures | None:
        """Return what tasks measure of events; None if they have derived columns, which Spark computes."""
        if self.stream.derived:
            return None
        table = Tables.of(self.stream).events
        counts = {name: rows_where(condition) for name, condition in conditions.items()}
        metrics = arrow_metrics(counts, table.arrow_schema(), table.columns)
        return RowMeasures(table.digest_columns(), len(table.columns), metrics)

    def _in_tasks(self, reader: FileReader, tasks: Sequence[FileReadTask]) -> dict[str, FileReadResult]:
        """Read the files in tasks of Spark."""
        spark = self.store.spark
        number_of = {task.file.path: number for number, task in enumerate(tasks)}
        cores = parallelism(spark)
        shares = [[(number_of[task.file.path], task) for task in share] for share in divide(tasks, cores)]
        of_shares = SharesReader(shares, replace(reader, threads=max(cores // len(shares), 1)))
        rows = spark.range(0, len(shares), 1, len(shares)).mapInArrow(of_shares, RESULTS).toArrow()
        return {tasks[row["file"]].file.path: pickle.loads(row["result"]) for row in rows.to_pylist()}

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
