"""Streams of items whose distribution shifts, as in the evaluation of Rivetti, Busnel and Mostefaoui."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

ITEMS = 1000
PERIOD, SHIFTS = 10_000, 4
"""After how many records the distribution shifts, and how often before it is as at first."""
NAMES = ("Uniform", "Normal", "Zipf 1", "Zipf 2", "Plateau")
SWAPPED = ("Uniform", "Normal", "Uniform", "Zipf 1", "Uniform", "Zipf 2", "Uniform", "Plateau")
LIKELIER = 100
"""How much the items of a plateau are."""
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Rng = np.random.Generator


def chances(name: str, width: int) -> Floats:
    """How likely each item is.

    Args:
        width: items of a plateau.
    """
    number = np.arange(ITEMS)
    weights: Any
    if name == "Uniform":
        weights = np.ones(ITEMS)
    elif name == "Normal":
        # An item for each standard deviation, around the middle.
        weights = np.exp(-np.square(number - ITEMS / 2) / 2)
    elif name == "Plateau":
        weights = np.where(number < width, float(LIKELIER), 1.0)
    else:
        weights = (number + 1.0) ** -float(name.removeprefix("Zipf "))
    found: Floats = weights / weights.sum()
    return found


def shifting(rng: Rng, name: str, many: int, width: int, period: int = PERIOD) -> Ints:
    """Items whose distribution moves by some positions after every period, and is reset after `SHIFTS`."""
    drawn = rng.choice(ITEMS, many, p=chances(name, width))
    phase = np.arange(many) // period % (SHIFTS + 1)
    found: Ints = (drawn + phase * width) % ITEMS
    return found


def swapping(rng: Rng, names: Sequence[str], each: int, width: int, period: int) -> Ints:
    """One distribution after another, each of which shifts; the shifts go on over swaps."""
    whole = [rng.choice(ITEMS, each, p=chances(name, width)) for name in names]
    drawn = np.concatenate(whole)
    found: Ints = (drawn + np.arange(len(drawn)) // period % (SHIFTS + 1) * width) % ITEMS
    return found


ATTACKED, TARGET, NEXT = 49_000, 0.09, 0.004
"""Items of the trace of an attack, the share of its target, and that of the next one."""
WATCHED = 7_500
"""Items, the most frequent, over which errors are taken."""


def attack(rng: Rng, many: int) -> Ints:
    """An attack on one item that begins: its share grows steadily from nothing. The others are as rare as the
    paper says, by a power law through the share of the most frequent one."""
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
