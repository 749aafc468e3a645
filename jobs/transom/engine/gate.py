"""The gate of a stage: the state of an interval as text. No Spark.

It fails for hours of its interval that are quarantined, blocked or not computed. It warns of hours outside
the interval that failed or are stale, and of incomplete hours.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval, format_hour, format_hours
from transom.core.partitions import READABLE, SOURCE_STAGE, CheckResult, PartitionKey
from transom.core.terminal import counted, escape_control_chars
from transom.engine.gate_text import (
    MAX_ITEMS_SHOWN,
    fill_hours,
    format_blocked,
    incomplete_remarks,
    remarks,
    wrapped,
)
from transom.findings.store import findings
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.waivers import Waiver, format_waived
from transom.spec.checks import OF_INGEST, BuiltIn


@dataclass(frozen=True)
class GateResult:
    """The decision of a gate.

    Attributes:
        failures: a paragraph for each reason to stop; empty if the next stage may run.
        warnings: a text for each warning.
        summary: the state of the interval in one line.
        accepted: a line for each waived check.
    """

    failures: tuple[str, ...]
    warnings: tuple[str, ...]
    summary: str
    accepted: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the next stage may run."""
        return not self.failures


def evaluate_gate(
    ledger: Ledger,
    stage: str,
    stream: str,
    interval: Interval,
    command: str,
    repair_window: timedelta = timedelta(days=2),
    accepted: Sequence[Waiver] = (),
    stale: Mapping[str, Sequence[datetime]] | None = None,
    rules: Mapping[str, BuiltIn] = OF_INGEST,
    outlets: Collection[str] | None = None,
) -> GateResult:
    """Decide whether a stage passes over an interval.

    Args:
        ledger: the ledger of the stream.
        stage: the name of the stage.
        stream: the name of the stream.
        interval: the interval of the run.
        command: the command that runs the stage again, with `{from}` and `{to}`; part of each failure.
        repair_window: how far around its interval a run computes stale hours; failures there are warnings.
        accepted: the waivers of the stream file, to report those with another value.
        stale: the stale hours of the interval, by reason.
        rules: the built-in checks, by name.
        outlets: the tables of results. Default: all tables of the stage.
    """
    snapshot = ledger.snapshot([stage])
    around = interval.widen(before=repair_window, after=repair_window)
    near = sorted(key for key, _ in snapshot.within(around))
    outside = [key for key in near if key.hour not in interval]
    without_hour = (key for key, _ in snapshot.within(Interval.of_hour(UNKNOWN_HOUR)))
    own = sorted({*without_hour, *(key for key in near if key.hour in interval)})
    results = ledger.checks(snapshot, stage, {key.hour for key in [*own, *outside]})
    failures = _failures(snapshot, own, results, command, interval, accepted, rules)
    required = ledger.snapshot([SOURCE_STAGE]).required_hours
    hours = list(interval.hours())
    left_out = [hour for hour in hours if stage != SOURCE_STAGE and hour not in required]
    if left_out:
        failures.append(
            f"{stage} skips {format_hours(left_out)}, which were not requested from {SOURCE_STAGE}; "
            "jobs/run.py over these hours runs them all"
        )
    missing = [
        hour for hour in hours if hour not in left_out and not _is_computed(snapshot, stage, hour, outlets)
    ]
    if missing:
        failures.append(f"{stage} has not run for {format_hours(missing)}; {fill_hours(command, missing)}")
    warnings = _failures(snapshot, outside, results, command, interval, accepted, rules)
    incomplete = [key for key in own if snapshot[key].status == "published" and not snapshot[key].complete]
    warnings += incomplete_remarks(snapshot, incomplete)
    own_results = [result for result in results if result.partition in own]
    warned = [result for result in own_results if result.severity == "warning" and not result.success]
    warnings += remarks([result for result in warned if result.partition.hour != UNKNOWN_HOUR])
    bad = {key.hour for key in own if snapshot[key].status not in READABLE}.union(missing, left_out)
    warnings += _stale(ledger, stage, command)
    out_of_date = {why: sorted(set(hours) - bad) for why, hours in (stale or {}).items() if set(hours) - bad}
    warnings += [f"stale: {stage} of {format_hours(hours)}, as {why}" for why, hours in out_of_date.items()]
    good = sum(hour not in bad for hour in hours)
    published = f"{good} of {counted(len(interval), 'hour')} published"
    lacking = {key.hour for key in incomplete} - bad - {UNKNOWN_HOUR}
    if lacking:
        published += f" ({len(lacking)} of them incomplete)"
    if out_of_date:
        count = len(set().union(*out_of_date.values()))
        first = escape_control_chars(next(iter(out_of_date)))
        more = f" and {counted(len(out_of_date) - 1, 'more reason')}" if len(out_of_date) > 1 else ""
        published += f", {count} of them stale, as {first}{more}"
    summary = f"{stage} {stream} {interval}: {published}, {counted(len(warnings), 'warning')}"
    waived = tuple(format_waived(result) for result in own_results if result.accepted is not None)
    if waived:
        summary += f", {len(waived)} accepted"
    return GateResult(tuple(failures), tuple(warnings), summary, waived)


def _is_computed(
    snapshot: LedgerSnapshot, stage: str, hour: datetime, outlets: Collection[str] | None
) -> bool:
    """Return whether a stage has computed every result of an hour; an hour may have only state."""
    if stage == SOURCE_STAGE:
        return hour in snapshot.required_hours
    names = {table for _, _, table in snapshot.names if outlets is None or table in outlets}
    computed = {table[2] for table in snapshot.names if PartitionKey(*table, hour) in snapshot}
    return bool(names) and names <= computed


def _failures(
    snapshot: LedgerSnapshot,
    partitions: Sequence[PartitionKey],
    results: Sequence[CheckResult],
    command: str,
    interval: Interval,
    waivers: Sequence[Waiver],
    rules: Mapping[str, BuiltIn],
) -> list[str]:
    """Return a paragraph for each of the first reasons why partitions are not published, and one for the
    rest."""
    by_reason: dict[tuple[str, object], list[PartitionKey]] = {}
    for key in partitions:
        state = snapshot[key]
        if state.status not in READABLE:
            reasons = tuple((reason.kind, reason.about or reason.text) for reason in state.reasons)
            by_reason.setdefault((state.status, reasons or state.reason or state.run_id), []).append(key)
    groups, hours = list(by_reason.values()), list(interval.hours())
    texts = [
        format_blocked(snapshot, group, results, command, hours, waivers, rules)
        for group in groups[:MAX_ITEMS_SHOWN]
    ]
    remaining = sorted({key.hour for group in groups[MAX_ITEMS_SHOWN:] for key in group})
    if remaining:
        more = f"and for {len(groups) - MAX_ITEMS_SHOWN} more causes, {format_hours(remaining)}; "
        texts.append("\n".join(wrapped(f"{more}`transom explain` shows why")))
    return texts


def _stale(ledger: Ledger, stage: str, command: str) -> list[str]:
    """Return what the last run left stale: the first intervals with the command, and the number of others."""
    intervals = [
        (finding.start_time, finding.end_time)
        for finding in findings(ledger, kinds=["stale"])
        if finding.stage == stage and finding.start_time and finding.end_time
    ]
    lines = [
        f"stale since {format_hour(start)}: {fill_hours(command, [start, end - HOUR])}"
        for start, end in intervals[:MAX_ITEMS_SHOWN]
    ]
    more = len(intervals) - MAX_ITEMS_SHOWN
    return lines + ([f"stale in {more} more intervals; `transom status` lists all"] if more > 0 else [])
