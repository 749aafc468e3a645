"""Persistent items, record by record (Lahiri, Tirthapura and Chandrashekar, section 3).

Time is cut into slots. The persistence of an item over a window of n slots is in how many of them it was
seen, however often in each; it is alpha-persistent where that is at least `alpha n`. To count exactly, every
item has to be remembered. Here an item is remembered from the first slot on in which a hash of item and slot
is below `tau`: seeing it again in that slot is no further chance, seeing it in another one is. What is
persistent passes soon, what is not mostly never does. From then on its slots are counted.

    tau = 2 / (epsilon n);  reported where counted + 1 / tau >= (alpha - epsilon / 2) n,
    which is where counted >= (alpha - epsilon) n

Beyond the paper, what surely is not alpha-persistent may be left out (`PersistenceParams.may_be`).

Guarantees, of each report: no item whose persistence is below `(alpha - epsilon) n` is in it. One that is
alpha-persistent is missing with probability `(1 - tau)^(2 / tau) <= e^-2` at most (lemmas 3.1 and 3.6); with
`ceil(ln(1 / delta) / 2)` instances, each with a seed of its own, of which all have to miss it, with `delta`.
Expected tuples of an instance: `tau` times the sum of the persistences (lemma 3.7).

The form that is fast is `transom.features.persistence.algorithm.vectorised`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

UNIT = 2**53
"""Steps of a hash from 0 to 1."""
Hash = Callable[[bytes, int], int]
"""Of an item and a slot, from 0 up to `UNIT`; as
`transom.features.persistence.algorithm.item_slot_hash.item_slot_hash` with a seed."""


@dataclass(frozen=True)
class PersistenceParams:
    """What is asked of a window.

    Attributes:
        slots: of the window, n.
        alpha: the share of them in which an item is seen that is persistent; above 0, at most 1.
        epsilon: by how much its share may be less; above 0, below alpha. The larger it is, the fewer tuples.
        instances: how many there are, each with a seed of its own.

    Raises:
        ValueError: parameters that contradict each other, or by which every item would be remembered.
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
        """How likely an item is remembered from a slot on in which it is seen."""
        return 2 / (self.epsilon * self.slots)

    @property
    def hash_threshold(self) -> int:
        """The first hash, in steps of `1 / UNIT`, that is not below `tau`."""
        return math.ceil(self.tau * UNIT)

    @property
    def min_reported(self) -> int:
        """In how many slots an item is counted that is reported."""
        return math.ceil((self.alpha - self.epsilon) * self.slots)

    @property
    def min_certain(self) -> int:
        """In how many slots an item is counted that is alpha-persistent beyond doubt."""
        return math.ceil(self.alpha * self.slots)

    def estimate(self, counted: int) -> Fraction:
        """The paper's estimate of the persistence of an item that was counted in some slots."""
        return counted + 1 / self.tau

    def estimate_within(self, counted: int, unknown: int) -> Fraction:
        """The paper's estimate, no more than can be.

        Args:
            counted: in how many slots the item was seen since any instance remembers it.
            unknown: how many slots of the window lie before.
        """
        return min(self.estimate(counted), Fraction(counted + unknown))

    def may_be(self, counted: Any, unknown: Any) -> Any:
        """Whether an item may be alpha-persistent, of which some slots of the window are not known.

        It was seen in `counted + unknown` of them at most: where that is less than `alpha n`, it is not. The
        paper reports it all the same, if it was counted often enough. To leave it out misses nothing, and
        names fewer that are not persistent.

        Args:
            counted, unknown: as of `estimate_within`; numbers, or many in an array.
        """
        return counted + unknown >= self.min_certain

    def reports(self, counted: int) -> bool:
        """Whether an item is reported that was counted in some slots."""
        return self.estimate(counted) >= (self.alpha - self.epsilon / 2) * self.slots


def instances_for(delta: float) -> int:
    """How many instances miss an alpha-persistent item with probability `delta` at most (theorem 3.1).

    Args:
        delta: above 0, below 1.
    """
    return max(1, math.ceil(math.log(1 / delta) / 2))


class FixedWindow:
    """All slots from the first to the last (algorithms 1 to 3)."""

    def __init__(self, asked: PersistenceParams, hashed: Hash) -> None:
        self.asked, self._hashed = asked, hashed
        self.tuples: dict[bytes, tuple[int, int]] = {}

    def take(self, item: bytes, slot: int) -> None:
        """Sketch-Update: an item in a slot, which is not before those of earlier ones."""
        if item in self.tuples:
            counted, latest = self.tuples[item]
            if latest < slot:
                self.tuples[item] = counted + 1, slot
        elif self._hashed(item, slot) < self.asked.hash_threshold:
            self.tuples[item] = 1, slot

    def reported(self) -> dict[bytes, Fraction]:
        """Detect-Persistent-Items: the estimate of each item that is reported."""
        return {
            item: self.asked.estimate(counted)
            for item, (counted, _) in self.tuples.items()
            if self.asked.reports(counted)
        }


class TrackedItem(NamedTuple):
    """What is remembered of an item from a slot on.

    Attributes:
        counted: in how many slots it was seen, that one included.
        latest: the last of them.
    """

    counted: int
    latest: int


class SlidingWindow:
    """The last n slots (algorithms 4 to 7): an item is remembered from every slot on in which its hash is
    below `tau`, so that whichever slot a window begins with, the first such slot inside it counts.

    Attributes:
        tuples: by item and the slot from which on it is remembered.
    """

    def __init__(self, asked: PersistenceParams, hashed: Hash) -> None:
        self.asked, self._hashed = asked, hashed
        self.tuples: dict[tuple[bytes, int], TrackedItem] = {}

    def take(self, item: bytes, slot: int) -> None:
        """Sliding-Window-Sketch-Update: an item in a slot, which is not before those of earlier ones."""
        if (item, slot) in self.tuples:
            return
        if self._hashed(item, slot) < self.asked.hash_threshold:
            self.tuples[item, slot] = TrackedItem(1, slot)
        for at, (counted, latest) in self.tuples.items():
            if at[0] == item and latest < slot:
                self.tuples[at] = TrackedItem(counted + 1, slot)

    def move_to(self, slot: int) -> None:
        """Drops what no window with this slot or a later one at its end begins with."""
        first = slot - self.asked.slots + 1
        self.tuples = {at: tracked for at, tracked in self.tuples.items() if at[1] >= first}

    def oldest(self, slot: int) -> Iterator[tuple[bytes, int, int]]:
        """Each item that is remembered from some slot of the window on that ends with one: the item, the
        first such slot, and in how many it was counted."""
        first = slot - self.asked.slots + 1
        starts: dict[bytes, int] = {}
        for item, start in self.tuples:
            if start >= first:
                starts[item] = min(start, starts.get(item, start))
        for item, start in starts.items():
            yield item, start, self.tuples[item, start].counted

    def reported(self, slot: int) -> dict[bytes, Fraction]:
        """Sliding-Window-Detect-Persistent-Items: the estimate of each item that is reported of the window
        that ends with a slot."""
        return {
            item: self.asked.estimate(counted)
            for item, _, counted in self.oldest(slot)
            if self.asked.reports(counted)
        }


class Exact:
    """Every item with every slot of the window in which it was seen: what a sketch is measured by."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.seen: dict[bytes, set[int]] = {}

    def take(self, item: bytes, slot: int) -> None:
        """An item in a slot."""
        self.seen.setdefault(item, set()).add(slot)

    def persistence(self, slot: int) -> dict[bytes, int]:
        """In how many slots of the window that ends with one each item was seen that was seen at all."""
        first = slot - self.slots + 1
        found = {item: sum(first <= s <= slot for s in seen) for item, seen in self.seen.items()}
        return {item: many for item, many in found.items() if many}
