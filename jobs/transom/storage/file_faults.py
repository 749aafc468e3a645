"""The data files of a lake's tables, and whether each can be read. No Spark.

A file is what a table's log names: its path, size and hour. What a log names and the disk does not hold as
it was written is found here. Whether the rows are the right ones is up to digests
(`transom.storage.recount`).
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
from transom.storage.filesystem import resolve_filesystem
from transom.storage.tables import one_line_message

ROWS = 65_536
"""Rows of a batch."""


@dataclass(frozen=True)
class StoredFile:
    """A file that a version of a table consists of.

    Attributes:
        path: below the table's folder, as the disk has it.
        size: in bytes, as the table's log has it.
        hour: the hour of its rows; None of a table that is not partitioned by hours, and of rows without one.
        stage: the stage of its rows, of a table that is partitioned by stages.
    """

    path: str
    size: int
    hour: datetime | None = None
    stage: str | None = None


class DamagedFile(ValueError):
    """A data file cannot be read; the message says why."""


def files_of(table: DeltaTable, interval: Interval | None = None) -> list[StoredFile]:
    """The files of a table, in the order of their paths.

    Args:
        interval: only those of its hours, and those without an hour; None are all.
    """
    actions = pa.table(table.get_add_actions(flatten=True))
    of_stages = "partition.stage" in actions.schema.names
    partition = "partition.stage" if of_stages else "partition.hour"
    found = []
    for row in actions.select(["path", "size_bytes", partition]).to_pylist():
        value = row[partition]
        hour = None if of_stages or value is None else value.astimezone(UTC)
        file = StoredFile(unquote(row["path"]), row["size_bytes"], hour, value if of_stages else None)
        if interval is None or hour is None or hour in interval:
            found.append(file)
    return sorted(found, key=lambda file: file.path)


def files_that_do_not_open(root: str, name: str) -> str | None:
    """Why the log of a table cannot be read; None where it can, or where there is no such table.

    Args:
        root: the stream's folder in the lake.
    """
    uri = f"{root}/{name}"
    try:
        if DeltaTable.is_deltatable(uri):
            DeltaTable(uri).get_add_actions()
    except (DeltaError, pa.ArrowException, OSError) as error:
        return one_line_message(error)
    return None


def size_fault(system: fs.FileSystem, folder: str, file: StoredFile) -> str | None:
    """Why a file cannot be what was written, by its size alone; None where the size is right."""
    there = system.get_file_info(f"{folder}/{file.path}")
    if there.type != fs.FileType.File:
        return "is not there"
    if there.size != file.size:
        return f"has {there.size} bytes, {file.size} were written"
    return None


def batches(
    system: fs.FileSystem, folder: str, file: StoredFile, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of a file, with the columns of a schema; those that it does not hold are null.

    Args:
        folder: of the table, on the file system.

    Raises:
        DamagedFile: it cannot be read to its end.
    """
    fault = size_fault(system, folder, file)
    if fault is not None:
        raise DamagedFile(fault)
    try:
        with pq.ParquetFile(f"{folder}/{file.path}", filesystem=system) as parquet:
            held = set(parquet.schema_arrow.names)
            # Every column: what cannot be decoded is found in those, too, that are not asked for.
            for batch in parquet.iter_batches(ROWS):
                yield pa.RecordBatch.from_arrays(
                    [
                        batch[field.name].cast(field.type)
                        if field.name in held
                        else pa.nulls(batch.num_rows, field.type)
                        for field in schema
                    ],
                    schema=schema,
                )
    # What a decoder raises of bytes that are none of its format is not listed anywhere.
    except Exception as error:
        raise DamagedFile(f"cannot be decoded: {one_line_message(error)}") from error


def fault_of(system: fs.FileSystem, folder: str, file: StoredFile) -> str | None:
    """Why a file cannot be read; None where every row of every column can."""
    fault = size_fault(system, folder, file)
    if fault is not None:
        return fault
    try:
        with pq.ParquetFile(f"{folder}/{file.path}", filesystem=system) as parquet:
            for _ in parquet.iter_batches(ROWS):
                pass
    except Exception as error:
        return f"cannot be decoded: {one_line_message(error)}"
    return None


def folder_of(root: str, name: str) -> tuple[fs.FileSystem, str]:
    """The file system of a table, and its folder there."""
    return resolve_filesystem(f"{root}/{name}")
