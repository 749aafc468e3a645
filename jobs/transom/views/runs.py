"""Runs of a stream for views: the stages of a run in one group, by the hours that were written."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from transom.charts.section import MAX_ROWS, Cells, DataTable, Section
from transom.core.intervals import HOUR, Interval, format_hour, merge_hours
from transom.core.terminal import counted
from transom.engine.reader import sql_name
from transom.engine.selection import Selection
from transom.ledger.run_details import DETAILS
from transom.ledger.run_records import NAME_SQL, OF_AIRFLOW, TRIGGERS, RunRecord
from transom.storage.tables import instant, literal

RUNS = "runs"
PLAIN = (
    "run_id", "stage", "trigger", "from", "to", "finished_at", "rows_read", "rows_out", "phase_seconds",
)  # fmt: skip
"""The columns that every table `runs` has."""
ADDED = ("first_hour", "last_hour", "written", "files", "findings", "finding_counts")
"""The columns that a table of an older version lacks."""
MAX_INTERVALS = 3
"""The maximum number of intervals of hours that a cell lists."""
AFTER = "!"
"""The character after a space: ids that begin with `NAME ` are between `NAME` and `NAME!`."""


class RunName(str):
    """The name of a run; a page makes it a link."""


class HourName(str):
    """An hour as text; a page makes it a link to the history of the hour."""


@dataclass(frozen=True)
class RunGroup:
    """The stages of a run.

    Attributes:
        name: its name.
        stages: its stages, in the order in which they ended; a stage that was tried again is there twice.
    """

    name: str
    stages: tuple[RunRecord, ...]

    @property
    def trigger(self) -> str:
        """The trigger of its first stage."""
        return self.stages[0].trigger

    @property
    def of_airflow(self) -> bool:
        """Whether Airflow has a run of this name."""
        return self.trigger in OF_AIRFLOW

    @property
    def cause(self) -> str:
        """The text for its trigger."""
        return TRIGGERS.get(self.trigger, self.trigger)

    @property
    def interval(self) -> Interval:
        """The requested hours."""
        return Interval(
            min(of.interval.start for of in self.stages), max(of.interval.end for of in self.stages)
        )

    @property
    def finished_at(self) -> datetime:
        """The end of its last stage."""
        return max(of.finished_at for of in self.stages)

    @property
    def known(self) -> bool:
        """Whether the lake still has what all its stages wrote."""
        return all(of.written is not None for of in self.stages)

    @property
    def hours_written(self) -> list[Interval]:
        """The hours that its stages wrote."""
        hours = (Interval(of.start, of.end).hours() for one in self.stages for of in one.written or ())
        return merge_hours(hour for of in hours for hour in of)

    @property
    def seconds(self) -> float:
        """The sum of the durations of its stages, in seconds."""
        return round(sum(of.seconds or 0 for of in self.stages), 3)


def groups_of(records: Iterable[RunRecord]) -> list[RunGroup]:
    """Return the runs of some stages, the one that ended first first."""
    stages: dict[str, list[RunRecord]] = {}
    for of in sorted(records, key=lambda of: (of.finished_at, of.run_id)):
        stages.setdefault(of.name, []).append(of)
    groups = [RunGroup(name, tuple(of)) for name, of in stages.items()]
    return sorted(groups, key=lambda of: (of.finished_at, of.name))


def read_runs(selection: Selection, where: str, details: Collection[str] = DETAILS) -> list[RunRecord]:
    """Return the runs of stages that meet an SQL condition.

    Args:
        selection: the state of the lake.
        where: the condition; it may have the columns `first_hour` and `last_hour`.
        details: which of the columns `DETAILS` are read.
    """
    stored = selection.pinned(RUNS)
    if stored is None:
        return []
    names = [*PLAIN, *(name for name in ADDED if name not in DETAILS or name in details)]
    known = [name for name in names if name in stored.columns]
    rows = stored.rows(
        f"SELECT {', '.join(map(sql_name, known))} FROM {_with_added(stored.columns)} WHERE {where}"
    )
    return list(map(RunRecord.of_row, rows))


def _with_added(columns: Mapping[str, Any]) -> str:
    """Return the SQL of the table with null for the hours that a table of an older version lacks."""
    missing = [name for name in ("first_hour", "last_hour") if name not in columns]
    moment = "arrow_cast(NULL, 'Timestamp(Microsecond, Some(\"UTC\"))')"
    added = "".join(f", {moment} AS {name}" for name in missing)
    return f"(SELECT *{added} FROM t)" if added else "t"


def may_have_written(interval: Interval) -> str:
    """Return the SQL condition that the hours which a run wrote reach over an interval."""
    return f"first_hour < {instant(interval.end)} AND last_hour >= {instant(interval.start)}"


def requested(interval: Interval) -> str:
    """Return the SQL condition that a run was requested for hours of an interval."""
    return f'"from" < {instant(interval.end)} AND "to" > {instant(interval.start)}'


def of_name(name: str) -> str:
    """Return the SQL condition of the stages of a run, by which data files are skipped."""
    return f"run_id >= {literal(name)} AND run_id < {literal(name + AFTER)} AND {NAME_SQL} = {literal(name)}"


def run_of(selection: Selection, name: str) -> RunGroup | None:
    """Return the run with a name; None if the lake has none."""
    return next(iter(groups_of(read_runs(selection, of_name(name)))), None)


def section(selection: Selection) -> Section:
    """Return the runs that were requested for hours of the interval, or wrote some of them."""
    names = _names(selection)
    skipped = (selection.page - 1) * MAX_ROWS
    shown = names[skipped : skipped + MAX_ROWS]
    columns = (
        "run",
        "started",
        "requested",
        "wrote",
        "stages",
        "finished_at",
        "rows_read",
        "rows_out",
        "seconds",
    )
    return Section(
        "Runs",
        f"{counted(len(names), 'run')}, the last first: those that were requested for these hours, and those "
        "that wrote some of them. A run also writes stale hours outside of its request, such as after a late "
        "file. The page of a run has what it changed."
        if names
        else "No run was requested for these hours or wrote them.",
        DataTable.of(columns, _rows(selection, shown), len(names), 1 + skipped) if names else None,
        None,
        "runs",
    )


def _names(selection: Selection) -> list[str]:
    """Return the names of the runs of the interval, the last first."""
    interval, ends = selection.interval, dict[str, datetime]()
    found = selection.ask(
        RUNS,
        f"SELECT {NAME_SQL} AS name, max(finished_at) AS finished_at FROM t WHERE {requested(interval)} "
        f"GROUP BY {NAME_SQL}",
    )
    ends |= {row["name"]: row["finished_at"] for row in found}
    # The first and the last hour that a run wrote may have a gap between them.
    others = read_runs(
        selection, f"{may_have_written(interval)} AND NOT ({requested(interval)})", ["written"]
    )
    for of in others:
        if of.wrote_in(interval):
            ends[of.name] = max(of.finished_at, ends.get(of.name, of.finished_at))
    # Of a run that is older than these records, or was killed, there are only checks.
    of_hours = f"hour >= {instant(interval.start)} AND hour < {instant(interval.end)}"
    checked = selection.ask("checks", f"SELECT DISTINCT {NAME_SQL} AS name FROM t WHERE {of_hours}")
    if unknown := sorted({row["name"] for row in checked} - ends.keys()):
        listed = ", ".join(map(literal, unknown))
        older = read_runs(selection, f"{NAME_SQL} IN ({listed})", ())
        ends |= {of.name: of.finished_at for of in sorted(older, key=lambda of: of.finished_at)}
    return sorted(ends, key=lambda name: (ends[name], name), reverse=True)


def _rows(selection: Selection, names: Collection[str]) -> Iterable[Cells]:
    of_names = ", ".join(map(literal, names)) or "NULL"
    groups = groups_of(read_runs(selection, f"{NAME_SQL} IN ({of_names})", ["written"]))
    for of in sorted(groups, key=lambda of: (of.finished_at, of.name), reverse=True):
        wrote = format_intervals(of.hours_written) if of.known else "not recorded"
        stages = ", ".join(dict.fromkeys(one.stage for one in of.stages))
        rows = sum(one.rows_read for one in of.stages), sum(one.rows_out for one in of.stages)
        yield (
            RunName(of.name), of.cause, format_intervals([of.interval]), wrote or "nothing", stages,
            of.finished_at, *rows, of.seconds,
        )  # fmt: skip


def format_intervals(intervals: Collection[Interval]) -> str:
    """Return intervals as text, the last `MAX_INTERVALS` of them."""
    texts = [
        format_hour(of.start)
        if of.end - of.start == HOUR
        else f"{format_hour(of.start)} to {format_hour(of.end)}"
        for of in [*intervals][-MAX_INTERVALS:]
    ]
    more = len(intervals) - len(texts)
    return ", ".join([*([f"{more} more"] if more else []), *texts])
