"""The gate of a stage: what the ledger says of an interval, in words. No Spark.

Red for withheld, blocked or unwritten hours of its own interval; a warning for hours outside that a run
repaired or that stay stale, and for hours that are incomplete.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval, format_hour, format_hours
from transom.core.partitions import READABLE, SOURCE_STAGE, CheckResult, PartitionKey, PartitionState
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
from transom.storage.tables import Table


@dataclass(frozen=True)
class GateResult:
    """What a gate decides.

    Attributes:
        failures: a paragraph for each reason to stop; none: the next stage may run.
        warnings: what a person should know of.
        summary: one line.
        accepted: a line for each failed check that somebody lets pass.
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
) -> GateResult:
    """Judges one stage over an interval.

    Args:
        command: what runs the stage again, with `{from}` and `{to}`; quoted with each failure.
        repair_window: how far around its interval a run of the stream mends hours; what is wrong there is a
            warning.
        accepted: what the stream file accepts, to say where it misses the value that a check saw.
        stale: hours of the interval that are not up to date, with all that they are computed from, by the
            reason in words.
        rules: the checks that transom makes, by name.
    """
    book = ledger.snapshot([stage])
    around = interval.widen(before=repair_window, after=repair_window)
    nodes = sorted(node for node, _ in book.within(around))
    nearby = [node for node in nodes if node.hour not in interval]
    without_hour = (node for node, _ in book.within(Interval.of_hour(UNKNOWN_HOUR)))
    own = sorted({*without_hour, *(node for node in nodes if node.hour in interval)})
    verdicts = ledger.checks(book, stage, {node.hour for node in [*own, *nearby]})
    failures = _failures(book, own, verdicts, command, interval, accepted, rules)
    due = ledger.snapshot([SOURCE_STAGE]).required_hours
    left_out = [hour for hour in interval.hours() if stage != SOURCE_STAGE and hour not in due]
    if left_out:
        failures.append(
            f"{stage} leaves out {format_hours(left_out)}, which {SOURCE_STAGE} has not been asked for; "
            "jobs/run.py over these hours runs them all"
        )
    missing = sorted(
        hour for hour in {*interval.hours()} - {*left_out} if not _is_computed(book, stage, hour)
    )
    if missing:
        failures.append(f"{stage} has not run for {format_hours(missing)}; {fill_hours(command, missing)}")
    warnings = _failures(book, nearby, verdicts, command, interval, accepted, rules)
    warnings += incomplete_remarks(book, [node for node in own if _is_incomplete(book[node])])
    of_own = [v for v in verdicts if v.node.hour in interval or v.node.hour == UNKNOWN_HOUR]
    warned = [v for v in of_own if v.severity == "warning" and not v.success and v.node.hour != UNKNOWN_HOUR]
    warnings += remarks(warned)
    bad = {node.hour for node in own if book[node].status not in READABLE}.union(missing, left_out)
    warnings += _stale(ledger, stage, command)
    out_of_date = {why: sorted(set(hours) - bad) for why, hours in (stale or {}).items()}
    out_of_date = {why: hours for why, hours in out_of_date.items() if hours}
    warnings += [f"stale: {stage} of {format_hours(hours)}, as {why}" for why, hours in out_of_date.items()]
    good = sum(hour not in bad for hour in interval.hours())
    lacking = {node.hour for node in own if _is_incomplete(book[node])} - bad - {UNKNOWN_HOUR}
    published = f"{good} of {counted(len(interval), 'hour')} published"
    if lacking:
        published += f" ({len(lacking)} of them incomplete)"
    passed = [v for v in of_own if v.accepted is not None]
    if out_of_date:
        many = len(set().union(*out_of_date.values()))
        first = escape_control_chars(next(iter(out_of_date)))
        more = f" and {counted(len(out_of_date) - 1, 'more reason')}" if len(out_of_date) > 1 else ""
        published += f", {many} of them stale, as {first}{more}"
    summary = f"{stage} {stream} {interval}: {published}, {counted(len(warnings), 'warning')}"
    if passed:
        summary += f", {len(passed)} accepted"
    return GateResult(tuple(failures), tuple(warnings), summary, tuple(map(format_waived, passed)))


def _is_computed(book: LedgerSnapshot, stage: str, hour: datetime) -> bool:
    """Whether a stage has made every result of an hour; state may be there of others, which reach it."""
    if stage == SOURCE_STAGE:
        return hour in book.required_hours
    made: dict[str, bool] = {}
    for series in book.names:
        made[series[2]] = made.get(series[2], False) or PartitionKey(*series, hour) in book
    results = [there for table, there in made.items() if not Table.load(table).state]
    return bool(results) and all(results)


def _bad(book: LedgerSnapshot, nodes: Sequence[PartitionKey]) -> list[list[PartitionKey]]:
    """Nodes that are not published, those of one cause together."""
    groups: dict[tuple[str, object], list[PartitionKey]] = {}
    for node in nodes:
        entry = book[node]
        if entry.status not in READABLE:
            causes = tuple((cause.kind, cause.about or cause.text) for cause in entry.reasons)
            groups.setdefault((entry.status, causes or entry.reason or entry.run_id), []).append(node)
    return list(groups.values())


def _failures(
    book: LedgerSnapshot,
    nodes: Sequence[PartitionKey],
    verdicts: Sequence[CheckResult],
    command: str,
    interval: Interval,
    accepted: Sequence[Waiver],
    rules: Mapping[str, BuiltIn],
) -> list[str]:
    """A paragraph for each cause for which nodes are not published, of many causes the first ones."""
    groups = _bad(book, nodes)
    hours = list(interval.hours())
    said = [
        format_blocked(book, some, verdicts, command, hours, accepted, rules)
        for some in groups[:MAX_ITEMS_SHOWN]
    ]
    left = sorted({node.hour for some in groups[MAX_ITEMS_SHOWN:] for node in some})
    if left:
        more = (
            f"and for {len(groups) - MAX_ITEMS_SHOWN} more causes, {format_hours(left)}; "
            f"`transom explain` says why"
        )
        said.append("\n".join(wrapped(more)))
    return said


def _is_incomplete(entry: PartitionState) -> bool:
    return entry.status == "published" and not entry.complete


def _stale(ledger: Ledger, stage: str, command: str) -> list[str]:
    """What the last run has left out of date, the first stretches with what mends them."""
    stretches = [
        (finding.start_time, finding.end_time)
        for finding in findings(ledger.root, kinds=["stale"])
        if finding.stage == stage and finding.start_time and finding.end_time
    ]
    told = [
        f"stale since {format_hour(start)}: {fill_hours(command, [start, end - HOUR])}"
        for start, end in stretches[:MAX_ITEMS_SHOWN]
    ]
    more = len(stretches) - MAX_ITEMS_SHOWN
    return told + ([f"stale in {more} more stretches; `transom status` tells all"] if more > 0 else [])
