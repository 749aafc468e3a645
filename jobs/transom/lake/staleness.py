"""Which hours a run computes: pure arithmetic on the ledger, as in a build system."""

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import takewhile

from transom.intervals import HOUR, NO_HOUR, Interval
from transom.lake.acceptance import Accepted
from transom.lake.book import BITS, STANDS, Book, Entry, Node, Status
from transom.lake.quality import Check
from transom.lake.stage import Part, Reads, Stage, Step


def fingerprint(value: object) -> str:
    """A short stable hash of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:24]


_of_shape = cache(fingerprint)


@dataclass(frozen=True)
class Scope:
    """Which hours a run sees to.

    Attributes:
        asked: the hours that were asked for: the chunk's, and of the first stage those of a gap beside it.
        chunk: the part of the run's interval that is at hand.
        stretch: the run's whole interval.
        heal: how far around it stale hours are seen to.
    """

    asked: frozenset[datetime]
    chunk: Interval
    stretch: Interval
    heal: timedelta

    @classmethod
    def within(cls, chunk: Interval, stretch: Interval, heal: timedelta) -> "Scope":
        """The scope of a chunk of a stage that follows the first one: gaps are hours that the first one has
        seen to, and stale in this one."""
        return cls(frozenset(chunk.hours()), chunk, stretch, heal)

    @classmethod
    def of(cls, chunk: Interval, stretch: Interval, heal: timedelta, known: Iterable[datetime]) -> "Scope":
        """The scope of a chunk.

        A gap lies between the stretch and the next hour that has a row, on either side, and is shorter
        than `heal`: a scheduler that slept. A longer one is a decision, and left alone. So the hours that
        runs have asked for are, in whatever order they ran, their intervals and the gaps between these.

        Args:
            known: the hours that the stage has rows of.
        """
        known = list(known)
        before = max((hour + HOUR for hour in known if hour < chunk.start), default=chunk.start)
        after = chunk.end
        if chunk.end == stretch.end:
            after = min((hour for hour in known if hour >= chunk.end), default=chunk.end)
        start = before if chunk.start - before < heal else chunk.start
        end = after if after - chunk.end < heal else chunk.end
        return cls(frozenset(Interval(start, end).hours()), chunk, stretch, heal)

    def holds(self, book: Book, stage: str) -> bool:
        """Whether no gap has come to lie beside the run since: another one, begun before it was seen, would
        not ask for it either."""
        now = Scope.of(self.chunk, self.stretch, self.heal, book.hours(stage))
        return now.asked <= self.asked

    def sees_to(self, hour: datetime) -> bool:
        """Whether a stale hour is computed now; one inside the stretch is, with its own chunk."""
        return hour in self.asked or (hour not in self.stretch and hour in self._around(self.chunk))

    def leaves(self, hour: datetime) -> bool:
        """Whether a stale hour is too far for every chunk of the run."""
        return hour not in self.asked and hour not in self._around(self.stretch)

    def looks_at(self, hour: datetime, known: bool, waiting: bool = False) -> bool:
        """Whether the files of an hour are looked at.

        Args:
            known: whether somebody asked for the hour before, or the files are known.
            waiting: whether they wait; an earlier chunk may have left them to this one.
        """
        sees_to = self.may_publish(hour, known) if waiting else self.sees_to(hour)
        return hour in self.asked or (known and sees_to)

    def may_publish(self, hour: datetime, known: bool) -> bool:
        """Whether rows of a file may be published in an hour: not in one that a later chunk will see to,
        nor beyond `heal`, nor after the stretch in one that nobody asked for.

        Args:
            known: whether somebody asked for the hour before.
        """
        if hour in self.stretch:
            return hour < self.chunk.end
        if hour in self.asked:
            return True
        return hour in self._around(self.stretch) and (known or hour < self.stretch.start)

    def _around(self, interval: Interval) -> Interval:
        return interval.widen(before=self.heal, after=self.heal)


def reach(part: Part, hour: datetime) -> list[Node]:
    """Every node that one hour of a block reads."""
    return [node for reads in part.reads for node in reached_by(reads, hour)]


def reached_by(reads: Reads, hour: datetime) -> list[Node]:
    """Those of one table."""
    offsets = range(-reads.back, reads.forward + 1)
    return [Node(reads.stage, reads.block, reads.table, hour + offset * HOUR) for offset in offsets]


def judged_by(checks: Iterable[Check], accepted: Iterable[Accepted]) -> str:
    """A hash of the checks of a table. They are no input of its rows: what they say decides only whether a
    withheld hour is looked at again."""
    return fingerprint([repr(checks), repr(accepted)])


def completeness(stage: str, checks: Iterable[Check], accepted: Iterable[Accepted], hour: datetime) -> str:
    """A hash of what decides, beside the rows, whether an hour is complete, which its rows may say."""
    deciding = [check for check in checks if check.severity == "incomplete"]
    names = {check.name for check in deciding}
    passed = [item for item in accepted if (item.stage, item.hour) == (stage, hour) and item.check in names]
    return fingerprint([repr(deciding), repr(passed)])


def expected_inputs(
    part: Part, version: int, hour: datetime, book: Book, completeness: str
) -> dict[str, str]:
    """A hash for each thing that an hour of a block is computed from.

    An hour that nobody asked for counts as empty; one that is due and not made is like no other.
    """
    contents: dict[str, int] = {}
    for reads in part.reads:
        first, last = hour - reads.back * HOUR, hour + reads.forward * HOUR
        of_table = book.contents(reads.stage, reads.block, reads.table, first, last)
        contents[reads.table] = (contents.get(reads.table, 0) + of_table) % 2**BITS
    return {
        **{table: f"{number:032x}" for table, number in contents.items()},
        "specification": _of_shape(part.shape),
        "version": str(version),
        "completeness": completeness,
    }


CHECKS = "checks"
"""Among the inputs of a withheld node: what withheld it."""


def recorded_inputs(status: Status, inputs: Mapping[str, str], checks: str) -> dict[str, str]:
    """What the ledger holds as the inputs of a node of some status.

    A withheld hour is looked at again, too, when the checks that withheld it have changed.

    Args:
        inputs: what its rows are computed from.
        checks: the hash of the checks of its table, as `judged_by` gives it.
    """
    return {**inputs, CHECKS: checks} if status == "quarantined" else dict(inputs)


def is_stale(entry: Entry, inputs: Mapping[str, str], checks: str) -> bool:
    """Whether a node's recorded inputs differ from the expected ones.

    Args:
        inputs, checks: as in `recorded_inputs`.
    """
    if entry.status in ("writing", "blocked"):
        return True
    return entry.inputs != recorded_inputs(entry.status, inputs, checks)


class Staleness:
    """What of a stage is out of date, as one ledger stands.

    A node is whose recorded inputs differ from the expected ones, or which is computed from state that is.
    """

    def __init__(self, stage: Stage, book: Book, accepted: Sequence[Accepted]) -> None:
        self.stage, self.book = stage, book
        self._rules = {step.table.name: judged_by(step.checks, accepted) for step in stage.steps}
        self._steps = {step.table.name: step for step in stage.steps}
        self._stale: dict[tuple[str, str], list[datetime]] = {}
        # Of all but a few hours the same: those that nobody has accepted anything in.
        self._complete = {
            (step.table.name, hour): completeness(stage.name, step.checks, accepted, hour)
            for step in stage.steps
            for hour in {NO_HOUR, *(item.hour for item in accepted)}
        }

    def inputs(self, node: Node) -> dict[str, str]:
        """What a node would be computed from now."""
        decided = self._complete.get((node.table, node.hour), self._complete[node.table, NO_HOUR])
        part = self._steps[node.table].parts[node.block]
        return expected_inputs(part, self.stage.version, node.hour, self.book, decided)

    def recorded(self, node: Node, status: Status) -> dict[str, str]:
        """What the ledger would hold of that, for a node of some status."""
        return recorded_inputs(status, self.inputs(node), self._rules[node.table])

    def stale(self, node: Node) -> bool:
        """Whether a node of an hour that is due is out of date, or not there."""
        return self._by_itself(node) or bool(self.stale_state(node))

    def stale_state(self, node: Node) -> list[Node]:
        """State of the stage that a node is computed from, and that is out of date."""
        return [
            Node(reads.stage, reads.block, reads.table, hour)
            for reads in self._state(node)
            for hour in self._between(self._stale_of(reads), node.hour, reads)
        ]

    def expired_state(self, node: Node) -> list[Node]:
        """State of the stage that a node is computed from, and whose rows are gone."""
        reached = (read for reads in self._state(node) for read in reached_by(reads, node.hour))
        return [read for read in reached if read in self.book and self.book[read].status == "expired"]

    def _by_itself(self, node: Node) -> bool:
        entry = self.book.get(node)
        return entry is None or is_stale(entry, self.inputs(node), self._rules[node.table])

    def _state(self, node: Node) -> Iterator[Reads]:
        """What a node reads of earlier tables of its own stage."""
        part = self._steps[node.table].parts.get(node.block)
        earlier = set(takewhile(lambda table: table != node.table, self._steps))
        for reads in part.reads if part else ():
            own = reads.stage == self.stage.name and reads.table in earlier
            if own and reads.block in self._steps[reads.table].parts:
                yield reads

    def _stale_of(self, reads: Reads) -> list[datetime]:
        """The hours of a block's table that are due and out of date."""
        series = (reads.block, reads.table)
        if series not in self._stale:
            named = partial(Node, self.stage.name, *series)
            self._stale[series] = sorted(hour for hour in self.book.due if self.stale(named(hour)))
        return self._stale[series]

    @staticmethod
    def _between(hours: Sequence[datetime], hour: datetime, reads: Reads) -> Sequence[datetime]:
        """Those of some hours, in order, that one reads."""
        first = bisect_left(hours, hour - reads.back * HOUR)
        return hours[first : bisect_right(hours, hour + reads.forward * HOUR)]


def left_stale(
    stage: Stage, book: Book, scope: Scope, accepted: Sequence[Accepted]
) -> dict[Node, Entry | None]:
    """Stale nodes that lie too far for every chunk of a run, as the ledger has them.

    Args:
        book: the ledger as it is when the run has published: what it computes may make hours stale that it
            leaves.
    """
    staleness = Staleness(stage, book, accepted)
    far = [hour for hour in book.due if scope.leaves(hour)]
    nodes = (
        Node(stage.name, block, step.table.name, hour)
        for step in stage.steps
        for block in step.parts
        for hour in far
    )
    return {node: book.get(node) for node in nodes if staleness.stale(node)}


@dataclass(frozen=True)
class Plan:
    """What a run does with the nodes of one table.

    Attributes:
        targets: hours to compute, by block.
        inputs: the expected inputs of every target.
        blocked: nodes that cannot be computed, with the cause.
        incomplete: incomplete hours in the reach of the targets, by block.
        healed: how many of the nodes lie outside the hours that were asked for.
        needed: state of the stage that the targets read and that is not there or not fresh: to be made
            first, however far back, so that no row is computed from state of two specifications.
    """

    targets: dict[str, list[datetime]]
    inputs: dict[Node, dict[str, str]]
    blocked: dict[Node, str]
    incomplete: dict[str, set[datetime]]
    healed: int
    needed: frozenset[Node]


def plan(
    stage: Stage,
    step: Step,
    book: Book,
    scope: Scope,
    accepted: Sequence[Accepted],
    again: Collection[Node] = (),
) -> Plan:
    """Decides, node by node, what is computed.

    Every hour that is due is an hour of each of the stage's blocks, also of one that has come since: there it
    is stale.

    Args:
        accepted: failed checks that a person lets pass.
        again: nodes to compute even where they are fresh.
    """
    result = Plan({}, {}, {}, {}, 0, frozenset())
    healed = 0
    needed: set[Node] = set()
    staleness = Staleness(stage, book, accepted)
    for block, part in step.parts.items():
        for hour in sorted(filter(scope.sees_to, book.due)):
            node = Node(stage.name, block, step.table.name, hour)
            if node not in again and not staleness.stale(node):
                continue
            needed.update(staleness.stale_state(node), staleness.expired_state(node))
            reads = reach(part, hour)
            cause = next(filter(None, (_cause(read, stage.name, book) for read in reads)), None)
            if cause is not None:
                entry = book.get(node)
                if entry is None or (entry.status, entry.cause) != ("blocked", cause):
                    result.blocked[node] = cause
                continue
            healed += hour not in scope.asked
            result.inputs[node] = staleness.inputs(node)
            result.targets.setdefault(block, []).append(hour)
            result.incomplete.setdefault(block, set()).update(
                read.hour for read in reads if read in book and not book[read].complete
            )
    return replace(result, healed=healed, needed=frozenset(needed))


def _cause(read: Node, stage: str, book: Book) -> str | None:
    """Why what a stage reads does not stand, if so."""
    entry = book.get(read)
    if entry is None:
        # An hour that nobody asked for is empty; one that another stage has not made is not.
        unmade = read.stage != stage and read.hour in book.due
        return f"{read} has not been computed" if unmade else None
    if entry.status in STANDS:
        return None
    if entry.status == "blocked" and entry.cause:
        return entry.cause
    reason = f": {entry.cause}" if entry.cause else ""
    return f"{read} is {entry.status}{reason}"
