"""The rows of the files that a run parses: Spark frames over the data files that its tasks wrote."""

import uuid
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

from transom.core import rounding
from transom.engine.staging import read_staged, require_system
from transom.features.ingest.read_files import REJECTED, FileReader, FileReadResult, FileReadTask, divide
from transom.formats.record_format import Field
from transom.formats.typed_columns import LARGEST_INTEGER, MAX_STEPS
from transom.spec.stream import Stream
from transom.storage.data_files import MOST_HOURS, DataFile, delete_uncommitted
from transom.storage.store import Store
from transom.storage.tables import SPARK_TYPES

TABLES = ("events", "rejected")


class ParsedRows:
    """The rows of the files that a run parses.

    Attributes:
        adopted: the data files that the run has begun to commit to `events`.
    """

    def __init__(self, store: Store, stream: Stream) -> None:
        self.store = store
        self.stream = stream
        self.adopted: list[DataFile] = []
        self._folders: list[str] = []
        self._persisted: list[DataFrame] = []

    @property
    def columns(self) -> dict[str, str]:
        """The Spark types of an event's columns as read, without derived columns."""
        declared = {name: SPARK_TYPES[of.type] for name, of in self.stream.read_columns.items()}
        return {"event_time": "timestamp", **declared, "source_id": "string", "source_line": "bigint"}

    def parse_files(self, tasks: Sequence[FileReadTask]) -> dict[str, FileReadResult]:
        """Parse log files in tasks of Spark, and return the results by path; raise as `require_system`."""
        for name in TABLES:
            require_system(self.store, name)
        context = self.store.spark.sparkContext
        shares = divide(tasks, context.defaultParallelism)
        # Recorded before anything is read, so that `discard` deletes the files of a failed task.
        folder = f"read-{uuid.uuid4().hex}"
        self._folders.append(folder)
        tables = {name: self.store.uri(name) for name in TABLES}
        threads = max(context.defaultParallelism // max(len(shares), 1), 1)
        reader = FileReader(self.stream.layout(), self.columns, tables, folder, MOST_HOURS, threads)
        return dict(context.parallelize(shares, max(len(shares), 1)).flatMap(reader).collect())

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
    return rows.withColumns(
        {name: _fit(F.expr(derived.sql), fields[name]) for name, derived in stream.derived.items()}
    )


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
