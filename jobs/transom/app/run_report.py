"""Report what the stages of a DAG run did: files, late files, hours outside its interval. No Spark."""

from collections.abc import Mapping
from typing import Any

from transom.core.intervals import Interval, format_hours
from transom.core.terminal import counted
from transom.engine.gate_text import format_names
from transom.ledger.ledger import Ledger
from transom.ledger.run_records import RunRecord
from transom.storage.tables import literal

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
    runs = ledger.runs(f"starts_with(run_id, {literal(f'{run} ')})", details=True)
    records = list(map(RunRecord.of_row, runs))
    lines = [_line(row, record, interval) for row, record in zip(runs, records, strict=True)]
    late = sorted({of.path for record in records for of in record.late_files})
    if late:
        lines.append(f"late files: {len(late)}{format_names(late)}")
    return lines


def _line(run: Mapping[str, Any], record: RunRecord, interval: Interval) -> str:
    counters, hours = run["counters"], record.hours_outside(interval)
    counts = [counted(counters[name], *words) for name, words in COUNTED.items() if counters.get(name)]
    counts.append(counted(record.rows_out, "row written", "rows written"))
    repaired = f"; repaired outside the interval: {format_hours(hours)}" if hours else ""
    return f"run {record.stage}: {', '.join(counts)}{repaired}"
