"""Results of checks as text, and waivers: failed checks that the stream file accepts.

Waivers are in the stream file, so that a new lake gets the same rows. A waiver is for an observed value, not
for a check: it lapses when the value changes.
"""

from collections.abc import Iterable, Sequence
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
    """An accepted failure of a check in one hour, with the user's name and reason."""

    hour: datetime
    stage: str
    check: str
    observed: float
    who: str
    why: str


def check_result_of(
    partition: PartitionKey, metric: MetricResult, waivers: Sequence[Waiver], file: str | None = None
) -> CheckResult:
    """Return the result of a check for a partition, or for a file that belongs to it."""
    check = metric.check
    result = CheckResult(
        partition, check.name, check.severity, metric.observed, check.expected, metric.success, check.column,
        file,
    )  # fmt: skip
    return accept(result, waivers)


def format_observation(result: CheckResult) -> str:
    """Return the observed and the expected value."""
    return f"observed {format_exact(result.observed)}, expected {result.expected}"


def format_failure(result: CheckResult) -> str:
    """Return a failed check as the reason for the state of an hour."""
    return f"{result.check}: {format_observation(result)}"


def accept(result: CheckResult, waivers: Sequence[Waiver]) -> CheckResult:
    """Return the result; as passed, if a waiver has exactly its value."""
    waiver = None if result.success else _waiver_of(result, waivers)
    return result if waiver is None else replace(result, success=True, accepted=f"{waiver.who}: {waiver.why}")


def format_acceptance(results: Iterable[CheckResult], waivers: Sequence[Waiver]) -> str | None:
    """Return that the stream file accepts some failed checks; None if it does not accept all of them."""
    found = {_waiver_of(result, waivers) for result in results}
    accepted = sorted(f"{item.check}, by {item.who}: {item.why}" for item in found if item is not None)
    if not accepted or None in found:
        return None
    return f"the stream file accepts it ({escape_control_chars('; '.join(accepted))})"


def _waiver_of(result: CheckResult, waivers: Sequence[Waiver]) -> Waiver | None:
    """Return the waiver that has exactly the value of a result."""
    return next(
        (item for item in waivers if _is_for(item, result) and item.observed == result.observed), None
    )


def _is_for(waiver: Waiver, result: CheckResult) -> bool:
    return (waiver.hour, waiver.stage, waiver.check) == _subject(result)


def _subject(result: CheckResult) -> tuple[datetime, str, str]:
    return result.partition.hour, result.partition.stage, result.check


def near_misses(result: CheckResult, waivers: Sequence[Waiver], others: Sequence[CheckResult]) -> list[str]:
    """Return messages about waivers of a failed check and its hour that have another value.

    A waiver does not name its file. It is omitted if its value is that of another result. For a check of a
    file, its value must also be the observed value with fewer digits.

    Args:
        result: the failed check.
        waivers: the waivers of the stream.
        others: the other known results.
    """
    known = {other.observed for other in (*others, result) if _subject(other) == _subject(result)}
    return [
        f"your file has {format_exact(waiver.observed)} for {result.check} of {format_hour(waiver.hour)}, "
        f"and the check observed {format_exact(result.observed)}: `observed` must have every digit"
        for waiver in waivers
        if _is_for(waiver, result)
        and waiver.observed not in known
        and (result.file is None or _is_shortened(waiver.observed, result.observed))
    ]


def _is_shortened(value: float, observed: float | None) -> bool:
    """Return whether a value is the observed one with fewer digits, cut or rounded."""
    if observed is None:
        return False
    short, exact = Decimal(format_exact(value)), Decimal(format_exact(observed))
    return abs(exact - short) < Decimal(1).scaleb(int(short.as_tuple().exponent))


def entry_for(result: CheckResult) -> str | None:
    """Return the item of `waivers` in a stream file that waives a failed check; None if none can.

    The user replaces `NAME` and `REASON`.
    """
    if result.observed is None:
        return None
    hour, stage, check = _subject(result)
    return (
        f"- {{hour: {format_hour(hour)}, stage: {stage}, check: {check}, "
        f"observed: {format_exact(result.observed)}, who: NAME, why: REASON}}"
    )


def format_waived(result: CheckResult) -> str:
    """Return one line about a waived check."""
    file = f" in {escape_control_chars(result.file)}" if result.file else ""
    column = f", column {result.column}" if result.column else ""
    place = f"{result.partition.stage} {result.partition.block}, {_format_hour(result.partition.hour)}"
    observed = f"{result.check}{column}{file}: {format_observation(result)}"
    return f"accepted: {place}: {observed}, by {escape_control_chars(result.accepted or '')}"


def format_waiver(waiver: Waiver) -> str:
    """Return what a waiver accepts, who made it, and why."""
    return (
        f"{waiver.check} of {waiver.stage}, {_format_hour(waiver.hour)}: "
        f"observed {format_exact(waiver.observed)}, by {waiver.who}: {waiver.why}"
    )


def _format_hour(hour: datetime) -> str:
    return "files without an hour" if hour == UNKNOWN_HOUR else format_hour(hour)


def entries_of(waivers: Sequence[WaiverSpec]) -> list[Waiver]:
    """Return the waivers of a stream file."""
    return [Waiver(w.hour, w.stage, w.check, float(w.observed), w.who, w.why) for w in waivers]
