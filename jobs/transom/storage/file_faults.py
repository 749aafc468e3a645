"""Find data files of tables that cannot be read, without Spark.

A table's log has the path, size and hour of each file. This module finds files that differ from what was
written. Digests show whether the rows are right (`transom.storage.file_digests`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow import fs

from transom.core.intervals import Interval
from transom.storage.tables import one_line_message

ROWS = 65_536
"""The number of rows of a batch."""


@dataclass(frozen=True)
class StoredFile:
    """A file of a version of a table.

    Attributes:
        path: the path relative to the table's folder, as on the disk.
        size: the size in bytes by the table's log.
        hour: the hour of its rows; None if the table is not partitioned by hours, or the rows have none.
        stage: the stage of its rows; None if the table is not partitioned by stages.
    """

    path: str
    size: int
    hour: datetime | None = None
    stage: str | None = None


class DamagedFile(ValueError):
    """A data file cannot be read. The message has the reason."""


def files_of(table: DeltaTable, interval: Interval | None = None) -> list[StoredFile]:
    """Return the files of a table, sorted by path.

    Args:
        table: the table.
        interval: the hours whose files are returned, with files without an hour. Default: all.
    """
    actions, files = pa.table(table.get_add_actions(flatten=True)), []
    # The statistics of columns are not needed.
    names = {"path", "size_bytes", "partition.stage", "partition.hour"}.intersection(actions.schema.names)
    for row in actions.select(sorted(names)).to_pylist():
        stage, hour = row.get("partition.stage"), row.get("partition.hour")
        hour = hour and hour.astimezone(UTC)
        if interval is None or hour is None or hour in interval:
            files.append(StoredFile(unquote(row["path"]), row["size_bytes"], hour, stage))
    return sorted(files, key=lambda file: file.path)


def open_or_fault(root: str, name: str) -> DeltaTable | str | None:
    """Return a table; the reason if its log cannot be read; None if it does not exist.

    Args:
        root: the stream's folder in the lake.
        name: the name of the table.
    """
    uri = f"{root}/{name}"
    try:
        if not DeltaTable.is_deltatable(uri):
            return None
        table = DeltaTable(uri)
        table.get_add_actions()
        return table
    except (DeltaError, pa.ArrowException, OSError) as error:
        return one_line_message(error)


def size_fault(system: fs.FileSystem, folder: str, file: StoredFile) -> str | None:
    """Return the fault of a file that is missing or has a wrong size; None if its size is right."""
    stored = system.get_file_info(f"{folder}/{file.path}")
    if stored.type != fs.FileType.File:
        return "is not there"
    return None if stored.size == file.size else f"has {stored.size} bytes, {file.size} were written"


def batches(
    system: fs.FileSystem, folder: str, file: StoredFile, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with the columns of a schema; missing columns are null.

    Args:
        system: the file system.
        folder: the folder of the table on the file system.
        file: the file.
        schema: the schema.

    Raises:
        DamagedFile: the file cannot be read to its end.
    """
    fault = size_fault(system, folder, file)
    if fault is not None:
        raise DamagedFile(fault)
    try:
        with pq.ParquetFile(f"{folder}/{file.path}", filesystem=system) as parquet:
            existing = set(parquet.schema_arrow.names)
            # Every column is decoded, so that damage in columns that the schema lacks is found, too.
            for batch in parquet.iter_batches(ROWS):
                yield pa.RecordBatch.from_arrays(
                    [
                        batch[field.name].cast(field.type)
                        if field.name in existing
                        else pa.nulls(batch.num_rows, field.type)
                        for field in schema
                    ],
                    schema=schema,
                )
    # Which exceptions a decoder raises for bytes of another format is not documented.
    except Exception as error:
        raise DamagedFile(f"cannot be decoded: {one_line_message(error)}") from error


def fault_of(system: fs.FileSystem, folder: str, file: StoredFile) -> str | None:
    """Return why a file cannot be read; None if all rows and columns can be read."""
    try:
        for _ in batches(system, folder, file, pa.schema([])):
            pass
    except DamagedFile as error:
        return str(error)
    return None
