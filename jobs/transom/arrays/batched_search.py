"""How far each of many positions of an array can go: searches side by side, each in as many steps as the
logarithm of what it finds.

Position by position a condition holds up to somewhere and fails there. Blocks of `2^k` are told as one
number, made of two blocks of `2^(k-1)`; they are made only as long as some search gets through one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from transom.core.exact_sums import Int64s

Blocks = Sequence[Int64s]
Through = Callable[[Any, Blocks, Int64s], npt.NDArray[np.bool_]]
"""Whether searches get through a block: which searches, what blocks hold, at which positions."""
Taken = Callable[[Any, Blocks, Int64s], None]
"""Told of the blocks that searches have gone through."""


def first_at_least(values: Int64s, start: Int64s, stop: Int64s, bound: Int64s) -> Int64s:
    """Return of each search the first position from `start` on whose value is `bound` at least; `stop` where
    there is none before."""
    return _furthest(
        [(values, np.maximum)], start, stop, lambda which, blocks, at: blocks[0][at] < bound[which]
    )


def first_of_range(low: Int64s, high: Int64s, start: Int64s, stop: Int64s, below: int) -> Int64s:
    """Return of each search the first position at which `max(high) - min(low)` from `start` on reaches
    `below`; `stop` where there is none before.

    Args:
        low, high: no further apart than an int64 can say.
    """
    least, most = low[np.minimum(start, len(low) - 1)], high[np.minimum(start, len(low) - 1)]

    def through(which: Any, blocks: Blocks, at: Int64s) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = (
            np.maximum(most[which], blocks[1][at]) - np.minimum(least[which], blocks[0][at]) < below
        )
        return found

    def taken(which: Any, blocks: Blocks, at: Int64s) -> None:
        least[which] = np.minimum(least[which], blocks[0][at])
        most[which] = np.maximum(most[which], blocks[1][at])

    return _furthest([(low, np.minimum), (high, np.maximum)], start, stop, through, taken)


def extreme(values: Int64s, start: Int64s, stop: Int64s, join: np.ufunc) -> Int64s:
    """Return the largest value, or the smallest, of each of many stretches, none of which is empty.

    Args:
        join: maximum or minimum.
    """
    found = values[start]
    size, blocks = 1, values
    while (longer := np.flatnonzero(stop - start >= size)).size:
        # Two blocks that overlap, one from the start on and one up to the end, are the whole stretch.
        these = longer[stop[longer] - start[longer] < 2 * size]
        found[these] = join(blocks[start[these]], blocks[stop[these] - size])
        blocks = np.append(join(blocks[:-size], blocks[size:]), blocks[-size:])
        size *= 2
    return found


def _furthest(
    tables: Sequence[tuple[Int64s, np.ufunc]],
    start: Int64s,
    stop: Int64s,
    through: Through,
    taken: Taken = lambda which, blocks, at: None,
) -> Int64s:
    at, levels = start.copy(), [[table for table, _ in tables]]
    searching = np.flatnonzero(start < stop)
    # Up as long as whole blocks can be gone through, and down again.
    down: list[Int64s] = []
    while len(searching):
        size = 1 << len(levels) - 1
        down.append(searching)
        searching = searching[at[searching] + size <= stop[searching]]
        searching = searching[through(searching, levels[-1], at[searching])]
        taken(searching, levels[-1], at[searching])
        at[searching] += size
        if len(searching):
            levels.append(
                [
                    np.append(join(block[:-size], block[size:]), block[-size:])
                    for block, (_, join) in zip(levels[-1], tables, strict=True)
                ]
            )
    for level in range(len(down) - 2, -1, -1):
        size, which = 1 << level, down[level]
        which = which[at[which] + size <= stop[which]]
        which = which[through(which, levels[level], at[which])]
        taken(which, levels[level], at[which])
        at[which] += size
    return at
