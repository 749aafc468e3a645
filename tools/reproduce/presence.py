"""Generate items that are present in slots, as in the evaluation of Lahiri, Tirthapura and Chandrashekar.

The synthetic sets have groups of items; each group has its own probability of presence in a slot. The paper
describes only the distribution of persistences in HeaderTrace, which is reproduced: half of the items occur
in one slot of a window, 19 of 20 in at most twenty. The universe has 100,000 items, a fortieth of theirs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transom.features.persistence.algorithm.item_slot_hash import item_slot_hashes
from transom.features.persistence.algorithm.params import UNIT

SEED = 2014
UNIVERSE = 100_000
CHANCES = (0.95, 0.75, 0.55, 0.35, 0.25, 0.15, 0.1, 0.05, 0.01, 0.001)
GROUPS: Mapping[str, tuple[float, ...]] = {
    "Synthetic1": (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.55),
    "Synthetic2": (0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.01, 0.1, 0.862),
}
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Rng = np.random.Generator


@dataclass(frozen=True)
class Data:
    """A set of items.

    Attributes:
        slots: the number of slots of a window, n.
        windows: the number of consecutive windows.
        drawn: generates whether each item is present in each slot of a window, shape (items, slots).
    """

    name: str
    slots: int
    windows: int
    drawn: Callable[[Rng, int, int], Bools]

    def presences(self, universe: int) -> Iterator[tuple[int, Bools]]:
        """Yield the first slot of each window, and whether each item is present in each of its slots."""
        rng = np.random.default_rng([SEED, *map(ord, self.name)])
        for number in range(self.windows):
            yield number * self.slots, self.drawn(rng, universe, self.slots)


def _grouped(shares: tuple[float, ...]) -> Callable[[Rng, int, int], Bools]:
    def drawn(rng: Rng, universe: int, slots: int) -> Bools:
        chances = np.repeat(CHANCES, np.diff(np.rint(np.cumsum((0, *shares)) * universe).astype(int)))
        present: Bools = rng.random((len(chances), slots), dtype=np.float32) < chances[:, None]
        return present

    return drawn


def _like_header_trace(rng: Rng, universe: int, slots: int) -> Bools:
    few, many = np.arange(2, 21), np.arange(21, slots + 1)
    values = np.concatenate([[1], few, many])
    chances = np.concatenate([[0.5], 0.45 / few / (1 / few).sum(), 0.05 / many**2 / (1 / many**2).sum()])
    persistence = rng.choice(values, universe, p=chances)
    # Each item is present in random slots, as many as its persistence: those with the smallest numbers.
    order = rng.random((universe, slots), dtype=np.float32).argsort(axis=1).argsort(axis=1)
    present: Bools = order < persistence[:, None]
    return present


DATA = (
    Data("HeaderTrace-like", 100, 3, _like_header_trace),
    *(Data(name, 288, 10, _grouped(shares)) for name, shares in GROUPS.items()),
)


def hashes(present: Bools, first: int, seed: int) -> Floats:
    """Return the hash of each pair of item and slot, from 0 to 1; 1 if the item is absent.

    Args:
        first: the number of the first slot.
    """
    item, slot = np.nonzero(present)
    names = [b"%d" % number for number in range(len(present))]
    places = [(first + number).to_bytes(8, "little") for number in range(present.shape[1])]
    keys = [names[i] + places[s] for i, s in zip(item.tolist(), slot.tolist(), strict=True)]
    found = np.ones(present.shape, dtype=np.float32)
    found[item, slot] = item_slot_hashes(keys, seed) / UNIT
    return found
