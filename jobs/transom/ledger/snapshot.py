"""What the ledger says of every partition at one moment."""

from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from functools import cached_property
from itertools import accumulate

import numpy as np
import pyarrow as pa

from transom.core.exact_sums import Bools, Int64s
from transom.core.hour_sets import HourSet
from transom.core.intervals import Interval, moment_of, number_of
from transom.core.partitions import (
    BITS,
    EMPTY_DIGEST,
    EXTERNAL_STAGE,
    SOURCE_STAGE,
    PartitionKey,
    PartitionState,
    Status,
    TableKey,
    input_hashes_text,
    partition_hash,
    text_hash,
)
from transom.ledger.columnar_state import StoredPartitions


class LedgerSnapshot(Mapping[PartitionKey, PartitionState]):
    """The ledger's nodes as they stood at one version.

    Stored nodes become Python objects where they are asked for by name: to make objects of years of them
    takes seconds. What has to look at all of them is a method here, and makes those alone that it finds.

    Args:
        entries: of nodes; None of one that there is not, though it is among those that are stored.
        fillers: hours of what is not in the ledger and is read beside it: each can be asked for, and none is
            among the nodes that the book goes through.
        stored: all other nodes.
    """

    def __init__(
        self,
        entries: Mapping[PartitionKey, PartitionState | None],
        fillers: Mapping[TableKey, Mapping[datetime, PartitionState]] | None = None,
        stored: "StoredPartitions | None" = None,
    ) -> None:
        self._entries = dict(entries)
        self._fillers = dict(fillers or {})
        self._stored = stored

    def __getitem__(self, node: PartitionKey) -> PartitionState:
        if node.stage == EXTERNAL_STAGE:
            return self._fillers[node.stage, node.block, node.table][node.hour]
        if node in self._entries:
            entry = self._entries[node]
        else:
            place = None if self._stored is None else self._stored.place(node)
            entry = None if self._stored is None or place is None else self._stored.entry(place)
        if entry is None:
            raise KeyError(node)
        return entry

    def __contains__(self, node: object) -> bool:
        if not isinstance(node, PartitionKey) or node.stage == EXTERNAL_STAGE:
            return super().__contains__(node)
        if node in self._entries:
            return self._entries[node] is not None
        return self._stored is not None and self._stored.place(node) is not None

    def __iter__(self) -> Iterator[PartitionKey]:
        return (node for node, _ in self.items())

    def __len__(self) -> int:
        return sum(1 for _ in self._own()) + int(self._visible.sum())

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, LedgerSnapshot) and self._same(other)) or super().__eq__(other)

    def items(self) -> ItemsView[PartitionKey, PartitionState]:
        """Return all nodes, with what the ledger says of them."""
        return _Items(self)

    def _same(self, other: "LedgerSnapshot") -> bool:
        """Whether two books are the same but for what is beside the ledger; others may be equal, too."""
        return self._stored is other._stored and self._entries == other._entries

    def _own(self) -> Iterator[tuple[PartitionKey, PartitionState]]:
        return ((node, entry) for node, entry in self._entries.items() if entry is not None)

    @cached_property
    def _visible(self) -> Bools:
        """Which places of what is stored hold."""
        shown = np.ones(0 if self._stored is None else len(self._stored.hours), dtype=bool)
        if self._stored is not None:
            places = map(self._stored.place, self._entries)
            shown[[place for place in places if place is not None]] = False
        return shown

    def _chosen(
        self,
        stored: "Callable[[StoredPartitions], Bools]",
        own: Callable[[PartitionKey, PartitionState], bool],
    ) -> Iterator[tuple[PartitionKey, PartitionState]]:
        """Nodes that meet a condition, which is put in two ways."""
        if self._stored is not None:
            for place in np.flatnonzero(self._visible & stored(self._stored)).tolist():
                yield self._stored.node(place), self._stored.entry(place)
        yield from ((node, entry) for node, entry in self._own() if own(node, entry))

    def troubled(self) -> Iterator[tuple[PartitionKey, PartitionState]]:
        """Return the nodes that are not published, or lack something."""
        return self._chosen(
            lambda stored: stored.troubled,
            lambda _, entry: entry.status != "published" or not entry.complete,
        )

    def having(
        self, statuses: Collection[Status], tables: Collection[str], before: datetime | None = None
    ) -> Iterator[tuple[PartitionKey, PartitionState]]:
        """Return the nodes of some tables that have one of some statuses.

        Args:
            before: only those of earlier hours.
        """
        last = None if before is None else number_of(before)

        def stored(of: "StoredPartitions") -> Bools:
            found = of.having(statuses) & of.of_tables(lambda series: series[2] in tables)
            return found if last is None else found & (of.hours < last)

        def own(node: PartitionKey, entry: PartitionState) -> bool:
            early = before is None or node.hour < before
            return early and node.table in tables and entry.status in statuses

        return self._chosen(stored, own)

    def by_run(self, stage: str, run_id: str) -> Iterator[tuple[PartitionKey, PartitionState]]:
        """Return the nodes of a stage that a run has written or is writing, whichever chunk of it."""
        chunk = f"{run_id} "

        def stored(of: "StoredPartitions") -> Bools:
            return of.by_run(run_id, chunk) & of.of_tables(lambda series: series[0] == stage)

        def own(node: PartitionKey, entry: PartitionState) -> bool:
            return node.stage == stage and (entry.run_id == run_id or entry.run_id.startswith(chunk))

        return self._chosen(stored, own)

    def within(self, interval: Interval) -> Iterator[tuple[PartitionKey, PartitionState]]:
        """Return the nodes of the hours of an interval."""
        first, end = number_of(interval.start), number_of(interval.end)
        return self._chosen(
            lambda stored: (stored.hours >= first) & (stored.hours < end),
            lambda node, _: node.hour in interval,
        )

    @cached_property
    def names(self) -> Set[TableKey]:
        """Stage, block and table of every node."""
        own = {node.series for node, _ in self._own()}
        if self._stored is None:
            return own
        return own | {
            one for one, of in self._stored.places.items() if self._visible[of.start : of.stop].any()
        }

    def previous_versions(self) -> dict[str, dict[datetime, int]]:
        """Return the version that holds the published rows of an hour, by table and hour, where a run has
        begun to replace them."""
        found: dict[str, dict[datetime, int]] = {}
        for node, entry in self.troubled():
            if entry.previous_version is not None:
                found.setdefault(node.table, {})[node.hour] = entry.previous_version
        return found

    def series(self, stage: str, block: str, table: str) -> Mapping[datetime, PartitionState]:
        """The hours of one block's table."""
        series = (stage, block, table)
        return self._fillers.get(series) or _Hours(self, series)

    def hours_of(self, stage: str, block: str, table: str) -> HourSet:
        """Every hour of one block's table."""
        series = (stage, block, table)
        if series not in self._hours_of:
            own = (node.hour for node, _ in self._own() if node.series == series)
            self._hours_of[series] = self._hour_set(lambda stored: stored.of_tables(series.__eq__), own)
        return self._hours_of[series]

    @cached_property
    def _hours_of(self) -> dict[TableKey, HourSet]:
        return {}

    def _hour_set(self, stored: "Callable[[StoredPartitions], Bools]", own: Iterable[datetime]) -> HourSet:
        numbers = [number_of(hour) for hour in own]
        if self._stored is not None:
            numbers = np.concatenate([self._stored.hours[self._visible & stored(self._stored)], numbers])  # type: ignore[assignment]
        return HourSet.of_numbers(np.unique(np.asarray(numbers, dtype=np.int64)))

    def hours(self, stage: str) -> HourSet:
        """Every hour of a stage that somebody asked for."""
        if stage not in self._hours:
            own = (node.hour for node, entry in self._own() if entry.requested and node.stage == stage)
            self._hours[stage] = self._hour_set(
                lambda stored: (
                    stored.flags("requested") & stored.of_tables(lambda series: series[0] == stage)
                ),
                own,
            )
        return self._hours[stage]

    @cached_property
    def _hours(self) -> dict[str, HourSet]:
        return {}

    @property
    def required_hours(self) -> HourSet:
        """Every hour that each stage has to have: that somebody asked the first one for, and no other.

        A gate that fails keeps the stages behind it from all hours of a run, good ones among them: these hold
        events, and count as empty nowhere. An hour that the first stage was not asked for is empty in all,
        though files of other hours may have put rows in it.
        """
        return self.hours(SOURCE_STAGE)

    def required_hours_of(self, stage: str, block: str, table: str) -> Set[datetime]:
        """The hours that a block's table has to have; of what is not in the ledger, those that it has."""
        return self.series(stage, block, table).keys() if stage == EXTERNAL_STAGE else self.required_hours

    def range_hash(
        self,
        stage: str,
        block: str,
        table: str,
        first: datetime,
        last: datetime,
        own: bool = False,
        requested: bool = False,
    ) -> int:
        """What stands in some hours of one block's table that are due, both ends among them, as a number.

        It is the sum of a hash for each hour that is not empty: a month takes no longer than an hour.

        Args:
            own: whether it is later hours of the same table that read them.
            requested: whether empty hours count, as `InputRange.requested` says.
        """
        bounds = [number_of(first)], [number_of(last)]
        (found,) = self.range_hashes(stage, block, table, *bounds, own, requested)
        return found

    def range_hashes(
        self,
        stage: str,
        block: str,
        table: str,
        first: Sequence[int] | Int64s,
        last: Sequence[int] | Int64s,
        own: bool = False,
        requested: bool = False,
    ) -> list[int]:
        """The same of many stretches of hours, whose ends are counted from the epoch."""
        series = (stage, block, table, own, requested)
        if series not in self._contents:
            self._contents[series] = self._summed(*series)
        hours, sums = self._contents[series]
        begin, end = np.searchsorted(hours, first).tolist(), np.searchsorted(hours, last, "right").tolist()
        return [(sums[b] - sums[a]) % 2**BITS for a, b in zip(begin, end, strict=True)]

    @cached_property
    def _contents(self) -> dict[tuple[str, str, str, bool, bool], tuple[Int64s, list[int]]]:
        return {}

    def _summed(
        self, stage: str, block: str, table: str, own: bool, requested: bool
    ) -> tuple[Int64s, list[int]]:
        hours = np.array(sorted(map(number_of, self.required_hours_of(stage, block, table))), dtype=np.int64)
        known = {
            hour: 0
            if digest == EMPTY_DIGEST and not requested
            else text_hash(f"{stage} {block} {table} {3600 * hour} {digest} True")
            for hour, digest in self._stored_texts("digest", (stage, block, table), whole=True).items()
        }
        series = self.series(stage, block, table)
        hashes = (
            partition_hash(
                PartitionKey(stage, block, table, moment_of(hour)),
                series.get(moment_of(hour)),
                own,
                requested,
            )
            if (found := known.get(hour)) is None
            else found
            for hour in hours.tolist()
        )
        return hours, list(accumulate(hashes, initial=0))

    def unlike(
        self,
        stage: str,
        block: str,
        table: str,
        expected: Callable[[datetime], Mapping[str, str]],
        like: HourSet,
    ) -> list[datetime]:
        """The hours of one block's table whose inputs are others than expected, in order.

        Args:
            like: hours whose inputs are known to be as expected, as `recorded_as` finds them.
        """
        series = self.series(stage, block, table)
        asked = self.hours_of(stage, block, table).minus(like)
        return [hour for hour in asked if series[hour].input_hashes != expected(hour)]

    def recorded_as(self, stage: str, block: str, table: str, inputs: Mapping[str, str]) -> HourSet:
        """Hours of one block's table that have some inputs, as far as one look says it."""
        wanted = input_hashes_text(inputs)
        recorded = self.recorded(stage, block, table).items()
        return HourSet.of_numbers(
            np.array([hour for hour, text in recorded if text == wanted], dtype=np.int64)
        )

    def recorded(self, stage: str, block: str, table: str) -> Mapping[int, str]:
        """What was recorded as inputs of hours of one block's table, as text, by the hour, counted from the
        epoch: of those of which nothing but that can make them out of date, and not of all of these."""
        return self._stored_texts("input_hashes", (stage, block, table), whole=False)

    def _stored_texts(self, column: str, series: TableKey, whole: bool) -> dict[int, str]:
        """What a column holds of nodes that stand, as far as they are stored.

        Args:
            whole: whether only those are meant that lack nothing.
        """
        of = range(0) if self._stored is None else self._stored.places.get(series, range(0))
        if self._stored is None or not of:
            return {}
        part = slice(of.start, of.stop)
        good = self._visible[part] & (self._stored.complete if whole else self._stored.readable)[part]
        texts = self._stored.column(column)[part].filter(pa.array(good)).to_pylist()
        return dict(zip(self._stored.hours[part][good].tolist(), texts, strict=True))

    def incomplete(self, stage: str, block: str, table: str) -> list[datetime]:
        """The hours of one block's table that are due and in which something is missing, in order."""
        series = (stage, block, table)
        if series not in self._incomplete:
            due = self.required_hours_of(*series)
            if stage == EXTERNAL_STAGE:
                lacking = [hour for hour, entry in self.series(*series).items() if not entry.complete]
            else:
                found = self._chosen(
                    lambda stored: stored.of_tables(series.__eq__) & ~stored.flags("complete"),
                    lambda node, entry: node.series == series and not entry.complete,
                )
                lacking = [node.hour for node, _ in found]
            self._incomplete[series] = sorted(hour for hour in lacking if hour in due)
        return self._incomplete[series]

    @cached_property
    def _incomplete(self) -> dict[TableKey, list[datetime]]:
        return {}

    def updated(self, entries: Mapping[PartitionKey, PartitionState | None]) -> "LedgerSnapshot":
        """This book with some nodes replaced, and those that are None forgotten."""
        return LedgerSnapshot({**self._entries, **entries}, self._fillers, self._stored)

    def with_external(
        self, fillers: Mapping[TableKey, Mapping[datetime, PartitionState]]
    ) -> "LedgerSnapshot":
        """This book with the hours of what is not in the ledger."""
        return LedgerSnapshot(self._entries, fillers, self._stored) if fillers else self


class _Items(ItemsView[PartitionKey, PartitionState]):
    """The nodes of a book, with what the ledger says of them."""

    _mapping: LedgerSnapshot

    def __iter__(self) -> Iterator[tuple[PartitionKey, PartitionState]]:
        return self._mapping._chosen(
            lambda stored: stored.of_tables(lambda _: True), lambda node, entry: True
        )


class _Hours(Mapping[datetime, PartitionState]):
    """The hours of one block's table, with what a book says of them."""

    def __init__(self, book: LedgerSnapshot, series: TableKey) -> None:
        self._book, self._series = book, series

    def __getitem__(self, hour: datetime) -> PartitionState:
        return self._book[PartitionKey(*self._series, hour)]

    def __iter__(self) -> Iterator[datetime]:
        return iter(self._book.hours_of(*self._series))

    def __len__(self) -> int:
        return len(self._book.hours_of(*self._series))

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, _Hours) and self._series == other._series and self._book._same(other._book)
        return same or super().__eq__(other)
