"""Data files of a table that tasks write with Arrow, and that a commit adds unchanged.

Spark writes Parquet row by row, which takes longer than the rest of a large ingest. Arrow writes whole
columns. A file is in the folder of its table, but in no version of the table until a commit names it. So if a
run is killed, no reader sees its files.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from transom.core.concurrency import ordered_map
from transom.core.exact_sums import Int64s
from transom.core.intervals import moment_of
from transom.storage.column_stats import ColumnStats, column_stats
from transom.storage.filesystem import resolve_filesystem

FLUSH_BYTES = 64 * 2**20
"""The bytes of buffered rows in Arrow's memory that are written as row groups."""
MOST_HOURS = 500
"""The maximum number of hours by which rows are split, each with an open file. Rows of more hours stay
together."""
MICROS = 3_600_000_000
"""The length of an hour in microseconds."""


@dataclass(frozen=True)
class DataFile:
    """A data file that no commit has added yet.

    Attributes:
        path: the path relative to the table's folder, as a commit names it.
        hour: the hour of all its rows; None if they are of several hours.
        rows: the number of its rows.
        bytes: its size in bytes.
        modified: the time of writing by the clock of the file system, in milliseconds since the epoch.
        stats: the statistics of its columns.
    """

    path: str
    hour: datetime | None
    rows: int
    bytes: int
    modified: int
    stats: ColumnStats = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        """The name of the file, unique in its table."""
        return self.path.rpartition("/")[2]


def write_data_files(
    table: str,
    folder: str,
    name: str,
    batches: Iterable[pa.RecordBatch],
    time_column: str | None = None,
    threads: int = 1,
    partition: bool = False,
) -> Iterator[DataFile]:
    """Write rows, and yield the files; the arguments are those of `DataFileWriter`.

    Args:
        table: as of `DataFileWriter`.
        folder: as of `DataFileWriter`.
        name: as of `DataFileWriter`.
        batches: the rows.
        time_column: as of `DataFileWriter`.
        threads: as of `DataFileWriter`.
        partition: as of `DataFileWriter`.
    """
    writer = DataFileWriter(table, folder, name, time_column, threads, partition)
    for batch in batches:
        writer.add(batch)
    yield from writer.close()


class DataFileWriter:
    """Writes rows to one file for each of their hours, in their order.

    Nothing is created without rows.

    Args:
        table: the absolute path or URI of the table.
        folder: the folder to write into, relative to the table.
        name: the start of the files' names.
        time_column: the column, a timestamp in microseconds, whose hours split the rows. Default: one file.
        threads: the number of threads, each writing one file at a time.
        partition: whether the table is partitioned by that column, so that the files omit it.
    """

    def __init__(
        self,
        table: str,
        folder: str,
        name: str,
        time_column: str | None = None,
        threads: int = 1,
        partition: bool = False,
    ) -> None:
        self._table, self._folder, self._name = table, folder, name
        self._time_column, self._threads, self._partition = time_column, threads, partition
        self._buffers: dict[int | None, list[pa.RecordBatch]] = {}
        self._buffered_bytes = 0
        # By hour since the epoch; by None if rows are not split. Each has a list that receives its metadata.
        self._files: dict[int | None, tuple[str, pq.ParquetWriter, list[pq.FileMetaData]]] = {}
        self._rows: dict[int | None, int] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows; all batches have the same columns."""
        if not self._buffers and not self._files:
            self._open(batch.schema)
        column = self._time_column
        for hour, rows in [(None, batch)] if column is None else _split_by_hour(batch, column):
            self._buffers.setdefault(hour, []).append(rows.select(self._schema.names))
        self._buffered_bytes += batch.nbytes
        if self._buffered_bytes > FLUSH_BYTES:
            self._flush()

    def _open(self, schema: pa.Schema) -> None:
        omitted = self._time_column if self._partition else None
        self._schema = pa.schema([column for column in schema if column.name != omitted])
        self._encodings = _encodings(self._schema)
        self._system, self._root = resolve_filesystem(self._table)
        self._system.create_dir(f"{self._root}/{self._folder}")

    def _flush(self) -> None:
        jobs = (partial(self._write, hour, batches) for hour, batches in self._buffers.items())
        for _ in ordered_map(jobs, self._threads):
            pass
        self._buffers.clear()
        self._buffered_bytes = 0

    def _write(self, hour: int | None, batches: list[pa.RecordBatch]) -> None:
        if hour not in self._files:
            path = f"{self._folder}/{self._name}{'' if hour is None else f'-{hour}'}.parquet"
            metadata: list[pq.FileMetaData] = []
            writer = pq.ParquetWriter(
                f"{self._root}/{path}",
                self._schema,
                filesystem=self._system,
                store_schema=False,
                metadata_collector=metadata,
                **self._encodings,
            )
            self._files[hour] = path, writer, metadata
        rows = pa.Table.from_batches(batches, self._schema)
        self._files[hour][1].write_table(rows)
        self._rows[hour] = self._rows.get(hour, 0) + rows.num_rows

    def close(self) -> Iterator[DataFile]:
        """Close the files, and yield them."""
        self._flush()
        for number, (path, writer, metadata) in sorted(self._files.items()):
            writer.close()
            file = self._system.get_file_info(f"{self._root}/{path}")
            hour, modified = None if number is None else moment_of(number), file.mtime_ns // 1_000_000
            stats = column_stats(metadata[0])
            yield DataFile(path, hour, self._rows[number], file.size, modified, stats)


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """Return the encodings of columns: differences for whole numbers and times, a dictionary for texts.

    Both are faster to write and smaller than Arrow's default, a dictionary for every column.
    """
    columns = {path: kind for column in schema for path, kind in _leaves(column.name, column.type)}
    whole = {
        path
        for path, kind in columns.items()
        if path in schema.names and (pa.types.is_integer(kind) or pa.types.is_timestamp(kind))
    }
    others = [path for path, kind in columns.items() if path not in whole and not pa.types.is_floating(kind)]
    return {"use_dictionary": others, "column_encoding": dict.fromkeys(whole, "DELTA_BINARY_PACKED")}


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the paths in Parquet's schema of the values in a column, and their types."""
    if pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_struct(kind):
        for member in kind:
            yield from _leaves(f"{path}.{member.name}", member.type)
    else:
        yield path, kind


def hours_of(times: pa.Array) -> Int64s:
    """Return the hour since the epoch of each time, which is a timestamp in microseconds."""
    hours: Int64s = times.cast(pa.int64()).to_numpy() // MICROS
    return hours


def sort_by_hour(batch: pa.RecordBatch, time_column: str) -> tuple[pa.RecordBatch, Int64s, Int64s]:
    """Return rows sorted by hour, their hours since the epoch, and the first row of each."""
    hours = hours_of(batch.column(time_column))
    steps = np.diff(hours, prepend=hours[:1] - 1)
    if (steps < 0).any():
        # Stable, so that the rows of an hour keep their order.
        order = np.argsort(hours, kind="stable")
        batch, hours = batch.take(pa.array(order)), hours[order]
        steps = np.diff(hours, prepend=hours[:1] - 1)
    starts = np.flatnonzero(steps)
    return batch, hours[starts], starts


def _split_by_hour(batch: pa.RecordBatch, time_column: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    batch, hours, starts = sort_by_hour(batch, time_column)
    for hour, start, stop in zip(hours.tolist(), starts, [*starts[1:], batch.num_rows], strict=True):
        yield hour, batch.slice(start, stop - start)


def delete_uncommitted(table: str, folder: str, kept: Collection[DataFile]) -> None:
    """Delete the files of a folder except `kept`, and the folder if none of these is in it.

    A file that cannot be deleted stays; no reader sees it.

    Args:
        table: the absolute path or URI of the table.
        folder: the folder, relative to the table.
        kept: the files to keep.
    """
    system, root = resolve_filesystem(table)
    paths = {file.path for file in kept}
    with suppress(OSError):
        for file in system.get_file_info(fs.FileSelector(f"{root}/{folder}", allow_not_found=True)):
            if f"{folder}/{file.base_name}" not in paths:
                with suppress(OSError):
                    system.delete_file(file.path)
        if not any(path.startswith(f"{folder}/") for path in paths):
            system.delete_dir(f"{root}/{folder}")
