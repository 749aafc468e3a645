"""Searches in many ranges of one array at a time: places by bisection, maxima by doubling."""

import numpy as np

from transom.core.exact_sums import Int64s

NO_VALUE = -1
"""The maximum of no value; all values are above it."""


def segmented_searchsorted(values: Int64s, low: Int64s, high: Int64s, bound: Int64s) -> Int64s:
    """The first place in each range `[low, high)` whose value is not below a bound; `high` where none is.

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


def expand_ranges(first: Int64s, behind: Int64s) -> tuple[Int64s, Int64s]:
    """Every place of each range `[first, behind)`: the number of its range, and the place."""
    many = behind - first
    of = np.repeat(np.arange(len(first)), many)
    offset = np.arange(len(of)) - np.repeat(np.cumsum(many) - many, many)
    return of, first[of] + offset


class Maxima:
    """The largest value of any range of an array."""

    def __init__(self, values: Int64s) -> None:
        self._doubled = [values]
        while len(values) > (width := 1 << (len(self._doubled) - 1)):
            values = np.maximum(values[:-width], values[width:])
            self._doubled.append(values)

    def of(self, low: Int64s, high: Int64s) -> Int64s:
        """Of each range `[low, high)`; `NO_VALUE` where it is empty."""
        found = np.full(len(low), NO_VALUE, dtype=np.int64)
        order = np.frexp(np.maximum(high - low, 1))[1] - 1
        for power, values in enumerate(self._doubled):
            here = np.flatnonzero((order == power) & (low < high))
            found[here] = np.maximum(values[low[here]], values[high[here] - (1 << power)])
        return found


class MaximaBesides:
    """The largest value of any range of an array that does not belong to a given owner.

    Args:
        values: above `NO_VALUE`, or that.
        owners: of each value.
    """

    def __init__(self, values: Int64s, owners: Int64s) -> None:
        # The best of each range, whose it is, and the best of all others.
        self._doubled = [(values, owners, np.full_like(values, NO_VALUE))]
        while len(values) > (width := 1 << (len(self._doubled) - 1)):
            left = tuple(array[:-width] for array in self._doubled[-1])
            right = tuple(array[width:] for array in self._doubled[-1])
            self._doubled.append(_better(left, right))
            values = self._doubled[-1][0]

    def of(self, low: Int64s, high: Int64s, besides: Int64s) -> Int64s:
        """Of each range `[low, high)`; `NO_VALUE` where there is none."""
        found = np.full(len(low), NO_VALUE, dtype=np.int64)
        order = np.frexp(np.maximum(high - low, 1))[1] - 1
        for power, doubled in enumerate(self._doubled):
            here = np.flatnonzero((order == power) & (low < high))
            left = tuple(array[low[here]] for array in doubled)
            right = tuple(array[high[here] - (1 << power)] for array in doubled)
            best, owner, other = _better(left, right)
            found[here] = np.where(owner == besides[here], other, best)
        return found


def _better(left: tuple[Int64s, ...], right: tuple[Int64s, ...]) -> tuple[Int64s, Int64s, Int64s]:
    (best, owner, other), (best_, owner_, other_) = left, right
    ahead = best >= best_
    second = np.where(
        owner == owner_,
        np.maximum(other, other_),
        np.where(ahead, np.maximum(best_, other), np.maximum(best, other_)),
    )
    return np.maximum(best, best_), np.where(ahead, owner, owner_), second
