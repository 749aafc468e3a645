"""Which hours a run sees to, and which are out of date: arithmetic on the ledger, as in a build system."""

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, cached_property
from itertools import repeat, takewhile

import numpy as np

from transom.core.hour_sets import HourSet
from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval, number_of
from transom.core.partitions import BITS, Int64s, PartitionKey, PartitionState, Status, inputs_text
from transom.ledger.check import Check
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockOutput, InputRange, Stage
from transom.ledger.waivers import Waiver


def fingerprint(value: object) -> str:
    """A short stable hash of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:24]


_of_shape = cache(fingerprint)


@dataclass(frozen=True)
class Scope:
    """Which hours a run sees to.

    Attributes:
        requested: the hours that were asked for: the chunk's, and of the first stage those of a gap beside
            it.
        chunk: the part of the run's interval that is at hand.
        run_interval: the run's whole interval.
        repair_window: how far around it stale hours are seen to.
    """

    requested: frozenset[datetime]
    chunk: Interval
    run_interval: Interval
    repair_window: timedelta

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
        known = HourSet.of(known)
        last, after = known.last_before(chunk.start), None
        before = chunk.start if last is None else last + HOUR
        if chunk.end == stretch.end:
            after = known.first_from(chunk.end)
        after = chunk.end if after is None else after
        start = before if chunk.start - before < heal else chunk.start
        end = after if after - chunk.end < heal else chunk.end
        return cls(frozenset(Interval(start, end).hours()), chunk, stretch, heal)

    def still_valid(self, book: LedgerSnapshot, stage: str) -> bool:
        """Whether no gap has come to lie beside the run since: another one, begun before it was seen, would
        not ask for it either."""
        now = Scope.of(self.chunk, self.run_interval, self.repair_window, book.hours(stage))
        return now.requested <= self.requested

    def covers(self, hour: datetime) -> bool:
        """Whether a stale hour is computed now; one inside the stretch is, with its own chunk."""
        return hour in self.requested or (hour not in self.run_interval and hour in self._around(self.chunk))

    def covers_last_chunk(self, hour: datetime) -> bool:
        """Whether a stale hour is computed now, though it may be computed from what later chunks make: one
        behind the stretch is by the last of them."""
        ahead = hour < self.chunk.end or self.chunk.end == self.run_interval.end
        return hour in self.requested or (ahead and self.covers(hour))

    def out_of_reach(self, hour: datetime) -> bool:
        """Whether a stale hour is too far for every chunk of the run."""
        return hour not in self.requested and hour not in self._around(self.run_interval)

    def lists_files_of(self, hour: datetime, known: bool, waiting: bool = False) -> bool:
        """Whether the files of an hour are looked at.

        Args:
            known: whether somebody asked for the hour before, or the files are known.
            waiting: whether they wait; an earlier chunk may have left them to this one.
        """
        sees_to = self.may_publish(hour, known) if waiting else self.covers(hour)
        return hour in self.requested or (known and sees_to)

    def may_publish(self, hour: datetime, known: bool) -> bool:
        """Whether rows of a file may be published in an hour: not in one that a later chunk will see to,
        nor beyond `repair_window`, nor after the stretch in one that nobody asked for.

        Args:
            known: whether somebody asked for the hour before.
        """
        if hour in self.run_interval:
            return hour < self.chunk.end
        if hour in self.requested:
            return True
        return hour in self._around(self.run_interval) and (known or hour < self.run_interval.start)

    @property
    def around(self) -> HourSet:
        """Every hour that a run may see to."""
        return HourSet.of([*self.requested, *self._repair_interval.hours()])

    def _around(self, interval: Interval) -> Interval:
        return self._chunk_repair_interval if interval is self.chunk else self._repair_interval

    @cached_property
    def _chunk_repair_interval(self) -> Interval:
        return self.chunk.widen(before=self.repair_window, after=self.repair_window)

    @cached_property
    def _repair_interval(self) -> Interval:
        return self.run_interval.widen(before=self.repair_window, after=self.repair_window)


def partitions_read(reads: InputRange, hour: datetime) -> list[PartitionKey]:
    """Every node of one table that an hour reads."""
    first, last = reads.span(hour)
    read = (first + offset * HOUR for offset in range((last - first) // HOUR + 1))
    return [PartitionKey(reads.stage, reads.block, reads.table, hour) for hour in read]


def slice_hours(hours: Sequence[datetime], hour: datetime, reads: InputRange) -> Sequence[datetime]:
    """Those of some hours, in order, that one reads."""
    first, last = reads.span(hour)
    return hours[bisect_left(hours, first) : bisect_right(hours, last)]


def incomplete_hours(reads: Iterable[InputRange], hour: datetime, book: LedgerSnapshot) -> set[datetime]:
    """The incomplete hours of what an hour reads."""
    of_each = ((read, book.incomplete(read.stage, read.block, read.table)) for read in reads)
    return {found for read, hours in of_each for found in slice_hours(hours, hour, read)}


def checks_fingerprint(checks: Iterable[Check], accepted: Iterable[Waiver]) -> str:
    """A hash of the checks of a table. They are no input of its rows: what they say decides only whether a
    withheld hour is looked at again."""
    return fingerprint([repr(checks), repr(accepted)])


def completeness(
    stage: str, checks: Iterable[Check], accepted: Iterable[Waiver], hour: datetime | None
) -> str:
    """A hash of what decides, beside the rows, whether an hour is complete, which its rows may say.

    Args:
        hour: None is one in which nothing is accepted.
    """
    deciding = [check for check in checks if check.severity == "incomplete"]
    names = {check.name for check in deciding}
    passed = [item for item in accepted if (item.stage, item.hour) == (stage, hour) and item.check in names]
    return fingerprint([repr(deciding), repr(passed)])


def expected_inputs(
    part: BlockOutput,
    version: int,
    hour: datetime,
    book: LedgerSnapshot,
    completeness: str,
    table: str | None = None,
) -> dict[str, str]:
    """A hash for each thing that an hour of a block is computed from.

    An hour that nobody asked for counts as empty; one that is due and not made is like no other.

    Args:
        table: the block's own table, which it may read earlier hours of.
    """
    contents: dict[str, int] = {}
    for reads in part.reads:
        own = reads.table == table
        of_table = book.range_hash(reads.stage, reads.block, reads.table, *reads.span(hour), own)
        contents[reads.table] = (contents.get(reads.table, 0) + of_table) % 2**BITS
    return _inputs(
        {table: format_hash(number) for table, number in contents.items()}, part, version, completeness
    )


def _inputs(
    contents: Mapping[str, str], part: BlockOutput, version: int, completeness: str
) -> dict[str, str]:
    return {
        **contents,
        "specification": _of_shape(part.spec_fingerprint),
        "version": str(version),
        "completeness": completeness,
    }


def format_hash(contents: int) -> str:
    """What stands in some hours, as the ledger writes it among the inputs."""
    return f"{contents:032x}"


CHECKS = "checks"
"""Among the inputs of a withheld node: what withheld it."""


def recorded_inputs(status: Status, inputs: Mapping[str, str], checks: str) -> dict[str, str]:
    """What the ledger holds as the inputs of a node of some status.

    A withheld hour is looked at again, too, when the checks that withheld it have changed.

    Args:
        inputs: what its rows are computed from.
        checks: the hash of the checks of its table, as `checks_fingerprint` gives it.
    """
    return {**inputs, CHECKS: checks} if status == "quarantined" else dict(inputs)


def is_stale(entry: PartitionState, inputs: Mapping[str, str], checks: str) -> bool:
    """Whether a node's recorded inputs differ from the expected ones.

    Args:
        inputs, checks: as in `recorded_inputs`.
    """
    if entry.status in ("writing", "blocked", "damaged") or entry.in_old_form:
        return True
    return entry.inputs != recorded_inputs(entry.status, inputs, checks)


class Staleness:
    """What of a stage is out of date, as one ledger stands.

    A node is whose recorded inputs differ from the expected ones, or which is computed from state that is, or
    from earlier hours of its own table that are.
    """

    def __init__(self, stage: Stage, book: LedgerSnapshot, accepted: Sequence[Waiver]) -> None:
        self.stage, self.book = stage, book
        self._rules = {step.table.name: checks_fingerprint(step.checks, accepted) for step in stage.steps}
        self._steps = {step.table.name: step for step in stage.steps}
        self._stale: dict[tuple[str, str], list[datetime]] = {}
        self._found_alone: dict[tuple[str, str], Set[datetime]] = {}
        # Of all but a few hours the same: those that nobody has accepted anything in.
        self._complete = {
            (step.table.name, hour): completeness(stage.name, step.checks, accepted, hour)
            for step in stage.steps
            for hour in {UNKNOWN_HOUR, *(item.hour for item in accepted)}
        }

    def inputs(self, node: PartitionKey) -> dict[str, str]:
        """What a node would be computed from now."""
        decided = self._complete.get((node.table, node.hour), self._complete[node.table, UNKNOWN_HOUR])
        part = self._steps[node.table].parts[node.block]
        return expected_inputs(part, self.stage.version, node.hour, self.book, decided, node.table)

    def recorded(self, node: PartitionKey, status: Status) -> dict[str, str]:
        """What the ledger would hold of that, for a node of some status."""
        return recorded_inputs(status, self.inputs(node), self._rules[node.table])

    def stale(self, node: PartitionKey) -> bool:
        """Whether a node of an hour that is due is out of date, or not there."""
        if self._steps[node.table].back(node.block):
            hours = self._stale_of(node.block, node.table)
            found = bisect_left(hours, node.hour)
            return found < len(hours) and hours[found] == node.hour
        return self._stale_apart_from_chain(node)

    def expired(self, node: PartitionKey) -> bool:
        """Whether a node's rows are gone."""
        return node in self.book and self.book[node].status == "expired"

    def stale_state(self, node: PartitionKey) -> list[PartitionKey]:
        """State of the stage that a node is computed from, and that is out of date; earlier hours of its own
        table, too."""
        return [*self._stale_before(node), *self._stale_earlier(node)]

    def hours_to_compute(self, node: PartitionKey) -> list[PartitionKey]:
        """State in earlier tables of the stage that has to be made before a node is."""
        return [*self._stale_before(node), *self._expired_state(node)]

    def _stale_earlier(self, node: PartitionKey) -> list[PartitionKey]:
        back = self._steps[node.table].back(node.block)
        own = InputRange(node.stage, node.block, node.table, back, -1)
        hours = slice_hours(self._stale_of(node.block, node.table), node.hour, own) if back else ()
        return [replace(node, hour=hour) for hour in hours]

    def _stale_before(self, node: PartitionKey) -> list[PartitionKey]:
        return [
            PartitionKey(reads.stage, reads.block, reads.table, hour)
            for reads in self._state(node)
            for hour in slice_hours(self._stale_of(reads.block, reads.table), node.hour, reads)
        ]

    def _expired_state(self, node: PartitionKey) -> list[PartitionKey]:
        """State of the stage that a node is computed from, and whose rows are gone."""
        reached = (read for reads in self._state(node) for read in partitions_read(reads, node.hour))
        return [read for read in reached if self.expired(read)]

    def _stale_apart_from_chain(self, node: PartitionKey) -> bool:
        """Whether a node is out of date, leaving its own earlier hours aside."""
        return self._by_itself(node) or bool(self._stale_before(node))

    def _by_itself(self, node: PartitionKey) -> bool:
        return node.hour in self._stale_alone(node.block, node.table)

    def _stale_alone(self, block: str, table: str) -> Set[datetime]:
        """The hours of a block's table that are due and by themselves out of date."""
        if (block, table) not in self._found_alone:
            known = self.book.recorded(self.stage.name, block, table)
            expected = self._expected(block, table)
            self._found_alone[block, table] = {
                hour
                for hour, number, text in zip(
                    self.required_hours, self._numbers.tolist(), expected, strict=True
                )
                if known.get(number) != text
                and self._differs(PartitionKey(self.stage.name, block, table, hour))
            }
        return self._found_alone[block, table]

    def _differs(self, node: PartitionKey) -> bool:
        entry = self.book.get(node)
        return entry is None or is_stale(entry, self.inputs(node), self._rules[node.table])

    def _expected(self, block: str, table: str) -> list[str]:
        """The expected inputs of every hour that is due, as the ledger writes them, where nobody has accepted
        anything in it: of years of hours in a fraction of the time that `inputs` takes."""
        part = self._steps[table].parts[block]
        contents: dict[str, list[int]] = {}
        for reads in part.reads:
            back = (
                reads.back
                if reads.back_of is None
                else np.array(list(map(reads.back_of, self.required_hours)))
            )
            of_reads = self.book.range_hashes(
                reads.stage, reads.block, reads.table, self._numbers - back, self._numbers + reads.forward,
                reads.table == table,
            )  # fmt: skip
            added = contents.get(reads.table, repeat(0))
            contents[reads.table] = [(a + b) % 2**BITS for a, b in zip(added, of_reads, strict=False)]
        decided = self._complete[table, UNKNOWN_HOUR]
        text = inputs_text(_inputs(dict.fromkeys(contents, "%032x"), part, self.stage.version, decided))
        ordered = (contents[name] for name in sorted(contents))
        return [text % tuple(numbers) for _, *numbers in zip(self.required_hours, *ordered, strict=True)]

    def _state(self, node: PartitionKey) -> Iterator[InputRange]:
        """What a node reads of earlier tables of its own stage."""
        part = self._steps[node.table].parts.get(node.block)
        earlier = set(takewhile(lambda table: table != node.table, self._steps))
        for reads in part.reads if part else ():
            own = reads.stage == self.stage.name and reads.table in earlier
            if own and reads.block in self._steps[reads.table].parts:
                yield reads

    def _stale_of(self, block: str, table: str) -> list[datetime]:
        """The hours of a block's table that are due and out of date, in order."""
        if (block, table) not in self._stale:
            back = self._steps[table].back(block) * HOUR
            found: list[datetime] = []
            state = [*self._state(PartitionKey(self.stage.name, block, table, UNKNOWN_HOUR))]
            stale = self._stale_alone(block, table) or any(self._stale_of(of.block, of.table) for of in state)
            for hour in self.required_hours if stale else ():
                if (found and hour - back <= found[-1]) or self._stale_apart_from_chain(
                    PartitionKey(self.stage.name, block, table, hour)
                ):
                    found.append(hour)
            self._stale[block, table] = found
        return self._stale[block, table]

    def hours(self, block: str, table: str) -> Sequence[datetime]:
        """The hours of a block's table that are due and out of date, in order."""
        return self._stale_of(block, table)

    @cached_property
    def required_hours(self) -> list[datetime]:
        """The hours that are due, in order."""
        return list(self.book.required_hours)

    @cached_property
    def _numbers(self) -> Int64s:
        """The same, counted from the epoch."""
        return np.array(list(map(number_of, self.required_hours)), dtype=np.int64)
