"""Queries on many ranges of one array at a time: positions by bisection, extremes by doubling.

`first_at_least` and `first_of_range` find for each of many positions how far a condition is true. All
searches advance together; each takes O(log n) steps for a distance of n positions. A block of `2^k` positions
is summarised by one number, from two blocks of `2^(k-1)`. Larger blocks are only computed while some search
passes a whole block.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from transom.core.exact_sums import Int64s

NO_VALUE = -1
"""The maximum of an empty range. It is below all values."""
Through = Callable[[Int64s, Sequence[Int64s], Int64s], Any]
"""Returns whether searches pass a block. Arguments: the searches, the blocks, the positions."""
Join = Callable[[Any, Any], Any]
"""Combines the summaries of two blocks."""


def segmented_searchsorted(values: Int64s, low: Int64s, high: Int64s, bound: Int64s) -> Int64s:
    """Return the first position in each range `[low, high)` with a value of at least `bound`, else `high`.

    >>> ranges = np.array([0, 2]), np.array([2, 4])
    >>> segmented_searchsorted(np.array([1, 5, 2, 3]), *ranges, np.array([4, 4])).tolist()
    [1, 4]

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
    """Return every position of each range `[first, stop)`: the number of its range, and the position.

    >>> owner, position = expand_ranges(np.array([5, 0]), np.array([7, 1]))
    >>> owner.tolist(), position.tolist()
    ([0, 0, 1], [5, 6, 0])
    """
    lengths = stop - first
    owner = np.repeat(np.arange(len(first)), lengths)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return owner, first[owner] + offset


def first_at_least(values: Int64s, start: Int64s, stop: Int64s, bound: Int64s) -> Int64s:
    """Return for each search the first position in `[start, stop)` with a value of at least `bound`, else
    `stop`."""
    return _search([(values, np.maximum)], start, stop, lambda which, block, at: block[0][at] < bound[which])


def first_of_range(low: Int64s, high: Int64s, start: Int64s, stop: Int64s, below: int) -> Int64s:
    """Return for each search the first position in `[start, stop)` at which `max(high) - min(low)` since
    `start` reaches `below`, else `stop`.

    Args:
        low: the lower values.
        high: the upper values; `high - low` fits into an int64.
        below: the spread to reach.
    """
    lowest, highest = low[np.minimum(start, len(low) - 1)], high[np.minimum(start, len(low) - 1)]

    def through(which: Int64s, blocks: Sequence[Int64s], at: Int64s) -> Any:
        minimum, maximum = np.minimum(lowest[which], blocks[0][at]), np.maximum(highest[which], blocks[1][at])
        passes = maximum - minimum < below
        lowest[which[passes]], highest[which[passes]] = minimum[passes], maximum[passes]
        return passes

    return _search([(low, np.minimum), (high, np.maximum)], start, stop, through)


def extreme(values: Int64s, start: Int64s, stop: Int64s, join: Join, empty: int = NO_VALUE) -> Int64s:
    """Return the largest or the smallest value of each range `[start, stop)`.

    Args:
        values: shape (n,), or (k, n) for `k` rows that `join` combines together.
        join: maximum or minimum.
        empty: the result for an empty range.
    """
    extremes = np.full((*values.shape[:-1], len(start)), empty, dtype=values.dtype)
    lengths = stop - start
    size, blocks, longest = 1, values, int(lengths.max(initial=0))
    while size <= longest:
        # Two overlapping blocks, one at the start and one at the end, cover the whole range.
        fitting = np.flatnonzero((lengths >= size) & (lengths < 2 * size))
        extremes[..., fitting] = join(blocks[..., start[fitting]], blocks[..., stop[fitting] - size])
        if 2 * size <= longest:
            blocks = np.append(join(blocks[..., :-size], blocks[..., size:]), blocks[..., -size:], axis=-1)
        size *= 2
    return extremes


def maxima_of_others(values: Int64s, owners: Int64s, start: Int64s, stop: Int64s, besides: Int64s) -> Int64s:
    """Return the maximum of each range `[start, stop)` without the values of one owner, else `NO_VALUE`.

    Args:
        values: at least `NO_VALUE`.
        owners: the owner of each value.
        besides: the owner whose values do not count, for each range.
    """
    # The best value of a range, its owner, and the best value of all other owners.
    rows = np.stack([values, owners, np.full_like(values, NO_VALUE)])
    best, owner, best_other = extreme(rows, start, stop, _better)
    maxima: Int64s = np.where(owner == besides, best_other, best)
    return maxima


def _better(left: Int64s, right: Int64s) -> Int64s:
    (best, owner, best_other), (best_, owner_, best_other_) = left, right
    ahead = best >= best_
    second = np.where(
        owner == owner_,
        np.maximum(best_other, best_other_),
        np.where(ahead, np.maximum(best_, best_other), np.maximum(best, best_other_)),
    )
    return np.stack([np.maximum(best, best_), np.where(ahead, owner, owner_), second])


def _search(
    tables: Sequence[tuple[Int64s, np.ufunc]], start: Int64s, stop: Int64s, through: Through
) -> Int64s:
    at, levels = start.copy(), [[table for table, _ in tables]]
    searching = np.flatnonzero(start < stop)
    # Up while whole blocks are passed, then down again.
    down: list[Int64s] = []
    while len(searching):
        size = 1 << len(levels) - 1
        down.append(searching)
        searching = searching[at[searching] + size <= stop[searching]]
        searching = searching[through(searching, levels[-1], at[searching])]
        at[searching] += size
        if len(searching):
            pairs = zip(levels[-1], (join for _, join in tables), strict=True)
            levels.append([np.append(join(row[:-size], row[size:]), row[-size:]) for row, join in pairs])
    for level in range(len(down) - 2, -1, -1):
        size, which = 1 << level, down[level]
        which = which[at[which] + size <= stop[which]]
        which = which[through(which, levels[level], at[which])]
        at[which] += size
    return at
