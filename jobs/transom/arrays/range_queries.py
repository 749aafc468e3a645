"""Queries on many ranges of one array at a time: positions by bisection, maxima by doubling."""

import numpy as np

from transom.core.exact_sums import Int64s

NO_VALUE = -1
"""The maximum of an empty range; all values are above it."""


def segmented_searchsorted(values: Int64s, low: Int64s, high: Int64s, bound: Int64s) -> Int64s:
    """Return the first position in each range `[low, high)` with a value of at least `bound`, else `high`.

    Args:
        values: ascending within each range.
    """
    low, high = low.copy(), high.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        below = open_ & (values[np.where(open_, middle, 0)] < bound)
        low = np.where(below, middle + 1, low)
        high = np.where(open_ & ~below, middle, high)
    return low


def expand_ranges(first: Int64s, stop: Int64s) -> tuple[Int64s, Int64s]:
    """Return every position of each range `[first, stop)`: the number of its range, and the position."""
    lengths = stop - first
    owner = np.repeat(np.arange(len(first)), lengths)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return owner, first[owner] + offset


class Maxima:
    """Maxima of ranges of an array."""

    def __init__(self, values: Int64s) -> None:
        self._doubled = [values]
        while len(values) > (width := 1 << (len(self._doubled) - 1)):
            values = np.maximum(values[:-width], values[width:])
            self._doubled.append(values)

    def of(self, low: Int64s, high: Int64s) -> Int64s:
        """Return the maximum of each range `[low, high)`; `NO_VALUE` if it is empty."""
        maxima = np.full(len(low), NO_VALUE, dtype=np.int64)
        order = np.frexp(np.maximum(high - low, 1))[1] - 1
        for power, values in enumerate(self._doubled):
            rows = np.flatnonzero((order == power) & (low < high))
            maxima[rows] = np.maximum(values[low[rows]], values[high[rows] - (1 << power)])
        return maxima


class MaximaBesides:
    """Maxima of ranges of an array, without the values of a given owner.

    Args:
        values: at least `NO_VALUE`.
        owners: the owner of each value.
    """

    def __init__(self, values: Int64s, owners: Int64s) -> None:
        # The best value of each range, its owner, and the best value of all other owners.
        self._doubled = [(values, owners, np.full_like(values, NO_VALUE))]
        while len(values) > (width := 1 << (len(self._doubled) - 1)):
            left = tuple(array[:-width] for array in self._doubled[-1])
            right = tuple(array[width:] for array in self._doubled[-1])
            self._doubled.append(_better(left, right))
            values = self._doubled[-1][0]

    def of(self, low: Int64s, high: Int64s, besides: Int64s) -> Int64s:
        """Return the maximum of each range `[low, high)` without values of `besides`; `NO_VALUE` if there is
        none."""
        maxima = np.full(len(low), NO_VALUE, dtype=np.int64)
        order = np.frexp(np.maximum(high - low, 1))[1] - 1
        for power, doubled in enumerate(self._doubled):
            rows = np.flatnonzero((order == power) & (low < high))
            left = tuple(array[low[rows]] for array in doubled)
            right = tuple(array[high[rows] - (1 << power)] for array in doubled)
            best, owner, best_other = _better(left, right)
            maxima[rows] = np.where(owner == besides[rows], best_other, best)
        return maxima


def _better(left: tuple[Int64s, ...], right: tuple[Int64s, ...]) -> tuple[Int64s, Int64s, Int64s]:
    (best, owner, best_other), (best_, owner_, best_other_) = left, right
    ahead = best >= best_
    second = np.where(
        owner == owner_,
        np.maximum(best_other, best_other_),
        np.where(ahead, np.maximum(best_, best_other), np.maximum(best, best_other_)),
    )
    return np.maximum(best, best_), np.where(ahead, owner, owner_), second
