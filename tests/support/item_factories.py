"""Strategies for items observed in slots, and their results, computed record by record."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from transom.core.exact_sums import Bools
from transom.core.intervals import HOUR_LENGTH
from transom.features.persistence.algorithm.item_slot_hash import item_slot_hash
from transom.features.persistence.algorithm.params import PersistenceParams
from transom.features.persistence.algorithm.reference import Exact, SlidingWindow, TrackedItem
from transom.features.persistence.algorithm.vectorised import (
    WATCHED,
    Reported,
    SlotObservations,
    TrackerConfig,
    TrackerState,
    Tuples,
    advance,
)

MINUTE = 60_000_000
ITEMS = (b"a", b"bb", b"ccc", b"d")
Record = tuple[int, bytes]
"""A time and an item."""
At = tuple[int, bytes, int]
"""An instance, an item, and the slot from which on it is tracked."""


@dataclass(frozen=True)
class Case:
    """A case of tracking: the parameters, records in order, requested hours, first hours of runs, and the
    seed of the first instance.
    """

    tracking: TrackerConfig
    records: Sequence[Record]
    watched: frozenset[bytes]
    due: Sequence[int]
    runs: Sequence[int]
    seed: int = 0

    @property
    def hours(self) -> range:
        """Return all hours from the first to the last requested one."""
        return range(self.due[0], self.due[-1] + 1)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw some items, some of them in most slots, and some hours that are not requested."""
    slots = draw(st.integers(5, 14))
    alpha = draw(st.fractions(Fraction(1, 2), 1, max_denominator=10))
    # Large enough that not every item is tracked.
    low, high = Fraction(2, slots), alpha * Fraction(19, 20)
    epsilon = low + (high - low) * draw(st.fractions(0, 1, max_denominator=6))
    requested = PersistenceParams(slots, alpha, epsilon, draw(st.integers(1, 3)))
    tracking = TrackerConfig(requested, draw(st.sampled_from([15, 20, 30, 60, 120, 180])) * MINUTE)
    first = draw(st.integers(400_000, 400_006))
    due = [first + n for n in range(draw(st.integers(1, 24))) if n == 0 or draw(st.integers(0, 5))]
    records = []
    for item in ITEMS:
        chance = draw(st.sampled_from([1, 4, 8, 9]))
        for hour in due:
            for quarter in range(4):
                if draw(st.integers(0, 9)) < chance:
                    offsets = draw(st.lists(st.integers(0, 15 * MINUTE - 1), min_size=1, max_size=2))
                    records += [
                        (hour * HOUR_LENGTH + quarter * 15 * MINUTE + offset, item) for offset in offsets
                    ]
    watched = frozenset(draw(st.sets(st.sampled_from(ITEMS), max_size=1)))
    runs = sorted({due[0], *draw(st.sets(st.sampled_from(due), max_size=6))})
    return Case(tracking, sorted(records), watched, due, runs)


def plain(case: Case) -> Iterator[tuple[int, dict[At, TrackedItem], dict[bytes, int] | None, set[bytes]]]:
    """Return for each hour its tuples, and for reporting hours the named items with their start, and the
    items that left.
    """
    tracking, requested = case.tracking, case.tracking.params
    windows = [
        SlidingWindow(requested, lambda item, slot, seed=seed: item_slot_hash(item, slot, seed))  # type: ignore[misc]
        for seed in range(case.seed, case.seed + requested.instances)
    ]
    exact = Exact(requested.slots)
    named: dict[bytes, int] = {}
    for hour in case.hours:
        for time, item in case.records:
            if time // HOUR_LENGTH != hour:
                continue
            slot = time // tracking.length
            exact.take(item, slot)
            for window in windows:
                window.move_to(slot)
                if item not in case.watched:
                    window.take(item, slot)
        last = tracking.slot(hour)
        tuples: dict[At, TrackedItem] = {}
        for seed, window in enumerate(windows):
            window.move_to(last)
            tuples |= {(seed, item, start): tracked for (item, start), tracked in window.tuples.items()}
        for item in case.watched:
            observed = sorted(s for s in exact.slots_of.get(item, ()) if last - requested.slots < s <= last)
            tuples |= {
                (WATCHED, item, slot): TrackedItem(len(observed) - place, observed[-1])
                for place, slot in enumerate(observed)
            }
        if not tracking.reports(hour):
            yield hour, tuples, None, set()
            continue
        result = {item for window in windows for item in window.reported(last)}
        # The tuple that started first represents its item. Its possible misses are too few to matter for
        # some.
        starts = {item: (start, count) for window in windows for item, start, count in window.oldest(last)}
        for window in windows:
            starts |= {i: (s, n) for i, s, n in window.oldest(last) if (s, n) < starts[i]}
        first = last - requested.slots + 1
        result = {
            i for i in result if starts[i][1] + starts[i][0] - first >= requested.alpha * requested.slots
        }
        persistence = exact.persistence(last)
        result |= {
            item for item in case.watched if persistence.get(item, 0) >= requested.alpha * requested.slots
        }
        remaining = named.keys() - result
        named = {item: named.get(item, (hour + 1) * HOUR_LENGTH) for item in result}
        yield hour, tuples, named, remaining


def fast(case: Case) -> Iterator[TrackerState]:
    """Return the same results, computed for many items at once, run by run."""
    state = TrackerState(case.due[0] - 1, Tuples.empty(case.tracking.width), Reported.none())
    for place, begin in enumerate(case.runs):
        until = case.runs[place + 1] if place + 1 < len(case.runs) else case.due[-1] + 1
        hours = [hour for hour in case.due if begin <= hour < until]
        # A run has consecutive hours.
        for first in (hour for hour in hours if hour == begin or hour - 1 not in hours):
            period = range(first, next(h for h in range(first, until + 1) if h not in hours))
            for now in advance(case.tracking, state, *sightings(case, period), period):
                yield now
                state = now


def sightings(case: Case, hours: range) -> tuple[SlotObservations, Bools]:
    """Return the pairs of some hours, and which of their hashes are below tau."""
    tracking, requested = case.tracking, case.tracking.params
    times: dict[tuple[int, int, int], list[int]] = {}
    for time, item in case.records:
        if time // HOUR_LENGTH in hours:
            times.setdefault((ITEMS.index(item), time // HOUR_LENGTH, time // tracking.length), []).append(
                time
            )
    keys = sorted(times)
    item, hour, slot = (np.array([key[n] for key in keys], dtype=np.int64) for n in range(3))
    starts = [
        [item_slot_hash(ITEMS[key[0]], key[2], seed) < requested.hash_threshold for key in keys]
        for seed in range(requested.instances)
    ]
    return SlotObservations(
        item, hour, slot,
        np.array([len(times[key]) for key in keys], dtype=np.int64),
        np.array([min(times[key]) // tracking.unit for key in keys], dtype=np.int64),
        np.array([ITEMS[key[0]] in case.watched for key in keys], dtype=bool),
    ), np.array(starts, dtype=bool).reshape(requested.instances, len(keys))  # fmt: skip


def contacts(case: Case, item: bytes, start: int, hour: int) -> Mapping[int, list[int]]:
    """Return the times of an item in each slot from one on, up to an hour's end, in the unit of gaps."""
    result: dict[int, list[int]] = {}
    for time, other in case.records:
        slot = time // case.tracking.length
        if other == item and slot >= start and time // HOUR_LENGTH <= hour:
            result.setdefault(slot, []).append(time // case.tracking.unit)
    return result
