"""What files hold, once they have been read: Spark's frames over the parts that tasks have written."""

import re
from collections.abc import Collection, Iterable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.lake.parts import Part, remove
from transom.lake.store import Store
from transom.lake.tables import SPARK_TYPES
from transom.stages.derived import with_derived
from transom.stages.parsing import REJECTED, Read, Reading, event_columns, read_files
from transom.stream import Stream

PART = "__part"
"""The column that holds the name of a row's part."""


class ReadRows:
    """The rows of the files that a run reads."""

    def __init__(self, store: Store, stream: Stream) -> None:
        self.store = store
        self.stream = stream
        self._reads: list[Read] = []

    @property
    def columns(self) -> dict[str, str]:
        """The Spark types of an event's columns as it is read, derived ones not among them."""
        declared = {name: SPARK_TYPES[field.type] for name, field in self.stream.read_columns.items()}
        return event_columns(declared)

    def read(self, readings: Iterable[Reading]) -> dict[str, Read]:
        """Reads files."""
        tables = {name: self.store.uri(name) for name in ("events", "rejected")}
        found = read_files(self.store.spark, list(readings), self.stream.layout(), self.columns, tables)
        self._reads += found.values()
        return found

    def events(self, reads: Iterable[Read]) -> DataFrame:
        """The events of some files, derived columns among them, each with the name of its part."""
        rows = self._rows("events", self.columns, [part for read in reads for part in read.events])
        return with_derived(rows, self.stream)

    def rejected(self, reads: Iterable[Read]) -> DataFrame:
        """The rejected lines of some files."""
        return self._rows("rejected", REJECTED, [part for read in reads for part in read.rejected])

    def discard(self, taken: Iterable[Part] = ()) -> None:
        """Removes all that was read but the parts that a commit has taken."""
        kept = {part.path for part in taken}
        for name in ("events", "rejected"):
            parts: list[Part] = [part for read in self._reads for part in getattr(read, name)]
            remove(self.store.uri(name), (part for part in parts if part.path not in kept))

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
