"""Persistent items, record by record (Lahiri, Tirthapura and Chandrashekar, sections 3.1 and 3.2).

The persistence of an item over a window of n slots is the number of slots in which it occurs, however often
in each. It is alpha-persistent if that is at least `alpha n`. An item is tracked, and its slots are counted,
from the first slot in which a hash of item and slot is below `tau = 2 / (epsilon n)`. So a persistent item is
tracked soon, and most other items never. An item is reported if

    counted + 1 / tau >= (alpha - epsilon / 2) n,  which is counted >= (alpha - epsilon) n

Guarantees for each report:

- No item with a persistence below `(alpha - epsilon) n` is in it.
- An alpha-persistent item is missing with probability at most `(1 - tau)^(2 / tau) <= e^-2` (lemmas 3.1 and
  3.6). With `ceil(ln(1 / delta) / 2)` instances with seeds of their own, that is at most `delta`.

Cost: an instance is expected to store `tau` times the sum of the persistences in tuples (lemma 3.7).

`transom.features.persistence.algorithm.vectorised` is the fast form. Beyond the paper, it omits items that
are certainly not alpha-persistent (`PersistenceParams.may_be`).
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

from transom.features.persistence.algorithm.params import PersistenceParams

Hash = Callable[[bytes, int], int]
"""A hash of an item and a slot, from 0 to `params.UNIT - 1`, such as `item_slot_hash` with a seed."""


def reports(params: PersistenceParams, counted: int) -> bool:
    """Return whether an item with this number of counted slots is reported."""
    return params.estimate(counted) >= (params.alpha - params.epsilon / 2) * params.slots


class FixedWindow:
    """A window of all slots from the first to the last (algorithms 1 to 3).

    Attributes:
        tuples: the number of counted slots and the last one, by item.

    >>> window = FixedWindow(PersistenceParams(8, Fraction(1), Fraction(1, 2)), lambda item, slot: 0)
    >>> for slot in range(6):
    ...     window.take(b"daily", slot)
    >>> window.reported()  # 6 slots, and 1 / tau = 2 before the first one
    {b'daily': Fraction(8, 1)}
    """

    def __init__(self, params: PersistenceParams, hashed: Hash) -> None:
        self.params, self._hashed = params, hashed
        self.tuples: dict[bytes, tuple[int, int]] = {}

    def take(self, item: bytes, slot: int) -> None:
        """Add an item in a slot (Sketch-Update). Slots do not descend."""
        if item in self.tuples:
            counted, latest = self.tuples[item]
            if latest < slot:
                self.tuples[item] = counted + 1, slot
        elif self._hashed(item, slot) < self.params.hash_threshold:
            self.tuples[item] = 1, slot

    def reported(self) -> dict[bytes, Fraction]:
        """Return the estimate of each reported item (Detect-Persistent-Items)."""
        return {
            item: self.params.estimate(counted)
            for item, (counted, _) in self.tuples.items()
            if reports(self.params, counted)
        }


class TrackedItem(NamedTuple):
    """A tuple of the paper.

    Attributes:
        counted: the number of the item's slots since it is tracked, the first one included.
        latest: the last of these slots.
    """

    counted: int
    latest: int


class SlidingWindow:
    """A window of the last n slots (algorithms 4 to 7).

    An item is tracked from every slot in which its hash is below `tau`. For a window, the first such slot
    inside it counts.

    Attributes:
        tuples: the tuples, by item and the slot from which it is tracked.
    """

    def __init__(self, params: PersistenceParams, hashed: Hash) -> None:
        self.params, self._hashed = params, hashed
        self.tuples: dict[tuple[bytes, int], TrackedItem] = {}

    def take(self, item: bytes, slot: int) -> None:
        """Add an item in a slot (Sliding-Window-Sketch-Update). Slots do not descend."""
        if (item, slot) in self.tuples:
            return
        if self._hashed(item, slot) < self.params.hash_threshold:
            self.tuples[item, slot] = TrackedItem(1, slot)
        for at, (counted, latest) in self.tuples.items():
            if at[0] == item and latest < slot:
                self.tuples[at] = TrackedItem(counted + 1, slot)

    def move_to(self, slot: int) -> None:
        """Drop tuples that start before the window that ends with this slot."""
        first = slot - self.params.slots + 1
        self.tuples = {at: tracked for at, tracked in self.tuples.items() if at[1] >= first}

    def oldest(self, slot: int) -> Iterator[tuple[bytes, int, int]]:
        """Yield the tracked items of the window that ends with a slot: the item, the slot from which it is
        tracked, and its counted slots."""
        first = slot - self.params.slots + 1
        starts: dict[bytes, int] = {}
        for item, start in self.tuples:
            if start >= first:
                starts[item] = min(start, starts.get(item, start))
        for item, start in starts.items():
            yield item, start, self.tuples[item, start].counted

    def reported(self, slot: int) -> dict[bytes, Fraction]:
        """Return the estimate of each reported item of the window that ends with a slot
        (Sliding-Window-Detect-Persistent-Items)."""
        return {
            item: self.params.estimate(counted)
            for item, _, counted in self.oldest(slot)
            if reports(self.params, counted)
        }


class Exact:
    """Counts exactly, to measure the error of a sketch: stores every item with all its slots."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.slots_of: dict[bytes, set[int]] = {}

    def take(self, item: bytes, slot: int) -> None:
        """Add an item in a slot."""
        self.slots_of.setdefault(item, set()).add(slot)

    def persistence(self, slot: int) -> dict[bytes, int]:
        """Return the persistence of each item in the window that ends with a slot, without zeros."""
        first = slot - self.slots + 1
        counts = {item: sum(first <= s <= slot for s in slots) for item, slots in self.slots_of.items()}
        return {item: count for item, count in counts.items() if count}
