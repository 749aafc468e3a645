"""Persistent items for many items at once (Lahiri, Tirthapura and Chandrashekar, section 3.2; item by item:
`transom.features.persistence.algorithm.reference`).

An hour is reduced to its distinct pairs of an item and a slot. The count of a tuple is the difference of two
running sums over them, plus its count from earlier hours. The oldest tuple of an item inside the window, of
any instance, counts the most slots and represents the item. Watched items are tracked from every slot on, so
their counts are exact.

Guarantee: `counted <= persistence <= counted + unknown` for every tracked item, where `unknown` is the number
of slots of the window before it is tracked; and the guarantees of the reference.

Cost: `O(p log p + t)` time for an hour with `p` pairs, and `t` tuples of the window. A tuple takes `n / 8`
bytes for its slots, and about a hundred more.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from transom.arrays.column_batch import MISSING, ColumnBatch
from transom.arrays.range_queries import expand_ranges
from transom.arrays.sorted_index import this_or_next
from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.features.persistence.algorithm.params import PersistenceParams

WATCHED = -1
"""The instance of the tuples of watched items."""
EXACT = 2**31
"""Squares of spans add up to less than 2^62 if the sum of the spans is below this."""
Bytes = npt.NDArray[np.uint8]
"""Rows of bytes."""


@dataclass(frozen=True)
class TrackerConfig:
    """Parameters of tracking and reporting. Slots are counted from 1970.

    Attributes:
        params: the parameters of the window.
        length: the length of a slot, in microseconds; it divides an hour, or is whole hours.
    """

    params: PersistenceParams
    length: int

    @property
    def unit(self) -> int:
        """The unit of the times of contacts, in microseconds.

        It is the smallest power of ten of which a window has fewer than `EXACT`.
        """
        unit = 1
        while self.params.slots * self.length // unit >= EXACT:
            unit *= 10
        return unit

    @property
    def width(self) -> int:
        """The number of bytes for one bit per slot."""
        return -(-self.params.slots // 8)

    def slot(self, hour: int) -> int:
        """Return the number of the slot in which an hour ends, counted from 1970."""
        return ((hour + 1) * HOUR_LENGTH - 1) // self.length

    def reports(self, hour: int) -> bool:
        """Return whether a slot ends with an hour, so that its window is reported."""
        return (hour + 1) * HOUR_LENGTH % self.length == 0

    def reports_between(self, previous: int, current: int) -> tuple[int, ...]:
        """Return the first and the last reporting hour between two hours, both exclusive, or nothing."""
        period = max(1, self.length // HOUR_LENGTH)
        first, last = ((previous + 1) // period + 1) * period - 1, current // period * period - 1
        return (first, last) if first <= last else ()


@dataclass(frozen=True)
class SlotObservations(ColumnBatch):
    """The slots of items, by item and then by time, a row for each hour of a slot.

    Attributes:
        item: codes, ascending.
        hour: the number of the hour since 1970.
        slot: the number of the slot since 1970.
        records: the number of records.
        first: the time of the first record, in `TrackerConfig.unit`.
        watched: whether the item is watched.
    """

    item: Int64s
    hour: Int64s
    slot: Int64s
    records: Int64s
    first: Int64s
    watched: Bools


@dataclass(frozen=True)
class Tuples(ColumnBatch):
    """Tuples of tracked items, by item and then by start.

    Attributes:
        item: codes, ascending.
        instance: the number of the instance, or `WATCHED`.
        start: the slot from which the item is tracked.
        latest: its last slot.
        counted: the number of its slots.
        records: the number of its records.
        first: its first contact: the time of its first record in `start`, in `TrackerConfig.unit`.
        last: its last contact: the time of its first record in `latest`, in `TrackerConfig.unit`.
        gap_squares: the sum of the squared times between consecutive contacts.
        slots: a bit for each slot from `start` on, little-endian; shape (tuples, width).
    """

    item: Int64s
    instance: Int64s
    start: Int64s
    latest: Int64s
    counted: Int64s
    records: Int64s
    first: Int64s
    last: Int64s
    gap_squares: Int64s
    slots: Bytes

    @classmethod
    def empty(cls, width: int) -> "Tuples":
        """Return a batch without tuples."""
        none: dict[str, Any] = {column.name: np.empty(0, dtype=np.int64) for column in fields(cls)}
        return cls(**none | {"slots": np.empty((0, width), dtype=np.uint8)})

    def oldest(self, first: int) -> Int64s:
        """Return the rows of the first tuple of each item in a window.

        Args:
            first: the first slot of the window.
        """
        inside = np.flatnonzero(self.start >= first)
        item = self.item[inside]
        rows: Int64s = inside[np.append(True, item[1:] != item[:-1])[: len(item)]]
        return rows


@dataclass(frozen=True)
class Reported(ColumnBatch):
    """The items of the last report.

    Attributes:
        item: codes, ascending.
        since: since when each is reported, in microseconds.
    """

    item: Int64s
    since: Int64s

    def since_of(self, item: Int64s) -> Int64s:
        """Return since when each item is reported; `MISSING` if it is not."""
        return _look_up(self.item, self.since, item)


@dataclass(frozen=True)
class TrackerState:
    """The state of items at the end of an hour.

    Attributes:
        hour: the number of the hour since 1970.
        tuples: the tuples of the window.
        reported: the items of the last report.
        output: if the hour reports, the rows of the tuples of reported or watched items.
        exited: if the hour reports, the items of the previous report that are not in this one.
        pairs: the number of pairs in the hour of an item that is not watched and a slot.
        starts: the number of tuples that these pairs started, over all instances.
    """

    hour: int
    tuples: Tuples
    reported: Reported
    output: Int64s = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    exited: Reported = field(default_factory=Reported.none)
    pairs: int = 0
    starts: int = 0


def advance(
    tracking: TrackerConfig, state: TrackerState, seen: SlotObservations, starts: Bools, hours: Iterable[int]
) -> Iterator[TrackerState]:
    """Yield the state of many items at the end of each of some hours.

    Args:
        tracking: the parameters.
        state: the state after an earlier hour; hours between count as empty.
        seen: the observations of the hours.
        starts: whether the hash of each observation is below `tau`; shape (instances, observations).
        hours: the numbers of the hours, ascending.
    """
    pass_ = _Pass(tracking, state.tuples, seen, starts)
    for hour in hours:
        reported = state.reported
        # Reports in between use the previous tuples. The first one may add items of an unfinished slot; later
        # ones only drop items. So the first and the last report are enough.
        for between in tracking.reports_between(state.hour, hour):
            reported = _report(tracking, TrackerState(between, state.tuples, reported)).reported
        pairs, started = (pass_.of_hour(counts, hour) for counts in (pass_.pairs, pass_.started))
        state = TrackerState(hour, pass_.at(hour), reported, pairs=pairs, starts=started)
        if tracking.reports(hour):
            state = _report(tracking, state)
        yield state


def _report(tracking: TrackerConfig, state: TrackerState) -> TrackerState:
    """Return the state with the report of its hour."""
    tuples, params = state.tuples, tracking.params
    first = tracking.slot(state.hour) - params.slots + 1
    # The tuples that represent their items.
    rows = tuples.oldest(first)
    counted, watched = tuples.counted[rows], tuples.instance[rows] == WATCHED
    may_be = (counted >= params.min_reported) & params.may_be(counted, tuples.start[rows] - first)
    named = np.where(watched, counted >= params.min_certain, may_be)
    item = tuples.item[rows[named]]
    since = state.reported.since_of(item)
    since = np.where(since == MISSING, (state.hour + 1) * HOUR_LENGTH, since)
    return replace(
        state,
        reported=Reported(item, since),
        output=rows[named | watched],
        exited=state.reported.take(~np.isin(state.reported.item, item)),
    )


class _Pass:
    """All tuples of some hours, and their counts at the end of each hour."""

    def __init__(
        self, tracking: TrackerConfig, carried: Tuples, rows: SlotObservations, starts: Bools
    ) -> None:
        self._tracking, self._rows = tracking, rows
        count = len(rows.item)
        index = np.arange(count)
        heads = np.append(True, rows.item[1:] != rows.item[:-1])[:count]
        same_slot = np.append(False, rows.slot[1:] == rows.slot[:-1])[:count]
        fresh = heads | ~same_slot
        # A slot of several hours may have begun earlier.
        fresh &= ~(heads & (_look_up(carried.item, carried.latest, rows.item) == rows.slot))
        self._fresh = fresh
        # The contact of a row, or the last one before it; -1 if the item has none in these hours.
        latest = np.maximum.accumulate(np.where(fresh, index, -1))
        head = np.maximum.accumulate(np.where(heads, index, 0))
        self._contact = np.where(latest >= head, latest, -1)
        earlier = np.append(-1, self._contact[:-1])[:count]
        follows = fresh & ~heads & (earlier >= 0)
        gaps = np.where(follows, rows.first - rows.first[np.maximum(earlier, 0)], 0)
        self._slots_by, self._records_by, self._squares_by = (
            np.append(0, np.cumsum(column)) for column in (fresh.astype(np.int64), rows.records, gaps * gaps)
        )
        # An item and an hour form one number.
        self._origin = int(rows.hour.min(initial=0)) if count else 0
        self._span = (int(rows.hour.max()) - self._origin + 2) if count else 2
        self._numbers = rows.item * self._span + (rows.hour - self._origin)
        hashed = fresh & ~rows.watched
        instance, row = np.nonzero(starts & hashed)
        self.pairs, self.started = (
            np.bincount(rows.hour[picked] - self._origin) for picked in (np.flatnonzero(hashed), row)
        )
        watched = np.flatnonzero(fresh & rows.watched)
        instance = np.append(instance, np.full(len(watched), WATCHED))
        row = np.append(row, watched)
        order = np.lexsort(
            [np.append(carried.instance, instance), np.append(carried.start, rows.slot[row]),
             np.append(carried.item, rows.item[row])]
        )  # fmt: skip

        def both(of_carried: Any, of_new: Any) -> Any:
            return np.concatenate([of_carried, of_new])[order]

        new = np.zeros(len(row), dtype=np.int64)
        self._new = both(np.zeros(len(carried.item), bool), np.ones(len(row), bool))
        self._begin = both(np.searchsorted(rows.item, carried.item), row)
        self._begin_hour = both(np.full(len(carried.item), MISSING), rows.hour[row])
        self._upto = self._begin.copy()
        self._next_contact = np.append(this_or_next(fresh), count)
        self._tuples = Tuples(
            item=both(carried.item, rows.item[row]),
            instance=both(carried.instance, instance),
            start=both(carried.start, rows.slot[row]),
            latest=both(carried.latest, rows.slot[row]),
            counted=both(carried.counted, new),
            records=both(carried.records, new),
            first=both(carried.first, rows.first[row]),
            last=both(carried.last, rows.first[row]),
            # The gap from the previous contact does not belong to the tuple.
            gap_squares=both(carried.gap_squares, -(gaps * gaps)[row]),
            slots=both(carried.slots, np.zeros((len(row), tracking.width), np.uint8)),
        )

    def of_hour(self, counts: Int64s, hour: int) -> int:
        """Return the count of an hour, from `pairs` or `started`."""
        return int(counts[hour - self._origin]) if 0 <= hour - self._origin < len(counts) else 0

    def at(self, hour: int) -> Tuples:
        """Return the tuples at the end of an hour. Call it with ascending hours."""
        rows, all_tuples = self._rows, self._tuples
        first = self._tracking.slot(hour) - self._tracking.params.slots + 1
        live = np.flatnonzero((all_tuples.start >= first) & (self._begin_hour <= hour))
        tuples, begin = all_tuples.take(live), self._begin[live]
        # The number of an hour before the first one is between the rows of two items.
        number = tuples.item * self._span + min(max(hour - self._origin, -1), self._span - 1)
        stop = np.maximum(np.searchsorted(self._numbers, number, side="right"), begin)
        self._mark(live, stop)
        if not len(rows.item):
            return replace(tuples, slots=self._tuples.slots[live])
        contact = self._contact[np.maximum(stop - 1, 0)]
        touched = (stop > begin) & (contact >= begin)
        contact = np.where(touched, contact, 0)
        following = rows.first[np.minimum(self._next_contact[begin], len(rows.item) - 1)]
        bridge = np.where(touched & ~self._new[live], following - tuples.last, 0)

        def added(sums: Int64s) -> Any:
            return sums[stop] - sums[begin]

        return replace(
            tuples,
            latest=np.where(touched, rows.slot[contact], tuples.latest),
            counted=tuples.counted + added(self._slots_by),
            records=tuples.records + added(self._records_by),
            last=np.where(touched, rows.first[contact], tuples.last),
            gap_squares=tuples.gap_squares + added(self._squares_by) + bridge * bridge,
            slots=self._tuples.slots[live],
        )

    def _mark(self, live: Int64s, stop: Int64s) -> None:
        """Set the bits of the slots since the previous hour."""
        owner, row = expand_ranges(self._upto[live], stop)
        fresh = self._fresh[row]
        number, row = live[owner[fresh]], row[fresh]
        bit = self._rows.slot[row] - self._tuples.start[number]
        np.bitwise_or.at(self._tuples.slots, (number, bit >> 3), (1 << (bit & 7)).astype(np.uint8))
        self._upto[live] = stop


def _look_up(keys: Int64s, values: Int64s, wanted: Int64s) -> Int64s:
    """Return the value of the first row with each wanted key, or `MISSING`. Keys ascend."""
    if not len(keys):
        return np.full(len(wanted), MISSING)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], MISSING)


def estimates(params: PersistenceParams, low: Int64s, high: Int64s) -> Any:
    """Return the estimated persistence of each item: `min(low + 1 / tau, high)`.

    Args:
        params: the parameters of the window.
        low: the number of the item's slots since it is tracked.
        high: the number of these slots and of all slots of the window before.
    """
    return np.minimum(low + float(params.estimate(0)), high)


class ExactTracker:
    """The exact persistence of every item in any window, to measure the error of a sketch.

    It stores as many pairs as the sum of all persistences. An instance of a sketch stores a share `tau`.

    Args:
        item: the item of each pair, as a code from 0 up.
        slot: the slot of each pair; pairs may come in any order, also repeated.
        count: the number of items.
    """

    def __init__(self, item: Int64s, slot: Int64s, count: int) -> None:
        self._count = count
        self._origin = int(slot.min(initial=0)) if len(slot) else 0
        self._span = (int(slot.max()) - self._origin + 1) if len(slot) else 1
        # An item and a slot form one number.
        self._pairs = np.unique(item * self._span + (slot - self._origin))

    def persistences(self, first: int, last: int) -> Int64s:
        """Return the number of slots of each item from a first to a last slot, by the item's code."""
        low = min(max(first - self._origin, 0), self._span)
        stop = min(max(last + 1 - self._origin, low), self._span)
        items = np.arange(self._count) * self._span
        first_pair, stop_pair = (np.searchsorted(self._pairs, items + end) for end in (low, stop))
        return stop_pair - first_pair
