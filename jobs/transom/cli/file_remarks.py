"""What a person should know of a stream's files: equal ones, those that wait, those of earlier hours."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import pyarrow as pa
from deltalake import DeltaTable

from transom.cli.shown import counted
from transom.intervals import NO_HOUR, format_hour
from transom.lake.book import Book
from transom.lake.packed import Packed
from transom.lake.small import Stored
from transom.stages.equal_files import equal_files, names_of
from transom.stages.files import HOLDING, File
from transom.stages.inventory import BESIDE
from transom.stages.scene import node_of
from transom.stream import Stream

SHOWN = 3
"""Names that are shown of each kind."""


def known_files(root: str) -> list[File]:
    """Return the rows of `files`; none where there is no such table.

    Args:
        root: the stream's folder in the lake.
    """
    uri = f"{root}/files"
    if not DeltaTable.is_deltatable(uri):
        return []
    packed = Packed(uri, Stored(DeltaTable(uri)), (), BESIDE)
    rows = pa.concat_tables([packed.kept.drop_columns(BESIDE.names), packed.fresh])
    return list(map(File.of_row, rows.to_pylist()))


def remarks(stream: Stream, files: Sequence[File], book: Book) -> list[str]:
    """Return a line for each kind of file that a person should know of."""
    lines = []
    waiting = [f"{file.path} ({file.detail})" for file in files if file.status == "waiting"]
    if waiting:
        lines.append(f"{_counted(waiting, 'waits', 'wait')} for a run of other hours: {_some(waiting)}")
    equal = equal_files(files, names_of(stream))
    if equal:
        words = [equal[path].words for path in sorted(equal)]
        lines.append(f"{_counted(words, 'holds', 'hold')} the same bytes as another one: {_some(words)}")
    early = early_hours(stream, files, book)
    if early:
        words = [f"{format_hour(hour)} (events in {file.path})" for hour, file in early]
        lines.append(
            f"{counted(len(early), 'hour')} may count as complete before all files are there, as files "
            f"that are named for a later hour hold events of them: {_some(words)}{_advice(stream)}"
        )
    return lines


def early_hours(stream: Stream, files: Iterable[File], book: Book) -> list[tuple[datetime, File]]:
    """Return the complete hours of which a file holds events that by its name belongs to a later hour.

    Nothing makes such an hour wait for the file. Each hour comes with the first of these files.
    """
    if stream.path_pattern.unit is None:
        return []
    found: dict[datetime, File] = {}
    for file in sorted(files, key=lambda file: (file.hour, file.path)):
        if file.status not in HOLDING or file.hour == NO_HOUR:
            continue
        for hour in file.hours:
            entry = book.get(node_of("events", hour))
            if hour < file.hour and entry is not None and entry.asked and entry.complete:
                found.setdefault(hour, file)
    return sorted(found.items())


def remarks_of_hour(stream: Stream, files: Sequence[File], book: Book, hour: datetime) -> list[str]:
    """Return what `explain` says of the files of one hour."""
    lines = []
    equal = equal_files(files, names_of(stream))
    for file in files:
        if file.path in equal and hour in file.touched:
            lines.append(equal[file.path].words)
    for early, file in early_hours(stream, files, book):
        if early == hour:
            lines.append(
                f"it may count as complete before all files are there: {file.path}, named for "
                f"{format_hour(file.hour)}, holds events of it{_advice(stream)}"
            )
    return lines


def _advice(stream: Stream) -> str:
    if stream.source.name_time == "end":
        return ""
    return "; if names say the end of what a file covers: `source: {name_time: end, covers: ...}`"


def _counted(items: Sequence[str], one: str, many: str) -> str:
    return f"{counted(len(items), 'file')} {one if len(items) == 1 else many}"


def _some(items: Sequence[str]) -> str:
    more = f"; and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return "; ".join(items[:SHOWN]) + more
