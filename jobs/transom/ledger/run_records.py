"""Rows of `runs` as records: which run a stage belongs to, what it wrote beyond its interval, late files."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from transom.core.intervals import Interval
from transom.core.terminal import counted
from transom.ledger.run_details import FileRead, Written

TRIGGERS: Mapping[str, str] = {
    "schedule": "by Airflow's schedule",
    "manual": "by a person in Airflow",
    "backfill": "by a backfill in Airflow",
    "by hand": "by a command outside Airflow",
    "audit": "an audit: it compares sketches with exact counts and writes no rows",
    "try": "by `transom try`",
}
"""What starts a run, by `trigger`."""
OF_AIRFLOW = ("schedule", "manual", "backfill")
"""The triggers of runs that Airflow knows by their names."""
OF_ALL_STAGES = " run [0-9]+$"
"""The end of a name if one task of the DAG runs all stages: the task and its number of tries."""
NAME_SQL = f"regexp_replace(split_part(run_id, ' ' || stage || ' ', 1), '{OF_ALL_STAGES}', '')"
"""The SQL expression of `RunRecord.name`."""


@dataclass(frozen=True)
class RunRecord:
    """The run of a stage.

    Attributes:
        run_id: its id.
        stage: the stage.
        trigger: what started it.
        interval: the requested hours.
        finished_at: when it ended.
        rows_read: the number of rows or lines that it read.
        rows_out: the number of rows that it published.
        seconds: how long it took.
        written: the partitions that it wrote; None if the lake does not have them, as the run is older than
            the record or than a year.
        files: the files that it read; None as of `written`.
        findings: the first findings that it changed.
        finding_counts: the number of all of them, by change.
    """

    run_id: str
    stage: str
    trigger: str
    interval: Interval
    finished_at: datetime
    rows_read: int
    rows_out: int
    seconds: float | None
    written: tuple[Written, ...] | None = None
    files: tuple[FileRead, ...] | None = None
    findings: tuple[Mapping[str, str], ...] = ()
    finding_counts: Mapping[str, int] | None = None

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "RunRecord":
        """Return the record of a row of `runs`, which may lack the columns of details."""
        written, files = row.get("written"), row.get("files")
        return cls(
            row["run_id"], row["stage"], row["trigger"], Interval(row["from"], row["to"]), row["finished_at"],
            row["rows_read"], row["rows_out"], dict(row["phase_seconds"] or ()).get("total"),
            None if written is None else tuple(Written(**of) for of in written),
            None if files is None else tuple(FileRead(**of) for of in files),
            tuple(row.get("findings") or ()), dict(row.get("finding_counts") or ()),
        )  # fmt: skip

    @property
    def name(self) -> str:
        """The name that all stages of a run share; in Airflow that of the DAG run."""
        return name_of(self.run_id, self.stage)

    def wrote(self, hour: datetime) -> list[Written]:
        """Return what it wrote of an hour."""
        return [of for of in self.written or () if of.start <= hour < of.end]

    def wrote_in(self, interval: Interval) -> bool:
        """Return whether it wrote an hour of an interval."""
        return any(of.start < interval.end and of.end > interval.start for of in self.written or ())

    def outside(self, interval: Interval | None = None) -> list[Written]:
        """Return what it wrote outside an interval; by default outside the requested one."""
        inside = interval or self.interval
        return [part for of in self.written or () for part in _without(of, inside)]

    def hours_outside(self, interval: Interval | None = None) -> list[datetime]:
        """Return the hours that it wrote outside an interval; by default outside the requested one."""
        hours = {hour for of in self.outside(interval) for hour in Interval(of.start, of.end).hours()}
        return sorted(hours)

    @property
    def late_files(self) -> list[FileRead]:
        """The files that it was the first to read, though an earlier run had their hour."""
        return [of for of in self.files or () if of.late]


def name_of(run_id: str, stage: str) -> str:
    """Return the name that all stages of a run share, as `NAME_SQL`.

    >>> name_of("manual__2015 ingest 1 0a", "ingest"), name_of("manual__2015 run 1 ingest 0a", "ingest")
    ('manual__2015', 'manual__2015')
    """
    return re.sub(OF_ALL_STAGES, "", run_id.split(f" {stage} ", 1)[0])


def _without(of: Written, interval: Interval) -> Iterable[Written]:
    """Return the parts of a range outside an interval; a part of a range has no number of rows."""
    if of.end <= interval.start or of.start >= interval.end:
        return [of]
    parts = ((of.start, interval.start), (interval.end, of.end))
    return [
        Written(of.block, of.table, of.status, of.changed, start, end, 0)
        for start, end in parts
        if start < end
    ]


def format_file(file: FileRead) -> str:
    """Return a file as text, with the lines in it."""
    if file.lines is None or file.records is None or file.rejected is None:
        return file.path
    lines = f"{counted(file.lines, 'line')}, {counted(file.records, 'event')}, {file.rejected} rejected"
    return f"{file.path} ({lines})"
