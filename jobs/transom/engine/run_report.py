"""Report what the stages of a DAG run did: files, late files, hours outside its interval. No Spark."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from transom.core.intervals import UNKNOWN_HOUR, Interval, format_hours
from transom.core.partitions import SOURCE_STAGE
from transom.core.terminal import counted
from transom.engine.gate_text import format_names
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.tables import in_hours_sql, literal, query

COUNTED: Mapping[str, tuple[str, str]] = {
    "files_read": ("file read", "files read"),
    "lines_rejected": ("line rejected", "lines rejected"),
    "files_waiting": ("file that waits", "files that wait"),
    "files_conflicting": ("file in conflict", "files in conflict"),
    "files_missing": ("file missing", "files missing"),
}
"""The counters that are reported if they are not zero."""


def format_run(ledger: Ledger, run: str, interval: Interval) -> list[str]:
    """Return one line for each stage of a DAG run, and one for the late files.

    Args:
        run: the prefix of the stages' run ids.
        interval: of the DAG run.
    """
    runs = ledger.runs(f"starts_with(run_id, {literal(f'{run} ')})")
    snapshot = ledger.snapshot()
    lines = [_line(row, repaired_hours(snapshot, row, interval)) for row in runs]
    late = _late_files(ledger, run, _written_hours(snapshot, runs))
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


def _written_hours(snapshot: LedgerSnapshot, runs: Sequence[Mapping[str, Any]]) -> set[datetime]:
    """Return the hours whose events some runs wrote."""
    of_source = (row["run_id"] for row in runs if row["stage"] == SOURCE_STAGE)
    return {of.hour for run_id in of_source for of, _ in snapshot.by_run(SOURCE_STAGE, run_id)}


def _late_files(ledger: Ledger, run: str, hours: set[datetime]) -> list[str]:
    """Return the files of some hours that a DAG run was the first to read, though another run had their hour.

    The time of a file does not decide: a copy may keep it, and all files of an old log may be copied today.
    """
    own = f"starts_with(run_id, {literal(f'{run} ')})"
    first_read = (
        f"SELECT file, hour FROM t WHERE stage = '{SOURCE_STAGE}' AND file IS NOT NULL "
        f"AND {in_hours_sql(hours)} GROUP BY file, hour HAVING bool_and({own})"
    )
    sql = (
        f'SELECT DISTINCT file FROM ({first_read}) JOIN runs ON hour >= runs."from" AND hour < runs."to" '
        f"WHERE runs.stage = '{SOURCE_STAGE}' AND NOT {own} ORDER BY file"
    )
    files: list[str] = query(ledger.open("checks"), sql, runs=ledger.open("runs"))["file"].to_pylist()
    return files
