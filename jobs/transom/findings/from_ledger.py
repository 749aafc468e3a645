"""Findings that follow from a stage's ledger: one for each cause and run of consecutive hours.

An hour that is computed from a quarantined or incomplete one has no finding: the finding of its input covers
it. A failed check that a waiver accepts has no finding either.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Literal, NamedTuple

from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval, format_hour, format_hours, merge_hours
from transom.core.partitions import CheckResult, PartitionKey, PartitionState
from transom.core.reasons import Reason
from transom.core.terminal import counted
from transom.findings.text import describe_subject, short_hash
from transom.ledger.check import format_exact, format_short
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.checks import OF_INGEST, BuiltIn

Severity = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")
"""All severities, the worst first."""
KINDS = ("check_failed", "source_silent", "incomplete", "stale")
"""The kinds of findings from the ledger; features have other kinds."""


class Fate(NamedTuple):
    """The state of the rows of an hour.

    Attributes:
        text: the predicate of the title.
        severity: the severity of the finding.
        remedy: what to do; None if there is nothing to do.
    """

    text: str
    severity: Severity
    remedy: str | None = None


FATES: Mapping[str, Fate] = {
    "error": Fate(
        "are quarantined", "high", "fix the data, or accept the value in the stream file, then run"
    ),
    "incomplete": Fate("are incomplete", "medium", "when the missing files have arrived, run"),
    "warning": Fate("deserve a look", "low"),
    "blocked": Fate("could not be computed", "high", "when nothing blocks it any more, run"),
    "damaged": Fate("are damaged", "high", "run"),
    "stale": Fate("are out of date", "medium", "run"),
}
"""The fates, by the severity of a failed check or the status of a partition."""
Cause = tuple[str, str | None, str]
"""The kind, the block, and the check with its column or the kind of the reason; no text, as texts change."""
MAX_EVIDENCE = 5
"""The maximum number of hours, and of failing rows, in the evidence of a finding."""


@dataclass(frozen=True)
class Finding:
    """A fact that a user should know: a row of the table `findings`, whose description has all attributes.

    Attributes:
        hour: the last hour that reported it.
        finding_id: its stable id, see `identity`.
        block: the block; None if it is about several.
        start_time: its start; None for files that belong to no hour.
        end_time: its end, exclusive; None for files that belong to no hour.
        ongoing: whether it reaches the end of the last requested hour of the stage, or may continue.
        exactness: how exact its values are: exact, guaranteed, estimated, or bounds `low..high`.
        source_hash: a hash of its rows and template; None for findings from the ledger.
        first_hour: the first hour that reported it; None for files that belong to no hour.
    """

    stage: str
    hour: datetime
    finding_id: str
    kind: str
    block: str | None
    severity: Severity
    title: str
    start_time: datetime | None
    end_time: datetime | None
    ongoing: bool
    evidence: tuple[str, ...]
    key: str | None = None
    item: str | None = None
    exactness: str = "exact"
    source_hash: str | None = None
    first_hour: datetime | None = None

    def __str__(self) -> str:
        """Return severity, kind, title, key or item, and time, in one line."""
        subject = describe_subject(self.title, self.key, self.item, self.start_time, self.end_time)
        return f"{self.severity} {self.kind}: {self.title}{subject}"


def identity(stream: str, stage: str, kind: str, block: str | None, name: str, start: datetime | None) -> str:
    """Return the id of a finding: a hash of its subject and its start.

    It does not depend on the number or order of runs, or on the finding's end. If an earlier hour gets the
    same cause later, the finding has another start and so another id.
    """
    subject = [stream, stage, kind, block, name, None if start is None else format_hour(start)]
    return short_hash(json.dumps(subject))


@dataclass(frozen=True)
class _Symptom:
    """A cause in one hour. Consecutive hours with the same cause are one finding.

    Attributes:
        cause: the cause, without its text.
        hour: the hour.
        fate: the state of its rows.
        message: the cause as short text, for the title.
        evidence: the cause as full text.
        sample: some of the failing rows.
        remedy: what to do, if it differs from the remedy of its fate.
    """

    cause: Cause
    hour: datetime
    fate: Fate
    message: str
    evidence: str
    sample: tuple[str, ...] = ()
    remedy: str | None = None


def from_ledger(
    stream: str,
    stage: str,
    snapshot: LedgerSnapshot,
    failures: Sequence[CheckResult],
    stale: Collection[PartitionKey] = (),
    rules: Mapping[str, BuiltIn] = OF_INGEST,
    noun: str = "events",
) -> list[Finding]:
    """Return the findings of a stage's ledger, the worst first.

    While a source has no files, its finding has severity high.

    Args:
        stream: the name of the stream.
        stage: the name of the stage.
        snapshot: the ledger of the stage, and of others whose quarantined partitions block it.
        failures: the failed checks of the stage, each by the last run of its partition.
        stale: the stale partitions of the stage that no run computes again.
        rules: the built-in checks, by name.
        noun: the noun for the rows of the stage.
    """
    # Checks of rows that a killed run left do not count. In hours that were not requested, only those of
    # severity error do.
    counting = [
        check
        for check in failures
        if (entry := snapshot.get(check.partition)) is not None
        and entry.status != "writing"
        and (check.severity == "error" or _matters(check.partition, entry))
    ]
    by_cause: dict[Cause, dict[datetime, list[_Symptom]]] = {}
    for symptom in _symptoms(stage, snapshot, counting, stale, rules):
        by_cause.setdefault(symptom.cause, {}).setdefault(symptom.hour, []).append(symptom)
    last = snapshot.hours(stage).last or UNKNOWN_HOUR
    findings = [
        _finding(stream, stage, [symptom for hour in hours for symptom in by_hour[hour]], last, rules, noun)
        for by_hour in by_cause.values()
        for hours in _consecutive(by_hour)
    ]
    return sorted(
        findings, key=lambda f: (SEVERITIES.index(f.severity), f.start_time or UNKNOWN_HOUR, f.finding_id)
    )


def _matters(partition: PartitionKey, entry: PartitionState) -> bool:
    return entry.requested or partition.hour == UNKNOWN_HOUR


def _of_check(check: CheckResult, rules: Mapping[str, BuiltIn]) -> _Symptom:
    kind = "incomplete" if check.severity == "incomplete" else "check_failed"
    # A source without any file is another kind than a late file of several.
    if check.check == "files_expected" and check.observed == 0:
        kind = "source_silent"
    column = f" on {check.column}" if check.column else ""
    subject = f" {check.file}" if check.file else ""
    remedy = rules[check.check].remedy if check.check in rules else None
    return _Symptom(
        (kind, check.partition.block, f"{check.check}{column}"),
        check.partition.hour,
        FATES[check.severity],
        f"check {check.check}{column} saw {format_short(check.observed)}, expected {check.expected}",
        f"{format_hours([check.partition.hour])}{subject}: observed {format_exact(check.observed)}, expected "
        f"{check.expected}",
        check.failing_rows,
        remedy and f"{remedy}, then run",
    )


def _symptoms(
    stage: str,
    snapshot: LedgerSnapshot,
    checks: Sequence[CheckResult],
    stale: Collection[PartitionKey],
    rules: Mapping[str, BuiltIn],
) -> Iterator[_Symptom]:
    """Yield the symptoms of failed checks, then of partitions that no check covers, then of stale ones."""
    by_hour: dict[tuple[str, datetime], list[CheckResult]] = {}
    files = {}
    for check in checks:
        symptom = _of_check(check, rules)
        by_hour.setdefault((check.partition.block, check.partition.hour), []).append(check)
        if check.file and check.severity == "incomplete":
            files[check.file] = symptom.cause
        yield symptom
    cause: Cause
    troubled = list(snapshot.troubled())
    # Findings of quarantined or damaged partitions cover the partitions that wait for them.
    roots = {partition.key for partition, entry in troubled if entry.status in ("quarantined", "damaged")}
    for partition, entry in sorted((pair for pair in troubled if pair[0].stage == stage), key=itemgetter(0)):
        own = by_hour.get((partition.block, partition.hour), [])
        text = entry.reason or "something is missing"
        match entry.status:
            case "quarantined" if not any(check.severity == "error" for check in own):
                name = ", ".join(sorted({_name(cause) for cause in entry.reasons}))
                cause, fate = ("check_failed", partition.block, name), "error"
            case "damaged":
                cause, fate = ("check_failed", partition.block, entry.status), entry.status
            case "blocked" if partition not in stale and not _waits_for(entry, roots):
                cause, fate = ("check_failed", None, entry.status), entry.status
            case "published" if not entry.complete and _matters(partition, entry):
                covered = {name for check in own for name in (check.check, check.file)} - {None}
                for missing in entry.reasons or (Reason("file", text),):
                    if missing.kind in ("inputs", "earlier") or missing.about in covered:
                        continue
                    remedy = f"fix the cause in that finding, so that {missing.about} is published, then run"
                    yield _Symptom(
                        # A file with events in other hours is one cause in all of them.
                        files.get(missing.about or "", ("incomplete", partition.block, _name(missing))),
                        partition.hour,
                        FATES["incomplete"],
                        missing.text,
                        missing.text,
                        remedy=remedy if missing.kind == "quarantined_file" else None,
                    )
                continue
            case _:
                continue
        yield _Symptom(cause, partition.hour, FATES[fate], text, text)
    text = "what they are computed from has changed since, a gate kept runs from them, or one was killed"
    for partition in sorted(stale):
        state = snapshot.get(partition)
        if state is None or (state.status not in ("quarantined", "damaged") and not _waits_for(state, roots)):
            evidence = f"block {partition.block}"
            yield _Symptom(("stale", None, ""), partition.hour, FATES["stale"], text, evidence)


def _waits_for(entry: PartitionState, roots: Collection[str]) -> bool:
    """Return whether one of some partitions, given by their keys, blocks a partition."""
    causes = entry.reasons if entry.status == "blocked" else ()
    return any(cause.kind == "waits" and cause.about in roots for cause in causes)


def _name(cause: Reason) -> str:
    return cause.about or cause.kind if cause.kind == "check" else cause.kind


def _consecutive(hours: Collection[datetime]) -> list[list[datetime]]:
    unknown = [[UNKNOWN_HOUR]] if UNKNOWN_HOUR in hours else []
    return unknown + [list(run.hours()) for run in merge_hours(set(hours) - {UNKNOWN_HOUR})]


def _finding(
    stream: str,
    stage: str,
    symptoms: Sequence[_Symptom],
    last: datetime,
    rules: Mapping[str, BuiltIn],
    noun: str,
) -> Finding:
    (kind, block, name), hours = symptoms[0].cause, sorted({symptom.hour for symptom in symptoms})
    worst = min(symptoms, key=lambda symptom: SEVERITIES.index(symptom.fate.severity))
    span = None if hours == [UNKNOWN_HOUR] else Interval(hours[0], hours[-1] + HOUR)
    start, end = (span.start, span.end) if span else (None, None)
    ongoing = span is None or last in span
    count = counted(len(hours), "hour")
    severity = worst.fate.severity
    if kind == "source_silent":
        when = f"since {format_hours(hours[:1])}" if ongoing else f"for {format_hours(hours)}"
        title = f"no file of {stream} {when} ({count})"
        severity = "high" if ongoing and worst.fate == FATES["incomplete"] else severity
    else:
        of_block = f" of {block}" if block not in (None, noun) else ""
        when = f"{format_hours(hours)}{f' ({count})' if len(hours) > 1 else ''}"
        title = f"{stream}: {noun}{of_block}, {when}, {worst.fate.text}: {worst.message}"
    rule = rules.get(name.partition(" ")[0])
    seen = list(dict.fromkeys(symptom.evidence for symptom in symptoms))
    rows = dict.fromkeys(row[:200] for symptom in symptoms for row in symptom.sample)
    remedy = worst.remedy or worst.fate.remedy
    over = f"from {format_hour(start)} to {format_hour(end)}" if start and end else "over any hours"
    return Finding(
        stage=stage,
        hour=hours[-1],
        finding_id=identity(stream, stage, kind, block, name, start),
        kind=kind,
        block=block,
        severity=severity,
        title=title,
        start_time=start,
        end_time=end,
        ongoing=ongoing,
        evidence=(
            *([f"the rule: {rule.meaning}"] if rule else []),
            *seen[:MAX_EVIDENCE],
            *([f"and {len(seen) - MAX_EVIDENCE} more"] if len(seen) > MAX_EVIDENCE else []),
            *list(rows)[:MAX_EVIDENCE],
            *([f"to fix it: {remedy} {stage} {over}"] if remedy else []),
        ),
        first_hour=start,
    )
