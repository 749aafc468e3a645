"""Which hours are out of date, and by what: the staleness rule asked of one node at a time, without a JVM."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property

from transom.app.freshness import lineage_of, staleness_of
from transom.core.intervals import HOUR, Interval
from transom.core.partitions import READABLE, PartitionKey
from transom.features.ingest.specified import STAGE, Specified, node_of
from transom.ledger.lineage import Lineage
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockOutput, TableStep
from transom.ledger.staleness import Staleness, slice_hours
from transom.spec.stream import Stream


class Freshness:
    """What the ledger of a stream says, against what its file and the code say now."""

    def __init__(self, stream: Stream, book: LedgerSnapshot) -> None:
        self.stream, self.book = stream, book

    @cached_property
    def _of_stages(self) -> Mapping[str, Staleness]:
        """What is out of date of each stage that the stream has behind the first one."""
        return staleness_of(self.stream, self.book)

    @cached_property
    def _ingest(self) -> Specified:
        return Specified(self.stream)

    @cached_property
    def _steps(self) -> Mapping[str, TableStep]:
        """The steps of these stages by their tables, whose names are unlike."""
        return {step.table.name: step for of in self._of_stages.values() for step in of.stage.steps}

    def nodes(self, stage: str, hour: datetime) -> list[PartitionKey]:
        """What an hour of a stage consists of, by the stream's file."""
        if stage == STAGE:
            return [node_of("events", hour)]
        of_stage = self._of_stages.get(stage)
        return [
            PartitionKey(stage, block, step.table.name, hour)
            for step in (of_stage.stage.steps if of_stage else ())
            for block in step.parts
        ]

    def gone(self, stage: str, hour: datetime) -> list[PartitionKey]:
        """What the ledger has of an hour beside that: blocks that the stream's file has no longer."""
        here = (node for node in self.book if (node.stage, node.hour) == (stage, hour))
        return sorted(node for node in here if self.expected(node) is None)

    def reads(self, node: PartitionKey) -> list[PartitionKey]:
        """The nodes that one is computed from; of what it reads no hours before the first or behind the last
        that are due or of which the ledger has something, of which there may be a century."""
        part, found = self._part(node), []
        for reads in part.reads if part else ():
            series = reads.stage, reads.block, reads.table
            known = slice_hours(self._known(*series), node.hour, reads)
            hours = Interval(known[0], known[-1] + HOUR).hours() if known else ()
            found += [PartitionKey(*series, hour) for hour in hours]
        return found

    def _part(self, node: PartitionKey) -> BlockOutput | None:
        step = self._steps.get(node.table)
        return step.parts.get(node.block) if step else None

    def _known(self, *series: str) -> list[datetime]:
        if series not in self._known_of:
            self._known_of[series] = sorted(
                self.book.series(*series).keys() | self.book.required_hours_of(*series)
            )
        return self._known_of[series]

    @cached_property
    def _known_of(self) -> dict[tuple[str, ...], list[datetime]]:
        return {}

    def expected(self, node: PartitionKey) -> Mapping[str, str] | None:
        """The inputs of a node as they would be now; None for a block that the stream no longer has."""
        if node.stage == STAGE:
            return self._ingest.expected(node.hour)
        if self._part(node) is None:
            return None
        return self._of_stages[node.stage].recorded(node, self.book[node].status)

    def differs(self, node: PartitionKey) -> tuple[str, ...]:
        """Which inputs of a node that stands are no longer those that are recorded; none: it is fresh."""
        entry, expected = self.book[node], self.expected(node)
        if expected is None:
            return ("specification",)
        if entry.status in ("writing", "blocked", "damaged"):
            return ()
        held = entry.inputs or {}
        return tuple(name for name in sorted({*held, *expected}) if held.get(name) != expected.get(name))

    def stale_state(self, node: PartitionKey) -> list[PartitionKey]:
        """State of its own stage that a node that stands is computed from, and that is out of date."""
        if self.book[node].status in ("writing", "blocked", "damaged") or self._part(node) is None:
            return []
        return self._of_stages[node.stage].stale_state(node)

    @cached_property
    def lineage(self) -> Lineage:
        """What is not up to date, with the reason, down to the events."""
        return lineage_of(self.stream, self.book, self._ingest, self._of_stages)

    def root(self, node: PartitionKey) -> PartitionKey | None:
        """The node for which one is not up to date, itself or one that it is computed from; None where it is,
        and of one that is being written or blocked, which is another matter."""
        entry = self.book.get(node)
        if entry is not None and entry.status in ("writing", "blocked"):
            return None
        return self.lineage.root(node)

    def stale(self, stage: str) -> dict[datetime, PartitionKey]:
        """Hours that are due and out of date, or computed from what is, each with the node for which."""
        found: dict[datetime, PartitionKey] = {}
        for hour in sorted(self.book.required_hours):
            beside = [*self._gone.get((stage, hour), ()), *self.damaged.get((stage, hour), ())]
            for node in [*self.nodes(stage, hour), *beside]:
                root = node if node in beside else self.root(node)
                if root is not None:
                    found.setdefault(hour, root)
        return found

    @cached_property
    def _gone(self) -> Mapping[tuple[str, datetime], list[PartitionKey]]:
        """Nodes of blocks that the stream's file has no longer, by stage and hour."""
        found: dict[tuple[str, datetime], list[PartitionKey]] = {}
        for node in self.book:
            if node.stage != STAGE and self._part(node) is None:
                found.setdefault((node.stage, node.hour), []).append(node)
        return found

    @cached_property
    def damaged(self) -> Mapping[tuple[str, datetime], list[PartitionKey]]:
        """Nodes that are marked as damaged, by stage and hour."""
        found: dict[tuple[str, datetime], list[PartitionKey]] = {}
        for node, entry in sorted(self.book.items()):
            if entry.damaged:
                found.setdefault((node.stage, node.hour), []).append(node)
        return found

    def roots(self, node: PartitionKey) -> list[PartitionKey]:
        """The nodes in which the trouble of one lies: withheld or incomplete ones that read no such node."""
        found: list[PartitionKey] = []
        seen: set[PartitionKey] = set()
        ahead = [node]
        while ahead:
            node = ahead.pop()
            if node not in seen:
                seen.add(node)
                troubled = [read for read in self.reads(node) if self._troubled(read)]
                found += [] if troubled else [node]
                ahead += reversed(troubled)
        return found

    def _troubled(self, node: PartitionKey) -> bool:
        entry = self.book.get(node)
        return entry is not None and (entry.status not in READABLE or not entry.complete)
