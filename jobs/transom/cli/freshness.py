"""Which hours are out of date, and by what: the staleness rule asked of one node at a time, without a JVM."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property

from transom.lake.book import STANDS, Book, Node
from transom.lake.stage import Step
from transom.lake.staleness import completeness, expected_inputs, judged_by, reach, recorded_inputs
from transom.stages import scene
from transom.stages.aggregate import VERSION, outline
from transom.stages.checks import accepted_of
from transom.stream import Stream


class Freshness:
    """What the ledger of a stream says, against what its file and the code say now."""

    def __init__(self, stream: Stream, book: Book) -> None:
        self.stream, self.book = stream, book

    @cached_property
    def _steps(self) -> Mapping[str, Step]:
        """The steps of aggregate by their tables."""
        return {step.table.name: step for step in outline(self.stream).steps} if self.stream.aggregate else {}

    def nodes(self, stage: str, hour: datetime) -> list[Node]:
        """What an hour of a stage consists of, by the stream's file."""
        if stage == scene.STAGE:
            return [scene.node_of("events", hour)]
        return [
            Node(stage, block, table, hour) for table, step in self._steps.items() for block in step.parts
        ]

    def gone(self, stage: str, hour: datetime) -> list[Node]:
        """What the ledger has of an hour beside that: blocks that the stream's file has no longer."""
        here = (node for node in self.book if (node.stage, node.hour) == (stage, hour))
        return sorted(node for node in here if self.expected(node) is None)

    def reads(self, node: Node) -> list[Node]:
        """The nodes that one is computed from."""
        step = self._steps.get(node.table)
        if step is None or node.block not in step.parts:
            return []
        return [read for _, read in reach(step.parts[node.block], node.hour)]

    def expected(self, node: Node) -> Mapping[str, str] | None:
        """The inputs of a node as they would be now; None for a block that the stream no longer has."""
        if node.stage == scene.STAGE:
            return scene.expected_of(self.stream, node.hour)
        step = self._steps.get(node.table)
        if step is None or node.block not in step.parts:
            return None
        decided = completeness(node.stage, step.checks, accepted_of(self.stream), node.hour)
        inputs = expected_inputs(step.parts[node.block], VERSION, node.hour, self.book, decided)
        rules = judged_by(step.checks, accepted_of(self.stream))
        return recorded_inputs(self.book[node].status, inputs, rules)

    def differs(self, node: Node) -> tuple[str, ...]:
        """Which inputs of a node that stands are no longer those that are recorded; none: it is fresh."""
        entry, expected = self.book[node], self.expected(node)
        if expected is None:
            return ("specification",)
        if entry.status in ("writing", "blocked"):
            return ()
        held = entry.inputs or {}
        return tuple(name for name in sorted({*held, *expected}) if held.get(name) != expected.get(name))

    def stale(self, stage: str) -> set[datetime]:
        """Hours that are due and out of date."""
        hours = self.book.due(stage)
        held = [node for node in self.book if node.stage == stage and node.hour in hours]
        missing = {hour for hour in hours if any(node not in self.book for node in self.nodes(stage, hour))}
        return {node.hour for node in held if self.differs(node)} | missing

    def roots(self, node: Node) -> list[Node]:
        """The nodes in which the trouble of one lies: withheld or incomplete ones that read no such node."""
        found = dict.fromkeys(self._roots(node, set()))
        return list(found)

    def _roots(self, node: Node, seen: set[Node]) -> Iterator[Node]:
        if node in seen:
            return
        seen.add(node)
        troubled = [read for read in self.reads(node) if self._troubled(read)]
        if not troubled:
            yield node
        for read in troubled:
            yield from self._roots(read, seen)

    def _troubled(self, node: Node) -> bool:
        entry = self.book.get(node)
        return entry is not None and (entry.status not in STANDS or not entry.complete)
