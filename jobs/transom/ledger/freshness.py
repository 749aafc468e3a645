"""Which hours are outdated or stale, and why: for runs, gates, commands, notebooks and audits.

As in a build system, an hour is outdated if its recorded input hashes differ from those of now; a run then
computes it again. An hour is stale if it is outdated or an hour upstream is, which is its root.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from transom.core.exact_sums import Bools, Int64s
from transom.core.hour_sets import HourSet
from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval, number_of
from transom.core.partitions import (
    READABLE,
    SOURCE_STAGE,
    PartitionKey,
    PartitionState,
    Status,
    TableKey,
)
from transom.ledger.hash_sums import Sums, as_texts
from transom.ledger.hour_arrays import first_in_ranges, spread_along_chain
from transom.ledger.input_hashes import (
    expected_inputs,
    expected_texts,
    is_stale,
    other_texts,
    partitions_read,
    recorded_inputs,
    slice_hours,
    table_inputs,
)
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import InputRange, Stage
from transom.ledger.stale_reason import Code, StaleReason
from transom.ledger.waivers import Waiver

EVENTS: TableKey = (SOURCE_STAGE, "events", "events")
"""The table that all others are computed from."""


class SourceInputs(Protocol):
    """The inputs of the source stage."""

    def expected(self, hour: datetime) -> Mapping[str, str]:
        """Return the input hashes of an hour now."""
        ...

    def unchanged_hours(self, snapshot: LedgerSnapshot, /) -> HourSet:
        """Return hours whose recorded input hashes certainly are those of now."""
        ...


class Freshness:
    """The freshness of partitions by one snapshot of the ledger.

    Args:
        snapshot: the ledger.
        stages: the stages, in the order in which they run. Inputs from other stages count as fresh.
        waivers: the failed checks that the stream file accepts.
        source: the inputs of events. Default: events are stale only if they are damaged.
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
        self._tables = dict(item for stage in stages for item in table_inputs(stage, waivers))
        self._outdated: dict[TableKey, list[datetime]] = {}
        self._roots: dict[TableKey, Mapping[datetime, PartitionKey]] = {}
        self._known: dict[TableKey, list[datetime]] = {}
        self._spans: dict[InputRange, tuple[Int64s, Int64s]] = {}

    # What a run of the stage must compute

    @cached_property
    def required_hours(self) -> list[datetime]:
        """The hours that every table must have, in order."""
        return list(self.snapshot.required_hours)

    @cached_property
    def _hour_numbers(self) -> Int64s:
        """The numbers of the required hours since the epoch."""
        return self.snapshot.required_hours.numbers

    def inputs(self, partition: PartitionKey) -> dict[str, str]:
        """Return the input hashes of a partition now: of each table, and of what else shapes the rows."""
        table, hour = self._tables[partition.series], partition.hour
        complete = table.completeness.get(hour, table.completeness[UNKNOWN_HOUR])
        return expected_inputs(table.part, table.version, hour, self.snapshot, complete, partition.table)

    def outdated_hours(self, stage: str, block: str, table: str) -> Sequence[datetime]:
        """Return the required hours of a block's table that a run of its stage must compute, in order.

        Their input hashes differ, or they read outdated state of their stage or outdated earlier hours of
        their own table.
        """
        key = (stage, block, table)
        if key not in self._outdated:
            self._outdated[key] = self._selected(self._find_outdated(key))
        return self._outdated[key]

    def _selected(self, which: Bools) -> list[datetime]:
        return [self.required_hours[place] for place in np.flatnonzero(which).tolist()]

    def _numbers(self, hours: Iterable[datetime]) -> Int64s:
        return np.array(list(map(number_of, hours)), dtype=np.int64)

    def _find_outdated(self, table: TableKey) -> Bools:
        """Return which required hours of a block's table are outdated."""
        definition, outdated = self._tables[table], self._differing(table)
        for reads in definition.state:
            of_state = self._numbers(self.outdated_hours(*reads.series))
            if len(of_state):
                outdated |= first_in_ranges(of_state, *self.spans(reads))[0]
        for reads in definition.own:
            outdated = spread_along_chain(outdated, self._hour_numbers, reads.back)
        return outdated

    def spans(self, reads: InputRange) -> tuple[Int64s, Int64s]:
        """Return the first and the last hour that each required hour reads, since the epoch."""
        if reads not in self._spans:
            self._spans[reads] = reads.spans(self.required_hours, self._hour_numbers)
        return self._spans[reads]

    def _differing(self, table: TableKey) -> Bools:
        """Return which required hours of a block's table do not exist or have other input hashes."""
        definition = self._tables[table]
        differs = other_texts(self.snapshot.recorded(*table), self._hour_numbers, self._expected_texts(table))
        # The expected texts are those of hours that have no waiver and are not quarantined.
        hours = {*definition.completeness, *self._having(table, "quarantined")}
        for hour in hours & self.snapshot.required_hours:
            partition = PartitionKey(*table, hour)
            state, place = self.snapshot.get(partition), np.searchsorted(self._hour_numbers, number_of(hour))
            differs[place] = state is None or is_stale(state, self.inputs(partition), definition.checks)
        return differs

    def _expected_texts(self, table: TableKey) -> pa.Array:
        """Return the input hashes of every required hour as text, as the ledger has them without a waiver."""
        definition = self._tables[table]
        sums: dict[str, Sums] = {}
        for reads in definition.part.reads:
            of_reads = self.snapshot.range_hashes(
                reads.series, *self.spans(reads), reads.table == table[2], reads.requested
            )
            sums[reads.table] = of_reads + sums[reads.table] if reads.table in sums else of_reads
        complete = definition.completeness[UNKNOWN_HOUR]
        hashes = {name: as_texts(of_table) for name, of_table in sums.items()}
        return expected_texts(hashes, definition.part, definition.version, complete, self.required_hours)

    def state_to_compute(self, partition: PartitionKey) -> list[PartitionKey]:
        """Return the state in earlier tables of its stage that must be computed before a partition."""
        state = self._tables[partition.series].state
        read = (key for reads in state for key in partitions_read(reads, partition.hour))
        return [*self._outdated_among(state, partition.hour), *filter(self.is_expired, read)]

    def is_expired(self, partition: PartitionKey) -> bool:
        """Return whether the rows of a partition are deleted by retention."""
        state = self.snapshot.get(partition)
        return state is not None and state.status == "expired"

    def _outdated_among(self, inputs: Iterable[InputRange], hour: datetime) -> list[PartitionKey]:
        """Return the outdated partitions among some inputs of an hour."""
        return [
            PartitionKey(*reads.series, outdated)
            for reads in inputs
            for outdated in slice_hours(self.outdated_hours(*reads.series), hour, reads)
        ]

    # Whether a partition is fresh, and why not

    def is_fresh(self, partition: PartitionKey) -> bool:
        """Return whether a run would compute the same rows now, from fresh inputs.

        An hour that was not requested is fresh without rows.
        """
        state = self.snapshot.get(partition)
        if state is None:
            return partition.hour not in self.snapshot.required_hours
        return state.status in READABLE and self.root(partition) is None

    def is_readable(self, partition: PartitionKey) -> bool:
        """Return whether a partition is published, fresh and not expired."""
        state = self.snapshot.get(partition)
        return state is not None and state.status == "published" and self.is_fresh(partition)

    def readable_hours(self, stage: str, block: str, table: str, hours: Iterable[datetime]) -> list[datetime]:
        """Return the readable hours, out of some hours of a block's table."""
        return [hour for hour in hours if self.is_readable(PartitionKey(stage, block, table, hour))]

    def why_not(self, partition: PartitionKey) -> tuple[StaleReason, ...]:
        """Return why a partition is not fresh; empty if it is."""
        state = self.snapshot.get(partition)
        if state is None:
            if partition.hour not in self.snapshot.required_hours:
                return ()
            keys = (key for key, _ in self.snapshot.within(Interval.of_hour(partition.hour)))
            known = any((key.stage, key.table) == (partition.stage, partition.table) for key in keys)
            return (StaleReason("block_added" if known else "not_computed"),)
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

    def _own_reasons(self, partition: PartitionKey, state: PartitionState) -> Iterator[StaleReason]:
        """Yield why a partition is outdated."""
        expected, recorded = self.recorded_inputs(partition, state.status), state.input_hashes
        if expected and recorded is None:
            yield StaleReason("unknown_inputs")
        elif expected and recorded is not None:
            for name in sorted({*recorded, *expected}):
                if recorded.get(name) != expected.get(name):
                    code, partitions = self._changed_input(partition, name)
                    yield StaleReason(code, partitions, name, recorded.get(name), expected.get(name))
        table = self._tables.get(partition.series)
        stale = self._outdated_among((*table.state, *table.own), partition.hour) if table else ()
        if stale:
            yield StaleReason("state_stale", tuple(stale))

    def recorded_inputs(self, partition: PartitionKey, status: Status) -> Mapping[str, str]:
        """Return the input hashes of now as the ledger records them for a partition of some status."""
        if partition.series in self._tables:
            return recorded_inputs(status, self.inputs(partition), self._tables[partition.series].checks)
        if partition.stage == SOURCE_STAGE and self._source is not None:
            return self._source.expected(partition.hour)
        return {}

    def _changed_input(self, partition: PartitionKey, name: str) -> tuple[Code, tuple[PartitionKey, ...]]:
        match name:
            case "specification" | "version" | "completeness" | "checks":
                return name, ()
        reads = tuple(read for read in self.reads(partition) if read.table == name)
        absent = (read for read in reads if read not in self.snapshot)
        missing = tuple(read for read in absent if read.hour in self.snapshot.required_hours_of(*read.series))
        return ("input_missing", missing) if missing else ("input_changed", reads)

    # What is stale, down to the events

    def root(self, partition: PartitionKey) -> PartitionKey | None:
        """Return the outdated partition, itself or upstream, that makes a partition of a required hour stale;
        None if it is not stale."""
        return self._roots_of(partition.series).get(partition.hour)

    def stale(self, stage: str) -> dict[datetime, PartitionKey]:
        """Return the hours of a stage in which a partition is stale, in order, each with its first root.

        Partitions with status `writing` or `blocked` are omitted, as the status shows the problem.
        """
        roots: dict[datetime, PartitionKey] = {}
        own = [table for table in [EVENTS, *self._tables] if table[0] == stage]
        others = sorted(table for table in self.snapshot.names if table[0] == stage and table not in own)
        for table in [*own, *others]:
            unsettled = self._having(table, "writing", "blocked") if table not in others else {}
            omitted = {hour for hour, state in unsettled.items() if not state.damaged}
            for hour, root in self._roots_of(table).items():
                if hour not in omitted:
                    roots.setdefault(hour, root)
        return dict(sorted(roots.items()))

    def _having(self, table: TableKey, *statuses: Status) -> dict[datetime, PartitionState]:
        """Return the states of the hours of a block's table that have one of some statuses."""
        states = self.snapshot.having(statuses, [table[2]])
        return {key.hour: state for key, state in states if key.series == table}

    def _roots_of(self, table: TableKey) -> Mapping[datetime, PartitionKey]:
        """Return the stale required hours of a block's table, in order, each with its root."""
        if table not in self._roots:
            stale: Set[datetime] = set()
            if table[0] == SOURCE_STAGE:
                stale = self._stale_source_hours(table)
            elif table not in self._tables and table[0] in self._stages:
                stale = self.snapshot.hours_of(*table)
            if table in self._tables:
                self._roots[table] = self._find_roots(table)
            else:
                hours = sorted(stale & self.snapshot.required_hours)
                self._roots[table] = {hour: PartitionKey(*table, hour) for hour in hours}
        return self._roots[table]

    def _stale_source_hours(self, table: TableKey) -> Set[datetime]:
        """Return the stale hours of a table of the source stage.

        Nothing is computed from its tables other than `events`. So those are stale only if damaged.
        """
        compared = table == EVENTS and self._source is not None
        states = self._having(table, "damaged", "writing")
        hours = {hour for hour, state in states.items() if compared or state.damaged}
        if table == EVENTS and self._source is not None:
            hours.update(self.snapshot.required_hours.minus(self.snapshot.hours_of(*EVENTS)))
            unchanged = self._source.unchanged_hours(self.snapshot)
            hours.update(self.snapshot.unlike(*EVENTS, self._source.expected, unchanged))
        return hours

    def _find_roots(self, table: TableKey) -> dict[datetime, PartitionKey]:
        stale = np.isin(self._hour_numbers, self._numbers(self.outdated_hours(*table)))
        roots: list[PartitionKey] = []
        inputs: list[tuple[InputRange, Int64s, list[PartitionKey]]] = []
        for reads in self._tables[table].part.reads:
            of_input = {} if reads.series == table else self._roots_of(reads.series)
            if of_input:
                numbers = self._numbers(sorted(of_input))
                stale |= first_in_ranges(numbers, *self.spans(reads))[0]
                inputs.append((reads, numbers, [of_input[hour] for hour in sorted(of_input)]))
            elif reads.series == table:
                inputs.append((reads, self._hour_numbers, roots))
        for reads, *_ in inputs:
            if reads.series == table:
                stale = spread_along_chain(stale, self._hour_numbers, reads.back)
        places = np.flatnonzero(stale)
        if not len(places):
            return {}
        # The root of the first stale hour in the first range that has one.
        firsts: list[tuple[list[bool], list[int], list[PartitionKey]]] = []
        for reads, numbers, of_hours in inputs:
            numbers = self._hour_numbers[places] if reads.series == table else numbers
            inside, at = first_in_ranges(numbers, *(ends[places] for ends in self.spans(reads)))
            firsts.append((inside.tolist(), at.tolist(), of_hours))
        hours = [self.required_hours[place] for place in places.tolist()]
        for number, hour in enumerate(hours):
            read = (of_hours[at[number]] for inside, at, of_hours in firsts if inside[number])
            roots.append(next(read, None) or PartitionKey(*table, hour))
        return dict(zip(hours, roots, strict=True))

    # The partitions of an hour, and what they are computed from

    def partitions(self, stage: str, hour: datetime) -> list[PartitionKey]:
        """Return the partitions of an hour of a stage.

        First those of the stream file, then those in the ledger of dropped blocks and damaged tables.
        """
        own = [PartitionKey(*table, hour) for table in [EVENTS, *self._tables] if table[0] == stage]
        of_hour = sorted(self.snapshot.within(Interval.of_hour(hour)))
        others = [(key, state) for key, state in of_hour if key.stage == stage and key not in own]
        dropped = [key for key, _ in others if self._is_dropped(key)]
        return [*own, *dropped, *(key for key, state in others if state.damaged and key not in dropped)]

    def _is_dropped(self, partition: PartitionKey) -> bool:
        return partition.stage in self._stages and partition.series not in self._tables

    def reads(self, partition: PartitionKey) -> list[PartitionKey]:
        """Return the partitions that a partition is computed from.

        For each table, from the first to the last hour in range that is required or recorded: the whole range
        may be a century.
        """
        table, inputs = self._tables.get(partition.series), list[PartitionKey]()
        for reads in table.part.reads if table else ():
            hours = slice_hours(self._known_hours(reads.series), partition.hour, reads)
            between = Interval(hours[0], hours[-1] + HOUR).hours() if hours else ()
            inputs += [PartitionKey(*reads.series, hour) for hour in between]
        return inputs

    def _known_hours(self, table: TableKey) -> list[datetime]:
        if table not in self._known:
            recorded = self.snapshot.series(*table).keys()
            self._known[table] = sorted(recorded | self.snapshot.required_hours_of(*table))
        return self._known[table]

    def troubles(self, partition: PartitionKey) -> list[PartitionKey]:
        """Return why a partition is blocked or incomplete.

        The causes are unreadable or incomplete partitions, upstream or itself, all of whose inputs are
        readable and complete.
        """
        causes: list[PartitionKey] = []
        visited: set[PartitionKey] = set()
        stack = [partition]
        while stack:
            partition = stack.pop()
            if partition not in visited:
                visited.add(partition)
                troubled = [read for read in self.reads(partition) if self._is_troubled(read)]
                causes += [] if troubled else [partition]
                stack += reversed(troubled)
        return causes

    def _is_troubled(self, partition: PartitionKey) -> bool:
        state = self.snapshot.get(partition)
        return state is not None and (state.status not in READABLE or not state.complete)
