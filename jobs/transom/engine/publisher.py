"""Claim, write, record: the only way in which rows reach the lake.

Every write carries the claim (`transom.storage.claim`). The ledger replaces `writing` by the outcome only if
this run still holds every claim. So neither a crash between two tables nor a concurrent run
can make wrong rows fresh.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from transom.core.partitions import EMPTY_DIGEST, CheckResult, PartitionKey, PartitionState
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.store import Store, Write


def publish(
    store: Store,
    ledger: Ledger,
    stage: str,
    run_id: str,
    writes: Sequence[Write],
    states: Mapping[PartitionKey, PartitionState | None],
    seen: LedgerSnapshot,
    results: Sequence[CheckResult] = (),
    pinned: Mapping[str, int] | None = None,
    holds: Callable[[LedgerSnapshot], bool] = lambda snapshot: True,
) -> None:
    """Publish what a stage computed.

    Args:
        writes: the rows, one write a table; each replaces all rows of its targets.
        states: the new state of every partition concerned, also of quarantined and blocked ones; None to
            delete it.
        seen: the ledger when the run was planned.
        results: of the checks.
        pinned: versions of the tables that were read at the same time as `seen`; None for those of now.
        holds: as in `Ledger.claim`.

    Raises:
        RunSuperseded: another run has claimed or written some of them; nothing of this run becomes fresh.
    """
    if not states:
        return
    # Nobody has written these partitions since `seen`, or the claim is refused.
    versions = store.pin({key.table for key in states}).versions if pinned is None else pinned
    # A deletion is no request for the hour, should this run be killed.
    unrequested = {key for key, state in states.items() if state is None or not state.requested}
    claim = ledger.claim(stage, states, run_id, seen, versions, unrequested, holds)
    hours = set().union(*(write.hours for write in writes))
    known = readable(ledger.snapshot([stage]), hours) if writes else None
    for write in writes:
        store.write(write, claim, known)
    ledger.record_checks(stage, results, run_id)
    ledger.publish(stage, states, run_id)


def readable(snapshot: LedgerSnapshot, hours: Collection[datetime]) -> list[PartitionKey]:
    """Return the partitions of some hours whose rows a write has to keep: all that are not damaged."""
    keys = (PartitionKey(*table, hour) for table in snapshot.names for hour in hours)
    return [key for key in keys if key in snapshot and not snapshot[key].damaged]


def is_published(seen: LedgerSnapshot, partition: PartitionKey, digest: str) -> bool:
    """Return whether the table already has a partition's rows, so that they need not be written.

    The claim is refused if the partition has changed since `seen`. One without a state has no rows.
    """
    state = seen.get(partition)
    if state is None:
        return digest == EMPTY_DIGEST
    return state.status == "published" and state.digest == digest
