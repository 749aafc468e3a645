"""The hours of a table that is computed from its own earlier hours, in order.

A pass computes several of them. The outcome of an hour affects the later ones. They are blocked if it is not
readable, and incomplete if it is incomplete. Its digest is one of their inputs.
"""

from bisect import bisect_left
from collections.abc import Collection
from datetime import datetime
from functools import partial

from transom.core.intervals import HOUR
from transom.core.partitions import BITS, READABLE, PartitionKey, PartitionState, partition_hash
from transom.core.reasons import Reason
from transom.ledger.snapshot import LedgerSnapshot


def blocking_reason(partition: PartitionKey, state: PartitionState) -> Reason | None:
    """Return why a partition blocks its readers; None if it is readable.

    The reason is the partition, or the one that it waits for.
    """
    if state.status in READABLE:
        return None
    if state.status == "blocked" and state.reason:
        return next(iter(state.reasons), Reason("waits", state.reason))
    reason = f": {state.reason}" if state.reason else ""
    return waiting_reason(partition, f"is {state.status}{reason}")


def waiting_reason(partition: PartitionKey, text: str) -> Reason:
    """Return the reason to wait for a partition.

    Args:
        partition: the partition.
        text: its problem, such as `is quarantined`.
    """
    return Reason("waits", f"{partition} {text}", partition.key)


class PredecessorScan:
    """The earlier hours of a block's own table, with the outcomes of a pass.

    Call the methods for the hours of the pass in order, and `record` the outcome of each before the next. So
    each earlier hour is read once.

    Args:
        snapshot: the ledger that the pass was planned with.
        stage: the stage of the table.
        block: the block of the table.
        table: the name of the table.
        back: how many earlier hours an hour reads; 0 if the block does not read its own table.
        hours: the hours of the pass, in order.
    """

    def __init__(
        self,
        snapshot: LedgerSnapshot,
        stage: str,
        block: str,
        table: str,
        back: int,
        hours: Collection[datetime],
    ) -> None:
        self._partition = partial(PartitionKey, stage, block, table)
        self._stored = snapshot.series(stage, block, table)
        self._back = back * HOUR
        known: set[datetime] = set()
        if back and hours:
            for hour_set in (snapshot.hours_of(stage, block, table), snapshot.required_hours):
                known.update(hour_set.since(min(hours) - self._back))
        self._remaining = sorted(known, reverse=True)
        self._recorded: dict[datetime, PartitionState] = {}
        self._scanned: list[datetime] = []
        self._sums = [0]
        self._blocking: list[tuple[datetime, Reason]] = []
        self._incomplete: list[datetime] = []

    def record(self, hour: datetime, state: PartitionState) -> None:
        """Record the outcome of an hour of the pass."""
        self._recorded[hour] = state

    def reason(self, hour: datetime) -> Reason | None:
        """Return why the first blocking earlier hour blocks an hour; None if there is none."""
        self._advance(hour)
        first = bisect_left(self._blocking, (hour - self._back,))
        return self._blocking[first][1] if first < len(self._blocking) else None

    def incomplete(self, hour: datetime) -> list[datetime]:
        """Return the incomplete earlier hours, except those that are incomplete only by hours before them."""
        self._advance(hour)
        return self._incomplete[bisect_left(self._incomplete, hour - self._back) :]

    def contents(self, hour: datetime) -> int:
        """Return the hash of the earlier hours that an hour reads, as `LedgerSnapshot.range_hash`."""
        self._advance(hour)
        first = bisect_left(self._scanned, hour - self._back)
        content: int = (self._sums[-1] - self._sums[first]) % 2**BITS
        return content

    def _advance(self, hour: datetime) -> None:
        while self._remaining and self._remaining[-1] < hour:
            earlier = self._remaining.pop()
            partition = self._partition(earlier)
            state = self._recorded.get(earlier, self._stored.get(earlier))
            self._scanned.append(earlier)
            self._sums.append(self._sums[-1] + partition_hash(partition, state, own=True))
            if state is not None:
                reason = blocking_reason(partition, state)
                self._blocking += [(earlier, reason)] if reason else []
                self._incomplete += [earlier] if state.has_own_gap else []
