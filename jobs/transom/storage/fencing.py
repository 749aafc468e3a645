"""Claims of runs, by which writes of older runs are refused.

`Ledger.claim` creates a claim, with a fencing token above those of all earlier claims. Each write has the
token of its claim. A table stores the token of the last write of each stage. `Store.write` refuses a token
that is not above it.
"""

from dataclasses import dataclass

from deltalake import DeltaTable


@dataclass(frozen=True)
class Claim:
    """A run's claim of partitions of a stage.

    Attributes:
        stage: the stage.
        run_id: the run.
        token: the fencing token.
    """

    stage: str
    run_id: str
    token: int


class RunSuperseded(RuntimeError):
    """Another run has claimed some of this run's partitions; the results of this run are discarded."""


def last_token(table: DeltaTable, stage: str) -> int:
    """Return the token of a stage's last write to a table; -1 if there is none."""
    token = table.transaction_version(stage)
    return -1 if token is None else token
