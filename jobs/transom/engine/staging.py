"""Stage rows: tasks write them to files in the table's folder, which are read again before the commit.

So rows are computed once, even if an executor is lost. Digests and checks read exactly the committed files.
Arrow data is written without conversion to Spark's rows.
"""

import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.ledger.stage import BlockTask, CountingPartitionFunction, PartitionFunction
from transom.ledger.task_counters import TaskCounters
from transom.storage.data_files import MOST_HOURS, DataFile, delete_uncommitted, write_data_files
from transom.storage.filesystem import resolve_filesystem
from transom.storage.store import Store
from transom.storage.tables import ARROW_TYPES, LakeError, Table

MOST_FILES = 4
"""The maximum average number of files for an hour of a block. With more files, rows are written again."""
Files = Collection[DataFile]
PART = "__part"
"""The column with the name of a row's file."""
TASK_REPORT_SCHEMA = {
    "block": "string",
    "path": "string",
    "hour": "timestamp",
    **dict.fromkeys(("rows", "bytes", "modified"), "bigint"),
    "counted": "string",
}
"""The columns of a task's report; a row is a file, or the counters as JSON."""


def read_staged(store: Store, table: str, columns: Mapping[str, str], data_files: Files) -> DataFrame:
    """Return the rows of staged files, each with the name of its file.

    Args:
        store: the store of the table.
        table: the name of the table.
        columns: the Spark types of the columns to read, by name.
        data_files: the files.

    Raises:
        LakeError: a file is not found. An incomplete listing of the file system must not lose rows.
    """
    ddl = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    names = {file.name for file in data_files}
    if not names:
        return store.spark.createDataFrame([], f"{ddl}, {PART} string")
    folders = sorted({file.path.rpartition("/")[0] for file in data_files})
    # Spark parses a path as a glob.
    root = re.sub(r"([\\*?\[\]{}])", r"\\\1", store.uri(table))
    # By folders, as Spark starts another job to list many paths. Files of failed tasks are in the folders,
    # too; the filter on names keeps Spark from opening them.
    rows = store.spark.read.schema(ddl).parquet(*(f"{root}/{folder}" for folder in folders))
    lost = names.difference(file.rpartition("/")[2] for file in rows.inputFiles())
    if lost:
        raise LakeError(
            f"lake: {len(lost)} of {len(names)} files that were written for {table} cannot be found; run the "
            "interval again"
        )
    return rows.select("*", F.col("_metadata.file_name").alias(PART)).where(F.col(PART).isin(names))


def require_system(store: Store, table: str) -> None:
    """Check that Arrow can write to the lake.

    Raises:
        LakeError: Arrow has no file system for it.
    """
    uri = store.uri(table)
    try:
        resolve_filesystem(uri)
    except (pa.ArrowException, OSError) as error:
        raise LakeError(f"lake: {uri} cannot be opened: {error}") from error


class StagedOutput:
    """The rows of a step, written to files of its table by hour.

    Attributes:
        data_files: the files, by block.
        counted: the counters of the tasks, by block.
        adopted: the files that the run has begun to commit.

    Args:
        store: the store of the table.
        table: the table.
        tasks: compute the rows; each is run when the object is created.
        hours: the maximum number of hours of the rows.

    Raises:
        LakeError: Arrow cannot write to the lake.
    """

    def __init__(self, store: Store, table: Table, tasks: Sequence[BlockTask], hours: int) -> None:
        require_system(store, table.name)
        self.store, self.table = store, table
        self.adopted: Files = ()
        self.data_files: dict[str, list[DataFile]] = {}
        self.counted: dict[str, TaskCounters] = {}
        # Named before anything is written, so that `discard` finds the files of failed tasks.
        self._folder = f"made-{uuid.uuid4().hex}"
        self._by_hour = hours <= MOST_HOURS
        ddl = ", ".join(f"{name} {kind}" for name, kind in TASK_REPORT_SCHEMA.items())
        schema, uri = table.arrow_schema(), store.uri(table.name)
        try:
            reports = []
            for task in tasks:
                computes = (task.compute, task.compute_counting)
                writer = _PartWriter(task.block, *computes, schema, uri, self._folder, self._by_hour)
                reports.append(task.frame.mapInArrow(writer, ddl))
            # Spark returns times in its session's zone.
            for row in reduce(DataFrame.unionAll, reports).toArrow().cast(_report_schema()).to_pylist():
                block, counted = row.pop("block"), row.pop("counted")
                if counted is None:
                    self.data_files.setdefault(block, []).append(DataFile(**row))
                else:
                    self.counted.setdefault(block, TaskCounters()).merge(TaskCounters.of_json(counted))
        except BaseException:
            self.discard()
            raise

    def rows(self) -> DataFrame:
        """Return all rows, with `block` and `hour`."""
        files = [file for files in self.data_files.values() for file in files]
        columns = {
            name: kind for name, kind in self.table.columns.items() if name != "hour" or not self._by_hour
        }
        rows = read_staged(self.store, self.table.name, columns, files)
        if self._by_hour:
            number = F.regexp_extract(PART, r"-([0-9]+)\.parquet$", 1).cast("bigint")
            rows = rows.withColumn("hour", F.timestamp_seconds(number * 3600))
        return rows.drop(PART)

    def adopt_files(self, targets: Mapping[str | None, Collection[datetime]]) -> list[DataFile] | None:
        """Return the files of some hours, by block, for the run to commit.

        None if a file has several hours, or if there are too many files.
        """
        hours = {block: set(of_block) for block, of_block in targets.items()}
        adopted = [
            file
            for block, files in self.data_files.items()
            for file in files
            if file.hour in hours.get(block, ())
        ]
        if not self._by_hour or len(adopted) > MOST_FILES * sum(map(len, hours.values())):
            return None
        self.adopted = adopted
        return adopted

    def discard(self) -> None:
        """Delete the files that the run has not begun to commit."""
        delete_uncommitted(self.store.uri(self.table.name), self._folder, self.adopted)


def _report_schema() -> pa.Schema:
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in TASK_REPORT_SCHEMA.items()])


@dataclass(frozen=True)
class _PartWriter:
    """A function that writes the rows of a Spark partition, and returns a report.

    Attributes:
        block: as of `BlockTask`.
        compute: as of `BlockTask`.
        compute_counting: as of `BlockTask`.
        schema: the schema of the table.
        uri: the URI of the table.
        folder: the folder of the files, relative to the table.
        by_hour: whether each file has the rows of one hour.
    """

    block: str
    compute: PartitionFunction | None
    compute_counting: CountingPartitionFunction | None
    schema: pa.Schema
    uri: str
    folder: str
    by_hour: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        computed: Iterator[pa.RecordBatch] = (batch for batch in batches if batch.num_rows)
        counters = TaskCounters()
        if self.compute_counting is not None:
            computed = self.compute_counting(computed, counters)
        elif self.compute is not None:
            computed = self.compute(computed)
        rows = map(self._with_block, computed)
        # Each attempt of a task writes its own files.
        name = f"part-{uuid.uuid4()}"
        time_column = "hour" if self.by_hour else None
        data_files = write_data_files(self.uri, self.folder, name, rows, time_column, partition=True)
        report: list[dict[str, object]] = [{"block": self.block, **asdict(file)} for file in data_files]
        if counters != TaskCounters():
            report.append({"block": self.block, "counted": counters.to_json()})
        yield pa.RecordBatch.from_pylist(report, _report_schema())

    def _with_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch in the table's types, with its block; columns of other blocks are not added."""
        fields = [field for field in self.schema if field.name in batch.schema.names]
        arrays = [batch.column(field.name).cast(field.type) for field in fields]
        block = pa.repeat(pa.scalar(self.block), batch.num_rows)
        schema = pa.schema([self.schema.field("block"), *fields])
        return pa.RecordBatch.from_arrays([block, *arrays], schema=schema)
