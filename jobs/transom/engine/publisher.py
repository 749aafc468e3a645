"""Claim, write, record: the only way in which rows reach the lake.

The claim's commit version is the fencing token of every write. The ledger turns `writing` into what
came out only where this run still holds every node, so that neither a crash between two tables nor a
second run can leave rows called fresh that are not.
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
    entries: Mapping[PartitionKey, PartitionState | None],
    seen: LedgerSnapshot,
    verdicts: Sequence[CheckResult] = (),
    pinned: Mapping[str, int] | None = None,
    holds: Callable[[LedgerSnapshot], bool] = lambda book: True,
) -> None:
    """Publishes what a stage computed.

    Args:
        writes: the rows, a write a table; each replaces its targets whole.
        entries: what the ledger is to say of every node concerned, withheld and blocked ones included; None
            where it is to forget one.
        seen: the ledger as it was when the run was planned.
        verdicts: what the checks saw.
        pinned: versions of the nodes' tables that were read when the ledger was as `seen`; None are the
            present ones.
        holds: as in `Ledger.claim`.

    Raises:
        Overtaken: another run has claimed or written the same; nothing of this run is called fresh.
    """
    if not entries:
        return
    # Nobody has written these nodes since they were seen, or the claim is refused.
    versions = store.pin({node.table for node in entries}).versions if pinned is None else pinned
    # A node that is to be forgotten is not asked for by that, should this run be killed.
    unasked = {node for node, entry in entries.items() if entry is None or not entry.requested}
    token = ledger.claim(stage, entries, run_id, seen, versions, unasked, holds)
    hours = set().union(*(write.hours for write in writes))
    known = readable(ledger.snapshot([stage]), hours) if writes else None
    for write in writes:
        store.write(write, stage=stage, token=token, run_id=run_id, known=known)
    ledger.record_checks(stage, verdicts, run_id)
    ledger.publish(stage, entries, run_id)


def readable(book: LedgerSnapshot, hours: Collection[datetime]) -> list[PartitionKey]:
    """The nodes of some hours whose rows a write has to keep: not those that are damaged, which nobody may
    read."""
    nodes = (PartitionKey(*series, hour) for series in book.names for hour in hours)
    return [node for node in nodes if node in book and not book[node].damaged]


def is_published(seen: LedgerSnapshot, node: PartitionKey, digest: str) -> bool:
    """Whether a node's rows are in the table already, so that they need not be written.

    The claim is refused where a node has changed since it was seen, and one that nobody has claimed
    has no rows.
    """
    held = seen.get(node)
    if held is None:
        return digest == EMPTY_DIGEST
    return held.status == "published" and held.digest == digest
