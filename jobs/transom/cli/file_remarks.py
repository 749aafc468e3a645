"""What a person should know of a stream's files: equal ones, those that wait, those of earlier hours."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

import pyarrow as pa
from deltalake import DeltaTable

from transom.core.intervals import HOUR, UNKNOWN_HOUR, format_hour
from transom.core.terminal import counted
from transom.features.ingest.equal_files import equal_files, names_of
from transom.features.ingest.file_records import OWNS_ROWS, FileRecord
from transom.features.ingest.inventory import BESIDE
from transom.features.ingest.specified import BLOCK, STAGE, scheduled
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.driver_io import TableReader
from transom.storage.packed_copy import PackedCopy

MAX_NAMES = 3
"""Names that are shown of each kind."""


def known_files(root: str) -> list[FileRecord]:
    """Return the rows of `files`; none where there is no such table.

    Args:
        root: the stream's folder in the lake.
    """
    uri = f"{root}/files"
    if not DeltaTable.is_deltatable(uri):
        return []
    packed = PackedCopy(uri, TableReader(DeltaTable(uri)), (), BESIDE)
    rows = pa.concat_tables([packed.kept.drop_columns(BESIDE.names), packed.fresh])
    return list(map(FileRecord.of_row, rows.to_pylist()))


def remarks(stream: Stream, files: Sequence[FileRecord], book: LedgerSnapshot) -> list[str]:
    """Return a line for each kind of file that a person should know of."""
    lines = []
    waiting = [f"{file.path} ({file.status_reason})" for file in files if file.status == "waiting"]
    if waiting:
        lines.append(f"{_counted(waiting, 'waits', 'wait')} for a run of other hours: {_some(waiting)}")
    equal = equal_files(files, names_of(stream))
    if equal:
        words = [equal[path].words for path in sorted(equal)]
        lines.append(f"{_counted(words, 'holds', 'hold')} the same bytes as another one: {_some(words)}")
    early = early_hours(stream, files, book)
    if early:
        words = [format_hour(hour) for hour in early.hours]
        lines.append(
            f"{counted(len(words), 'hour')} may count as complete before all files are there, {early.words}: "
            f"{_some(words)}{_advice(stream)}"
        )
    return lines


@dataclass(frozen=True)
class EarlyHours:
    """Complete hours of which files may come that are named for a later hour.

    Attributes:
        hours: those that such a file may still come for.
        file: the one that is named latest, by the hours that it reaches back.
        first: the first hour that it holds events of.
    """

    hours: Sequence[datetime]
    file: FileRecord
    first: datetime

    @property
    def words(self) -> str:
        """The reason."""
        named = format_hour(self.file.hour)
        return f"as {self.file.path}, named for {named}, holds events of {format_hour(self.first)}"


def early_hours(stream: Stream, files: Iterable[FileRecord], book: LedgerSnapshot) -> EarlyHours | None:
    """Return the complete hours that a file may still come for which by its name belongs to a later hour.

    Nothing makes such an hour wait for the file. Files reach back as far as one of them does. An hour has all
    files once each hour from which they reach it is complete itself, or the stream's schedule has it not.
    """
    if stream.path_pattern.unit is None:
        return None
    late = [
        (file.hour - min(file.hours), file.path, file)
        for file in files
        if file.status in OWNS_ROWS
        and file.hour != UNKNOWN_HOUR
        and file.hours
        and min(file.hours) < file.hour
    ]
    if not late:
        return None
    back, _, file = max(late, key=itemgetter(0, 1))
    series = book.series(STAGE, BLOCK, "events").items()
    complete = {hour for hour, entry in series if entry.requested and entry.complete and hour != UNKNOWN_HOUR}
    found: list[datetime] = []
    gap = None
    for hour in sorted(complete, reverse=True):
        after = hour + HOUR
        if after not in complete and scheduled(stream, after):
            gap = after
        if gap is not None and gap - hour <= back:
            found.append(hour)
    return EarlyHours(found[::-1], file, min(file.hours)) if found else None


def remarks_of_hour(
    stream: Stream, files: Sequence[FileRecord], book: LedgerSnapshot, hour: datetime
) -> list[str]:
    """Return what `explain` says of the files of one hour."""
    lines = []
    equal = equal_files(files, names_of(stream))
    for file in files:
        if file.path in equal and hour in file.touched:
            lines.append(equal[file.path].words)
    early = early_hours(stream, files, book)
    if early is not None and hour in early.hours:
        lines.append(f"it may count as complete before all files are there, {early.words}{_advice(stream)}")
    return lines


def _advice(stream: Stream) -> str:
    if stream.source.name_time == "end":
        return ""
    return "; if names say the end of what a file covers: `source: {name_time: end, covers: ...}`"


def _counted(items: Sequence[str], one: str, many: str) -> str:
    return f"{counted(len(items), 'file')} {one if len(items) == 1 else many}"


def _some(items: Sequence[str]) -> str:
    more = f"; and {len(items) - MAX_NAMES} more" if len(items) > MAX_NAMES else ""
    return "; ".join(items[:MAX_NAMES]) + more
