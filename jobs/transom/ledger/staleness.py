"""Which hours a run sees to, and what the inputs of an hour are: arithmetic on the ledger."""

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, cached_property

from transom.core.hour_sets import HourSet
from transom.core.intervals import HOUR, Interval
from transom.core.partitions import BITS, PartitionKey, PartitionState, Status
from transom.ledger.check import Check
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockOutput, InputRange
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
    def within(cls, chunk: Interval, stretch: Interval, repair_window: timedelta) -> "Scope":
        """The scope of a chunk of a stage that follows the first one: gaps are hours that the first one has
        seen to, and stale in this one."""
        return cls(frozenset(chunk.hours()), chunk, stretch, repair_window)

    @classmethod
    def of(
        cls, chunk: Interval, stretch: Interval, repair_window: timedelta, known: Iterable[datetime]
    ) -> "Scope":
        """The scope of a chunk.

        A gap lies between the stretch and the next hour that has a row, on either side, and is shorter
        than `repair_window`: a scheduler that slept. A longer one is a decision, and left alone. So the hours
        that runs have asked for are, in whatever order they ran, their intervals and the gaps between these.

        Args:
            known: the hours that the stage has rows of.
        """
        known = HourSet.of(known)
        last, after = known.last_before(chunk.start), None
        before = chunk.start if last is None else last + HOUR
        if chunk.end == stretch.end:
            after = known.first_from(chunk.end)
        after = chunk.end if after is None else after
        start = before if chunk.start - before < repair_window else chunk.start
        end = after if after - chunk.end < repair_window else chunk.end
        return cls(frozenset(Interval(start, end).hours()), chunk, stretch, repair_window)

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
        of_table = book.range_hash(
            reads.stage, reads.block, reads.table, *reads.span(hour), own, reads.requested
        )
        contents[reads.table] = (contents.get(reads.table, 0) + of_table) % 2**BITS
    return named_inputs(
        {table: format_hash(number) for table, number in contents.items()}, part, version, completeness
    )


def named_inputs(
    hashes: Mapping[str, str], part: BlockOutput, version: int, completeness: str
) -> dict[str, str]:
    """Return all inputs of an hour by name.

    Args:
        hashes: of what it reads, by table.
    """
    return {
        **hashes,
        "specification": _of_shape(part.spec_fingerprint),
        "version": str(version),
        "completeness": completeness,
    }


def is_defined_as(part: BlockOutput, version: int, inputs: Mapping[str, str]) -> bool:
    """Return whether recorded inputs are of this specification of a block and this version of the code."""
    return (inputs.get("specification"), inputs.get("version")) == (
        _of_shape(part.spec_fingerprint),
        str(version),
    )


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
    if entry.status in ("writing", "blocked", "damaged"):
        return True
    return entry.input_hashes != recorded_inputs(entry.status, inputs, checks)
