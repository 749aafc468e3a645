"""What files hold, once they have been read: Spark's frames over the parts that tasks have written."""

import re
import uuid
from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.lake.parts import Part, discard
from transom.lake.store import Store
from transom.lake.systems import opened
from transom.lake.tables import SPARK_TYPES, LakeError
from transom.stages.derived import with_derived
from transom.stages.parsing import REJECTED, Read, Reading, event_columns, read_files
from transom.stream import Stream

TABLES = ("events", "rejected")
"""The tables whose rows are read from files."""
PART = "__part"
"""The column that holds the name of a row's part."""


class ReadRows:
    """The rows of the files that a run reads.

    Attributes:
        taken: the parts that the run has begun to make the tables'.
    """

    def __init__(self, store: Store, stream: Stream) -> None:
        self.store = store
        self.stream = stream
        self.taken: Collection[Part] = ()
        self._folders: list[str] = []

    @property
    def columns(self) -> dict[str, str]:
        """The Spark types of an event's columns as it is read, derived ones not among them."""
        declared = {name: SPARK_TYPES[field.type] for name, field in self.stream.read_columns.items()}
        return event_columns(declared)

    def read(self, readings: Iterable[Reading]) -> dict[str, Read]:
        """Reads files.

        Raises:
            LakeError: the lake lies where Arrow cannot write.
        """
        tables = {name: self.store.uri(name) for name in TABLES}
        for uri in tables.values():
            try:
                opened(uri)
            except (pa.ArrowException, OSError) as error:
                raise LakeError(f"lake: {uri} cannot be opened: {error}") from error
        # Known before anything is read, so that what a failed task has left is found.
        folder = f"read-{uuid.uuid4().hex}"
        self._folders.append(folder)
        layout = self.stream.layout()
        return read_files(self.store.spark, list(readings), layout, self.columns, tables, folder)

    def events(self, reads: Iterable[Read]) -> DataFrame:
        """The events of some files, derived columns among them, each with the name of its part."""
        rows = self._rows("events", self.columns, [part for read in reads for part in read.events])
        return with_derived(rows, self.stream)

    def rejected(self, reads: Iterable[Read]) -> DataFrame:
        """The rejected lines of some files."""
        return self._rows("rejected", REJECTED, [part for read in reads for part in read.rejected])

    def discard(self) -> None:
        """Removes all that was read but the parts that are the tables' or may have become so."""
        for table in TABLES:
            for folder in self._folders:
                discard(self.store.uri(table), folder, self.taken)

    def _rows(self, table: str, columns: Mapping[str, str], parts: Collection[Part]) -> DataFrame:
        ddl = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
        names = {part.name for part in parts}
        if not names:
            return self.store.spark.createDataFrame([], f"{ddl}, {PART} string")
        # Spark takes a path for a pattern of paths.
        table_path = re.sub(r"([\\*?\[\]{}])", r"\\\1", self.store.uri(table))
        folders = sorted({f"{table_path}/{part.path.rpartition('/')[0]}" for part in parts})
        # By folders: many paths would be listed by a job of their own. What a failed task has left lies there
        # too, and files of a name that is not asked for are not opened.
        rows = self.store.spark.read.schema(ddl).parquet(*folders)
        return rows.select("*", F.col("_metadata.file_name").alias(PART)).where(F.col(PART).isin(names))
