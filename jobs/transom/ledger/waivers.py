"""What a check saw, and failed checks that a person lets pass.

These stand in the stream file, so that a fresh lake gives the same. One lapses when the observed value
changes: what was accepted was that value, not the check.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from transom.core.intervals import UNKNOWN_HOUR, format_hour
from transom.core.partitions import CheckResult, PartitionKey
from transom.core.terminal import escape_control_chars
from transom.ledger.check import MetricResult, format_exact
from transom.spec.checks import WaiverSpec


@dataclass(frozen=True)
class Waiver:
    """One failed check of one hour that somebody answers for."""

    hour: datetime
    stage: str
    check: str
    observed: float
    who: str
    why: str


def check_result_of(
    node: PartitionKey, finding: MetricResult, accepted: Sequence[Waiver], subject: str | None = None
) -> CheckResult:
    """What a finding says of a node, or of a file that belongs to it."""
    check = finding.check
    seen = CheckResult(
        node, check.name, check.severity, finding.observed, check.expected, finding.success, check.column,
        subject,
    )  # fmt: skip
    return accept(seen, accepted)


def format_observation(verdict: CheckResult) -> str:
    """What a check saw and expects."""
    return f"observed {format_exact(verdict.observed)}, expected {verdict.expected}"


def format_failure(verdict: CheckResult) -> str:
    """A failed check as the cause of what becomes of an hour."""
    return f"{verdict.check}: {format_observation(verdict)}"


def accept(verdict: CheckResult, accepted: Sequence[Waiver]) -> CheckResult:
    """Return the verdict, passed where somebody accepted just this value."""
    if verdict.success:
        return verdict
    for item in accepted:
        if _is_of(item, verdict) and item.observed == verdict.observed:
            return replace(verdict, success=True, accepted=f"{item.who}: {item.why}")
    return verdict


def _is_of(item: Waiver, verdict: CheckResult) -> bool:
    node = verdict.node
    return (item.hour, item.stage, item.check) == (node.hour, node.stage, verdict.check)


def near_misses(verdict: CheckResult, accepted: Sequence[Waiver], others: Sequence[CheckResult]) -> list[str]:
    """Return what the stream file accepts for a failed check and its hour, and the check did not see.

    An entry does not say which file it is for. One is left out where it is another verdict's value; of a
    check on a file it must also be the value but for its last digits.

    Args:
        others: the verdicts that are known beside this one.
    """
    node = verdict.node
    theirs = {
        other.observed
        for other in others
        if (other.node.stage, other.node.hour, other.check) == (node.stage, node.hour, verdict.check)
    }
    return [
        f"your file says {format_exact(item.observed)} for {verdict.check} of {format_hour(item.hour)}, and "
        f"the "
        f"check saw {format_exact(verdict.observed)}: `observed` must have every digit"
        for item in accepted
        if _is_of(item, verdict)
        and item.observed not in (verdict.observed, *theirs)
        and (verdict.file is None or _is_cut(item.observed, verdict.observed))
    ]


def _is_cut(said: float, observed: float | None) -> bool:
    """Return whether a value is another one with fewer digits, cut or rounded."""
    if observed is None:
        return False
    short, whole = Decimal(format_exact(said)), Decimal(format_exact(observed))
    unit = Decimal(1).scaleb(int(short.as_tuple().exponent))
    return abs(whole - short) < unit


def entry_for(verdict: CheckResult) -> str | None:
    """Return the item of `waivers` in a stream file that lets a failed check pass; None where none can.

    `NAME` and `REASON` in it are for the person who answers for it.
    """
    if verdict.observed is None:
        return None
    return (
        f"- {{hour: {format_hour(verdict.node.hour)}, stage: {verdict.node.stage}, check: {verdict.check}, "
        f"observed: {format_exact(verdict.observed)}, who: NAME, why: REASON}}"
    )


def format_waived(verdict: CheckResult) -> str:
    """Return one line on a failed check that somebody answers for."""
    subject = f" in {escape_control_chars(verdict.file)}" if verdict.file else ""
    column = f", column {verdict.column}" if verdict.column else ""
    when = "files without an hour" if verdict.node.hour == UNKNOWN_HOUR else format_hour(verdict.node.hour)
    return (
        f"accepted: {verdict.node.stage} {verdict.node.block}, {when}: {verdict.check}{column}{subject}: "
        f"{format_observation(verdict)}, by {escape_control_chars(verdict.accepted or '')}"
    )


def entries_of(entries: Sequence[WaiverSpec]) -> list[Waiver]:
    """Return the failed checks that a stream file lets pass, from its `waivers`."""
    return [
        Waiver(item.hour, item.stage, item.check, float(item.observed), item.who, item.why)
        for item in entries
    ]
