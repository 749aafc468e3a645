"""Data files of a table that a task writes itself, with Arrow, and that a commit takes as they stand.

Spark writes Parquet row by row, which takes longer than all else that an ingest of many rows does; Arrow
writes it whole columns at a time. A part lies in its table's folder and belongs to no version of the table
until a commit names it: until then, or where a run is killed before, no reader of the table sees it.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from transom.core.concurrency import ordered_map
from transom.core.intervals import moment_of
from transom.storage.filesystem import resolve_filesystem

FLUSH_BYTES = 64 * 2**20
"""Bytes of rows, as Arrow holds them, that wait until they make a row group."""
MOST_HOURS = 500
"""Hours into which rows are divided, each with a file open; rows of more stay together."""
MICROS = 3_600_000_000


@dataclass(frozen=True)
class DataFile:
    """A data file that no commit has taken yet.

    Attributes:
        path: below the table's folder, as a commit names it.
        hour: the hour that all its rows are of; None where they are of several.
        bytes: as it is stored.
        modified: when it was written, as its file system says, in milliseconds since 1970.
    """

    path: str
    hour: datetime | None
    rows: int
    bytes: int
    modified: int

    @property
    def name(self) -> str:
        """Unlike that of any other part."""
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
    """Writes rows into a file for each hour of them, in the order in which they come.

    Args:
        table: absolute path or URI of the table.
        folder: below it, to write into.
        name: what the files' names begin with.
        time_column: the column, a timestamp in microseconds, by whose hours they are divided; None where
            they stay together.
        threads: that write, each a file at a time.
        partition: whether that column is the one by which the table is partitioned, which its files do not
            hold.
    """
    writer: _Writer | None = None
    for batch in batches:
        if writer is None:
            names = [column for column in batch.schema.names if not (partition and column == time_column)]
            writer = _Writer(table, folder, name, pa.schema([batch.schema.field(n) for n in names]), threads)
        writer.add(batch, time_column)
    if writer is not None:
        yield from writer.close()


class _Writer:
    """Files that grow side by side, one for each hour."""

    def __init__(self, table: str, folder: str, name: str, schema: pa.Schema, threads: int) -> None:
        self.system, self.root = resolve_filesystem(table)
        self.folder, self.name, self.schema, self.threads = folder, name, schema, threads
        self.waiting: dict[int | None, list[pa.RecordBatch]] = {}
        self.held = 0
        self.files: dict[int | None, tuple[str, pq.ParquetWriter]] = {}
        self.rows: dict[int | None, int] = {}
        self.system.create_dir(f"{self.root}/{folder}")

    def add(self, batch: pa.RecordBatch, time_column: str | None) -> None:
        divided = [(None, batch)] if time_column is None else _by_hour(batch, time_column)
        for hour, rows in divided:
            self.waiting.setdefault(hour, []).append(rows.select(self.schema.names))
        self.held += batch.nbytes
        if self.held > FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        jobs = (partial(self._write, hour, batches) for hour, batches in self.waiting.items())
        for _ in ordered_map(jobs, self.threads):
            pass
        self.waiting.clear()
        self.held = 0

    def _write(self, hour: int | None, batches: list[pa.RecordBatch]) -> None:
        if hour not in self.files:
            path = f"{self.folder}/{self.name}{'' if hour is None else f'-{hour}'}.parquet"
            file = f"{self.root}/{path}"
            writer = pq.ParquetWriter(file, self.schema, filesystem=self.system, store_schema=False)
            self.files[hour] = path, writer
        rows = pa.Table.from_batches(batches, self.schema)
        self.files[hour][1].write_table(rows)
        self.rows[hour] = self.rows.get(hour, 0) + rows.num_rows

    def close(self) -> Iterator[DataFile]:
        self._flush()
        for hour, (path, file) in sorted(self.files.items()):
            file.close()
            stored = self.system.get_file_info(f"{self.root}/{path}")
            of = None if hour is None else moment_of(hour)
            yield DataFile(path, of, self.rows[hour], stored.size, stored.mtime_ns // 1_000_000)


def hours_of(times: pa.Array) -> npt.NDArray[np.int64]:
    """The hour of each time, a timestamp in microseconds; counted from the epoch."""
    found: npt.NDArray[np.int64] = times.cast(pa.int64()).to_numpy() // MICROS
    return found


def _by_hour(batch: pa.RecordBatch, time_column: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    hours = hours_of(batch.column(time_column))
    if hours[0] == hours[-1] and (hours == hours[0]).all():
        yield int(hours[0]), batch
        return
    # Stable, so that an hour's rows keep their order.
    order = np.argsort(hours, kind="stable")
    ordered, sorted_hours = batch.take(pa.array(order)), hours[order]
    starts = np.flatnonzero(np.r_[True, np.diff(sorted_hours) > 0])
    for start, end in zip(starts, [*starts[1:], len(hours)], strict=True):
        yield int(sorted_hours[start]), ordered.slice(start, end - start)


def delete_uncommitted(table: str, folder: str, kept: Collection[DataFile]) -> None:
    """Removes the parts of a folder but for some, and the folder where none is kept.

    What cannot be removed stays; no reader sees it.

    Args:
        table: absolute path or URI of the table.
    """
    system, root = resolve_filesystem(table)
    names = {part.path for part in kept}
    with suppress(OSError):
        for entry in system.get_file_info(fs.FileSelector(f"{root}/{folder}", allow_not_found=True)):
            if f"{folder}/{entry.base_name}" not in names:
                with suppress(OSError):
                    system.delete_file(entry.path)
        if not any(part.path.startswith(f"{folder}/") for part in kept):
            system.delete_dir(f"{root}/{folder}")
