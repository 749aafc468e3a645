"""Report what the stages of a DAG run did: files, late files, hours outside its interval. No Spark."""

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
"""The counters that are reported if they are not zero."""


def format_run(ledger: Ledger, run: str, interval: Interval, arrival_delay: timedelta) -> list[str]:
    """Return one line for each stage of a DAG run, and one for the late files.

    Args:
        run: the prefix of the stages' run ids.
        interval: of the DAG run.
        arrival_delay: how long after its hour a file may arrive without being late.
    """
    runs = ledger.runs(f"starts_with(run_id, {literal(f'{run} ')})")
    snapshot = ledger.snapshot()
    repaired = [(row, repaired_hours(snapshot, row, interval)) for row in runs]
    lines = [_line(row, hours) for row, hours in repaired]
    outside = {hour for row, hours in repaired if row["stage"] == SOURCE_STAGE for hour in hours}
    late = _late_files(ledger.root, outside, arrival_delay)
    if late:
        lines.append(f"late files: {len(late)}{format_names(late)}")
    return lines


def repaired_hours(snapshot: LedgerSnapshot, run: Mapping[str, Any], interval: Interval) -> list[datetime]:
    """Return the hours outside an interval that a run wrote and no later run did."""
    written = {partition.hour for partition, _ in snapshot.by_run(run["stage"], run["run_id"])}
    return sorted(hour for hour in written if hour not in interval and hour != UNKNOWN_HOUR)


def _line(run: Mapping[str, Any], hours: Sequence[datetime]) -> str:
    counters = run["counters"]
    counts = [counted(counters[name], *words) for name, words in COUNTED.items() if counters.get(name)]
    counts.append(counted(run["rows_out"], "row written", "rows written"))
    repaired = f"; repaired outside the interval: {format_hours(hours)}" if hours else ""
    return f"run {run['stage']}: {', '.join(counts)}{repaired}"


def _late_files(root: str, hours: set[datetime], arrival_delay: timedelta) -> list[str]:
    """Return the paths of the files of some hours that arrived late."""
    uri = f"{root}/files"
    if not hours or not DeltaTable.is_deltatable(uri):
        return []
    rows = read_rows(DeltaTable(uri), in_hours_sql(hours))
    return sorted(row["path"] for row in rows if row["modified"] > row["hour"] + HOUR + arrival_delay)
