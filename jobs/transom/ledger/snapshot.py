"""The states of all partitions at one version of the ledger."""

from collections.abc import Callable, Collection, ItemsView, Iterator, Mapping, Sequence, Set
from datetime import datetime
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.exact_sums import Bools, Int64s
from transom.core.hour_sets import HourSet
from transom.core.intervals import Interval, moment_of, number_of
from transom.core.partitions import (
    EXTERNAL_STAGE,
    SOURCE_STAGE,
    PartitionKey,
    PartitionState,
    Status,
    TableKey,
    input_hashes_text,
    partition_hash,
)
from transom.ledger.columnar_state import StoredPartitions
from transom.ledger.hash_sums import DIGITS, Sums, as_numbers, as_rows, prefix_sums
from transom.ledger.hour_arrays import first_in_ranges
from transom.storage.tables import Table

Condition = Callable[[StoredPartitions], Bools]
StatesByHour = Mapping[datetime, PartitionState]
Items = Iterator[tuple[PartitionKey, PartitionState]]


class LedgerSnapshot(Mapping[PartitionKey, PartitionState]):
    """The states of the ledger's partitions at one version.

    Years of partitions are queried in Arrow arrays: each method creates objects only for its result.

    Args:
        states: states that replace stored ones; None for a partition that does not exist.
        external: hours of tables that are not in the ledger, of stage `EXTERNAL_STAGE`. They can be read by
            key; iteration omits them.
        stored: all other partitions.
    """

    def __init__(
        self,
        states: Mapping[PartitionKey, PartitionState | None],
        external: Mapping[TableKey, StatesByHour] | None = None,
        stored: StoredPartitions | None = None,
    ) -> None:
        self._states = dict(states)
        self._external = dict(external or {})
        self._stored = stored
        self._hours_of: dict[TableKey, HourSet] = {}
        self._hours: dict[str, HourSet] = {}
        self._incomplete: dict[TableKey, list[datetime]] = {}
        self._sums: dict[tuple[TableKey, bool, bool], tuple[Int64s, Sums]] = {}

    def __getitem__(self, partition: PartitionKey) -> PartitionState:
        if partition.stage == EXTERNAL_STAGE:
            return self._external[partition.series][partition.hour]
        state = self._states.get(partition)
        if self._stored is not None and partition not in self._states:
            place = self._stored.place(partition)
            state = None if place is None else self._stored.state(place)
        if state is None:
            raise KeyError(partition)
        return state

    def __contains__(self, partition: object) -> bool:
        if not isinstance(partition, PartitionKey) or partition.stage == EXTERNAL_STAGE:
            return super().__contains__(partition)
        if partition in self._states:
            return self._states[partition] is not None
        return self._stored is not None and self._stored.place(partition) is not None

    def __iter__(self) -> Iterator[PartitionKey]:
        return (partition for partition, _ in self.items())

    def __len__(self) -> int:
        return sum(int(exists.sum()) for _, exists in self._parts)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, LedgerSnapshot) and self._is_same(other)) or super().__eq__(other)

    def items(self) -> ItemsView[PartitionKey, PartitionState]:
        """Return all partitions with their states."""
        return _Items(self)

    def _is_same(self, other: "LedgerSnapshot") -> bool:
        """Return whether two snapshots have the same parts, apart from external tables.

        A fast test of equality, which may be False for equal snapshots.
        """
        return self._stored is other._stored and self._states == other._states

    @cached_property
    def _parts(self) -> list[tuple[StoredPartitions, Bools]]:
        """The stored partitions and the replacing ones, each with a mask of the valid ones."""
        parts: list[tuple[StoredPartitions, Bools]] = []
        if self._stored is not None:
            exists = np.ones(len(self._stored.hours), dtype=bool)
            places = map(self._stored.place, self._states)
            exists[[place for place in places if place is not None]] = False
            parts.append((self._stored, exists))
        own = {partition: state for partition, state in self._states.items() if state is not None}
        if own:
            parts.append((StoredPartitions.of(own), np.ones(len(own), dtype=bool)))
        return parts

    def _select(self, condition: Condition) -> Items:
        """Return the partitions that meet a condition."""
        for part, exists in self._parts:
            for place in np.flatnonzero(exists & condition(part)).tolist():
                yield part.partition(place), part.state(place)

    def troubled(self) -> Items:
        """Return the partitions that are not published, or incomplete."""
        return self._select(lambda part: part.troubled)

    def having(
        self, statuses: Collection[Status], tables: Collection[str], before: datetime | None = None
    ) -> Items:
        """Return the partitions of some tables with one of the given statuses.

        Args:
            statuses: the statuses.
            tables: the names of the tables.
            before: if given, only partitions of earlier hours.
        """

        def condition(part: StoredPartitions) -> Bools:
            result = part.having(statuses) & part.of_tables(lambda table: table[2] in tables)
            return result if before is None else result & (part.hours < number_of(before))

        return self._select(condition)

    def by_run(self, stage: str, run_id: str) -> Items:
        """Return the partitions of a stage that a run has written or is writing, in any of its chunks."""
        return self._select(
            lambda part: part.by_run(run_id) & part.of_tables(lambda table: table[0] == stage)
        )

    def within(self, interval: Interval) -> Items:
        """Return the partitions of the hours of an interval."""
        first, end = number_of(interval.start), number_of(interval.end)
        return self._select(lambda part: (part.hours >= first) & (part.hours < end))

    @cached_property
    def names(self) -> Set[TableKey]:
        """Stage, block and table of every partition."""
        return {
            table
            for part, exists in self._parts
            for table, places in part.places.items()
            if exists[places.start : places.stop].any()
        }

    def all_hours(self, stage: str) -> HourSet:
        """Return every hour of a stage, requested or not."""
        return self._hour_set(lambda part: part.of_tables(lambda table: table[0] == stage))

    def previous_versions(self) -> dict[str, dict[datetime, int]]:
        """Return the versions with the published rows of hours that a run has begun to replace, by table and
        hour."""
        versions: dict[str, dict[datetime, int]] = {}
        for partition, state in self.troubled():
            if state.previous_version is not None:
                versions.setdefault(partition.table, {})[partition.hour] = state.previous_version
        return versions

    def series(self, stage: str, block: str, table: str) -> StatesByHour:
        """Return the states of a block's table by hour."""
        key = (stage, block, table)
        return self._external.get(key) or _Hours(self, key)

    def hours_of(self, stage: str, block: str, table: str) -> HourSet:
        """Return every hour of a block's table."""
        key = (stage, block, table)
        if key not in self._hours_of:
            self._hours_of[key] = self._hour_set(lambda part: part.of_tables(key.__eq__))
        return self._hours_of[key]

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Return columns of `ledger`, a row for each partition."""
        parts = [
            pa.table({name: part.column(name).filter(pa.array(exists)) for name in names})
            for part, exists in self._parts
        ]
        schema = Table.load("ledger").arrow_schema()
        empty = pa.schema([schema.field(name) for name in names]).empty_table()
        return pa.concat_tables([empty, *parts])

    def readable_hours(self, stage: str, block: str, table: str) -> HourSet:
        """Return the hours of a block's table that later stages may read."""
        return self._hour_set(lambda part: part.readable & part.of_tables((stage, block, table).__eq__))

    def count_statuses(self, table: TableKey, interval: Interval) -> dict[str, int]:
        """Return how many of the required hours of an interval have each status in a block's table.

        Published hours that lack something count as `incomplete`, those without a status as `missing`.
        """
        required, counts = self.required_hours.within(interval), dict[str, int]()
        for part, exists in self._parts:
            own = exists & part.of_tables(table.__eq__) & np.isin(part.hours, required.numbers)
            lacking = pa.array(part.readable & ~part.complete)
            statuses = pc.if_else(lacking, "incomplete", part.column("status"))
            for item in statuses.filter(pa.array(own)).value_counts().to_pylist():
                counts[item["values"]] = counts.get(item["values"], 0) + item["counts"]
        missing = len(required) - sum(counts.values())
        return counts | ({"missing": missing} if missing else {})

    def _hour_set(self, condition: Condition) -> HourSet:
        hours = [part.hours[exists & condition(part)] for part, exists in self._parts]
        return HourSet.of_numbers(np.unique(np.concatenate([np.array([], dtype=np.int64), *hours])))

    def hours_having(self, status: Status, stage: str) -> HourSet:
        """Return the hours of a stage in which a partition has a status."""
        return self._hour_set(
            lambda part: part.having([status]) & part.of_tables(lambda table: table[0] == stage)
        )

    def hours(self, stage: str) -> HourSet:
        """Return the requested hours of a stage."""
        if stage not in self._hours:
            self._hours[stage] = self._hour_set(
                lambda part: part.flags("requested") & part.of_tables(lambda table: table[0] == stage)
            )
        return self._hours[stage]

    @property
    def required_hours(self) -> HourSet:
        """The hours that each stage must have: the requested ones of the source stage.

        A failed gate keeps later stages from all hours of a run, good ones, too. These hours do not count as
        empty. An hour that was not requested counts as empty, even if it has rows from files of other hours.
        """
        return self.hours(SOURCE_STAGE)

    def required_hours_of(self, stage: str, block: str, table: str) -> Set[datetime]:
        """Return the hours that a block's table must have; for an external table, those that it has."""
        return self.series(stage, block, table).keys() if stage == EXTERNAL_STAGE else self.required_hours

    def range_hash(
        self, table: TableKey, first: datetime, last: datetime, own: bool = False, requested: bool = False
    ) -> int:
        """Return the hash of the required hours of a block's table in a range.

        Args:
            table: the table.
            first: the first hour.
            last: the last hour, inclusive.
            own: whether later hours of the same table read them.
            requested: whether empty hours count (`InputRange.requested`).
        """
        ends = np.array([number_of(first)]), np.array([number_of(last)])
        return as_numbers(self.range_hashes(table, *ends, own, requested))[0]

    def range_hashes(
        self, table: TableKey, first: Int64s, last: Int64s, own: bool = False, requested: bool = False
    ) -> Sums:
        """Return the `range_hash` of many ranges, given in hours since the epoch.

        The hash of a range is the sum of its hours' hashes modulo 2**128; the hash of an empty hour is 0.
        Prefix sums make it O(log n) for a range of any length.
        """
        key = (table, own, requested)
        if key not in self._sums:
            self._sums[key] = self._prefix_sums(*key)
        hours, sums = self._sums[key]
        begin = np.searchsorted(hours, first)
        result: Sums = sums[np.maximum(np.searchsorted(hours, last, "right"), begin)] - sums[begin]
        return result

    def _prefix_sums(self, table: TableKey, own: bool, requested: bool) -> tuple[Int64s, Sums]:
        """Return a table's required hours since the epoch, and the sums of the hashes before each."""
        hours = HourSet.of(self.required_hours_of(*table)).numbers
        hashes, known = np.zeros((len(hours), DIGITS), dtype=np.uint64), np.zeros(len(hours), dtype=bool)
        for part, exists in self._parts:
            if table in part.places:
                places = part.places[table]
                chosen = np.flatnonzero((exists & part.complete)[places.start : places.stop])
                numbers = part.hours[places.start + chosen]
                inside, at = first_in_ranges(hours, numbers, numbers)
                of_part, empty = part.complete_hashes(table)
                of_part = of_part if requested else np.where(empty[:, np.newaxis], np.uint64(0), of_part)
                hashes[at[inside]], known[at[inside]] = of_part[chosen[inside]], True
        states, others = self.series(*table), np.flatnonzero(~known)
        keys = [PartitionKey(*table, moment_of(number)) for number in hours[others].tolist()]
        hashes[others] = as_rows(partition_hash(key, states.get(key.hour), own, requested) for key in keys)
        return hours, prefix_sums(hashes)

    def unlike(
        self,
        stage: str,
        block: str,
        table: str,
        expected: Callable[[datetime], Mapping[str, str]],
        like: HourSet,
    ) -> list[datetime]:
        """Return the hours of a block's table whose input hashes are not the expected ones, in order.

        Args:
            stage: the stage of the table.
            block: the block of the table.
            table: the name of the table.
            expected: returns the expected input hashes of an hour.
            like: hours whose input hashes are known to be as expected (`recorded_as`).
        """
        states = self.series(stage, block, table)
        hours = self.hours_of(stage, block, table).minus(like)
        return [hour for hour in hours if states[hour].input_hashes != expected(hour)]

    def recorded_as(self, stage: str, block: str, table: str, inputs: Mapping[str, str]) -> HourSet:
        """Return the readable hours of a block's table with the given input hashes."""
        hours, texts = self.recorded(stage, block, table)
        same = pc.equal(texts, input_hashes_text(inputs)).fill_null(False).to_numpy(zero_copy_only=False)
        return HourSet.of_numbers(np.sort(hours[same]))

    def recorded(self, stage: str, block: str, table: str) -> tuple[Int64s, pa.Array]:
        """Return the readable hours of a block's table since the epoch, and their recorded input hashes as
        text. Only a change of its inputs makes such an hour stale."""
        return self._column("input_hashes", (stage, block, table), lambda part: part.readable)

    def _column(self, column: str, table: TableKey, condition: Condition) -> tuple[Int64s, pa.Array]:
        """Return the hours since the epoch of a table's partitions that meet a condition, in no order, and a
        column of texts."""
        hours, texts = [np.array([], dtype=np.int64)], [pa.array([], pa.string())]
        for part, exists in self._parts:
            if table in part.places:
                within = slice(part.places[table].start, part.places[table].stop)
                selected = (exists & condition(part))[within]
                texts.append(part.column(column)[within].filter(pa.array(selected)))
                hours.append(part.hours[within][selected])
        return np.concatenate(hours), pa.concat_arrays(texts)

    def incomplete(self, stage: str, block: str, table: str) -> list[datetime]:
        """Return the required hours of a block's table that are incomplete, in order."""
        key = (stage, block, table)
        if key not in self._incomplete:
            if stage == EXTERNAL_STAGE:
                hours = {hour for hour, state in self.series(*key).items() if not state.complete}
            else:
                incomplete = self._hour_set(lambda part: part.of_tables(key.__eq__) & ~part.flags("complete"))
                hours = set(incomplete)
            self._incomplete[key] = sorted(hours & self.required_hours_of(*key))
        return self._incomplete[key]

    def updated(self, states: Mapping[PartitionKey, PartitionState | None]) -> "LedgerSnapshot":
        """Return this snapshot with some states replaced; None removes a partition."""
        return LedgerSnapshot({**self._states, **states}, self._external, self._stored)

    def with_external(self, external: Mapping[TableKey, StatesByHour]) -> "LedgerSnapshot":
        """Return this snapshot with the hours of external tables."""
        return LedgerSnapshot(self._states, external, self._stored) if external else self


class _Items(ItemsView[PartitionKey, PartitionState]):
    _mapping: LedgerSnapshot

    def __iter__(self) -> Items:
        return self._mapping._select(lambda part: np.ones(len(part.hours), dtype=bool))


class _Hours(Mapping[datetime, PartitionState]):
    """The states of a block's table by hour."""

    def __init__(self, snapshot: LedgerSnapshot, table: TableKey) -> None:
        self._snapshot, self._table = snapshot, table

    def __getitem__(self, hour: datetime) -> PartitionState:
        return self._snapshot[PartitionKey(*self._table, hour)]

    def __iter__(self) -> Iterator[datetime]:
        return iter(self._snapshot.hours_of(*self._table))

    def __len__(self) -> int:
        return len(self._snapshot.hours_of(*self._table))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Hours) and self._table == other._table:
            return self._snapshot._is_same(other._snapshot) or super().__eq__(other)
        return super().__eq__(other)
