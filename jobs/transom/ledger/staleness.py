"""Which hours a run covers, and what the inputs of an hour are: arithmetic on the ledger."""

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

Inputs = Mapping[str, str]
Waivers = Iterable[Waiver]
CHECKS = "checks"
"""Among the inputs of a quarantined partition: the checks that quarantined it."""


def fingerprint(value: object) -> str:
    """Return a short stable hash of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:24]


_spec_hash = cache(fingerprint)


@dataclass(frozen=True)
class Scope:
    """Which hours a run covers.

    Attributes:
        requested: the requested hours: those of the chunk and, for the first stage, of a gap beside it.
        chunk: the part of the run's interval that is computed now.
        run_interval: the run's whole interval.
        repair_window: how far around it stale hours are computed, too.
    """

    requested: frozenset[datetime]
    chunk: Interval
    run_interval: Interval
    repair_window: timedelta

    @classmethod
    def within(cls, chunk: Interval, run_interval: Interval, repair_window: timedelta) -> "Scope":
        """Return the scope of a chunk of a later stage, in which hours of gaps are just stale."""
        return cls(frozenset(chunk.hours()), chunk, run_interval, repair_window)

    @classmethod
    def of(
        cls, chunk: Interval, run_interval: Interval, repair_window: timedelta, known: Iterable[datetime]
    ) -> "Scope":
        """Return the scope of a chunk of the first stage.

        A gap lies between the run's interval and the next known hour on either side, and is shorter than
        `repair_window`: a scheduler was down. A longer gap is intended. So the requested hours are, in any
        order of runs, their intervals and the gaps between them.

        Args:
            known: the hours that the stage has rows of.
        """
        known = HourSet.of(known)
        previous, following = known.last_before(chunk.start), None
        start = chunk.start if previous is None else previous + HOUR
        if chunk.end == run_interval.end:
            following = known.first_from(chunk.end)
        end = chunk.end if following is None else following
        start = start if chunk.start - start < repair_window else chunk.start
        end = end if end - chunk.end < repair_window else chunk.end
        return cls(frozenset(Interval(start, end).hours()), chunk, run_interval, repair_window)

    def still_valid(self, snapshot: LedgerSnapshot, stage: str) -> bool:
        """Return whether no gap has appeared beside the run since it was planned. Otherwise two concurrent
        runs could each leave it to the other."""
        now = Scope.of(self.chunk, self.run_interval, self.repair_window, snapshot.hours(stage))
        return now.requested <= self.requested

    def covers(self, hour: datetime) -> bool:
        """Return whether a stale hour is computed now; an hour of the run's interval is with its chunk."""
        return hour in self.requested or (hour not in self.run_interval and hour in self._around_chunk)

    def covers_last_chunk(self, hour: datetime) -> bool:
        """Return the same, where inputs may come from later chunks: hours after the run's interval are
        computed with its last chunk."""
        ahead = hour < self.chunk.end or self.chunk.end == self.run_interval.end
        return hour in self.requested or (ahead and self.covers(hour))

    def out_of_reach(self, hour: datetime) -> bool:
        """Return whether a stale hour is out of reach of every chunk of the run."""
        return hour not in self.requested and hour not in self._around_run

    def lists_files_of(self, hour: datetime, known: bool, waiting: bool = False) -> bool:
        """Return whether the run looks at the files of an hour.

        Args:
            known: whether the hour was requested before, or the files are known.
            waiting: whether the files wait; an earlier chunk may have left them to this one.
        """
        covered = self.may_publish(hour, known) if waiting else self.covers(hour)
        return hour in self.requested or (known and covered)

    def may_publish(self, hour: datetime, known: bool) -> bool:
        """Return whether rows of a file may be published in an hour: not if a later chunk covers it, if it is
        out of reach, or if it lies after the run's interval and was never requested.

        Args:
            known: whether the hour was requested before.
        """
        if hour in self.run_interval:
            return hour < self.chunk.end
        near = hour in self._around_run and (known or hour < self.run_interval.start)
        return hour in self.requested or near

    @property
    def around(self) -> HourSet:
        """Every hour that the run may compute."""
        return HourSet.of([*self.requested, *self._around_run.hours()])

    @cached_property
    def _around_chunk(self) -> Interval:
        return self.chunk.widen(before=self.repair_window, after=self.repair_window)

    @cached_property
    def _around_run(self) -> Interval:
        return self.run_interval.widen(before=self.repair_window, after=self.repair_window)


def partitions_read(reads: InputRange, hour: datetime) -> list[PartitionKey]:
    """Return every partition of one table that an hour reads."""
    first, last = reads.span(hour)
    offsets = range((last - first) // HOUR + 1)
    return [PartitionKey(*reads.series, first + offset * HOUR) for offset in offsets]


def slice_hours(hours: Sequence[datetime], hour: datetime, reads: InputRange) -> Sequence[datetime]:
    """Return those of some ascending hours that an hour reads."""
    first, last = reads.span(hour)
    return hours[bisect_left(hours, first) : bisect_right(hours, last)]


def incomplete_hours(reads: Iterable[InputRange], hour: datetime, snapshot: LedgerSnapshot) -> set[datetime]:
    """Return the incomplete hours that an hour reads."""
    return {found for read in reads for found in slice_hours(snapshot.incomplete(*read.series), hour, read)}


def checks_fingerprint(checks: Iterable[Check], waivers: Waivers) -> str:
    """Return a hash of a table's checks. They are no input of its rows: a change only makes quarantined hours
    stale."""
    return fingerprint([repr(checks), repr(waivers)])


def completeness(stage: str, checks: Iterable[Check], waivers: Waivers, hour: datetime | None) -> str:
    """Return a hash of what decides, apart from its rows, whether an hour is complete. Rows may depend on it.

    Args:
        hour: None for one without a waiver.
    """
    deciding = [check for check in checks if check.severity == "incomplete"]
    names = {check.name for check in deciding}
    waived = [item for item in waivers if (item.stage, item.hour) == (stage, hour) and item.check in names]
    return fingerprint([repr(deciding), repr(waived)])


def expected_inputs(
    part: BlockOutput,
    version: int,
    hour: datetime,
    snapshot: LedgerSnapshot,
    completeness: str,
    table: str | None = None,
) -> dict[str, str]:
    """Return a hash for each input of an hour of a block.

    An hour that was not requested counts as empty; a required hour that is not computed equals no other.

    Args:
        table: the block's own table, of which it may read earlier hours.
    """
    contents: dict[str, int] = {}
    for reads in part.reads:
        own = reads.table == table
        of_reads = snapshot.range_hash(reads.series, *reads.span(hour), own, reads.requested)
        contents[reads.table] = (contents.get(reads.table, 0) + of_reads) % 2**BITS
    hashes = {name: format_hash(number) for name, number in contents.items()}
    return named_inputs(hashes, part, version, completeness)


def named_inputs(hashes: Inputs, part: BlockOutput, version: int, completeness: str) -> dict[str, str]:
    """Return all inputs of an hour by name.

    Args:
        hashes: of what it reads, by table.
    """
    specification = _spec_hash(part.spec_fingerprint)
    own = {"specification": specification, "version": str(version), "completeness": completeness}
    return {**hashes, **own}


def is_defined_as(part: BlockOutput, version: int, inputs: Mapping[str, str]) -> bool:
    """Return whether recorded inputs have this specification of a block and this version of the code."""
    defined = (_spec_hash(part.spec_fingerprint), str(version))
    return (inputs.get("specification"), inputs.get("version")) == defined


def format_hash(contents: int) -> str:
    """Return a hash as text, as in the inputs in the ledger."""
    return f"{contents:032x}"


def recorded_inputs(status: Status, inputs: Mapping[str, str], checks: str) -> dict[str, str]:
    """Return the inputs of a partition of some status as the ledger records them. Those of a quarantined one
    have its checks: it is computed again when they change.

    Args:
        inputs: of its rows.
        checks: the hash of the checks of its table (`checks_fingerprint`).
    """
    return {**inputs, CHECKS: checks} if status == "quarantined" else dict(inputs)


def is_stale(state: PartitionState, inputs: Mapping[str, str], checks: str) -> bool:
    """Return whether a partition's recorded inputs differ from the expected ones.

    Args:
        inputs, checks: as in `recorded_inputs`.
    """
    if state.status in ("writing", "blocked", "damaged"):
        return True
    return state.input_hashes != recorded_inputs(state.status, inputs, checks)
