"""Failed checks that a person lets pass.

They stand in the stream file, so that a fresh lake gives the same. One lapses when the observed value
changes: what was accepted was that value, not the check.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from transom.lake.ledger import Verdict


@dataclass(frozen=True)
class Accepted:
    """One failed check of one hour that somebody answers for."""

    hour: datetime
    stage: str
    check: str
    observed: float
    who: str
    why: str


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
