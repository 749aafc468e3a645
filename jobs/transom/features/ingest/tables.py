"""The tables of the ingest stage."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from transom.features.ingest.file_records import FileRecord
from transom.spec.stream import Stream
from transom.storage.store import PinnedTables
from transom.storage.tables import SPARK_TYPES, Table


@dataclass(frozen=True)
class Tables:
    """The tables of a stream's ingest."""

    events: Table
    duplicates: Table
    rejected: Table
    files: Table

    @classmethod
    def of(cls, stream: Stream) -> "Tables":
        """Return the tables with the columns that the stream declares."""
        types = {name: SPARK_TYPES[field.type] for name, field in stream.event_columns.items()}
        events, duplicates = (Table.load(name).declare(columns=types) for name in ("events", "duplicates"))
        return cls(events, duplicates, Table.load("rejected"), Table.load("files"))

    def as_recorded(self, pins: PinnedTables) -> "Tables":
        """Return these tables with the columns of earlier specifications, too.

        Rows that are not read again keep their values, in case a specification is restored. New rows have
        nulls.
        """
        events, duplicates = map(pins.current_schema, (self.events, self.duplicates))
        return replace(self, events=events, duplicates=duplicates)

    def __iter__(self) -> Iterator[Table]:
        return iter((self.events, self.duplicates, self.rejected, self.files))


def file_rows(table: Table, files: Sequence[FileRecord]) -> pa.Table:
    """Return rows of `files` in Arrow."""
    return pa.Table.from_pylist([*map(vars, files)], schema=table.arrow_schema())
