"""Persistent items, record by record (Lahiri, Tirthapura and Chandrashekar, section 3).

Time is cut into slots. The persistence of an item over a window of n slots is the number of slots in which it
occurs, however often in each. It is alpha-persistent if that is at least `alpha n`. Exact counting has to
store every item. Here an item is tracked from the first slot in which a hash of item and slot is below `tau`.
Each slot gives one chance, however often the item occurs in it. So a persistent item is tracked soon, and
most other items never. From then on its slots are counted.

    tau = 2 / (epsilon n);  reported where counted + 1 / tau >= (alpha - epsilon / 2) n,
    which is counted >= (alpha - epsilon) n

Beyond the paper, items that are certainly not alpha-persistent may be left out (`PersistenceParams.may_be`).

Guarantees for each report: no item with a persistence below `(alpha - epsilon) n` is in it. An
alpha-persistent item is missing with probability at most `(1 - tau)^(2 / tau) <= e^-2` (lemmas 3.1 and 3.6).
With `ceil(ln(1 / delta) / 2)` instances, each with its own seed, all of them miss it with probability at most
`delta`. Expected tuples of an instance: `tau` times the sum of the persistences (lemma 3.7).

The fast form is `transom.features.persistence.algorithm.vectorised`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

UNIT = 2**53
"""Steps of a hash from 0 to 1."""
Hash = Callable[[bytes, int], int]
"""A hash of an item and a slot, from 0 up to `UNIT`, such as
`transom.features.persistence.algorithm.item_slot_hash.item_slot_hash` with a seed."""


@dataclass(frozen=True)
class PersistenceParams:
    """Parameters of a window.

    Attributes:
        slots: the number of slots of the window, n.
        alpha: the minimum share of slots of a persistent item; above 0, at most 1.
        epsilon: the tolerance below alpha for a reported item; above 0, below alpha. Larger values give fewer
            tuples.
        instances: the number of instances, each with its own seed.

    Raises:
        ValueError: the parameters contradict each other, or every item would be tracked.
    """

    slots: int
    alpha: Fraction
    epsilon: Fraction
    instances: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise ValueError(f"alpha must be above 0 and at most 1; got {float(self.alpha):g}")
        if not 0 < self.epsilon < self.alpha:
            got = f"{float(self.epsilon):g} and alpha {float(self.alpha):g}"
            raise ValueError(f"epsilon must be above 0 and below alpha; got {got}")
        if self.slots < 1 or self.instances < 1:
            raise ValueError(f"slots and instances must be 1 or more; got {self.slots}, {self.instances}")
        if self.tau > 1:
            raise ValueError(
                f"epsilon must be at least 2 / {self.slots}, or every item is tracked, which takes more than "
                f"counting all of them exactly: tau = 2 / (epsilon n) is {float(self.tau):.3g}; got "
                f"epsilon {float(self.epsilon):g} of {self.slots} slots"
            )

    @property
    def tau(self) -> Fraction:
        """The probability that an item is tracked from one of its slots on."""
        return 2 / (self.epsilon * self.slots)

    @property
    def hash_threshold(self) -> int:
        """The smallest hash, in steps of `1 / UNIT`, that is not below `tau`."""
        return math.ceil(self.tau * UNIT)

    @property
    def min_reported(self) -> int:
        """The minimum counted slots of a reported item."""
        return math.ceil((self.alpha - self.epsilon) * self.slots)

    @property
    def min_certain(self) -> int:
        """The minimum counted slots of an item that is certainly alpha-persistent."""
        return math.ceil(self.alpha * self.slots)

    def estimate(self, counted: int) -> Fraction:
        """Return the paper's estimate of an item's persistence from its counted slots."""
        return counted + 1 / self.tau

    def estimate_within(self, counted: int, unknown: int) -> Fraction:
        """Return the paper's estimate, limited to the possible maximum.

        Args:
            counted: the number of the item's slots since any instance tracks it.
            unknown: the number of slots of the window before that.
        """
        return min(self.estimate(counted), Fraction(counted + unknown))

    def may_be(self, counted: Any, unknown: Any) -> Any:
        """Return whether an item may be alpha-persistent, given that some slots of the window are unknown.

        Its persistence is at most `counted + unknown`. If that is less than `alpha n`, it is not
        alpha-persistent. The paper reports it anyway if it was counted often enough. Leaving it out misses
        nothing and reports fewer items that are not persistent.

        Args:
            counted, unknown: as of `estimate_within`; numbers or arrays.
        """
        return counted + unknown >= self.min_certain

    def reports(self, counted: int) -> bool:
        """Return whether an item with this number of counted slots is reported."""
        return self.estimate(counted) >= (self.alpha - self.epsilon / 2) * self.slots


def instances_for(delta: float) -> int:
    """Return the number of instances that all miss an alpha-persistent item with probability at most `delta`
    (theorem 3.1).

    Args:
        delta: above 0, below 1.
    """
    return max(1, math.ceil(math.log(1 / delta) / 2))


class FixedWindow:
    """A window of all slots from the first to the last (algorithms 1 to 3)."""

    def __init__(self, params: PersistenceParams, hashed: Hash) -> None:
        self.params, self._hashed = params, hashed
        self.tuples: dict[bytes, tuple[int, int]] = {}

    def take(self, item: bytes, slot: int) -> None:
        """Sketch-Update: add an item in a slot that is not before earlier ones."""
        if item in self.tuples:
            counted, latest = self.tuples[item]
            if latest < slot:
                self.tuples[item] = counted + 1, slot
        elif self._hashed(item, slot) < self.params.hash_threshold:
            self.tuples[item] = 1, slot

    def reported(self) -> dict[bytes, Fraction]:
        """Detect-Persistent-Items: return the estimate of each reported item."""
        return {
            item: self.params.estimate(counted)
            for item, (counted, _) in self.tuples.items()
            if self.params.reports(counted)
        }


class TrackedItem(NamedTuple):
    """A tuple: an item that is tracked from a slot on.

    Attributes:
        counted: the number of its slots, the first one included.
        latest: the last of these slots.
    """

    counted: int
    latest: int


class SlidingWindow:
    """A window of the last n slots (algorithms 4 to 7). An item is tracked from every slot in which its hash
    is below `tau`, so that for any window the first such slot inside it counts.

    Attributes:
        tuples: by item and the slot from which it is tracked.
    """

    def __init__(self, params: PersistenceParams, hashed: Hash) -> None:
        self.params, self._hashed = params, hashed
        self.tuples: dict[tuple[bytes, int], TrackedItem] = {}

    def take(self, item: bytes, slot: int) -> None:
        """Sliding-Window-Sketch-Update: add an item in a slot that is not before earlier ones."""
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
        """Yield each item that is tracked from some slot of the window that ends with a slot: the item, the
        first such slot, and its counted slots."""
        first = slot - self.params.slots + 1
        starts: dict[bytes, int] = {}
        for item, start in self.tuples:
            if start >= first:
                starts[item] = min(start, starts.get(item, start))
        for item, start in starts.items():
            yield item, start, self.tuples[item, start].counted

    def reported(self, slot: int) -> dict[bytes, Fraction]:
        """Sliding-Window-Detect-Persistent-Items: return the estimate of each reported item of the window
        that ends with a slot."""
        return {
            item: self.params.estimate(counted)
            for item, _, counted in self.oldest(slot)
            if self.params.reports(counted)
        }


class Exact:
    """The exact form, to measure a sketch by: every item with all its slots of the window."""

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
