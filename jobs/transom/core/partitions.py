"""What the ledger says of each node: the small plain values that plans, claims and gates speak in."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

import numpy as np
import numpy.typing as npt

from transom.core.reasons import Cause, read

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

Status = Literal["writing", "published", "quarantined", "blocked", "expired", "damaged"]
READABLE: tuple[Status, ...] = ("published", "expired")
"""What others may rely on: an expired node's rows are gone, and known by their digest."""
NOT_PUBLISHED: tuple[Status, ...] = ("quarantined", "blocked", "expired", "damaged")
EMPTY_DIGEST = "0:0"
MISSING_DIGEST = "unmade"
"""The digest of what is due and has not been computed: like no other."""
BITS = 128
EXTERNAL_STAGE = "filler"
"""The stage, in a book, of what is read that is not the stream's own (`transom.engine.external`)."""
TableKey = tuple[str, str, str]
"""A stage, a block and its table."""
SOURCE_STAGE = "ingest"
"""The stage that all others follow: whoever asks it for an hour asks them, too, and nobody else does."""
PREVIOUS_VERSION, PREVIOUS_RUN, PREVIOUS_STATUS, PREVIOUS_CAUSE = (
    "stood_at",
    "stood_by",
    "stood_as",
    "stood_for",
)
PREVIOUS_CAUSES = "stood_causes"
"""What a claim notes of the rows that it is about to replace: their version of the table, their run, and
status, cause and causes of their node, where it was not simply published."""
INHERITED_INCOMPLETE = "incomplete hours, first"
"""How it is put in words that an hour is incomplete only as what it is computed from is."""

CARRIED_INCOMPLETE = f"earlier {INHERITED_INCOMPLETE}"
"""How that is put of earlier hours of its own table, which hours behind it are no less complete for."""

WITHHELD_FILE = "withheld, the finding of"
"""How it is put in words that an hour lacks what a file holds that is withheld; its hour follows."""


@dataclass(frozen=True, order=True)
class PartitionKey:
    """One table of one block of one stage, in one hour."""

    stage: str
    block: str
    table: str
    hour: datetime

    def __str__(self) -> str:
        """As the cause of a blocked node names it."""
        return f"{self.stage} {self.block} {self.hour:%Y-%m-%dT%H:%M}"

    @property
    def key(self) -> str:
        """As a cause says which node it is about."""
        return json.dumps([self.stage, self.block, self.table, self.hour.isoformat()])


@dataclass(frozen=True)
class PartitionState:
    """What the ledger says of a node.

    Attributes:
        complete: False where something is missing: a file, an hour that this one is computed from.
        digest: of the rows that stand in the table (`transom.storage.digest`).
        inputs: a hash for each thing the rows were computed from; None while nothing is known. Of a node
            that is being written, of what it held, and where that stands.
        rows: how many stand. Of a damaged node 0 where they cannot be read or are gone; its digest is that
            of the rows that it has to have.
        cause: in words, for people, why the node is quarantined, blocked, expired, damaged or incomplete.
        causes: the same as data, of a node that is quarantined, blocked or incomplete; None where code has
            written it that knew words only.
        asked: False where nobody asked for the hour: files of other hours have put rows in it.
    """

    status: Status
    run_id: str
    complete: bool = True
    digest: str = EMPTY_DIGEST
    inputs: Mapping[str, str] | None = None
    rows: int = 0
    cause: str | None = None
    asked: bool = True
    causes: tuple[Cause, ...] | None = ()

    @property
    def previous_version(self) -> int | None:
        """The table's version in which the rows stand that a run has begun to replace."""
        version = (self.inputs or {}).get(PREVIOUS_VERSION)
        return None if version is None else int(version)

    @property
    def previous_run(self) -> str:
        """The run whose rows stand, or stood until a run began to replace them."""
        return (self.inputs or {}).get(PREVIOUS_RUN, self.run_id)

    @property
    def damaged(self) -> bool:
        """Whether its rows are marked as damaged: nothing may read them, and the next run in whose reach the
        hour lies makes them again. While that run writes them, too."""
        return self.state_before_claim().status == "damaged"

    @property
    def has_own_gap(self) -> bool:
        """Whether something is missing that earlier hours of its own table do not account for."""
        carried = bool(self.causes) and all(cause.kind == "earlier" for cause in self.causes or ())
        return not self.complete and not carried

    @property
    def in_old_form(self) -> bool:
        """Whether it is not known for what something is missing, as only words say it."""
        return not self.complete and self.causes is None

    def state_before_claim(self) -> "PartitionState":
        """This entry as it was before a run began to replace what it holds."""
        if self.status != "writing":
            return self
        inputs = dict(self.inputs or {})
        status, cause, causes = (
            inputs.pop(note, None) for note in (PREVIOUS_STATUS, PREVIOUS_CAUSE, PREVIOUS_CAUSES)
        )
        inputs = {
            name: value for name, value in inputs.items() if name not in (PREVIOUS_VERSION, PREVIOUS_RUN)
        }
        stood: Status = next((known for known in NOT_PUBLISHED if known == status), "published")
        known = read(causes) if causes is not None else None if cause else ()
        return replace(
            self, status=stood, run_id=self.previous_run, inputs=inputs or None, cause=cause, causes=known
        )


@dataclass(frozen=True)
class CheckResult:
    """What a check saw in one hour of a table.

    Attributes:
        accepted: who lets a failed check pass, and why; None of others.
    """

    node: PartitionKey
    check: str
    severity: Literal["error", "incomplete", "warning"]
    observed: float | None
    expected: str
    success: bool
    column: str | None = None
    subject: str | None = None
    sample: tuple[str, ...] = ()
    accepted: str | None = None

    def with_sample(self, sample: Iterable[str]) -> "CheckResult":
        """This verdict with some of the rows at fault."""
        return replace(self, sample=tuple(sample))


def partition_hash(node: PartitionKey, entry: PartitionState | None, own: bool = False) -> int:
    """A hash of what an hour of a table is to those that read it; 0 where that is nothing, and nothing is
    missing.

    Args:
        entry: None where the hour has not been made.
        own: whether later hours of the same table read it; these do not mind what it lacks itself only for
            hours before.
    """
    digest = MISSING_DIGEST if entry is None else entry.digest
    complete = entry is None or not (entry.has_own_gap if own else not entry.complete)
    if digest == EMPTY_DIGEST and complete:
        return 0
    # What is withheld is not what it was when it was published without something.
    withheld = entry is not None and entry.status in ("quarantined", "blocked") and not complete
    fate = entry.status if entry is not None and withheld else complete
    return _hashed(f"{node.stage} {node.block} {node.table} {node.hour.timestamp():.0f} {digest} {fate}")


def _hashed(said: str) -> int:
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[: BITS // 8])


def inputs_text(inputs: Mapping[str, str]) -> str:
    """Inputs as the ledger keeps them: equal ones have equal texts."""
    return json.dumps(dict(inputs), sort_keys=True)
