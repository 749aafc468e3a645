"""Records of the ledger about a partition: its key, its state, and the results of its checks."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from transom.core.reasons import Reason, read

Status = Literal["writing", "published", "quarantined", "blocked", "expired", "damaged"]
READABLE: tuple[Status, ...] = ("published", "expired")
"""Statuses that later stages may read. Rows of an expired partition are deleted; their digest remains."""
NOT_PUBLISHED: tuple[Status, ...] = ("quarantined", "blocked", "expired", "damaged")
EMPTY_DIGEST = "0:0"
DIGEST_VERSION = 2
"""The version of `transom.storage.digest`. Raise it if equal rows get other digests: hours become stale."""
MISSING_DIGEST = "unmade"
"""The digest of a required partition that is not computed yet; no computed digest equals it."""
BITS = 128
EXTERNAL_STAGE = "filler"
"""The stage, in a snapshot, of other streams' and external tables (`transom.engine.external`)."""
TableKey = tuple[str, str, str]
"""A stage, a block and a table."""
SOURCE_STAGE = "ingest"
"""The first stage. A request for an hour of it is also a request to every downstream stage."""
PREVIOUS_VERSION, PREVIOUS_RUN = "previous_version", "previous_run"
PREVIOUS_STATUS, PREVIOUS_REASON, PREVIOUS_REASONS = "previous_status", "previous_reason", "previous_reasons"
"""Keys under which a claim stores the previous state; the last three only if that was not published."""
INHERITED_INCOMPLETE = "incomplete hours, first"
"""Text for an hour that is incomplete only because its inputs are."""
CARRIED_INCOMPLETE = f"earlier {INHERITED_INCOMPLETE}"
"""The same for earlier hours of its own table, which do not make later hours incomplete."""
WITHHELD_FILE = "quarantined, see the finding of"
"""Text for an hour that lacks rows of a quarantined file; the file's hour follows."""


@dataclass(frozen=True, order=True)
class PartitionKey:
    """The key of a partition. Its text is used in the reason of a blocked partition."""

    stage: str
    block: str
    table: str
    hour: datetime

    def __str__(self) -> str:
        return f"{self.stage} {self.block} {self.hour:%Y-%m-%dT%H:%M}"

    @property
    def series(self) -> TableKey:
        """The partition's stage, block and table."""
        return self.stage, self.block, self.table

    @property
    def key(self) -> str:
        """The key as JSON text, as in `Reason.about`."""
        return json.dumps([self.stage, self.block, self.table, self.hour.isoformat()])


@dataclass(frozen=True)
class PartitionState:
    """The ledger's state of a partition.

    Attributes:
        complete: False if something is missing: a file, or an hour that this one is computed from.
        run_id: the run that wrote this state.
        digest: the expected digest of the published rows (`transom.storage.digest`).
        input_hashes: a hash for each input of the rows; None if unknown. While a run writes the partition:
            the hashes of the previous rows, and the `PREVIOUS_*` keys.
        rows: the number of published rows; 0 if damaged rows are unreadable or missing.
        reason: why the partition is quarantined, blocked, expired, damaged or incomplete, as text.
        reasons: the same as data; empty if expired or damaged.
        requested: False if the hour was never requested: its rows come from files of other hours.
    """

    status: Status
    run_id: str
    complete: bool = True
    digest: str = EMPTY_DIGEST
    input_hashes: Mapping[str, str] | None = None
    rows: int = 0
    reason: str | None = None
    requested: bool = True
    reasons: tuple[Reason, ...] = ()

    @property
    def previous_version(self) -> int | None:
        """The table's version with the rows that a run is replacing; None if no run is."""
        version = (self.input_hashes or {}).get(PREVIOUS_VERSION)
        return None if version is None else int(version)

    @property
    def previous_run(self) -> str:
        """The run that wrote the published rows, or the rows that a run is replacing."""
        return (self.input_hashes or {}).get(PREVIOUS_RUN, self.run_id)

    @property
    def damaged(self) -> bool:
        """Whether the rows are marked as damaged, also while a run writes them; nothing may read them."""
        return self.state_before_claim().status == "damaged"

    @property
    def digest_is_current(self) -> bool:
        """Whether its digest is defined as those of this code, so that it can be compared with them."""
        return self.digest == EMPTY_DIGEST or self.digest.endswith(f":v{DIGEST_VERSION}")

    @property
    def has_own_gap(self) -> bool:
        """Whether it is incomplete for another reason than earlier hours of its own table."""
        carried = bool(self.reasons) and all(reason.kind == "earlier" for reason in self.reasons)
        return not self.complete and not carried

    def state_before_claim(self) -> "PartitionState":
        """Return the state before a run claimed the partition."""
        if self.status != "writing":
            return self
        inputs = dict(self.input_hashes or {})
        notes = (PREVIOUS_VERSION, PREVIOUS_RUN, PREVIOUS_STATUS, PREVIOUS_REASON, PREVIOUS_REASONS)
        _, _, status, reason, reasons = (inputs.pop(note, None) for note in notes)
        return replace(
            self,
            status=next((known for known in NOT_PUBLISHED if known == status), "published"),
            run_id=self.previous_run,
            input_hashes=inputs or None,
            reason=reason,
            reasons=read(reasons or "[]"),
        )


@dataclass(frozen=True)
class CheckResult:
    """The result of a check for one hour of a table.

    Attributes:
        accepted: who waived the failed check, and why; None if it is not waived.
    """

    partition: PartitionKey
    check: str
    severity: Literal["error", "incomplete", "warning"]
    observed: float | None
    expected: str
    success: bool
    column: str | None = None
    file: str | None = None
    failing_rows: tuple[str, ...] = ()
    accepted: str | None = None

    def with_failing_rows(self, rows: Iterable[str]) -> "CheckResult":
        """Return the result with some of the failing rows."""
        return replace(self, failing_rows=tuple(rows))


def format_digest(count: int, total: int) -> str:
    """Return the digest of rows from their number and the sum of their hashes.

    >>> format_digest(2, -5), format_digest(0, 0)
    ('2:-5:v2', '0:0')
    """
    return f"{count}:{total}:v{DIGEST_VERSION}" if count else EMPTY_DIGEST


def merge_digests(digests: Iterable[str]) -> str:
    """Return the digest of all rows of some digests.

    >>> merge_digests(["2:-5:v2", "0:0", "1:7:v2"])
    '3:2:v2'
    """
    pairs = [tuple(map(int, digest.split(":")[:2])) for digest in digests]
    return format_digest(sum(count for count, _ in pairs), sum(total for _, total in pairs))


def partition_hash(
    partition: PartitionKey, state: PartitionState | None, own: bool = False, requested: bool = False
) -> int:
    """Return a hash of an hour of a table as its readers see it; 0 if it is empty and complete.

    Args:
        state: None if the hour is not computed yet.
        own: whether the reader is a later hour of the same table. It ignores gaps of earlier hours.
        requested: whether the reader distinguishes an hour without rows from one that was never requested.
    """
    digest = MISSING_DIGEST if state is None else state.digest
    complete = state is None or not (state.has_own_gap if own else not state.complete)
    if digest == EMPTY_DIGEST and complete and not requested:
        return 0
    # A quarantined partition must differ from the same rows published as incomplete.
    unpublished = state is not None and state.status in ("quarantined", "blocked") and not complete
    fate = state.status if state is not None and unpublished else complete
    name = " ".join(partition.series)
    return text_hash(f"{name} {partition.hour.timestamp():.0f} {digest} {fate}")


def text_hash(text: str) -> int:
    """Return a hash of a text, of `BITS` bits."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: BITS // 8])


def code_version(version: int) -> str:
    """Return the input hash `version` from the version of a stage's code; it has that of digests, too."""
    return f"{version}.{DIGEST_VERSION}"


def input_hashes_text(inputs: Mapping[str, str]) -> str:
    """Return inputs as JSON text for the ledger; equal inputs have equal texts."""
    return json.dumps(dict(inputs), sort_keys=True)
