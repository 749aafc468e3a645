"""Stage rows: tasks write them to files in the table's folder, which a commit adds unchanged.

If the tasks read few rows, they run on the driver: a Python worker starts slower than it computes them.

The same tasks compute the digest, the number and the metrics of their rows, by hour. So rows are neither read
again to be checked nor converted to Spark's rows: a task returns only a report. Spark computes the few
metrics that Arrow does not know from the files.

Spark may run a task again, for example if an executor is lost. Both attempts write files, with equal rows.
Spark returns the report of one attempt, and no commit names the files of the other.
"""

import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce
from itertools import chain, compress
from operator import not_
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import rebatch
from transom.core.intervals import moment_of, number_of
from transom.engine.arrow_metrics import Sums, arrow_metrics
from transom.engine.hours import quoted
from transom.engine.task_sums import RowMeasures, TaskSums
from transom.ledger.stage import BlockTask, TableStep
from transom.ledger.task_counters import TaskCounters
from transom.storage import driver_io as small
from transom.storage.data_files import MOST_HOURS, DataFile, DataFileWriter, delete_uncommitted, sort_by_hour
from transom.storage.filesystem import resolve_filesystem
from transom.storage.listed_files import hour_of_file, literal_path
from transom.storage.session import frame_of, to_arrow
from transom.storage.store import Store
from transom.storage.tables import LakeError, Table

MOST_FILES = 4
"""The maximum average number of files for an hour of a block. With more files, rows are written again."""
Files = Collection[DataFile]
LEAST_ROWS = 2**15
"""The number of rows up to which batches are combined: a batch of few rows takes as long as one of many."""
PART = "__part"
"""The column with the name of a row's file."""


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
    root = literal_path(store.uri(table))
    # By folders, as Spark starts another job to list many paths. Files of failed tasks are in the folders,
    # too; the filter on names keeps Spark from opening them.
    rows = store.spark.read.schema(ddl).parquet(*(f"{root}/{folder}" for folder in folders))
    lost = names.difference(file.rpartition("/")[2] for file in rows.inputFiles())
    if lost:
        raise _lost(len(lost), len(names), table)
    return rows.select("*", F.col("_metadata.file_name").alias(PART)).where(F.col(PART).isin(names))


def read_here(store: Store, table: Table, data_files: Files) -> pa.Table | None:
    """Return the rows of staged files on the driver; None if they are many; raise as `require_written`."""
    require_written(store, table.name, data_files)
    system, root = resolve_filesystem(store.uri(table.name))
    schema, tables = table.arrow_schema(), list[pa.Table]()
    for file in data_files:
        # Text takes more memory than its file, which has a repeated value once.
        if file.bytes + sum(rows.nbytes for rows in tables) > small.MAX_DRIVER_BYTES:
            return None
        with system.open_input_file(f"{root}/{file.path}") as stream:
            rows = pq.ParquetFile(stream).read()
        if file.hour is not None:
            hours = pa.repeat(pa.scalar(file.hour, schema.field("hour").type), rows.num_rows)
            rows = rows.append_column("hour", hours)
        own = [schema.field(name) for name in rows.column_names]
        tables.append(rows.cast(pa.schema(own)))
    every = pa.concat_tables([schema.empty_table(), *tables], promote_options="default")
    return every.select(schema.names).combine_chunks()


def require_written(store: Store, table: str, data_files: Files) -> None:
    """Check that files to commit are there as they were written.

    Raises:
        LakeError: a file is not found, or has another size.
    """
    system, root = resolve_filesystem(store.uri(table))
    infos = system.get_file_info([f"{root}/{file.path}" for file in data_files])
    lost = sum(info.size != file.bytes for info, file in zip(infos, data_files, strict=True))
    if lost:
        raise _lost(lost, len(data_files), table)


def _lost(lost: int, of: int, table: str) -> LakeError:
    return LakeError(
        f"lake: {lost} of {of} files that were written for {table} cannot be found; run the interval again"
    )


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
        aggregates: as of `RunRows`.
        unmeasured: as of `RunRows`.
        adopted: the files that the run has begun to commit.

    Args:
        store: the store of the table.
        step: the step.
        tasks: compute the rows; each is run when the object is created.
        hours: the maximum number of hours of the rows.
        few: whether the rows that the tasks read are few. Then they run on the driver: Python workers take
            longer to start than they compute.

    Raises:
        LakeError: Arrow cannot write to the lake.
    """

    def __init__(
        self, store: Store, step: TableStep, tasks: Sequence[BlockTask], hours: int, few: bool = False
    ) -> None:
        table = step.table
        require_system(store, table.name)
        self.store, self.step, self.table = store, step, table
        self.adopted: Files = ()
        self.data_files: dict[str, list[DataFile]] = {}
        self.counted: dict[str, TaskCounters] = {}
        self.aggregates: list[dict[str, Any]] = []
        self.unmeasured: dict[str, str] = {}
        # Named before anything is written, so that `discard` finds the files of failed tasks.
        self._folder = f"made-{uuid.uuid4().hex}"
        self._by_hour, self._few = hours <= MOST_HOURS, few
        self._measures = {task.block: self._measures_of(task.block) for task in tasks}
        try:
            is_here = [isinstance(task.frame, pa.Table) or (few and not task.isolated) for task in tasks]
            here, others = compress(tasks, is_here), compress(tasks, map(not_, is_here))
            self._collect(chain(*map(self._run_here, here), self._run_in_spark(list(others))))
        except BaseException:
            self.discard()
            raise

    def _measures_of(self, block: str) -> RowMeasures:
        """Return what the tasks of a block measure, and note the metrics that they cannot."""
        columns, schema = self.step.outputs[block].columns, self.table.arrow_schema()
        metrics = arrow_metrics(self.step.metrics, schema, columns, block)
        self.unmeasured |= {name: sql for name, sql in self.step.metrics.items() if name not in metrics}
        return RowMeasures(columns, len(schema), metrics)

    def _writer(self, task: BlockTask) -> "TaskWriter":
        uri, measures = self.store.uri(self.table.name), self._measures[task.block]
        own = {"block", *measures.hashed}
        schema = pa.schema([field for field in self.table.arrow_schema() if field.name in own])
        return TaskWriter(task, schema, uri, self._folder, self._by_hour, measures)

    def _run_here(self, task: BlockTask) -> Iterator[str]:
        """Run a task on the driver; yield its reports."""
        rows = task.frame if isinstance(task.frame, pa.Table) else to_arrow(task.frame)
        for batch in self._writer(task)(rows.to_batches(max_chunksize=LEAST_ROWS)):
            yield from batch["report"].to_pylist()

    def _run_in_spark(self, tasks: Sequence[BlockTask]) -> list[str]:
        """Run tasks as one job of Spark; return their reports."""
        if not tasks:
            return []
        frames = (partitioned(task).mapInArrow(self._writer(task), "report string") for task in tasks)
        reports: list[str] = to_arrow(reduce(DataFrame.unionAll, frames))["report"].to_pylist()
        return reports

    def _collect(self, reports: Iterable[str]) -> None:
        """Add up what tasks report."""
        sums: dict[tuple[str, int], dict[str, list[Sums]]] = {}
        for report in reports:
            block, files, counted, measured = json.loads(report)
            for path, hour, *sizes in files:
                file = DataFile(path, None if hour is None else moment_of(hour), *sizes)
                self.data_files.setdefault(block, []).append(file)
            self.counted.setdefault(block, TaskCounters()).merge(TaskCounters.of_json(counted))
            for hour, of_hour in measured:
                merged = sums.setdefault((block, hour), {})
                for name, values in of_hour.items():
                    merged.setdefault(name, []).append(values)
        for files in self.data_files.values():
            files.sort(key=lambda file: file.path)
        self.aggregates = [
            {"block": block, "hour": moment_of(hour), **self._measures[block].aggregates(of_hour)}
            for (block, hour), of_hour in sums.items()
        ]

    def rows(self) -> DataFrame:
        """Return all rows, from the files."""
        files = [file for files in self.data_files.values() for file in files]
        if self._few and (few := read_here(self.store, self.table, files)) is not None:
            return frame_of(self.store.spark, few)
        columns = {
            name: kind for name, kind in self.table.columns.items() if name != "hour" or not self._by_hour
        }
        rows = read_staged(self.store, self.table.name, columns, files)
        if self._by_hour:
            rows = rows.withColumn("hour", F.expr(hour_of_file(PART)))
        return rows.select(*(f"`{name}`" for name in self.table.columns))

    def adopt_files(self, targets: Mapping[str | None, Collection[datetime]]) -> list[DataFile] | None:
        """Return the files of some hours, by block, for the run to commit.

        None if a file has several hours, or if there are too many files.

        Raises:
            LakeError: as of `require_written`.
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
        require_written(self.store, self.table.name, adopted)
        self.adopted = adopted
        return adopted

    def discard(self) -> None:
        """Delete the files that the run has not begun to commit."""
        delete_uncommitted(self.store.uri(self.table.name), self._folder, self.adopted)


def partitioned(task: BlockTask) -> DataFrame:
    """Return the input of a task in Spark, in the partitions that it needs."""
    if task.by is None:
        return task.frame
    return task.frame.repartition(*quoted(task.by)) if task.by else task.frame.repartition(1)


class TaskWriter:
    """A function that writes the rows of a Spark partition, and returns a report: one row of JSON text.

    Args:
        task: computes the rows.
        schema: the columns of the block.
        uri: the URI of the table.
        folder: the folder of the files, relative to the table.
        by_hour: whether each file has the rows of one hour.
        measures: what is measured of the rows.
    """

    def __init__(
        self, task: BlockTask, schema: pa.Schema, uri: str, folder: str, by_hour: bool, measures: RowMeasures
    ) -> None:
        # Not the task itself, which has the session.
        self._block, self._compute, self._compute_counting = task.block, task.compute, task.compute_counting
        self._schema, self._measures = schema, measures
        self._uri, self._folder, self._by_hour = uri, folder, by_hour

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows computed from a partition of the task's input, and yield the report."""
        computed: Iterator[pa.RecordBatch] = (batch for batch in batches if batch.num_rows)
        counters, sums = TaskCounters(), TaskSums(self._measures)
        if self._compute_counting is not None:
            computed = self._compute_counting(computed, counters)
        elif self._compute is not None:
            computed = self._compute(computed)
        # Each attempt of a task writes its own files.
        name, time_column = f"part-{uuid.uuid4()}", "hour" if self._by_hour else None
        writer = DataFileWriter(self._uri, self._folder, name, time_column, partition=True)
        for table in rebatch(map(self._with_block, computed), LEAST_ROWS):
            for batch in table.combine_chunks().to_batches():
                rows, hours, starts = sort_by_hour(batch, "hour")
                sums.add(rows, hours, starts)
                writer.add(rows)
        files = [
            (
                file.path,
                None if file.hour is None else number_of(file.hour),
                file.rows,
                file.bytes,
                file.modified,
                file.stats,
            )
            for file in writer.close()
        ]
        if files or counters != TaskCounters():
            report = [self._block, files, counters.to_json(), list(sums.by_hour.items())]
            yield pa.RecordBatch.from_pydict({"report": [json.dumps(report)]})

    def _with_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch in the table's types, with its block."""
        n = batch.num_rows

        def column(field: pa.Field) -> pa.Array:
            if field.name == "block":
                return pa.repeat(pa.scalar(self._block), n)
            if field.name in batch.schema.names:
                return batch.column(field.name).cast(field.type)
            return pa.nulls(n, field.type)

        return pa.RecordBatch.from_arrays([column(field) for field in self._schema], schema=self._schema)
