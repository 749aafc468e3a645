"""Read files, in tasks or on the driver: parse with Arrow, and write data files of the tables.

One pass over the bytes returns events, rejected lines and the file's summary. So a file that is still being
written is read as of one moment, and replaced when it has grown. The rows are written at once as data files
of their tables (`transom.storage.data_files`). So decisions are about the bytes that were read, and nothing
is parsed twice.
"""

import os
import pickle
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from tempfile import SpooledTemporaryFile
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.intervals import HOUR_LENGTH
from transom.engine.arrow_metrics import Sums
from transom.engine.task_sums import RowMeasures, TaskSums
from transom.features.ingest.file_records import ListedFile, source_id
from transom.features.ingest.landing import open_file
from transom.formats.read_file import Chunk, FileSummary, read_file
from transom.formats.record_format import RecordFormat, Span
from transom.storage.data_files import DataFile, DataFileWriter, hours_of, sort_by_hour
from transom.storage.tables import ARROW_TYPES

TASK_BYTES = 32 * 2**20
"""The stored bytes that a task with several files reads."""
BUFFERED = 64 * 2**20
"""The bytes of rows that are buffered in memory until the identity of their file is known."""
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
        file: the file as listed.
        where: its absolute path.
        span: rows outside this span are rejected; None for no limit.
        known: the lengths, in decompressed bytes, of the prefixes whose digest is computed.
    """

    file: ListedFile
    where: str
    span: Span | None = None
    known: tuple[int, ...] = ()


@dataclass(frozen=True)
class FileReadResult:
    """The result of reading a file. The default is the result for a file that vanished after it was listed.

    Attributes:
        summary: the summary of its bytes and lines; None if it was not read.
        unreadable: why the file cannot be read; None if it was read or vanished.
        hours: the hours of its events, in hours since the epoch, ascending.
        first_event: the time of the earliest event.
        last_event: the time of the latest event.
        events: the data files of its events.
        rejected: the data files of its rejected lines.
        sums: what was measured of its events, as of `TaskSums.by_hour`; empty if the reader measures nothing,
            or if the data files are not divided by hour.
    """

    summary: FileSummary | None = None
    unreadable: str | None = None
    hours: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    first_event: datetime | None = None
    last_event: datetime | None = None
    events: tuple[DataFile, ...] = ()
    rejected: tuple[DataFile, ...] = ()
    sums: Mapping[int, Mapping[str, Sums]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of its events and rejected lines."""
        return sum(file.rows for file in (*self.events, *self.rejected))


def divide(readings: Sequence[FileReadTask], tasks: int) -> list[list[FileReadTask]]:
    """Divide files into shares of similar size, one for each task, none far above `TASK_BYTES`.

    Args:
        readings: the files.
        tasks: the number of tasks that run at once. The number of shares is a multiple of it, if there are as
            many files, so that all tasks end at about the same time.
    """
    total = sum(reading.file.size for reading in readings)
    rounds = max(-(-total // (TASK_BYTES * tasks)), 1)
    count = min(len(readings), rounds * tasks)
    bins: list[list[FileReadTask]] = [[] for _ in range(count)]
    sizes = [0] * count
    for reading in sorted(readings, key=lambda reading: (-reading.file.size, reading.file.path)):
        smallest = min(range(count), key=lambda i: (sizes[i], len(bins[i])))
        bins[smallest].append(reading)
        sizes[smallest] += reading.file.size
    return bins


class _Unreadable(Exception):
    """A file cannot be read; errors of writing have another class."""


RESULTS = "file int, result binary"
"""The columns that a task returns: the number of each file, and its pickled result."""


@dataclass(frozen=True)
class FileReader:
    """Reads files, and writes the events and rejected lines of each as data files.

    Attributes:
        layout: the format of the records.
        columns: the columns of events as read, with their Spark types.
        tables: the absolute path or URI of the tables `events` and `rejected`.
        folder: the folder below each table for the data files of this run.
        measures: what is measured of the events; None for nothing.
        most_hours: the maximum number of hours for which a file's events are divided into data files by hour.
        threads: the maximum number of threads for a file; at most the cores of the machine are used.
    """

    layout: RecordFormat
    columns: Mapping[str, str]
    tables: Mapping[str, str]
    folder: str
    measures: RowMeasures | None
    most_hours: int
    threads: int = 1

    def read(self, reading: FileReadTask) -> FileReadResult:
        """Read a file, write its rows, and return the result."""
        try:
            return self._read(reading)
        except _Unreadable as unreadable:
            [error] = unreadable.args
            gone = isinstance(error, FileNotFoundError)
            return FileReadResult(unreadable=None if gone else str(error))

    def _read(self, reading: FileReadTask) -> FileReadResult:
        hours, bounds = [np.empty(0, dtype=np.int64)], []
        with _scratch() as event_file, _scratch() as rejected_file:
            events, rejected = _BatchBuffer(event_file), _BatchBuffer(rejected_file)
            for chunk in self._parsed(reading):
                if isinstance(chunk, FileSummary):
                    summary = chunk
                    continue
                rejected.add(chunk.rejected)
                if chunk.events.num_rows:
                    events.add(chunk.events)
                    times = chunk.events.column("event_time")
                    hours.append(np.unique(hours_of(times)))
                    bounds.append(pc.min_max(times).as_py())
            identity = source_id(summary.sha256, **reading.file.identity)
            constant = {**reading.file.captures, "source_id": identity}
            all_hours = np.unique(np.concatenate(hours))
            by_hour = len(all_hours) <= self.most_hours
            writer = self._writer("events", "event_time" if by_hour else None)
            sums = TaskSums(self.measures) if by_hour and self.measures is not None else None
            for batch in _with(constant, events, self.columns):
                if sums is None:
                    writer.add(batch)
                    continue
                rows, of_rows, starts = sort_by_hour(batch, "event_time")
                sums.add(_with_hour(rows), of_rows, starts)
                writer.add(rows)
            of_rejected = self._writer("rejected")
            for batch in _with(constant, rejected, REJECTED):
                of_rejected.add(batch)
            return FileReadResult(
                summary,
                hours=all_hours,
                first_event=min((bound["min"] for bound in bounds), default=None),
                last_event=max((bound["max"] for bound in bounds), default=None),
                events=tuple(writer.close()),
                rejected=tuple(of_rejected.close()),
                sums=sums.by_hour if sums is not None else {},
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

    def _writer(self, table: str, time_column: str | None = None) -> DataFileWriter:
        # A retried task writes other files.
        name = f"part-{uuid.uuid4()}"
        return DataFileWriter(self.tables[table], self.folder, name, time_column, self._threads)

    @property
    def _threads(self) -> int:
        return min(self.threads, os.cpu_count() or 1)


@dataclass(frozen=True)
class SharesReader:
    """The function of a task that reads files.

    Attributes:
        shares: the files of each task, with their numbers.
        reader: reads a file.
    """

    shares: Sequence[Sequence[tuple[int, FileReadTask]]]
    reader: FileReader

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the files of some shares, and yield their results.

        Args:
            batches: the numbers of the shares, in the only column.
        """
        for batch in batches:
            for share in batch.column(0).to_pylist():
                for number, reading in self.shares[share]:
                    result = pickle.dumps(self.reader.read(reading))
                    columns = [pa.array([number], pa.int32()), pa.array([result])]
                    yield pa.RecordBatch.from_arrays(columns, ["file", "result"])


def _scratch() -> SpooledTemporaryFile[bytes]:
    # Spark sets this variable in its workers. Most files need no file on disk, which the first byte creates.
    folders = os.environ.get("SPARK_LOCAL_DIRS")
    return SpooledTemporaryFile(1, dir=folders.split(",")[0] if folders else None)


class _BatchBuffer:
    """A buffer of the rows of a file until it is read: in memory, and from `BUFFERED` bytes on in a file."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.writer: pa.ipc.RecordBatchStreamWriter | None = None
        self.in_memory: list[pa.RecordBatch] = []
        self.bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        self.bytes += batch.nbytes
        if self.bytes <= BUFFERED:
            self.in_memory.append(batch)
            return
        if self.writer is None:
            self.writer = pa.ipc.new_stream(self.file, batch.schema)
        self.writer.write_batch(batch)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from self.in_memory
        if self.writer is not None:
            self.writer.close()
            self.file.seek(0)
            yield from pa.ipc.open_stream(self.file)


def _with(
    constant: Mapping[str, str], batches: Iterable[pa.RecordBatch], columns: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    """Yield batches with the given columns; those in `constant` have one value."""
    schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in columns.items()])
    for batch in batches:
        arrays = [
            pa.repeat(pa.scalar(constant[field.name], field.type), batch.num_rows)
            if field.name in constant
            else batch.column(field.name).cast(field.type)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _with_hour(events: pa.RecordBatch) -> pa.RecordBatch:
    """Return events with their hour, which their data files do not contain."""
    times = events.column("event_time")
    hours = pa.array(hours_of(times) * HOUR_LENGTH).cast(times.type)
    return events.append_column("hour", hours)
