"""Persistent items, of many items at once (Lahiri, Tirthapura and Chandrashekar, section 3.2; one by one:
`transom.features.persistence.algorithm.reference`).

What is remembered depends on the pairs of an item and a slot alone, and on the hash: not on how often or in
which order they come within a slot. So an hour is its pairs, each once; what each tuple counts is the
difference of two running sums of them; and what earlier hours have left is a tuple with something in it
already. The oldest tuple of an item inside the window, of whichever instance, counts the most slots, and
speaks for it.

Items that are watched are remembered from every slot on: what is counted of them is all there is.
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
from transom.features.persistence.algorithm.reference import PersistenceParams

WATCHED = -1
"""The instance of tuples from every slot on."""
EXACT = 2**31
"""The squares of spans below this add up to less than 2^62, as long as the spans together stay below it."""
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class TrackerConfig:
    """What is tracked, and when it is reported.

    Attributes:
        length: of a slot, in microseconds: it divides an hour, or is whole hours. Slots count from 1970.
    """

    params: PersistenceParams
    length: int

    @property
    def unit(self) -> int:
        """The step in which times of contacts are kept, in microseconds: the least power of ten of which a
        window has fewer than `EXACT`."""
        unit = 1
        while self.params.slots * self.length // unit >= EXACT:
            unit *= 10
        return unit

    @property
    def width(self) -> int:
        """How many bytes a bit for each slot takes."""
        return -(-self.params.slots // 8)

    def slot(self, hour: int) -> int:
        """The slot in which an hour ends, which counts from 1970 as well."""
        return ((hour + 1) * HOUR_LENGTH - 1) // self.length

    def reports(self, hour: int) -> bool:
        """Whether a slot is over with an hour, and so the window that ends with it is reported."""
        return (hour + 1) * HOUR_LENGTH % self.length == 0

    def reports_between(self, before: int, after: int) -> tuple[int, ...]:
        """The first and the last of the hours between two that report, if there are any."""
        apart = max(1, self.length // HOUR_LENGTH)
        first, last = ((before + 1) // apart + 1) * apart - 1, after // apart * apart - 1
        return (first, last) if first <= last else ()


@dataclass(frozen=True)
class SlotObservations(ColumnBatch):
    """In which slots items were seen, by item and then by time, a row for each hour of a slot.

    Attributes:
        item: codes, ascending.
        hour, slot: by their numbers.
        records: how often.
        first: when first, in `TrackerConfig.unit`.
        watched: whether the item is.
    """

    item: Int64s
    hour: Int64s
    slot: Int64s
    records: Int64s
    first: Int64s
    watched: Bools


@dataclass(frozen=True)
class Tuples(ColumnBatch):
    """What is remembered of items, by item and then by start.

    Attributes:
        instance: by its number, or `WATCHED`.
        start, latest: the slots from which on an item is remembered, and in which it was seen last.
        counted: in how many it was seen.
        records: how often.
        first, last: when first in those two slots, its first and last contact, in `TrackerConfig.unit`.
        gap_squares: of the time from each contact to the next.
        slots: a bit for each slot from `start` on, in bytes, the lowest first; of shape (tuples, width).
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
        """No tuples."""
        none: dict[str, Any] = {of.name: np.empty(0, dtype=np.int64) for of in fields(cls)}
        return cls(**none | {"slots": np.empty((0, width), dtype=np.uint8)})

    def oldest(self, first: int) -> Int64s:
        """Of each item that is remembered from some slot of a window on the first such tuple.

        Args:
            first: the first slot of the window.
        """
        inside = np.flatnonzero(self.start >= first)
        item = self.item[inside]
        found: Int64s = inside[np.append(True, item[1:] != item[:-1])[: len(item)]]
        return found


@dataclass(frozen=True)
class Reported(ColumnBatch):
    """Items that the last report has named, by item.

    Attributes:
        since: at which time it was that reports began to, in microseconds.
    """

    item: Int64s
    since: Int64s

    def take_of(self, item: Int64s) -> Int64s:
        """Since when each of some items is named; `MISSING` where it is not."""
        if not len(self.item):
            return np.full(len(item), MISSING)
        at = np.minimum(np.searchsorted(self.item, item), len(self.item) - 1)
        return np.where(self.item[at] == item, self.since[at], MISSING)


@dataclass(frozen=True)
class TrackerState:
    """What stands of items at the end of an hour.

    Attributes:
        hour: by its number.
        reported: which of them the last report has named.
        output: where the hour reports, the tuples that speak for items that are named, or watched; by number.
        exited: where it does, the items that the report before has named and this one does not.
        pairs, starts: of items that are not watched: how many pairs with a slot came in the hour, and how
            many tuples they started, over all instances.
    """

    hour: int
    tuples: Tuples
    reported: Reported
    output: Int64s = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    exited: Reported = field(default_factory=Reported.none)
    pairs: int = 0
    starts: int = 0


def advance(
    tracking: TrackerConfig,
    state: TrackerState,
    sightings: SlotObservations,
    starts: Bools,
    hours: Iterable[int],
) -> Iterator[TrackerState]:
    """Take what is remembered of many items on from hour to hour.

    Args:
        state: as an earlier hour has left it; hours between count as empty.
        sightings: of the hours.
        starts: whether the hash of each sighting is below `tau`; of shape (instances, sightings).
        hours: one after the other, by their numbers.
    """
    pass_ = _Pass(tracking, state.tuples, sightings, starts)
    reported, before = state.reported, state
    for hour in hours:
        tuples = pass_.at(hour)
        # Reports in between are of what had been left: the first may name what an unfinished slot has
        # brought, and what is not named after it is not named again.
        for between in tracking.reports_between(before.hour, hour):
            reported = _report(tracking, TrackerState(between, before.tuples, reported)).reported
        now = TrackerState(hour, tuples, reported, pairs=pass_.pairs(hour), starts=pass_.started(hour))
        if tracking.reports(hour):
            now = _report(tracking, now)
        yield now
        reported, before = now.reported, now


def _named(tracking: TrackerConfig, tuples: Tuples, hour: int) -> tuple[Int64s, Bools]:
    """The tuples that speak for their items in the report of an hour, and whether it names these."""
    asked = tracking.params
    first = tracking.slot(hour) - asked.slots + 1
    speaking = tuples.oldest(first)
    counted, unknown = tuples.counted[speaking], tuples.start[speaking] - first
    exact = tuples.instance[speaking] == WATCHED
    may_be = (counted >= asked.min_reported) & asked.may_be(counted, unknown)
    return speaking, np.where(exact, counted >= asked.min_certain, may_be)


def _report(tracking: TrackerConfig, now: TrackerState) -> TrackerState:
    tuples = now.tuples
    speaking, named = _named(tracking, tuples, now.hour)
    item = tuples.item[speaking[named]]
    since = now.reported.take_of(item)
    since = np.where(since == MISSING, (now.hour + 1) * HOUR_LENGTH, since)
    return replace(
        now,
        reported=Reported(item, since),
        output=speaking[named | (tuples.instance[speaking] == WATCHED)],
        exited=now.reported.take(~np.isin(now.reported.item, item)),
    )


class _Pass:
    """All tuples that there are in some hours, and what they have counted by the end of each."""

    def __init__(
        self, tracking: TrackerConfig, carried: Tuples, rows: SlotObservations, starts: Bools
    ) -> None:
        self._tracking, self._rows = tracking, rows
        many = len(rows.item)
        here = np.arange(many)
        heads = np.append(True, rows.item[1:] != rows.item[:-1])[:many]
        same_slot = np.append(False, rows.slot[1:] == rows.slot[:-1])[:many]
        fresh = heads | ~same_slot
        # A slot of several hours may have begun before.
        fresh &= ~(heads & (_latest_of(carried, rows.item) == rows.slot))
        self._fresh = fresh
        # The contact that a row is, or the last one before it; -1 where the item has none in these hours.
        latest = np.maximum.accumulate(np.where(fresh, here, -1))
        head = np.maximum.accumulate(np.where(heads, here, 0))
        self._contact = np.where(latest >= head, latest, -1)
        earlier = np.append(-1, self._contact[:-1])[:many]
        follows = fresh & ~heads & (earlier >= 0)
        gaps = np.where(follows, rows.first - rows.first[np.maximum(earlier, 0)], 0)
        self._slots_by, self._records_by, self._squares_by = (
            np.append(0, np.cumsum(column)) for column in (fresh.astype(np.int64), rows.records, gaps * gaps)
        )
        # One number for an item and an hour.
        self._origin = int(rows.hour.min(initial=0)) if many else 0
        self._span = (int(rows.hour.max()) - self._origin + 2) if many else 2
        self._numbers = rows.item * self._span + (rows.hour - self._origin)
        hashed = fresh & ~rows.watched
        instance, row = np.nonzero(starts & hashed)
        self._pairs, self._started = (
            np.bincount(rows.hour[some] - self._origin) for some in (np.flatnonzero(hashed), row)
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
        self._begun = both(np.full(len(carried.item), MISSING), rows.hour[row])
        self._upto = self._begin.copy()
        self._next_contact = np.append(this_or_next(fresh), many)
        self._tuples = Tuples(
            item=both(carried.item, rows.item[row]),
            instance=both(carried.instance, instance),
            start=both(carried.start, rows.slot[row]),
            latest=both(carried.latest, rows.slot[row]),
            counted=both(carried.counted, new),
            records=both(carried.records, new),
            first=both(carried.first, rows.first[row]),
            last=both(carried.last, rows.first[row]),
            # The way from the contact before is none of its own.
            gap_squares=both(carried.gap_squares, -(gaps * gaps)[row]),
            slots=both(carried.slots, np.zeros((len(row), tracking.width), np.uint8)),
        )

    def pairs(self, hour: int) -> int:
        """How many pairs with a slot came in an hour."""
        return self._of_hour(self._pairs, hour)

    def started(self, hour: int) -> int:
        """How many tuples they started."""
        return self._of_hour(self._started, hour)

    def _of_hour(self, numbers: Int64s, hour: int) -> int:
        return int(numbers[hour - self._origin]) if 0 <= hour - self._origin < len(numbers) else 0

    def at(self, hour: int) -> Tuples:
        """The tuples as they stand at the end of an hour; hours are asked for in order."""
        rows, every = self._rows, self._tuples
        first = self._tracking.slot(hour) - self._tracking.params.slots + 1
        live = np.flatnonzero((every.start >= first) & (self._begun <= hour))
        found, begin = every.take(live), self._begin[live]
        # Before the first hour of all it lies between the rows of two items.
        number = found.item * self._span + min(max(hour - self._origin, -1), self._span - 1)
        behind = np.maximum(np.searchsorted(self._numbers, number, side="right"), begin)
        self._mark(live, behind)
        if not len(rows.item):
            return replace(found, slots=self._tuples.slots[live])
        contact = self._contact[np.maximum(behind - 1, 0)]
        met = (behind > begin) & (contact >= begin)
        contact = np.where(met, contact, 0)
        following = rows.first[np.minimum(self._next_contact[begin], len(rows.item) - 1)]
        bridge = np.where(met & ~self._new[live], following - found.last, 0)
        return replace(
            found,
            latest=np.where(met, rows.slot[contact], found.latest),
            counted=found.counted + self._slots_by[behind] - self._slots_by[begin],
            records=found.records + self._records_by[behind] - self._records_by[begin],
            last=np.where(met, rows.first[contact], found.last),
            gap_squares=found.gap_squares
            + self._squares_by[behind]
            - self._squares_by[begin]
            + bridge * bridge,
            slots=self._tuples.slots[live],
        )

    def _mark(self, live: Int64s, behind: Int64s) -> None:
        """Sets the bits of slots that have come since the hour before."""
        of, row = expand_ranges(self._upto[live], behind)
        fresh = self._fresh[row]
        number, row = live[of[fresh]], row[fresh]
        bit = self._rows.slot[row] - self._tuples.start[number]
        np.bitwise_or.at(self._tuples.slots, (number, bit >> 3), (1 << (bit & 7)).astype(np.uint8))
        self._upto[live] = behind


def _latest_of(tuples: Tuples, item: Int64s) -> Int64s:
    """The slot in which each of some items was seen last, as tuples remember it; `MISSING` where none
    does."""
    if not len(tuples.item):
        return np.full(len(item), MISSING)
    at = np.minimum(np.searchsorted(tuples.item, item), len(tuples.item) - 1)
    return np.where(tuples.item[at] == item, tuples.latest[at], MISSING)
