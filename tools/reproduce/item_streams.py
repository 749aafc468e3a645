"""Generate streams of items with shifting distributions, as Rivetti, Busnel and Mostefaoui evaluate."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

ITEMS = 1000
PERIOD, SHIFTS = 10_000, 4
"""Number of records between shifts of the distribution, and number of shifts before a reset."""
NAMES = ("Uniform", "Normal", "Zipf 1", "Zipf 2", "Plateau")
SWAPPED = ("Uniform", "Normal", "Uniform", "Zipf 1", "Uniform", "Zipf 2", "Uniform", "Plateau")
LIKELIER = 100
"""Probability of a plateau's items relative to the others."""
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Rng = np.random.Generator


def chances(name: str, width: int) -> Floats:
    """Return the probability of each item.

    Args:
        width: the number of items of a plateau.
    """
    number = np.arange(ITEMS)
    weights: Any
    if name == "Uniform":
        weights = np.ones(ITEMS)
    elif name == "Normal":
        # One item per standard deviation, around the middle.
        weights = np.exp(-np.square(number - ITEMS / 2) / 2)
    elif name == "Plateau":
        weights = np.where(number < width, float(LIKELIER), 1.0)
    else:
        weights = (number + 1.0) ** -float(name.removeprefix("Zipf "))
    found: Floats = weights / weights.sum()
    return found


def shifting(rng: Rng, name: str, many: int, width: int, period: int = PERIOD) -> Ints:
    """Generate items; the distribution moves by `width` after each period, and is reset after `SHIFTS`."""
    drawn = rng.choice(ITEMS, many, p=chances(name, width))
    phase = np.arange(many) // period % (SHIFTS + 1)
    found: Ints = (drawn + phase * width) % ITEMS
    return found


def swapping(rng: Rng, names: Sequence[str], each: int, width: int, period: int) -> Ints:
    """Generate items of several shifting distributions in turn; shifts continue over swaps."""
    whole = [rng.choice(ITEMS, each, p=chances(name, width)) for name in names]
    drawn = np.concatenate(whole)
    found: Ints = (drawn + np.arange(len(drawn)) // period % (SHIFTS + 1) * width) % ITEMS
    return found


ATTACKED, TARGET, NEXT = 49_000, 0.09, 0.004
"""Number of items in the trace of an attack, share of the target, and share of the next item."""
WATCHED = 7_500
"""Number of most frequent items whose errors are measured."""


def attack(rng: Rng, many: int) -> Ints:
    """Generate an attack on one item, whose share grows linearly from 0.

    The other items are as rare as in the paper, by a power law through the share of the most frequent one.
    """
    rank = np.arange(1, ATTACKED)
    low, high = 0.0, 2.0
    for _ in range(60):
        power = (low + high) / 2
        low, high = (power, high) if NEXT * (rank**-power).sum() > 1 - TARGET else (low, power)
    others = rank**-power
    drawn = rng.choice(ATTACKED - 1, many, p=others / others.sum()) + 1
    drawn[rng.random(many) < 2 * TARGET * np.arange(many) / many] = 0
    found: Ints = drawn
    return found
