"""What files hold, once they have been read: Spark's frames over the parts that tasks have written."""

import uuid
from collections.abc import Collection, Iterable

from pyspark.sql import DataFrame

from transom.engine.staging import read_staged, require_system
from transom.features.ingest.derived_columns import with_derived
from transom.features.ingest.read_files import (
    REJECTED,
    FileReader,
    FileReadResult,
    FileReadTask,
    divide,
    event_columns,
)
from transom.spec.stream import Stream
from transom.storage.data_files import MOST_HOURS, DataFile, delete_uncommitted
from transom.storage.store import Store
from transom.storage.tables import SPARK_TYPES

TABLES = ("events", "rejected")
"""The tables whose rows are read from files."""


class StagedRows:
    """The rows of the files that a run reads.

    Attributes:
        taken: the parts that the run has begun to make a table's, by table.
    """

    def __init__(self, store: Store, stream: Stream) -> None:
        self.store = store
        self.stream = stream
        self.taken: dict[str, Collection[DataFile]] = {}
        self._folders: list[str] = []
        self._persisted: list[DataFrame] = []

    @property
    def columns(self) -> dict[str, str]:
        """The Spark types of an event's columns as it is read, derived ones not among them."""
        declared = {name: SPARK_TYPES[field.type] for name, field in self.stream.read_columns.items()}
        return event_columns(declared)

    def read(self, readings: Iterable[FileReadTask]) -> dict[str, FileReadResult]:
        """Read files, and return by path what was read.

        Raises:
            LakeError: the lake lies where Arrow cannot write.
        """
        for name in TABLES:
            require_system(self.store, name)
        tables = {name: self.store.uri(name) for name in TABLES}
        tasks = self.store.spark.sparkContext.defaultParallelism
        shares = divide(list(readings), tasks)
        # Known before anything is read, so that what a failed task has left is found.
        folder = f"read-{uuid.uuid4().hex}"
        self._folders.append(folder)
        threads = max(tasks // max(len(shares), 1), 1)
        reader = FileReader(self.stream.layout(), self.columns, tables, folder, MOST_HOURS, threads)
        # What comes back is a few words for each file; the rows are written where they will stand.
        found = self.store.spark.sparkContext.parallelize(shares, max(len(shares), 1)).flatMap(reader)
        return dict(found.collect())

    def events(self, reads: Iterable[FileReadResult]) -> DataFrame:
        """The events of some files, derived columns among them, each with the name of its part."""
        parts = [part for read in reads for part in read.events]
        rows = read_staged(self.store, "events", self.columns, parts)
        return with_derived(rows, self.stream)

    def rejected(self, reads: Iterable[FileReadResult]) -> DataFrame:
        """The rejected lines of some files."""
        parts = [part for read in reads for part in read.rejected]
        return read_staged(self.store, "rejected", REJECTED, parts)

    def persist(self, frame: DataFrame) -> DataFrame:
        """Keep rows that are read several times, until `discard`."""
        self._persisted.append(frame)
        return frame.persist()

    def discard(self) -> None:
        """Removes all that was read but the parts that are the tables' or may have become so."""
        for frame in self._persisted:
            frame.unpersist()
        for table in TABLES:
            for folder in self._folders:
                delete_uncommitted(self.store.uri(table), folder, self.taken.get(table, ()))
