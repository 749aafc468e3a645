"""Rows on their way into a table: tasks write them where they will stand, and what is read of them is that.

So rows are made once, were an executor lost; digest and checks are of what a commit then takes; and what
Arrow has made need not go through Spark, row by row, to be written.
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
"""Files that an hour of a block has at most, on average, where they are taken as tasks have written them."""
PART = "__part"
"""The column that holds the name of a row's part."""
TASK_REPORT_SCHEMA = {
    "block": "string",
    "path": "string",
    "hour": "timestamp",
    **dict.fromkeys(("rows", "bytes", "modified"), "bigint"),
    "counted": "string",
}
"""What a task says of a part; or, as JSON, of what it has counted."""


def read_staged(
    store: Store, table: str, columns: Mapping[str, str], parts: Collection[DataFile]
) -> DataFrame:
    """The rows of some parts of a table, each with the name of its part.

    Args:
        columns: the Spark types of the columns that are read.

    Raises:
        LakeError: a part cannot be found: a file system that lists less than has been written to it must not
            make rows go.
    """
    ddl = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    names = {part.name for part in parts}
    if not names:
        return store.spark.createDataFrame([], f"{ddl}, {PART} string")
    folders = sorted({part.path.rpartition("/")[0] for part in parts})
    # Spark takes a path for a pattern of paths.
    root = re.sub(r"([\\*?\[\]{}])", r"\\\1", store.uri(table))
    # By folders: many paths would be listed by a job of their own. What a failed task has left lies there
    # too, and files of a name that is not asked for are not opened.
    rows = store.spark.read.schema(ddl).parquet(*(f"{root}/{folder}" for folder in folders))
    lost = names.difference(file.rpartition("/")[2] for file in rows.inputFiles())
    if lost:
        raise LakeError(
            f"lake: {len(lost)} of {len(names)} files that were written for {table} cannot be found; run the "
            "interval again"
        )
    return rows.select("*", F.col("_metadata.file_name").alias(PART)).where(F.col(PART).isin(names))


def require_system(store: Store, table: str) -> None:
    """Refuses a lake that Arrow cannot write.

    Raises:
        LakeError: it lies where Arrow knows no file system.
    """
    uri = store.uri(table)
    try:
        resolve_filesystem(uri)
    except (pa.ArrowException, OSError) as error:
        raise LakeError(f"lake: {uri} cannot be opened: {error}") from error


class StagedOutput:
    """The rows of a step, written as parts of its table, hour by hour.

    Attributes:
        parts: what was written, by block.
        counted: what the tasks have counted, by block.
        taken: the parts that the run has begun to make the table's.
    """

    def __init__(self, store: Store, table: Table, shares: Sequence[BlockTask], hours: int) -> None:
        """Writes the rows of all shares.

        Args:
            hours: of how many hours they are at most.

        Raises:
            LakeError: the lake lies where Arrow cannot write.
        """
        require_system(store, table.name)
        self.store, self.table = store, table
        self.taken: Collection[DataFile] = ()
        self.parts: dict[str, list[DataFile]] = {}
        self.counted: dict[str, TaskCounters] = {}
        # Known before anything is written, so that what a failed task has left is found.
        self._folder = f"made-{uuid.uuid4().hex}"
        self._divided = hours <= MOST_HOURS
        try:
            uri = store.uri(table.name)
            told = [
                share.frame.mapInArrow(
                    _Writing(
                        share.block,
                        share.compute,
                        share.compute_counting,
                        table.arrow_schema(),
                        uri,
                        self._folder,
                        self._divided,
                    ),
                    ", ".join(f"{name} {kind}" for name, kind in TASK_REPORT_SCHEMA.items()),
                )
                for share in shares
            ]
            # Spark gives times in the zone of its session.
            for row in reduce(DataFrame.unionAll, told).toArrow().cast(_task_report()).to_pylist():
                block, counted = row.pop("block"), row.pop("counted")
                if counted is None:
                    self.parts.setdefault(block, []).append(DataFile(**row))
                else:
                    self.counted.setdefault(block, TaskCounters()).merge(TaskCounters.of_json(counted))
        except BaseException:
            self.discard()
            raise

    def rows(self) -> DataFrame:
        """All the rows, with `block` and `hour`."""
        parts = [part for parts in self.parts.values() for part in parts]
        columns = dict(self.table.columns)
        if not self._divided:
            return read_staged(self.store, self.table.name, columns, parts).drop(PART)
        del columns["hour"]
        rows = read_staged(self.store, self.table.name, columns, parts)
        counted = F.regexp_extract(PART, r"-([0-9]+)\.parquet$", 1).cast("bigint")
        return rows.withColumn("hour", F.timestamp_seconds(counted * 3600)).drop(PART)

    def adopt_files(self, targets: Mapping[str | None, Collection[datetime]]) -> list[DataFile] | None:
        """The parts of some hours of some blocks, which the run is about to make the table's; None where they
        are of several hours, or too many files."""
        if not self._divided:
            return None
        wanted = {block: set(hours) for block, hours in targets.items()}
        taken = [
            part
            for block, parts in self.parts.items()
            for part in parts
            if part.hour in wanted.get(block, ())
        ]
        if len(taken) > MOST_FILES * sum(map(len, wanted.values())):
            return None
        self.taken = taken
        return taken

    def discard(self) -> None:
        """Removes what was written but the parts that are the table's or may have become so."""
        delete_uncommitted(self.store.uri(self.table.name), self._folder, self.taken)


def _task_report() -> pa.Schema:
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in TASK_REPORT_SCHEMA.items()])


@dataclass(frozen=True)
class _Writing:
    """Writes the rows of a partition.

    Attributes:
        schema: of the table.
        uri: of the table.
        divided: whether an hour's rows are in a file of their own.
    """

    block: str
    compute: PartitionFunction | None
    counted: CountingPartitionFunction | None
    schema: pa.Schema
    uri: str
    folder: str
    divided: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made: Iterator[pa.RecordBatch] = (batch for batch in batches if batch.num_rows)
        tally = TaskCounters()
        if self.counted is not None:
            made = self.counted(made, tally)
        elif self.compute is not None:
            made = self.compute(made)
        rows = map(self._in_form, made)
        # A second try of a task writes files of its own.
        name = f"part-{uuid.uuid4()}"
        time_column = "hour" if self.divided else None
        parts = list(write_data_files(self.uri, self.folder, name, rows, time_column, partition=True))
        told: list[dict[str, object]] = [{"block": self.block, **asdict(part)} for part in parts]
        if tally != TaskCounters():
            told.append({"block": self.block, "counted": tally.to_json()})
        yield pa.RecordBatch.from_pylist(told, _task_report())

    def _in_form(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch in the table's types, with its block; columns of other blocks are missing."""
        fields = [field for field in self.schema if field.name in batch.schema.names]
        arrays = [batch.column(field.name).cast(field.type) for field in fields]
        block = pa.repeat(pa.scalar(self.block), batch.num_rows)
        return pa.RecordBatch.from_arrays(
            [block, *arrays], schema=pa.schema([self.schema.field("block"), *fields])
        )
