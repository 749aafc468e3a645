"""Find for each of many positions of an array how far a condition holds. The searches run side by side, each
in a number of steps that is the logarithm of its result.

Each block of `2^k` positions is summarised by one number, from two blocks of `2^(k-1)`. Larger blocks are
only made while some search passes a whole block.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from transom.core.exact_sums import Int64s

Blocks = Sequence[Int64s]
Through = Callable[[Any, Blocks, Int64s], npt.NDArray[np.bool_]]
"""Whether searches pass a block. Arguments: the searches, the blocks, the positions."""
OnPass = Callable[[Any, Blocks, Int64s], None]
"""Called with the blocks that searches passed. Arguments as of `Through`."""


def first_at_least(values: Int64s, start: Int64s, stop: Int64s, bound: Int64s) -> Int64s:
    """Return for each search the first position in `[start, stop)` with a value of at least `bound`, else
    `stop`."""
    return _furthest(
        [(values, np.maximum)], start, stop, lambda which, blocks, at: blocks[0][at] < bound[which]
    )


def first_of_range(low: Int64s, high: Int64s, start: Int64s, stop: Int64s, below: int) -> Int64s:
    """Return for each search the first position in `[start, stop)` at which `max(high) - min(low)` since
    `start` reaches `below`, else `stop`.

    Args:
        low, high: their difference fits into an int64.
    """
    lowest, highest = low[np.minimum(start, len(low) - 1)], high[np.minimum(start, len(low) - 1)]

    def through(which: Any, blocks: Blocks, at: Int64s) -> npt.NDArray[np.bool_]:
        passes: npt.NDArray[np.bool_] = (
            np.maximum(highest[which], blocks[1][at]) - np.minimum(lowest[which], blocks[0][at]) < below
        )
        return passes

    def extend(which: Any, blocks: Blocks, at: Int64s) -> None:
        lowest[which] = np.minimum(lowest[which], blocks[0][at])
        highest[which] = np.maximum(highest[which], blocks[1][at])

    return _furthest([(low, np.minimum), (high, np.maximum)], start, stop, through, extend)


def extreme(values: Int64s, start: Int64s, stop: Int64s, join: np.ufunc) -> Int64s:
    """Return the largest or the smallest value of each range `[start, stop)`. No range is empty.

    Args:
        join: maximum or minimum.
    """
    extremes = values[start]
    size, blocks = 1, values
    while (longer := np.flatnonzero(stop - start >= size)).size:
        # Two overlapping blocks, one at the start and one at the end, cover the whole range.
        fitting = longer[stop[longer] - start[longer] < 2 * size]
        extremes[fitting] = join(blocks[start[fitting]], blocks[stop[fitting] - size])
        blocks = np.append(join(blocks[:-size], blocks[size:]), blocks[-size:])
        size *= 2
    return extremes


def _furthest(
    tables: Sequence[tuple[Int64s, np.ufunc]],
    start: Int64s,
    stop: Int64s,
    through: Through,
    passed: OnPass = lambda which, blocks, at: None,
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
        passed(searching, levels[-1], at[searching])
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
        passed(which, levels[level], at[which])
        at[which] += size
    return at
