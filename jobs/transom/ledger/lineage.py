"""What is up to date together with all that it is computed from, down to the events.

`Staleness` compares an hour with its direct inputs: that is what a run computes anew. An hour may equal its
inputs while these are out of date themselves. Then it is no more up to date than they are.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from transom.core.partitions import SOURCE_STAGE, PartitionKey, TableKey
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockOutput, InputRange
from transom.ledger.staleness import Staleness

EVENTS: TableKey = (SOURCE_STAGE, "events", "events")


class Lineage:
    """For each node that is not up to date, the node in which the reason lies.

    Args:
        stages: what is out of date of each stage behind the first one, by itself.
        source_stale: whether an hour of the events is out of date; a damaged one is in any case.
    """

    def __init__(
        self, book: LedgerSnapshot, stages: Iterable[Staleness], source_stale: Callable[[datetime], bool]
    ) -> None:
        self.book, self._source_stale = book, source_stale
        self._parts: dict[TableKey, tuple[Staleness, BlockOutput]] = {
            (of.stage.name, block, step.table.name): (of, part)
            for of in stages
            for step in of.stage.steps
            for block, part in step.parts.items()
        }
        self._roots: dict[TableKey, Mapping[datetime, PartitionKey]] = {}

    def root(self, node: PartitionKey) -> PartitionKey | None:
        """Return the node for which one is not up to date, itself or one upstream; None where it is."""
        return self.roots(node.stage, node.block, node.table).get(node.hour)

    def roots(self, stage: str, block: str, table: str) -> Mapping[datetime, PartitionKey]:
        """Return the same of all hours of a block's table that are due and not up to date, in order."""
        series = (stage, block, table)
        if series not in self._roots:
            self._roots[series] = self._roots_of_table(series)
        return self._roots[series]

    def of_stage(self, stage: str) -> dict[datetime, PartitionKey]:
        """Return the same of all hours of a stage, each with the first reason."""
        found: dict[datetime, PartitionKey] = {}
        of_first = sorted(one for one in self.book.names if one[0] == SOURCE_STAGE)
        series = dict.fromkeys([EVENTS, *of_first]) if stage == SOURCE_STAGE else self._parts
        for one in (of for of in series if of[0] == stage):
            for hour, root in self.roots(*one).items():
                found.setdefault(hour, root)
        return dict(sorted(found.items()))

    def _roots_of_table(self, series: TableKey) -> dict[datetime, PartitionKey]:
        if series[0] == SOURCE_STAGE:
            # Of the tables beside the events nothing is computed: they are stale only where they are damaged.
            damaged = (node for node, entry in self.book.troubled() if entry.damaged)
            stale = {
                of.hour for of in damaged if (of.stage, of.block, of.table) == series
            } & self.book.required_hours
            stale |= set(filter(self._source_stale, self.book.required_hours)) if series == EVENTS else set()
            return {hour: PartitionKey(*series, hour) for hour in sorted(stale)}
        if series not in self._parts:
            return {}  # it is not the stream's own
        staleness, part = self._parts[series]
        found: dict[datetime, PartitionKey] = {}
        own: list[datetime] = []
        read: list[tuple[InputRange, list[datetime], Mapping[datetime, PartitionKey]]] = []
        for reads in part.reads:
            if (reads.stage, reads.block, reads.table) == series:
                read.append((reads, own, found))
            else:
                roots = self.roots(reads.stage, reads.block, reads.table)
                read.append((reads, sorted(roots), roots))
        for hour in staleness.required_hours:
            root = next(filter(None, (_first(*one, hour) for one in read)), None)
            node = PartitionKey(*series, hour)
            if root is None and staleness.stale(node):
                root = node
            if root is not None:
                found[hour] = root
                insort(own, hour)
        return found


def _first(
    reads: InputRange, stale: list[datetime], roots: Mapping[datetime, PartitionKey], hour: datetime
) -> PartitionKey | None:
    """Return the reason of the first hour among those read that is not up to date."""
    first, last = reads.span(hour)
    at = bisect_left(stale, first)
    return roots[stale[at]] if at < bisect_right(stale, last) else None
