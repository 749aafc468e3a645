"""The claim of a run: how it takes its place, and how a write of an older run is refused.

`Ledger.claim` makes it, with a fencing token above those of all earlier claims. Each write carries the claim.
A table remembers the token of the last write of each stage, and `Store.write` refuses a token that is not
above it.
"""

from dataclasses import dataclass

from deltalake import DeltaTable


@dataclass(frozen=True)
class Claim:
    """A run's claim of partitions of a stage, with its fencing token."""

    stage: str
    run_id: str
    token: int


class RunSuperseded(RuntimeError):
    """A newer run has claimed some of this run's hours; the results of this run are discarded."""


def last_token(table: DeltaTable, stage: str) -> int:
    """Return the token of a stage's last write of a table, -1 if there is none."""
    token = table.transaction_version(stage)
    return -1 if token is None else token
