"""Ingest in the lake in memory: the real stage over small files in a dictionary.

Files are parsed by the real parser. A few lines here replace what Spark does with the rows, for a stream that
compares no records.
"""

import gzip
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from tests.support.memory_lake import Rows
from transom.core.durations import microseconds
from transom.core.intervals import EPOCH, hour_of
from transom.features.ingest import file_checks, hour_rows, publish, read_files, snapshot, stage
from transom.features.ingest.expected_inputs import ExpectedInputs
from transom.features.ingest.file_records import FileRecord
from transom.features.ingest.hour_rows import HourRows
from transom.features.ingest.inventory import Inventory, names_rules, with_names
from transom.features.ingest.landing import FileNames, Landing
from transom.features.ingest.parsed_rows import ParsedRows
from transom.features.ingest.read_files import FileReader, FileReadResult, FileReadTask
from transom.features.ingest.tables import Tables, file_rows
from transom.ledger.check import predict_results
from transom.spec.stream import Stream
from transom.storage.data_files import DataFile
from transom.storage.store import Store
from transom.storage.tables import Table

Folder = dict[str, tuple[bytes, datetime]]
"""Files by path: content and modification time."""


def access_log(*times: datetime, sent: int = 1) -> bytes:
    """Return an access log with a line for each of some times."""
    lines = (
        f'10.0.0.1 - - [{time:%d/%b/%Y:%H:%M:%S} +0000] "GET / HTTP/1.1" 200 {sent} "-" "-"\n'
        for time in times
    )
    return gzip.compress("".join(lines).encode(), mtime=0)


class _MemoryWriter:
    """Replaces a writer of data files.

    Args:
        rows_by_path: gets the rows of each data file.
    """

    def __init__(self, table: str, time_column: str | None, rows_by_path: dict[str, Rows]) -> None:
        self._table, self._time_column, self._rows_by_path = table, time_column, rows_by_path
        self._by_hour: dict[datetime | None, Rows] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        for row in Rows.of(pa.Table.from_batches([batch])):
            hour = hour_of(row[self._time_column]) if self._time_column else None
            self._by_hour.setdefault(hour, Rows()).append(row)

    def close(self) -> Iterator[DataFile]:
        for hour, rows in self._by_hour.items():
            path = f"{self._table}/{len(self._rows_by_path)}"
            self._rows_by_path[path] = rows
            yield DataFile(path, hour, len(rows), 0, 0)


@dataclass(frozen=True)
class _Reading(FileReader):
    """Reads files into memory.

    Attributes:
        rows_by_path: the rows of each data file.
    """

    rows_by_path: dict[str, Rows] = field(default_factory=dict)

    def _writer(self, table: str, time_column: str | None = None) -> Any:
        return _MemoryWriter(table, time_column, self.rows_by_path)


class MemoryRows(ParsedRows):
    """Replaces the rows that a run reads."""

    def __init__(self, store: Store, stream: Stream) -> None:
        super().__init__(store, stream)
        self.rows_by_path: dict[str, Rows] = {}

    def parse_files(
        self, tasks: Sequence[FileReadTask], conditions: Mapping[str, str] = MappingProxyType({})
    ) -> dict[str, FileReadResult]:
        tables = {name: name for name in ("events", "rejected")}
        reader = _Reading(
            self.stream.layout(), self.columns, tables, "", None, 500, rows_by_path=self.rows_by_path
        )
        return {task.file.path: reader.read(task) for task in tasks}

    def discard(self) -> None:
        pass


class MemoryHours(HourRows):
    """Replaces the rows of the hours that a run publishes."""

    def by_table(self, files: Mapping[str, FileRecord]) -> Any:
        leaving = self.decisions.removed.keys() | self.decisions.added.keys()
        frames = {
            name: self.pins.read(name, self.stored[name]).where(lambda row: row["source_id"] not in leaving)
            for name in ("events", "duplicates", "rejected")
        }
        for path in self.decisions.added.values():
            for part in self.reads[path].events:
                frames["events"] += ({**row, "hour": part.hour} for row in self.rows.rows_by_path[part.path])
            for part in self.reads[path].rejected:
                frames["rejected"] += (
                    {**row, "hour": files[path].hour} for row in self.rows.rows_by_path[part.path]
                )
        return {name: partial(Rows, rows) for name, rows in frames.items()}, {}


def _hashed(tables: Tables, frames: Mapping[str, Callable[[], Rows]]) -> Rows:
    return Rows({"table": name, **row} for name, read in frames.items() for row in read())


def _in_hours(hours: Iterable[datetime]) -> Callable[[Mapping[str, Any]], bool]:
    required = set(hours)
    return lambda row: row["hour"] in required


def _inventory(landing: Folder, pins: Any, stream: Stream, specified: ExpectedInputs) -> Inventory:
    names, rules = FileNames.of(stream), names_rules(stream)
    hours = {row["hour"] for version in pins.store.versions["files"] for row in version}
    known = [FileRecord.of_row(row) for row in pins.read("files", hours)]
    result = {path: (len(data), microseconds(changed - EPOCH)) for path, (data, changed) in landing.items()}
    rows = with_names(file_rows(Table.load("files"), known), names, rules)
    return Inventory(rows, Landing(names, result), specified.usual_spec_hash, rules, specified.waived_hours)


@contextmanager
def landing_in_memory(landing: Folder) -> Iterator[None]:
    """Within the context, `ingest` uses the files and rows of this module."""

    def opened(where: str) -> io.BytesIO:
        path = next((path for path in landing if where.endswith(path)), None)
        if path is None:
            raise FileNotFoundError(where)
        return io.BytesIO(landing[path][0])

    def no_nulls(rules: object, reads: Mapping[str, FileReadResult], rows: object) -> dict[str, Any]:
        return {path: dict.fromkeys(_metrics(rules), 0) for path in reads}

    with ExitStack() as patches:
        for module, instead in (
            (stage, {"ParsedRows": MemoryRows}),
            (read_files, {"open_file": opened}),
            (
                file_checks,
                {"_counts": no_nulls, "_sample": lambda *_: [], "evaluate_checks": predict_results},
            ),
            (snapshot, {"_inventory": lambda store, snapshot, *of: _inventory(landing, *of)}),
            (publish, {"HourRows": MemoryHours, "in_hours": _in_hours}),
            (hour_rows, {"hashed_rows": _hashed, "require_written": lambda *_: None}),
        ):
            patches.enter_context(patch.multiple(module, **instead))
        yield


def _metrics(rules: Any) -> list[str]:
    return [*(key.metric for key in rules.keys), *(use.metric for use in rules.uses)]
