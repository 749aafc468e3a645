"""What a stage's ledger says is wrong, as findings: one for each cause and stretch of hours.

An hour is no finding for being computed from a withheld or an incomplete one: that one is, and is found
where it lies. Nor is a failed check that somebody answers for.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from operator import itemgetter
from typing import Literal

from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval, format_hour, merge_hours
from transom.core.partitions import CheckResult, PartitionKey, PartitionState
from transom.core.reasons import Reason
from transom.core.terminal import counted
from transom.findings.lines import describe_subject
from transom.ledger.check import format_exact, format_short
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.checks import OF_INGEST, BuiltIn

Severity = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")
"""The worst first."""
KINDS = ("check_failed", "source_silent", "incomplete", "stale")
"""What the ledger of a stage says; the stages find other kinds in the data."""
WITHHELD, INCOMPLETE, DOUBTFUL = "are withheld", "are incomplete", "deserve a look"
NOT_MADE, OUT_OF_DATE, DAMAGED = "could not be computed", "are out of date", "are damaged"
CONSEQUENCES: Mapping[str, tuple[Severity, str]] = {
    "error": ("high", WITHHELD),
    "incomplete": ("medium", INCOMPLETE),
    "warning": ("low", DOUBTFUL),
}
"""How bad a failed check is, and what becomes of the rows of its hour."""
REMEDIES: Mapping[str, str] = {
    WITHHELD: "put the data right, or accept the value in the stream file, then run",
    NOT_MADE: "when nothing is in its way any more, run",
    INCOMPLETE: "when what is missing has come, run",
    OUT_OF_DATE: "run",
    DAMAGED: "run",
}
"""What makes good what has become of an hour."""
MAX_EVIDENCE = 5
"""How many hours and how many rows at fault are evidence of one finding."""


@dataclass(frozen=True)
class Finding:
    """What a person should know of: a row of the table `findings`.

    Attributes:
        hour: the hour that completes it; of what the ledger says, the last one.
        finding_id: stable, see `identity`.
        block: None where it is about several.
        start, end: `[start, end)`; of an episode its first and its last record; None for files that belong to
            no hour.
        ongoing: whether it reaches the end of the last hour that the stage was asked for; of an episode,
            whether matches may still join it.
        exactness: of a figure: exact, guaranteed, estimated, or its bounds.
        source_hash: of what stages find in the data, a hash of the rows and words that it was made of.
        first_hour: the first hour that reported it; `hour` is the last one. None for files that belong to no
            hour.
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
        """One line: how bad, of what kind, what, of which key or item, and when."""
        beside = describe_subject(self.title, self.key, self.item, self.start_time, self.end_time)
        return f"{self.severity} {self.kind}: {self.title}{beside}"


def identity(
    stream: str, stage: str, kind: str, block: str | None, cause: str, start: datetime | None
) -> str:
    """The id of a finding: a hash of what it is about and where it starts.

    Neither reruns nor the order or the cut of runs change it, nor that it goes on for longer. It is
    another finding once the hours before it turn out to have the same cause.
    """
    what = [stream, stage, kind, block, cause, None if start is None else format_hour(start)]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class _Cause:
    """What makes hours that follow each other one finding.

    Attributes:
        name: the check and its column, else the kind of the cause; no words, which may change.
    """

    kind: str
    block: str | None
    name: str


@dataclass(frozen=True)
class _Symptom:
    """What one hour shows of a cause.

    Attributes:
        fate: what becomes of the rows of the hour.
        message: the cause in a few words, for the title.
        evidence: the cause in full.
        sample: some of the rows at fault.
        remedy: what makes it good, where that is not `REMEDIES` of the fate.
    """

    cause: _Cause
    hour: datetime
    severity: Severity
    fate: str
    message: str
    evidence: str
    sample: tuple[str, ...] = ()
    remedy: str | None = None


def from_ledger(
    stream: str,
    stage: str,
    book: LedgerSnapshot,
    failures: Sequence[CheckResult],
    stale: Collection[PartitionKey] = (),
    rules: Mapping[str, BuiltIn] = OF_INGEST,
    noun: str = "events",
) -> list[Finding]:
    """The findings of a stage as its ledger stands, the worst first.

    An error is of high severity, what is incomplete or out of date of medium, a warning of low. A source
    of which no file comes any more is high as long as that lasts.

    Args:
        book: the ledger; of other stages, what withholds something that this one needs.
        failures: failed checks of the stage, by the run that each node stands by.
        stale: nodes of the stage that are out of date, and that no run near them makes again.
        rules: the checks that transom makes, by name.
        noun: what the rows of the stage are called.
    """
    counted = [verdict for verdict in failures if _counts(verdict, book.get(verdict.node))]
    troubled = list(book.troubled())
    # What waits for these is found with them.
    roots = ("quarantined", "damaged")
    found = {node.key for node, entry in troubled if entry.status in roots}
    own = sorted((t for t in troubled if t[0].stage == stage), key=itemgetter(0))
    signs = chain(
        (_of_check(verdict, rules) for verdict in counted),
        _of_nodes(own, counted, found, stale, rules),
        _of_stale({node: book.get(node) for node in stale}, found),
    )
    by_cause: dict[_Cause, dict[datetime, list[_Symptom]]] = {}
    for sign in signs:
        by_cause.setdefault(sign.cause, {}).setdefault(sign.hour, []).append(sign)
    last = book.hours(stage).last or UNKNOWN_HOUR
    findings = [
        _finding(stream, stage, [sign for hour in hours for sign in by_hour[hour]], last, rules, noun)
        for by_hour in by_cause.values()
        for hours in _in_a_row(by_hour)
    ]
    return sorted(
        findings,
        key=lambda one: (SEVERITIES.index(one.severity), one.start_time or UNKNOWN_HOUR, one.finding_id),
    )


def _counts(verdict: CheckResult, entry: PartitionState | None) -> bool:
    """Whether a failed check is worth a finding: not of rows that a killed run has left, nor for something
    missing in an hour that nobody asked for."""
    if entry is None or entry.status == "writing":
        return False
    return verdict.severity == "error" or _matters(verdict.node, entry)


def _matters(node: PartitionKey, entry: PartitionState) -> bool:
    return entry.requested or node.hour == UNKNOWN_HOUR


def _of_check(verdict: CheckResult, rules: Mapping[str, BuiltIn]) -> _Symptom:
    severity, fate = CONSEQUENCES[verdict.severity]
    # A source without any file is another matter than one of several that is late.
    silent = verdict.check == "files_expected" and verdict.observed == 0
    kind = "source_silent" if silent else "incomplete" if verdict.severity == "incomplete" else "check_failed"
    column = f" on {verdict.column}" if verdict.column else ""
    built_in = rules.get(verdict.check)
    where = f"{_hours([verdict.node.hour])}{f' {verdict.file}' if verdict.file else ''}"
    return _Symptom(
        _Cause(kind, verdict.node.block, f"{verdict.check}{column}"),
        verdict.node.hour,
        severity,
        fate,
        f"check {verdict.check}{column} saw {format_short(verdict.observed)}, expected {verdict.expected}",
        f"{where}: observed {format_exact(verdict.observed)}, expected {verdict.expected}",
        verdict.failing_rows,
        None if built_in is None or built_in.mended is None else f"{built_in.mended}, then run",
    )


def _of_nodes(
    nodes: Sequence[tuple[PartitionKey, PartitionState]],
    counted: Sequence[CheckResult],
    found: Collection[str],
    stale: Collection[PartitionKey],
    rules: Mapping[str, BuiltIn],
) -> Iterator[_Symptom]:
    """What nodes say of themselves and no check of theirs does."""
    checks: dict[tuple[str, datetime], list[CheckResult]] = {}
    for verdict in counted:
        checks.setdefault((verdict.node.block, verdict.node.hour), []).append(verdict)
    files = {v.file: _of_check(v, rules).cause for v in counted if v.file and v.severity == "incomplete"}
    for node, entry in nodes:
        seen = checks.get((node.block, node.hour), [])
        cause = entry.reason or "something is missing"
        match entry.status:
            case "quarantined" if not any(verdict.severity == "error" for verdict in seen):
                yield _in_words(_Cause("check_failed", node.block, _name(entry)), node.hour, cause, WITHHELD)
            case "damaged":
                yield _in_words(_Cause("check_failed", node.block, entry.status), node.hour, cause, DAMAGED)
            case "blocked" if node not in stale and not _waits_for(entry, found):
                yield _in_words(_Cause("check_failed", None, entry.status), node.hour, cause, NOT_MADE)
            case "published" if not entry.complete and _matters(node, entry):
                for one in _own_causes(entry):
                    if one.about is None or not any(one.about in (v.check, v.file) for v in seen):
                        sign = _of_cause(node, one)
                        # A file that reaches into other hours lacks the same in all of them.
                        yield replace(sign, cause=files.get(one.about or "", sign.cause))


def _waits_for(entry: PartitionState, nodes: Collection[str]) -> bool:
    """Whether a node is blocked by one of some others, by their keys."""
    causes = entry.reasons if entry.status == "blocked" else ()
    return any(cause.kind == "waits" and cause.about in nodes for cause in causes)


def _own_causes(entry: PartitionState) -> list[Reason]:
    """What an incomplete hour lacks itself."""
    causes = entry.reasons or (Reason("file", entry.reason or "something is missing"),)
    return [cause for cause in causes if cause.kind not in ("inputs", "earlier")]


def _of_cause(node: PartitionKey, cause: Reason) -> _Symptom:
    """What an incomplete hour shows of something that it lacks."""
    mended = None
    if cause.kind == "quarantined_file":
        mended = f"put right what withholds {cause.about}, as that finding says, then run"
    of = _Cause("incomplete", node.block, _name_of(cause))
    return _Symptom(of, node.hour, "medium", INCOMPLETE, cause.text, cause.text, remedy=mended)


def _in_words(cause: _Cause, hour: datetime, words: str, fate: str) -> _Symptom:
    """What a withheld hour says of itself."""
    return _Symptom(cause, hour, "high", fate, words, words)


def _name(entry: PartitionState) -> str:
    """What withholds an hour, where no check of its own does."""
    return ", ".join(sorted({_name_of(cause) for cause in entry.reasons}))


def _name_of(cause: Reason) -> str:
    return cause.about or cause.kind if cause.kind == "check" else cause.kind


def _of_stale(
    stale: Mapping[PartitionKey, PartitionState | None], found: Collection[str]
) -> Iterator[_Symptom]:
    """Hours that are out of date, whichever blocks they are of; not what is found as withheld."""
    for node, entry in sorted(stale.items()):
        withheld = entry is not None and entry.status in ("quarantined", "damaged")
        if not withheld and (entry is None or not _waits_for(entry, found)):
            says = (
                "what they are computed from has changed since, a gate kept runs from them, or one was killed"
            )
            evidence = f"block {node.block}"
            yield _Symptom(_Cause("stale", None, ""), node.hour, "medium", OUT_OF_DATE, says, evidence)


def _in_a_row(hours: Collection[datetime]) -> list[list[datetime]]:
    alone = [[UNKNOWN_HOUR]] if UNKNOWN_HOUR in hours else []
    return alone + [list(stretch.hours()) for stretch in merge_hours(set(hours) - {UNKNOWN_HOUR})]


def _finding(
    stream: str,
    stage: str,
    signs: Sequence[_Symptom],
    last: datetime,
    rules: Mapping[str, BuiltIn],
    noun: str,
) -> Finding:
    cause, hours = signs[0].cause, sorted({sign.hour for sign in signs})
    worst = min(signs, key=lambda sign: SEVERITIES.index(sign.severity))
    stretch = None if hours == [UNKNOWN_HOUR] else Interval(hours[0], hours[-1] + HOUR)
    ongoing = stretch is None or last in stretch
    severity = (
        "high" if cause.kind == "source_silent" and ongoing and worst.fate == INCOMPLETE else worst.severity
    )
    start, end = (stretch.start, stretch.end) if stretch else (None, None)
    return Finding(
        stage=stage,
        hour=hours[-1],
        finding_id=identity(stream, stage, cause.kind, cause.block, cause.name, start),
        kind=cause.kind,
        block=cause.block,
        severity=severity,
        title=_title(stream, noun, cause, worst, hours, ongoing),
        start_time=start,
        end_time=end,
        ongoing=ongoing,
        evidence=_evidence(stage, cause, worst, signs, hours, rules),
        first_hour=start,
    )


def _title(
    stream: str, noun: str, cause: _Cause, worst: _Symptom, hours: Sequence[datetime], ongoing: bool
) -> str:
    if cause.kind == "source_silent":
        when = f"since {_hours(hours[:1])}" if ongoing else f"for {_hours(hours)}"
        return f"no file of {stream} {when} ({_format_count(hours)})"
    of_block = f" of {cause.block}" if cause.block not in (None, noun) else ""
    when = f"{_hours(hours)}{f' ({_format_count(hours)})' if len(hours) > 1 else ''}"
    return f"{stream}: {noun}{of_block}, {when}, {worst.fate}: {worst.message}"


def _evidence(
    stage: str,
    cause: _Cause,
    worst: _Symptom,
    signs: Sequence[_Symptom],
    hours: Sequence[datetime],
    rules: Mapping[str, BuiltIn],
) -> tuple[str, ...]:
    built_in = rules.get(cause.name.partition(" ")[0])
    said = list(dict.fromkeys(sign.evidence for sign in signs))
    more = [f"and {len(said) - MAX_EVIDENCE} more"] if len(said) > MAX_EVIDENCE else []
    rows = list(dict.fromkeys(row[:200] for sign in signs for row in sign.sample))[:MAX_EVIDENCE]
    mended = worst.remedy or REMEDIES.get(worst.fate)
    over = "over any hours"
    if hours != [UNKNOWN_HOUR]:
        over = f"from {format_hour(hours[0])} to {format_hour(hours[-1] + HOUR)}"
    return (
        *([f"the rule: {built_in.meaning}"] if built_in else []),
        *said[:MAX_EVIDENCE],
        *more,
        *rows,
        *([f"to mend it: {mended} {stage} {over}"] if mended else []),
    )


def _hours(hours: Sequence[datetime]) -> str:
    """Hours that follow each other, in words."""
    if hours[0] == UNKNOWN_HOUR:
        return "files without an hour"
    if len(hours) == 1:
        return format_hour(hours[0])
    return f"{format_hour(hours[0])} to {format_hour(hours[-1] + HOUR)}"


def _format_count(hours: Sequence[datetime]) -> str:
    return counted(len(hours), "hour")
