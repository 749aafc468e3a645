"""What the runs of one name have done: files, late files, hours outside their interval. No Spark."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from deltalake import DeltaTable

from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval, format_hours
from transom.core.partitions import SOURCE_STAGE
from transom.core.terminal import counted
from transom.engine.gate_text import format_names
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.tables import in_hours_sql, literal, read_rows

COUNTED: Mapping[str, tuple[str, str]] = {
    "files_read": ("file read", "files read"),
    "lines_rejected": ("line rejected", "lines rejected"),
    "files_waiting": ("file that waits", "files that wait"),
    "files_conflicting": ("file in conflict", "files in conflict"),
    "files_missing": ("file missing", "files missing"),
}
"""What of a run's work is counted for a person, where it is not zero."""


def format_run(ledger: Ledger, run: str, interval: Interval, arrival_delay: timedelta) -> list[str]:
    """Return what the runs of a DAG's run have done, a line a stage, and the late files that they took.

    Args:
        run: what the names of these runs begin with.
        interval: the run's own.
        arrival_delay: how long after its hour a file may arrive without being late.
    """
    runs = ledger.runs(f"starts_with(run_id, {literal(f'{run} ')})")
    book = ledger.snapshot()
    lines = [_line(of, repaired_hours(book, of, interval)) for of in runs]
    outside = {
        hour for of in runs if of["stage"] == SOURCE_STAGE for hour in repaired_hours(book, of, interval)
    }
    late = _late_files(ledger.root, outside, arrival_delay)
    if late:
        lines.append(f"late files: {len(late)}{format_names(late)}")
    return lines


def repaired_hours(book: LedgerSnapshot, run: Mapping[str, Any], interval: Interval) -> list[datetime]:
    """Return the hours outside an interval that a run has computed, and that stand as it left them."""
    written = {node.hour for node, _ in book.by_run(run["stage"], run["run_id"])}
    return sorted(hour for hour in written if hour not in interval and hour != UNKNOWN_HOUR)


def _line(run: Mapping[str, Any], hours: Sequence[datetime]) -> str:
    work = run["counters"]
    counts = [counted(work[name], *words) for name, words in COUNTED.items() if work.get(name)]
    counts.append(counted(run["rows_out"], "row written", "rows written"))
    repaired = f"; repaired outside the interval: {format_hours(hours)}" if hours else ""
    return f"run {run['stage']}: {', '.join(counts)}{repaired}"


def _late_files(root: str, hours: set[datetime], arrival_delay: timedelta) -> list[str]:
    """The files of some hours that arrived after their time, by their paths."""
    uri = f"{root}/files"
    if not hours or not DeltaTable.is_deltatable(uri):
        return []
    rows = read_rows(DeltaTable(uri), in_hours_sql(hours))
    return sorted(row["path"] for row in rows if row["modified"] > row["hour"] + HOUR + arrival_delay)
