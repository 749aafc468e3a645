"""What a check saw, and failed checks that a person lets pass.

These stand in the stream file, so that a fresh lake gives the same. One lapses when the observed value
changes: what was accepted was that value, not the check.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from transom.lake.book import Node, Verdict
from transom.lake.quality import Finding, written


@dataclass(frozen=True)
class Accepted:
    """One failed check of one hour that somebody answers for."""

    hour: datetime
    stage: str
    check: str
    observed: float
    who: str
    why: str


def verdict_of(
    node: Node, finding: Finding, accepted: Sequence[Accepted], subject: str | None = None
) -> Verdict:
    """What a finding says of a node, or of a file that belongs to it."""
    check = finding.check
    seen = Verdict(
        node, check.name, check.severity, finding.observed, check.expected, finding.success, check.column,
        subject,
    )  # fmt: skip
    return accept(seen, accepted)


def in_short(verdict: Verdict) -> str:
    """A failed check as the cause of what becomes of an hour."""
    return f"{verdict.check}: observed {written(verdict.observed)}, expected {verdict.expected}"


def accept(verdict: Verdict, accepted: Sequence[Accepted]) -> Verdict:
    """The verdict, passed where somebody accepted just this value."""
    if verdict.success:
        return verdict
    node = verdict.node
    for item in accepted:
        if (item.hour, item.stage, item.check) == (node.hour, node.stage, verdict.check) and (
            item.observed == verdict.observed
        ):
            return replace(
                verdict, success=True, expected=f"{verdict.expected}; accepted by {item.who}: {item.why}"
            )
    return verdict
