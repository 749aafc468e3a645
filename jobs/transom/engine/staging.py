"""Stage rows: tasks write them to files in the table's folder, which a commit adds unchanged.

The same job aggregates the rows by partition: digests, counts and metrics. So nothing is read again to be
checked. Arrow data is written without conversion to Spark's rows.

Spark may run a task again, for example if an executor is lost. Both attempts write files, with equal rows. A
task reports all its files at once, so the report of any one attempt is complete.
"""

import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.core.intervals import moment_of, number_of
from transom.engine.measurement import aggregate_rows, hash_rows
from transom.ledger.stage import BlockTask, TableStep
from transom.ledger.task_counters import TaskCounters
from transom.storage.data_files import MOST_HOURS, DataFile, DataFileWriter, delete_uncommitted
from transom.storage.filesystem import resolve_filesystem
from transom.storage.store import Store, literal_path
from transom.storage.tables import LakeError

MOST_FILES = 4
"""The maximum average number of files for an hour of a block. With more files, rows are written again."""
Files = Collection[DataFile]
PART = "__part"
"""The column with the name of a row's file."""
TASK, REPORT = "__task", "__report"
"""Columns of the only row of a task's report: the task, and its files and counters as JSON. Null in rows."""


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
        aggregates: as of `HashedRows`.
        adopted: the files that the run has begun to commit.

    Args:
        store: the store of the table.
        step: the step.
        tasks: compute the rows; each is run when the object is created.
        hours: the maximum number of hours of the rows.

    Raises:
        LakeError: Arrow cannot write to the lake.
    """

    def __init__(self, store: Store, step: TableStep, tasks: Sequence[BlockTask], hours: int) -> None:
        table = step.table
        require_system(store, table.name)
        self.store, self.step, self.table = store, step, table
        self.adopted: Files = ()
        self.data_files: dict[str, list[DataFile]] = {}
        self.counted: dict[str, TaskCounters] = {}
        self.aggregates: list[dict[str, Any]] = []
        # Named before anything is written, so that `discard` finds the files of failed tasks.
        self._folder = f"made-{uuid.uuid4().hex}"
        self._by_hour = hours <= MOST_HOURS
        try:
            written = [self._written(number, task) for number, task in enumerate(tasks)]
            if written:
                union = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), written)
                self._run(hash_rows(step, union, TASK, REPORT))
        except BaseException:
            self.discard()
            raise

    def _written(self, number: int, task: BlockTask) -> DataFrame:
        """Return the rows of a task, which writes them, and its report."""
        uri, schema = self.store.uri(self.table.name), self.table.arrow_schema()
        own = {"block", *self.step.outputs[task.block].columns}
        fields = [field for field in schema if field.name in own]
        fields += [pa.field(TASK, pa.string()), pa.field(REPORT, pa.string())]
        writer = TaskWriter(number, task, pa.schema(fields), uri, self._folder, self._by_hour)
        kinds = {**self.table.columns, TASK: "string", REPORT: "string"}
        return task.frame.mapInArrow(writer, ", ".join(f"`{f.name}` {kinds[f.name]}" for f in fields))

    def _run(self, rows: DataFrame) -> None:
        """Run the tasks, and collect the aggregates of their rows, and their reports."""
        # The report is a key: Spark sorts all rows before it aggregates text.
        by = ("block", "hour", TASK, REPORT)
        # If an executor is lost, reducers may read different attempts of a task: all of its reports, or none.
        # The row without a report is equal in all attempts.
        reports: dict[tuple[str, str], str] = {}
        reported: set[tuple[str, str]] = set()
        for row in aggregate_rows(self.step.metrics, rows, by).toArrow().to_pylist():
            task, report = row.pop(TASK), row.pop(REPORT)
            if task is None:
                self.aggregates.append(row)
            elif report is None:
                reported.add((row["block"], task))
            else:
                reports[row["block"], task] = report
        for (block, _), report in sorted(reports.items()):
            files, counted = json.loads(report)
            for path, hour, *sizes in files:
                file = DataFile(path, None if hour is None else moment_of(hour), *sizes)
                self.data_files.setdefault(block, []).append(file)
            self.counted.setdefault(block, TaskCounters()).merge(TaskCounters.of_json(counted))
        for files in self.data_files.values():
            files.sort(key=lambda file: file.path)
        aggregated = sum(row["count"] for row in self.aggregates)
        written = sum(file.rows for files in self.data_files.values() for file in files)
        if aggregated != written or reports.keys() != reported:
            raise LakeError(
                f"lake: tasks wrote other rows to {self.table.name} than they returned; run the interval "
                "again"
            )

    def rows(self) -> DataFrame:
        """Return all rows from the files, hashed."""
        files = [file for files in self.data_files.values() for file in files]
        columns = {
            name: kind for name, kind in self.table.columns.items() if name != "hour" or not self._by_hour
        }
        rows = read_staged(self.store, self.table.name, columns, files)
        if self._by_hour:
            # A regular expression for each row takes as long as to read it.
            number = F.substring_index(F.substring_index(PART, "-", -1), ".", 1).cast("bigint")
            rows = rows.withColumn("hour", F.timestamp_seconds(number * 3600))
        return hash_rows(self.step, rows.drop(PART))

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


class TaskWriter:
    """A function that writes the rows of a Spark partition, and returns them and its report.

    Args:
        number: the number of the block's task in its step.
        task: computes the rows.
        schema: the columns to return: those of the block, `TASK` and `REPORT`.
        uri: the URI of the table.
        folder: the folder of the files, relative to the table.
        by_hour: whether each file has the rows of one hour.
    """

    def __init__(
        self, number: int, task: BlockTask, schema: pa.Schema, uri: str, folder: str, by_hour: bool
    ) -> None:
        # Not the task itself, which has the session.
        self._block, self._compute, self._compute_counting = task.block, task.compute, task.compute_counting
        self._number, self._schema = number, schema
        self._uri, self._folder, self._by_hour = uri, folder, by_hour

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows computed from a partition of the task's input, and yield them and the report."""
        computed: Iterator[pa.RecordBatch] = (batch for batch in batches if batch.num_rows)
        counters = TaskCounters()
        if self._compute_counting is not None:
            computed = self._compute_counting(computed, counters)
        elif self._compute is not None:
            computed = self._compute(computed)
        # Each attempt of a task writes its own files.
        name, time_column = f"part-{uuid.uuid4()}", "hour" if self._by_hour else None
        writer = DataFileWriter(self._uri, self._folder, name, time_column, partition=True)
        for batch in computed:
            rows = self._with_block(batch)
            writer.add(rows.select(self._schema.names[:-2]))
            yield rows
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
            context = TaskContext.get()
            partition = 0 if context is None else context.partitionId()
            attempt = {"block": self._block, TASK: f"{self._number}-{partition}"}
            report = {**attempt, REPORT: json.dumps([files, counters.to_json()])}
            yield pa.RecordBatch.from_pylist([attempt, report], self._schema)

    def _with_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch in the table's types, with its block and without a report."""
        n = batch.num_rows

        def column(field: pa.Field) -> pa.Array:
            if field.name == "block":
                return pa.repeat(pa.scalar(self._block), n)
            if field.name in batch.schema.names:
                return batch.column(field.name).cast(field.type)
            return pa.nulls(n, field.type)

        return pa.RecordBatch.from_arrays([column(field) for field in self._schema], schema=self._schema)
