"""Why a partition is not fresh."""

from dataclasses import dataclass
from typing import Literal

from transom.core.partitions import PartitionKey

Code = Literal[
    "not_computed", "block_added", "dropped", "writing", "damaged", "quarantined", "blocked",
    "unknown_inputs", "specification", "version", "completeness", "checks", "input_missing",
    "input_changed", "state_stale", "upstream_stale",
]  # fmt: skip


@dataclass(frozen=True)
class StaleReason:
    """One reason why a partition is not fresh.

    Attributes:
        code: `not_computed`: it does not exist. `block_added`: its block is newer than the hour.
            `dropped`: its block or table is no longer in the stream file.
            `writing`, `damaged`, `quarantined`, `blocked`: its status.
            `unknown_inputs`: the ledger does not have its input hashes.
            `specification`, `version`, `completeness`, `checks`: this input changed.
            `input_missing`, `input_changed`: hours of an input table do not exist or changed.
            `state_stale`: earlier tables of its stage or earlier hours of its table are outdated.
            `upstream_stale`: an input of another stage is stale.
        partitions: the causes, for the last four codes. `input_changed` has all current inputs of the table;
            `upstream_stale` has the root.
        name: the name of the changed input, such as a table.
        recorded: the hash of the input in the ledger.
        expected: the hash of the input now.
    """

    code: Code
    partitions: tuple[PartitionKey, ...] = ()
    name: str | None = None
    recorded: str | None = None
    expected: str | None = None
