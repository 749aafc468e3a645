"""Which hours are out of date, and by what: the staleness rule asked of one node at a time, without a JVM."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property

from transom.intervals import HOUR, Interval
from transom.lake.book import STANDS, Book, Node
from transom.lake.fillers import Fillers
from transom.lake.ledger import Ledger
from transom.lake.stage import Part, Step
from transom.lake.staleness import Staleness, among
from transom.stages import aggregate, fill, frame, scene, sketch, widen
from transom.stages.checks import accepted_of
from transom.stream import Stream


def book_of(stream: Stream, ledger: Ledger) -> Book:
    """The ledger's nodes, with what the stream reads that is not its own.

    Raises:
        LakeError: that is not there, or is not as the stream's file says.
    """
    reading = (of for of in (fill, sketch) if of.NAME in stream.stages)
    fillers = tuple(filler for of in reading for filler in of.outline(stream).fillers)
    return Fillers(ledger.root, fillers).beside(ledger.book())


class Freshness:
    """What the ledger of a stream says, against what its file and the code say now."""

    def __init__(self, stream: Stream, book: Book) -> None:
        self.stream, self.book = stream, book

    @cached_property
    def _of_stages(self) -> Mapping[str, Staleness]:
        """What is out of date of each stage that the stream has behind the first one."""
        accepted = accepted_of(self.stream)
        outlines = {of.NAME: of.outline for of in (widen, aggregate, frame, fill, sketch)}
        return {
            name: Staleness(outline(self.stream), self.book, accepted)
            for name, outline in outlines.items()
            if name in self.stream.stages
        }

    @cached_property
    def _steps(self) -> Mapping[str, Step]:
        """The steps of these stages by their tables, whose names are unlike."""
        return {step.table.name: step for of in self._of_stages.values() for step in of.stage.steps}

    def nodes(self, stage: str, hour: datetime) -> list[Node]:
        """What an hour of a stage consists of, by the stream's file."""
        if stage == scene.STAGE:
            return [scene.node_of("events", hour)]
        of_stage = self._of_stages.get(stage)
        return [
            Node(stage, block, step.table.name, hour)
            for step in (of_stage.stage.steps if of_stage else ())
            for block in step.parts
        ]

    def gone(self, stage: str, hour: datetime) -> list[Node]:
        """What the ledger has of an hour beside that: blocks that the stream's file has no longer."""
        here = (node for node in self.book if (node.stage, node.hour) == (stage, hour))
        return sorted(node for node in here if self.expected(node) is None)

    def reads(self, node: Node) -> list[Node]:
        """The nodes that one is computed from; of what it reads no hours before the first or behind the last
        that are due or of which the ledger has something, of which there may be a century."""
        part, found = self._part(node), []
        for reads in part.reads if part else ():
            series = reads.stage, reads.block, reads.table
            known = among(self._known(*series), node.hour, reads)
            hours = Interval(known[0], known[-1] + HOUR).hours() if known else ()
            found += [Node(*series, hour) for hour in hours]
        return found

    def _part(self, node: Node) -> Part | None:
        step = self._steps.get(node.table)
        return step.parts.get(node.block) if step else None

    def _known(self, *series: str) -> list[datetime]:
        if series not in self._known_of:
            self._known_of[series] = sorted(self.book.series(*series).keys() | self.book.due_of(*series))
        return self._known_of[series]

    @cached_property
    def _known_of(self) -> dict[tuple[str, ...], list[datetime]]:
        return {}

    def expected(self, node: Node) -> Mapping[str, str] | None:
        """The inputs of a node as they would be now; None for a block that the stream no longer has."""
        if node.stage == scene.STAGE:
            return scene.expected_of(self.stream, node.hour)
        if self._part(node) is None:
            return None
        return self._of_stages[node.stage].recorded(node, self.book[node].status)

    def differs(self, node: Node) -> tuple[str, ...]:
        """Which inputs of a node that stands are no longer those that are recorded; none: it is fresh."""
        entry, expected = self.book[node], self.expected(node)
        if expected is None:
            return ("specification",)
        if entry.status in ("writing", "blocked"):
            return ()
        held = entry.inputs or {}
        return tuple(name for name in sorted({*held, *expected}) if held.get(name) != expected.get(name))

    def stale_state(self, node: Node) -> list[Node]:
        """State of its own stage that a node that stands is computed from, and that is out of date."""
        if self.book[node].status in ("writing", "blocked") or self._part(node) is None:
            return []
        return self._of_stages[node.stage].stale_state(node)

    def stale(self, stage: str) -> set[datetime]:
        """Hours that are due and out of date."""
        held = [node for node in self.book if node.stage == stage and node.hour in self.book.due]
        missing = {
            hour for hour in self.book.due if any(node not in self.book for node in self.nodes(stage, hour))
        }
        return {node.hour for node in held if self.differs(node) or self.stale_state(node)} | missing

    def roots(self, node: Node) -> list[Node]:
        """The nodes in which the trouble of one lies: withheld or incomplete ones that read no such node."""
        found: list[Node] = []
        seen: set[Node] = set()
        ahead = [node]
        while ahead:
            node = ahead.pop()
            if node not in seen:
                seen.add(node)
                troubled = [read for read in self.reads(node) if self._troubled(read)]
                found += [] if troubled else [node]
                ahead += reversed(troubled)
        return found

    def _troubled(self, node: Node) -> bool:
        entry = self.book.get(node)
        return entry is not None and (entry.status not in STANDS or not entry.complete)
