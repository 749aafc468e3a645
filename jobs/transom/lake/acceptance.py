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


def written(observed: float | None) -> str:
    """An observed value as a stream file's `accept` takes it: it reads back as exactly this value."""
    if observed is None:
        return "nothing"
    value = float(observed)
    # Whole numbers without their .0, as long as the file's integers hold them.
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


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
