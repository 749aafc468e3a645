"""The data files of a lake's tables, and whether each can be read, without Spark.

A table's log names each file with its path, size and hour. This module finds files that differ from what was
written. Whether the rows are the right ones is up to digests (`transom.storage.file_digests`).
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
"""Rows of a batch."""


@dataclass(frozen=True)
class StoredFile:
    """A file of a version of a table.

    Attributes:
        path: relative to the table's folder, as the disk has it.
        size: in bytes, as the table's log has it.
        hour: the hour of its rows; None if the table is not partitioned by hours, or the rows have none.
        stage: the stage of its rows; None if the table is not partitioned by stages.
    """

    path: str
    size: int
    hour: datetime | None = None
    stage: str | None = None


class DamagedFile(ValueError):
    """A data file cannot be read; the message says why."""


def files_of(table: DeltaTable, interval: Interval | None = None) -> list[StoredFile]:
    """Return the files of a table, sorted by path.

    Args:
        interval: only files of its hours, and those without an hour; None is all.
    """
    actions, files = pa.table(table.get_add_actions(flatten=True)), []
    # Without the statistics of columns.
    names = {"path", "size_bytes", "partition.stage", "partition.hour"}.intersection(actions.schema.names)
    for row in actions.select(sorted(names)).to_pylist():
        stage, hour = row.get("partition.stage"), row.get("partition.hour")
        hour = hour and hour.astimezone(UTC)
        if interval is None or hour is None or hour in interval:
            files.append(StoredFile(unquote(row["path"]), row["size_bytes"], hour, stage))
    return sorted(files, key=lambda file: file.path)


def open_or_fault(root: str, name: str) -> DeltaTable | str | None:
    """Return a table, or why its log cannot be read, or None if there is no such table.

    Args:
        root: the stream's folder in the lake.
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
    """Return why a file is missing or has another size than was written, or None."""
    stored = system.get_file_info(f"{folder}/{file.path}")
    if stored.type != fs.FileType.File:
        return "is not there"
    return None if stored.size == file.size else f"has {stored.size} bytes, {file.size} were written"


def batches(
    system: fs.FileSystem, folder: str, file: StoredFile, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with the columns of a schema; missing columns are null.

    Args:
        folder: that of the table, on the file system.

    Raises:
        DamagedFile: the file cannot be read to its end.
    """
    fault = size_fault(system, folder, file)
    if fault is not None:
        raise DamagedFile(fault)
    try:
        with pq.ParquetFile(f"{folder}/{file.path}", filesystem=system) as parquet:
            existing = set(parquet.schema_arrow.names)
            # Every column, so that damage is found in those, too, that the schema lacks.
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
    # A decoder's exceptions for bytes that are not of its format are not documented.
    except Exception as error:
        raise DamagedFile(f"cannot be decoded: {one_line_message(error)}") from error


def fault_of(system: fs.FileSystem, folder: str, file: StoredFile) -> str | None:
    """Return why a file cannot be read, or None if every row of every column can."""
    try:
        for _ in batches(system, folder, file, pa.schema([])):
            pass
    except DamagedFile as error:
        return str(error)
    return None
