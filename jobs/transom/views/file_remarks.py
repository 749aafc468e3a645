"""Remarks on a stream's files: equal, waiting, with events of earlier hours, or with replaced contents."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import itemgetter

import pyarrow as pa
from deltalake import DeltaTable

from transom.charts.section import MAX_ROWS, Cells, DataTable, Section
from transom.core.intervals import HOUR, UNKNOWN_HOUR, format_hour
from transom.core.partitions import SOURCE_STAGE
from transom.core.terminal import counted
from transom.engine.selection import Row, Selection
from transom.features.ingest.equal_files import equal_files, names_of
from transom.features.ingest.expected_inputs import BLOCK, STAGE, scheduled
from transom.features.ingest.file_records import OWNS_ROWS, FileRecord
from transom.features.ingest.inventory import BESIDE
from transom.ledger.run_details import FileRead
from transom.ledger.run_records import NAME_SQL
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.driver_io import TableReader
from transom.storage.packed_copy import PackedCopy
from transom.storage.tables import instant, literal
from transom.views.runs import RUNS, HourName, RunName, may_have_written, requested

MAX_NAMES = 3
"""Maximum number of names that are shown per kind."""
SHARE = "rejected_share"
"""The check that keeps some rejected lines of a file if it fails."""


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


def content_remarks(selection: Selection, files: Iterable[FileRead]) -> dict[FileRead, str]:
    """Return a remark on the content of files that runs read: that it is empty, or equal to which one.

    Args:
        selection: the state of the lake; it has the reason of a file as it is now.
        files: the files.
    """
    # The number of lines of a file that cannot be read is not known.
    of = {file for file in files if file.status in ("ingested", "duplicate")}
    duplicates = ", ".join(sorted({literal(file.path) for file in of if file.status == "duplicate"}))
    where = f"status = 'duplicate' AND path IN ({duplicates})"
    rows = selection.ask("files", f"SELECT path, status_reason FROM t WHERE {where}") if duplicates else []
    reasons = {row["path"]: f": {row['status_reason']}" for row in rows}
    texts = {
        file: [
            *(["empty"] if file.lines == 0 else []),
            *([f"duplicate{reasons.get(file.path, '')}"] if file.status == "duplicate" else []),
        ]
        for file in of
    }
    return {file: ", ".join(words) for file, words in texts.items() if words}


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


def replaced_lines(selection: Selection) -> Section | None:
    """Return the rejected lines of contents that newer ones of the same files replaced; None without any.

    The lines that the newer content has rejected, too, are not among them: a file that grows is no news. From
    the details of runs, which are kept for a year.
    """
    stored = selection.pinned(RUNS)
    if stored is None or not {"files", "first_hour"} <= stored.columns.keys():
        return None
    of, start, end = selection.interval, instant(selection.interval.start), instant(selection.interval.end)
    names = ("path", "hour", "start", "end", "status", "replaced", "lines", "rejected")
    fields = ", ".join(f"""file['{name}'] AS "{name}\"""" for name in names)
    files = (
        f"SELECT {NAME_SQL} AS name, run_id, finished_at, unnest(files) AS file FROM t "
        f"WHERE stage = {literal(SOURCE_STAGE)} AND (({may_have_written(of)}) OR ({requested(of)}))"
    )
    # Each content next to the one that was read after it.
    by_path = "OVER (PARTITION BY path ORDER BY finished_at)"
    after = ", ".join(f"lead({name}) {by_path} AS next_{name}" for name in ("replaced", "rejected", "name"))
    touches = f'(hour >= {start} AND hour < {end}) OR ("start" < {end} AND "end" > {start})'
    found = selection.ask(
        RUNS,
        f"SELECT * FROM (SELECT *, {after} FROM (SELECT name, run_id, finished_at, {fields} FROM ({files})) "
        f"WHERE {touches}) WHERE next_replaced AND rejected > next_rejected ORDER BY finished_at DESC, path",
    )
    if not found:
        return None
    skipped = (selection.page - 1) * MAX_ROWS
    shown = found[skipped : skipped + MAX_ROWS]
    kept = _kept_lines(selection, shown) if shown else {}
    columns = (
        "hour",
        "file",
        "lines",
        "rejected",
        "status",
        "read",
        "by_run",
        "replaced_by_run",
        "lines_kept",
    )

    def cells(row: Row, lines: str) -> Cells:
        hour = row["hour"] if row["hour"] == UNKNOWN_HOUR else HourName(format_hour(row["hour"]))
        runs = RunName(row["name"]), RunName(row["next_name"])
        read = f"{row['finished_at']:%Y-%m-%d %H:%M:%S}"
        return hour, row["path"], row["lines"], row["rejected"], row["status"], read, *runs, lines

    rows = [cells(row, kept.get((row["run_id"], row["path"]), "not kept")) for row in shown]
    more = sum(row["rejected"] - row["next_rejected"] for row in found)
    note = (
        f"{counted(more, 'more line')} {'was' if more == 1 else 'were'} rejected, of "
        f"{counted(len(found), 'content')} that a newer content of the same file replaced."
    )
    kept_of = (
        f"No table keeps them, but the check {SHARE} keeps some if it fails: up to {MAX_NAMES} are shown."
    )
    return Section(
        "Rejected lines of replaced contents", note, DataTable.of(columns, rows, len(found), 1 + skipped),
        subject="replaced", guarantee=kept_of,
    )  # fmt: skip


def _kept_lines(selection: Selection, reads: Sequence[Row]) -> dict[tuple[str, str], str]:
    """Return the lines that failed checks keep, by the id of the run and the path."""
    of = " OR ".join(
        f"(starts_with(run_id, {literal(row['run_id'])}) AND file = {literal(row['path'])})" for row in reads
    )
    hours = [row["hour"] for row in reads]
    rows = selection.ask(
        "checks",
        f"SELECT run_id, file, failing_rows FROM t WHERE NOT success AND \"check\" = '{SHARE}' "
        f"AND hour >= {instant(min(hours))} AND hour <= {instant(max(hours))} "
        f"AND cardinality(failing_rows) > 0 AND ({of})",
    )
    kept = {}
    for row in reads:
        for result in rows:
            if result["run_id"].startswith(row["run_id"]) and result["file"] == row["path"]:
                kept[row["run_id"], row["path"]] = " | ".join(result["failing_rows"][:MAX_NAMES])
    return kept


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
