"""Reading files on the executors: a task opens its files, parses them with Arrow and writes what they hold.

One pass gives events, rejections and what the file was, all of one reading of the bytes: a file that is
still being written is taken as it was at that moment, and replaced when it has grown. The rows are written
as parts of their tables (`transom.storage.data_files`) at once. So nothing is parsed a second time, were an
executor lost, and what is decided on is what was read.
"""

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from tempfile import SpooledTemporaryFile
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.features.ingest.file_records import ListedFile, source_id
from transom.features.ingest.landing import open_file
from transom.formats.read_file import Chunk, FileSummary, read_file
from transom.formats.record_format import RecordFormat, Span
from transom.storage.data_files import DataFile, hours_of, write_data_files
from transom.storage.tables import ARROW_TYPES

TASK_BYTES = 32 * 2**20
"""Stored bytes that one task reads, where files are small enough to share one."""
SPOOLED = 64 * 2**20
"""Bytes of rows that wait in memory until their file has been read, and its identity is known."""
REJECTED = {
    "source_id": "string",
    "source_line": "bigint",
    **dict.fromkeys(("raw", "reason", "column", "detail"), "string"),
}
"""The columns of a rejected line, with their Spark types."""


@dataclass(frozen=True)
class FileReadTask:
    """A file to read.

    Attributes:
        where: its absolute path.
        span: outside of which its rows are refused.
        known: decompressed lengths at which a digest of what comes before is wanted.
    """

    file: ListedFile
    where: str
    span: Span | None = None
    known: tuple[int, ...] = ()


@dataclass(frozen=True)
class FileReadResult:
    """What was read of a file; nothing of one that has vanished since it was listed.

    Attributes:
        unreadable: why there are no bytes of it.
        hours: of its events, counted from the epoch, ascending.
        events, rejected: where its rows are.
    """

    summary: FileSummary | None = None
    unreadable: str | None = None
    hours: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    first_event: datetime | None = None
    last_event: datetime | None = None
    events: tuple[DataFile, ...] = ()
    rejected: tuple[DataFile, ...] = ()


def event_columns(columns: Mapping[str, str]) -> dict[str, str]:
    """All the columns of an event as it is read, with their Spark types.

    Args:
        columns: the declared ones, the rest where it is kept, captures.
    """
    return {"event_time": "timestamp", **columns, "source_id": "string", "source_line": "bigint"}


def _arrow(columns: Mapping[str, str]) -> pa.Schema:
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in columns.items()])


def divide(readings: Sequence[FileReadTask], tasks: int) -> list[list[FileReadTask]]:
    """Return files in shares of similar size, for one task each: none far above `TASK_BYTES`.

    Args:
        tasks: how many there are at least.
    """
    total = sum(reading.file.size for reading in readings)
    count = min(len(readings), max(tasks, -(-total // TASK_BYTES)))
    bins: list[list[FileReadTask]] = [[] for _ in range(count)]
    sizes = [0] * count
    for reading in sorted(readings, key=lambda reading: (-reading.file.size, reading.file.path)):
        smallest = min(range(count), key=lambda i: (sizes[i], len(bins[i])))
        bins[smallest].append(reading)
        sizes[smallest] += reading.file.size
    return bins


class _Unreadable(Exception):
    """A file cannot be read; what cannot be written is another matter."""


@dataclass(frozen=True)
class FileReader:
    """Reads a share of the files, and writes their events and rejections as parts, each file's by itself.

    Attributes:
        columns: `event_columns`.
        tables: absolute path or URI of the tables `events` and `rejected`.
        folder: below each of them, for the parts of this reading alone.
        most_hours: `MOST_HOURS`.
        threads: that work at a file, as far as the executor's machine has cores.
    """

    layout: RecordFormat
    columns: Mapping[str, str]
    tables: Mapping[str, str]
    folder: str
    most_hours: int
    threads: int

    def __call__(self, share: Iterable[FileReadTask]) -> Iterator[tuple[str, FileReadResult]]:
        """Return what was read, by path."""
        for reading in share:
            try:
                yield reading.file.path, self._read(reading)
            except _Unreadable as unreadable:
                [error] = unreadable.args
                gone = isinstance(error, FileNotFoundError)
                yield reading.file.path, FileReadResult(unreadable=None if gone else str(error))

    def _read(self, reading: FileReadTask) -> FileReadResult:
        seen, first, last = [], [], []
        with _scratch() as event_file, _scratch() as rejected_file:
            events, rejected = _BatchBuffer(event_file), _BatchBuffer(rejected_file)
            for part in self._parsed(reading):
                if isinstance(part, FileSummary):
                    summary = part
                    continue
                rejected.add(part.rejected)
                if part.events.num_rows:
                    events.add(part.events)
                    times = part.events.column("event_time")
                    seen.append(np.unique(hours_of(times)))
                    bounds = pc.min_max(times).as_py()
                    first.append(bounds["min"])
                    last.append(bounds["max"])
            read = FileReadResult(
                summary,
                None,
                np.unique(np.concatenate(seen)) if seen else FileReadResult().hours,
                min(first, default=None),
                max(last, default=None),
            )
            constant = {
                **reading.file.captures, "source_id": source_id(summary.sha256, **reading.file.identity)
            }  # fmt: skip
            divided = "event_time" if len(read.hours) <= self.most_hours else None
            return replace(
                read,
                events=tuple(self._written("events", _with(constant, events, _arrow(self.columns)), divided)),
                rejected=tuple(self._written("rejected", _with(constant, rejected, _arrow(REJECTED)))),
            )

    def _parsed(self, reading: FileReadTask) -> Iterator[Chunk | FileSummary]:
        try:
            with open_file(reading.where) as source:
                yield from read_file(
                    source,
                    reading.file.path,
                    self.layout,
                    reading.span,
                    start=reading.file.origin,
                    captures=reading.file.captures,
                    known=reading.known,
                    threads=self._threads,
                )
        except OSError as error:
            raise _Unreadable(error) from error

    def _written(
        self, table: str, batches: Iterator[pa.RecordBatch], time_column: str | None = None
    ) -> Iterator[DataFile]:
        # A second try of a task writes files of its own.
        name = f"part-{uuid.uuid4()}"
        return write_data_files(self.tables[table], self.folder, name, batches, time_column, self._threads)

    @property
    def _threads(self) -> int:
        return min(self.threads, os.cpu_count() or 1)


def _scratch() -> SpooledTemporaryFile[bytes]:
    # Spark names its scratch folders to the workers.
    folders = os.environ.get("SPARK_LOCAL_DIRS")
    return SpooledTemporaryFile(SPOOLED, dir=folders.split(",")[0] if folders else None)


class _BatchBuffer:
    """Rows that wait for what is known only when their file has been read, in memory or on disk."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.writer: pa.ipc.RecordBatchStreamWriter | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        if self.writer is None:
            self.writer = pa.ipc.new_stream(self.file, batch.schema)
        self.writer.write_batch(batch)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self.writer is not None:
            self.writer.close()
            self.file.seek(0)
            yield from pa.ipc.open_stream(self.file)


def _with(
    constant: Mapping[str, str], batches: Iterable[pa.RecordBatch], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Batches in a schema, with columns that hold one value."""
    for batch in batches:
        rows = batch.num_rows

        def array(field: pa.Field, batch: pa.RecordBatch = batch, rows: int = rows) -> pa.Array:
            if field.name in constant:
                return pa.repeat(pa.scalar(constant[field.name], field.type), rows)
            return batch.column(field.name).cast(field.type)

        yield pa.RecordBatch.from_arrays([array(field) for field in schema], schema=schema)
