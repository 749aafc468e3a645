"""The hours of a table that is computed from its own earlier ones, in their order.

A pass computes several of them at once. What comes of an hour decides then what those behind it are: blocked,
where it is withheld; incomplete, where it lacks something; computed from its digest, where it is published.
"""

from bisect import bisect_left
from collections.abc import Collection
from datetime import datetime
from functools import partial

from transom.core.intervals import HOUR
from transom.core.partitions import BITS, READABLE, PartitionKey, PartitionState, partition_hash
from transom.core.reasons import Reason
from transom.ledger.snapshot import LedgerSnapshot


def blocking_reason(node: PartitionKey, entry: PartitionState) -> Reason | None:
    """Why what is computed from a node waits for it, if it does not stand; or what it waits for itself."""
    if entry.status in READABLE:
        return None
    if entry.status == "blocked" and entry.reason:
        return next(iter(entry.reasons), Reason("waits", entry.reason))
    reason = f": {entry.reason}" if entry.reason else ""
    return waiting_reason(node, f"is {entry.status}{reason}")


def waiting_reason(node: PartitionKey, words: str) -> Reason:
    """Why something waits for a node.

    Args:
        words: what becomes of the node, or is missing of it.
    """
    return Reason("waits", f"{node} {words}", node.key)


class PredecessorScan:
    """What a block's own table holds in the hours before one, as a pass leaves it.

    Hours are asked for in order, and what comes of one is told (`record`) before the next is asked for: so
    all hours together take one look at each.

    Args:
        back: how many hours one reads; 0 where the block reads nothing of its own table.
        wanted: the hours of the pass, in order.
    """

    def __init__(
        self,
        book: LedgerSnapshot,
        stage: str,
        block: str,
        table: str,
        back: int,
        wanted: Collection[datetime],
    ) -> None:
        self._node = partial(PartitionKey, stage, block, table)
        self._held = book.series(stage, block, table)
        self._back = back * HOUR
        known: set[datetime] = set()
        if back and wanted:
            for hours in (book.hours_of(stage, block, table), book.required_hours):
                known.update(hours.since(min(wanted) - self._back))
        self._ahead = sorted(known, reverse=True)
        self._made: dict[datetime, PartitionState] = {}
        self._passed: list[datetime] = []
        self._sums = [0]
        self._withheld: list[tuple[datetime, Reason]] = []
        self._lacking: list[datetime] = []

    def record(self, hour: datetime, entry: PartitionState) -> None:
        """Tells what has come of an hour of the pass."""
        self._made[hour] = entry

    def reason(self, hour: datetime) -> Reason | None:
        """Why an hour cannot be computed from those before it, if so: for the first that does not stand."""
        self._come_to(hour)
        first = bisect_left(self._withheld, (hour - self._back,))
        return self._withheld[first][1] if first < len(self._withheld) else None

    def incomplete(self, hour: datetime) -> list[datetime]:
        """Those before an hour that lack something, and not only for hours before them."""
        self._come_to(hour)
        return self._lacking[bisect_left(self._lacking, hour - self._back) :]

    def contents(self, hour: datetime) -> int:
        """What stands in those before an hour, as `LedgerSnapshot.range_hash` says it of a ledger."""
        self._come_to(hour)
        found: int = (self._sums[-1] - self._sums[bisect_left(self._passed, hour - self._back)]) % 2**BITS
        return found

    def _come_to(self, hour: datetime) -> None:
        while self._ahead and self._ahead[-1] < hour:
            passed = self._ahead.pop()
            node, entry = self._node(passed), self._made.get(passed, self._held.get(passed))
            self._passed.append(passed)
            self._sums.append(self._sums[-1] + partition_hash(node, entry, own=True))
            if entry is not None:
                cause = blocking_reason(node, entry)
                self._withheld += [(passed, cause)] if cause else []
                self._lacking += [passed] if entry.has_own_gap else []
