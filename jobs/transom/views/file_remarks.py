"""Remarks on a stream's files: equal, waiting, or with events of earlier hours."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import itemgetter

import pyarrow as pa
from deltalake import DeltaTable

from transom.core.intervals import HOUR, UNKNOWN_HOUR, format_hour
from transom.core.terminal import counted
from transom.features.ingest.equal_files import equal_files, names_of
from transom.features.ingest.expected_inputs import BLOCK, STAGE, scheduled
from transom.features.ingest.file_records import OWNS_ROWS, FileRecord
from transom.features.ingest.inventory import BESIDE
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.driver_io import TableReader
from transom.storage.packed_copy import PackedCopy

MAX_NAMES = 3
"""Maximum number of names that are shown per kind."""


def known_files(root: str) -> list[FileRecord]:
    """Return the rows of `files`; none if there is no such table.

    Args:
        root: the stream's folder in the lake.
    """
    uri = f"{root}/files"
    if not DeltaTable.is_deltatable(uri):
        return []
    packed = PackedCopy(uri, TableReader(DeltaTable(uri)), (), BESIDE)
    rows = pa.concat_tables([packed.valid.drop_columns(BESIDE.names), packed.uncopied])
    return list(map(FileRecord.of_row, rows.to_pylist()))


def remarks(stream: Stream, files: Sequence[FileRecord], ledger: LedgerSnapshot) -> list[str]:
    """Return one line for each kind of remark."""
    lines = []
    waiting = [f"{file.path} ({file.status_reason})" for file in files if file.status == "waiting"]
    if waiting:
        lines.append(f"{_files(waiting, 'waits', 'wait')} for a run of other hours: {_first(waiting)}")
    equal = [words.words for _, words in sorted(equal_files(files, names_of(stream)).items())]
    if equal:
        lines.append(f"{_files(equal, 'holds', 'hold')} the same bytes as another one: {_first(equal)}")
    early, remark = _early_hours(stream, files, ledger)
    if early:
        lines.append(f"{counted(len(early), 'hour')} {remark}: {_first(list(map(format_hour, early)))}")
        lines[-1] += _advice(stream)
    return lines


def remarks_of_hour(
    stream: Stream, files: Sequence[FileRecord], ledger: LedgerSnapshot, hour: datetime
) -> list[str]:
    """Return the lines of `explain` on the files of one hour."""
    equal = equal_files(files, names_of(stream))
    lines = [equal[file.path].words for file in files if file.path in equal and hour in file.touched]
    early, remark = _early_hours(stream, files, ledger)
    return [*lines, *([f"it {remark}{_advice(stream)}"] if hour in early else [])]


def _early_hours(
    stream: Stream, files: Iterable[FileRecord], ledger: LedgerSnapshot
) -> tuple[Sequence[datetime], str]:
    """Return complete hours whose events may also arrive in a file of a later hour, and the reason.

    No run waits for such a file. All files are assumed to reach back as far as the one that reaches farthest.
    An hour has all files once each hour from which they reach it is complete or outside of the schedule.
    """
    late = [
        (file.hour - min(file.hours), file.path, file)
        for file in files
        if stream.source.pattern.unit and file.status in OWNS_ROWS and file.hour != UNKNOWN_HOUR
        if file.hours and min(file.hours) < file.hour
    ]
    if not late:
        return (), ""
    reach, _, file = max(late, key=itemgetter(0, 1))
    partitions = ledger.series(STAGE, BLOCK, "events").items()
    present = (hour for hour, state in partitions if state.requested and state.complete)
    complete = {hour for hour in present if hour != UNKNOWN_HOUR}
    early: list[datetime] = []
    gap = None
    for hour in sorted(complete, reverse=True):
        following = hour + HOUR
        if following not in complete and scheduled(stream, following):
            gap = following
        if gap is not None and gap - hour <= reach:
            early.append(hour)
    reason = (
        f"as {file.path}, named for {format_hour(file.hour)}, holds events of {format_hour(min(file.hours))}"
    )
    return early[::-1], f"may count as complete before all files are there, {reason}"


def _advice(stream: Stream) -> str:
    if stream.source.name_time == "end":
        return ""
    return "; if names give the end of what a file covers: `source: {name_time: end, covers: ...}`"


def _files(items: Sequence[str], singular: str, plural: str) -> str:
    return f"{counted(len(items), 'file')} {singular if len(items) == 1 else plural}"


def _first(items: Sequence[str]) -> str:
    more = f"; and {len(items) - MAX_NAMES} more" if len(items) > MAX_NAMES else ""
    return "; ".join(items[:MAX_NAMES]) + more
