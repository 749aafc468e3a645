"""Whether a partition is fresh, and why not: the answer of runs, gates, commands, notebooks and audits.

A run computes what is outdated, as in a build system: partitions whose recorded inputs differ from what these
are now. A partition may equal its inputs while those are outdated themselves. Then it is stale, too, and the
reason lies upstream, in its root.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import repeat
from typing import Literal, Protocol

import numpy as np

from transom.core.exact_sums import Int64s
from transom.core.hour_sets import HourSet
from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval, number_of
from transom.core.partitions import (
    BITS,
    READABLE,
    SOURCE_STAGE,
    PartitionKey,
    PartitionState,
    Status,
    TableKey,
    input_hashes_text,
)
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockOutput, InputRange, Stage
from transom.ledger.staleness import (
    checks_fingerprint,
    completeness,
    expected_inputs,
    is_stale,
    named_inputs,
    partitions_read,
    recorded_inputs,
    slice_hours,
)
from transom.ledger.waivers import Waiver

EVENTS: TableKey = (SOURCE_STAGE, "events", "events")
"""The table that all others are computed from."""
Code = Literal[
    "not_computed", "block_added", "dropped", "writing", "damaged", "quarantined", "blocked",
    "unknown_inputs", "specification", "version", "completeness", "checks", "input_missing",
    "input_changed", "state_stale", "upstream_stale",
]  # fmt: skip


@dataclass(frozen=True)
class StaleReason:
    """One reason why a partition is not fresh.

    Attributes:
        code: what is the matter:
            `not_computed`: it is not there; `block_added`: its block is newer than the hour;
            `dropped`: the stream's file has its block, or the table of it, no longer;
            `writing`, `damaged`, `quarantined`, `blocked`: its status;
            `unknown_inputs`: the ledger does not say what it was computed from;
            `specification`, `version`, `completeness`, `checks`: this input has changed;
            `input_missing`, `input_changed`: hours of a table that it reads are not there, are not the same;
            `state_stale`: earlier tables of its stage, or earlier hours of its table, are outdated;
            `upstream_stale`: what it reads of other stages is stale.
        partitions: of the last four codes, the partitions in question. `input_changed` has all that it reads
            of the table now; `upstream_stale` has the root.
        name: of the input that has changed; the table, where it is one.
        recorded: the value of the input in the ledger.
        expected: its value now.
    """

    code: Code
    partitions: tuple[PartitionKey, ...] = ()
    name: str | None = None
    recorded: str | None = None
    expected: str | None = None


class SourceInputs(Protocol):
    """What the hours of the source stage have to be computed from."""

    def expected(self, hour: datetime) -> Mapping[str, str]:
        """Return the inputs of an hour as they are now."""
        ...

    def like(self, book: LedgerSnapshot) -> HourSet:
        """Return hours whose recorded inputs are known to be these."""
        ...


@dataclass(frozen=True)
class _BlockTable:
    """What decides whether hours of a block's table are outdated.

    Attributes:
        version: of the code of the stage.
        back: how many earlier hours of the table itself one reads.
        state: what it reads of earlier tables of its stage.
        checks: the hash of the table's checks.
        completeness: the hash of what decides whether an hour is complete: of hours with a waiver, and of
            all others at `UNKNOWN_HOUR`.
    """

    version: int
    part: BlockOutput
    back: int
    state: tuple[InputRange, ...]
    checks: str
    completeness: Mapping[datetime, str]


def _block_tables(stage: Stage, waivers: Sequence[Waiver]) -> Iterator[tuple[TableKey, _BlockTable]]:
    hours = {UNKNOWN_HOUR, *(waiver.hour for waiver in waivers)}
    earlier: set[TableKey] = set()
    for step in stage.steps:
        checks = checks_fingerprint(step.checks, waivers)
        complete = {hour: completeness(stage.name, step.checks, waivers, hour) for hour in hours}
        for block, part in step.parts.items():
            state = tuple(reads for reads in part.reads if reads.series in earlier)
            of_table = _BlockTable(stage.version, part, step.back(block), state, checks, complete)
            yield (stage.name, block, step.table.name), of_table
        earlier.update((stage.name, block, step.table.name) for block in step.parts)


class Freshness:
    """What is fresh by one snapshot of the ledger.

    Args:
        stages: those that are asked about, in the order in which they run. What they read of other stages
            counts as fresh.
        waivers: failed checks that a person lets pass.
        source: what events have to be computed from; None: they are stale only where they are damaged.
    """

    def __init__(
        self,
        snapshot: LedgerSnapshot,
        stages: Iterable[Stage],
        waivers: Sequence[Waiver],
        source: SourceInputs | None = None,
    ) -> None:
        self.snapshot, self._source = snapshot, source
        stages = list(stages)
        self._stages = {stage.name for stage in stages}
        self._tables = {table: of for stage in stages for table, of in _block_tables(stage, waivers)}
        self._differing: dict[TableKey, Set[datetime]] = {}
        self._outdated: dict[TableKey, list[datetime]] = {}
        self._roots: dict[TableKey, Mapping[datetime, PartitionKey]] = {}

    def is_fresh(self, partition: PartitionKey) -> bool:
        """Return whether the rows of a partition are those that a run would compute now, from fresh inputs.

        Of an hour that nobody asked for no rows are.
        """
        state = self.snapshot.get(partition)
        if state is None:
            return partition.hour not in self.snapshot.required_hours
        return state.status in READABLE and self.root(partition) is None

    def is_readable(self, partition: PartitionKey) -> bool:
        """Return whether a partition is published, and its rows are fresh and not expired."""
        state = self.snapshot.get(partition)
        return state is not None and state.status == "published" and self.is_fresh(partition)

    def readable_hours(self, stage: str, block: str, table: str, hours: Iterable[datetime]) -> list[datetime]:
        """Return those of some hours of a block's table that are readable."""
        return [hour for hour in hours if self.is_readable(PartitionKey(stage, block, table, hour))]

    def why_not(self, partition: PartitionKey) -> tuple[StaleReason, ...]:
        """Return why a partition is not fresh; nothing of one that is."""
        state = self.snapshot.get(partition)
        if state is None:
            required = partition.hour in self.snapshot.required_hours
            return (StaleReason(self._why_missing(partition)),) if required else ()
        reasons = [StaleReason(state.status)] if state.status in ("writing", "damaged") else []
        if self._is_dropped(partition):
            reasons.append(StaleReason("dropped"))
        elif state.status not in ("writing", "damaged", "blocked"):
            reasons += self._own_reasons(partition, state)
        root = None if state.status in ("writing", "blocked") else self.root(partition)
        if root is not None and root.stage != partition.stage:
            reasons.append(StaleReason("upstream_stale", (root,)))
        if state.status in ("quarantined", "blocked"):
            reasons.append(StaleReason(state.status))
        return tuple(reasons)

    def _why_missing(self, partition: PartitionKey) -> Code:
        beside = self.snapshot.within(Interval.of_hour(partition.hour))
        known = any((one.stage, one.table) == (partition.stage, partition.table) for one, _ in beside)
        return "block_added" if known else "not_computed"

    def _own_reasons(self, partition: PartitionKey, state: PartitionState) -> Iterator[StaleReason]:
        """Why a partition is outdated."""
        expected, recorded = self.recorded_inputs(partition, state.status), state.input_hashes
        if expected and recorded is None:
            yield StaleReason("unknown_inputs")
        elif expected and recorded is not None:
            for name in sorted({*recorded, *expected}):
                if recorded.get(name) != expected.get(name):
                    code, partitions = self._changed_input(partition, name)
                    yield StaleReason(code, partitions, name, recorded.get(name), expected.get(name))
        stale = (*self._outdated_state(partition), *self._outdated_before(partition))
        if stale:
            yield StaleReason("state_stale", stale)

    def _changed_input(self, partition: PartitionKey, name: str) -> tuple[Code, tuple[PartitionKey, ...]]:
        match name:
            case "specification" | "version" | "completeness" | "checks":
                return name, ()
        reads = [read for read in self.reads(partition) if read.table == name]
        missing = [
            read
            for read in reads
            if read not in self.snapshot and read.hour in self.snapshot.required_hours_of(*read.series)
        ]
        return ("input_missing", tuple(missing)) if missing else ("input_changed", tuple(reads))

    # What a run computes

    @cached_property
    def required_hours(self) -> list[datetime]:
        """The hours that every table has to have, in order."""
        return list(self.snapshot.required_hours)

    def inputs(self, partition: PartitionKey) -> dict[str, str]:
        """Return what a partition would be computed from now: a hash of each table, and of what shapes it."""
        of = self._tables[partition.series]
        complete = of.completeness.get(partition.hour, of.completeness[UNKNOWN_HOUR])
        return expected_inputs(of.part, of.version, partition.hour, self.snapshot, complete, partition.table)

    def recorded_inputs(self, partition: PartitionKey, status: Status) -> Mapping[str, str]:
        """Return these as the ledger records them of a partition of some status."""
        if partition.series in self._tables:
            return recorded_inputs(status, self.inputs(partition), self._tables[partition.series].checks)
        is_source = partition.stage == SOURCE_STAGE and self._source is not None
        return self._source.expected(partition.hour) if is_source and self._source else {}

    def is_outdated(self, partition: PartitionKey) -> bool:
        """Return whether a run of its stage has to compute a partition of a required hour."""
        hours = self.outdated_hours(*partition.series)
        place = bisect_left(hours, partition.hour)
        return place < len(hours) and hours[place] == partition.hour

    def outdated_hours(self, stage: str, block: str, table: str) -> Sequence[datetime]:
        """Return the required hours of a block's table that a run of its stage has to compute, in order.

        They differ from their inputs, or read outdated state of their stage, or outdated earlier hours of
        their own table.
        """
        key = (stage, block, table)
        if key not in self._outdated:
            of, differing, hours = self._tables[key], self._differing_hours(key), list[datetime]()
            state = [(reads, self.outdated_hours(*reads.series)) for reads in of.state]
            for hour in self.required_hours if differing or any(read for _, read in state) else ():
                if (
                    (hours and hour - of.back * HOUR <= hours[-1])
                    or hour in differing
                    or any(slice_hours(read, hour, reads) for reads, read in state)
                ):
                    hours.append(hour)
            self._outdated[key] = hours
        return self._outdated[key]

    def state_to_compute(self, partition: PartitionKey) -> list[PartitionKey]:
        """Return the state in earlier tables of its stage that has to be computed before a partition."""
        read = (
            read
            for reads in self._tables[partition.series].state
            for read in partitions_read(reads, partition.hour)
        )
        return [*self._outdated_state(partition), *filter(self.is_expired, read)]

    def is_expired(self, partition: PartitionKey) -> bool:
        """Return whether the rows of a partition are gone."""
        state = self.snapshot.get(partition)
        return state is not None and state.status == "expired"

    def _outdated_state(self, partition: PartitionKey) -> list[PartitionKey]:
        """The outdated state in earlier tables of its stage that a partition is computed from."""
        of = self._tables.get(partition.series)
        return [
            PartitionKey(*reads.series, hour)
            for reads in (of.state if of else ())
            for hour in slice_hours(self.outdated_hours(*reads.series), partition.hour, reads)
        ]

    def _outdated_before(self, partition: PartitionKey) -> list[PartitionKey]:
        """The outdated earlier hours of its own table that a partition is computed from."""
        of = self._tables.get(partition.series)
        if of is None or not of.back:
            return []
        own = InputRange(*partition.series, of.back, -1)
        hours = slice_hours(self.outdated_hours(*partition.series), partition.hour, own)
        return [replace(partition, hour=hour) for hour in hours]

    def _differing_hours(self, table: TableKey) -> Set[datetime]:
        """The required hours of a block's table that are not there or differ from their inputs."""
        if table not in self._differing:
            recorded = self.snapshot.recorded(*table)
            hours = zip(
                self.required_hours, self._hour_numbers.tolist(), self._expected_texts(table), strict=True
            )
            self._differing[table] = {
                hour
                for hour, number, expected in hours
                if recorded.get(number) != expected and self._differs(PartitionKey(*table, hour))
            }
        return self._differing[table]

    def _differs(self, partition: PartitionKey) -> bool:
        state, checks = self.snapshot.get(partition), self._tables[partition.series].checks
        return state is None or is_stale(state, self.inputs(partition), checks)

    def _expected_texts(self, table: TableKey) -> list[str]:
        """The inputs of every required hour, as the ledger writes them of one without a waiver: for years of
        hours in a fraction of the time that comparing one by one takes."""
        of, numbers = self._tables[table], self._hour_numbers
        hashes: dict[str, list[int]] = {}
        for reads in of.part.reads:
            back = (
                reads.back
                if reads.back_of is None
                else np.array(list(map(reads.back_of, self.required_hours)))
            )
            of_reads = self.snapshot.range_hashes(
                *reads.series,
                numbers - back,
                numbers + reads.forward,
                own=reads.table == table[2],
                requested=reads.requested,
            )
            sums = hashes.get(reads.table, repeat(0))
            hashes[reads.table] = [(a + b) % 2**BITS for a, b in zip(sums, of_reads, strict=False)]
        complete = of.completeness[UNKNOWN_HOUR]
        text = input_hashes_text(named_inputs(dict.fromkeys(hashes, "%032x"), of.part, of.version, complete))
        ordered = (hashes[name] for name in sorted(hashes))
        return [text % tuple(row) for _, *row in zip(self.required_hours, *ordered, strict=True)]

    @cached_property
    def _hour_numbers(self) -> Int64s:
        """The required hours, counted from the epoch."""
        return np.array(list(map(number_of, self.required_hours)), dtype=np.int64)

    # What is stale, down to the events

    def root(self, partition: PartitionKey) -> PartitionKey | None:
        """Return the outdated partition for which one of a required hour is stale, itself or one upstream;
        None where it is not stale."""
        return self._roots_of(partition.series).get(partition.hour)

    def stale(self, stage: str) -> dict[datetime, PartitionKey]:
        """Return the hours of a stage in which something is stale, in order, each with its first root.

        Partitions that are being written or blocked are left out: the ledger says so of them itself.
        """
        found: dict[datetime, PartitionKey] = {}
        own = [table for table in [EVENTS, *self._tables] if table[0] == stage]
        others = sorted(table for table in self.snapshot.names if table[0] == stage and table not in own)
        for table in [*own, *others]:
            for hour, root in self._roots_of(table).items():
                state = self.snapshot.get(PartitionKey(*table, hour))
                unsettled = state is not None and state.status in ("writing", "blocked")
                if table in others or not unsettled or (state and state.damaged):
                    found.setdefault(hour, root)
        return dict(sorted(found.items()))

    def _roots_of(self, table: TableKey) -> Mapping[datetime, PartitionKey]:
        """The stale required hours of a block's table, in order, each with its root."""
        if table not in self._roots:
            if table[0] == SOURCE_STAGE:
                hours = sorted(self._stale_source_hours(table) & self.snapshot.required_hours)
                self._roots[table] = {hour: PartitionKey(*table, hour) for hour in hours}
            elif table in self._tables:
                self._roots[table] = self._find_roots(table)
            elif table[0] in self._stages:
                hours = sorted(self.snapshot.hours_of(*table) & self.snapshot.required_hours)
                self._roots[table] = {hour: PartitionKey(*table, hour) for hour in hours}
            else:
                self._roots[table] = {}
        return self._roots[table]

    def _stale_source_hours(self, table: TableKey) -> Set[datetime]:
        """The stale hours of a table of the source stage. Nothing is computed from those beside the events:
        they are stale only where they are damaged."""
        compared = table == EVENTS and self._source is not None
        hours = {
            partition.hour
            for partition, state in self.snapshot.troubled()
            if partition.series == table and (state.damaged or (compared and state.status == "writing"))
        }
        if table == EVENTS and self._source is not None:
            hours.update(self.snapshot.required_hours.minus(self.snapshot.hours_of(*EVENTS)))
            like = self._source.like(self.snapshot)
            hours.update(self.snapshot.unlike(*EVENTS, self._source.expected, like))
        return hours

    def _find_roots(self, table: TableKey) -> dict[datetime, PartitionKey]:
        roots: dict[datetime, PartitionKey] = {}
        stale: list[datetime] = []
        inputs: list[tuple[InputRange, list[datetime], Mapping[datetime, PartitionKey]]] = []
        for reads in self._tables[table].part.reads:
            of_input = roots if reads.series == table else self._roots_of(reads.series)
            inputs.append((reads, stale if of_input is roots else sorted(of_input), of_input))
        for hour in self.required_hours:
            partition = PartitionKey(*table, hour)
            root = next(filter(None, (_first_root(*of, hour) for of in inputs)), None)
            if root is None and self.is_outdated(partition):
                root = partition
            if root is not None:
                roots[hour] = root
                insort(stale, hour)
        return roots

    # What an hour consists of, and what that is computed from

    def partitions(self, stage: str, hour: datetime) -> list[PartitionKey]:
        """Return what an hour of a stage consists of: by the stream's file, and then what the ledger has of
        dropped blocks and of damaged tables."""
        own = [PartitionKey(*table, hour) for table in [EVENTS, *self._tables] if table[0] == stage]
        of_hour = sorted(self.snapshot.within(Interval.of_hour(hour)))
        known = [(of, state) for of, state in of_hour if of.stage == stage and of not in own]
        dropped = [of for of, _ in known if self._is_dropped(of)]
        return [*own, *dropped, *(of for of, state in known if state.damaged and of not in dropped)]

    def _is_dropped(self, partition: PartitionKey) -> bool:
        return partition.stage in self._stages and partition.series not in self._tables

    def reads(self, partition: PartitionKey) -> list[PartitionKey]:
        """Return the partitions that one is computed from, of each table from the first to the last hour that
        is required or recorded: there may be a century of others."""
        of, found = self._tables.get(partition.series), list[PartitionKey]()
        for reads in of.part.reads if of else ():
            hours = slice_hours(self._known_hours(reads.series), partition.hour, reads)
            between = Interval(hours[0], hours[-1] + HOUR).hours() if hours else ()
            found += [PartitionKey(*reads.series, hour) for hour in between]
        return found

    def _known_hours(self, table: TableKey) -> list[datetime]:
        if table not in self._known:
            recorded = self.snapshot.series(*table).keys()
            self._known[table] = sorted(recorded | self.snapshot.required_hours_of(*table))
        return self._known[table]

    @cached_property
    def _known(self) -> dict[TableKey, list[datetime]]:
        return {}

    def troubles(self, partition: PartitionKey) -> list[PartitionKey]:
        """Return the partitions for which one is blocked or incomplete: those upstream that are quarantined,
        blocked or incomplete, and read nothing that is; itself where it reads nothing that is."""
        found: list[PartitionKey] = []
        seen: set[PartitionKey] = set()
        ahead = [partition]
        while ahead:
            partition = ahead.pop()
            if partition not in seen:
                seen.add(partition)
                troubled = [read for read in self.reads(partition) if self._is_troubled(read)]
                found += [] if troubled else [partition]
                ahead += reversed(troubled)
        return found

    def _is_troubled(self, partition: PartitionKey) -> bool:
        state = self.snapshot.get(partition)
        return state is not None and (state.status not in READABLE or not state.complete)


def _first_root(
    reads: InputRange, stale: list[datetime], roots: Mapping[datetime, PartitionKey], hour: datetime
) -> PartitionKey | None:
    """The root of the first stale hour of an input that an hour reads."""
    first, last = reads.span(hour)
    place = bisect_left(stale, first)
    return roots[stale[place]] if place < bisect_right(stale, last) else None
