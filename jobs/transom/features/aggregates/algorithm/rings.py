"""Rings: the parts of windows between neighbouring levels, for many windows at once (Patroumpas and Sellis,
sections 3 and 4).

At `f`, where windows end, ring 0 is `[f - range_0, f)` and ring i is `[f - range_i, f - range_{i-1})`. The
rings up to a level are its window. Aging weighs the rings, so that old records count less. An item of a key
is recurring at `f` if it occurs in every ring (section 4.C): now, in the hours before, and in the days before
those. Its numbers of records in the rings show how regular it is. With g granules, w windows and k levels,
the cost is `O(g + k * w * log(g))`.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from transom.arrays.sorted_index import SortedIndex
from transom.core.exact_sums import Int64s
from transom.features.aggregates.algorithm.granules import Granules, WindowLevel
from transom.features.aggregates.algorithm.linear_fit import running_sums


def sums_of_rings(
    granules: Granules, length: int, key: Int64s, end: Int64s, ranges: Sequence[int], *amounts: Int64s
) -> Iterator[Int64s]:
    """Yield the sums of each amount in the rings of windows; shape (levels, windows).

    A sum is exact if that of its window is.

    Args:
        granules: ordered; for each key all granules of its windows.
        length: the length of a granule, in microseconds; divides ends and ranges.
        key: the code of each window's key.
        end: the end of each window, in microseconds.
        ranges: the ranges of the levels, the finest first, in microseconds.
        amounts: one value for each granule.
    """
    index = SortedIndex(granules.key, granules.start // length)
    preceding = np.stack([index.first_after(key, (end - back) // length - 1) for back in (0, *ranges)])
    for amount in amounts:
        yield -np.diff(running_sums(amount)[preceding], axis=0)


def aged_mean(weights: Sequence[float], totals: Int64s, values: Int64s) -> npt.NDArray[np.float64]:
    """Return the mean of each window's values, weighted by ring: `sum(w * total) / sum(w * values)`.

    Args:
        weights: above 0, one per ring, the nearest first.
        totals: the sum of the values in each ring; shape (rings, windows).
        values: the number of values in each ring; shape (rings, windows).

    Returns:
        The means; NaN if a window has no value.

    >>> aged_mean([1, 0.5], np.array([[6], [8]]), np.array([[2], [2]]))
    array([3.33333333])
    """
    # Ring by ring: the order of numpy's sums depends on the number of windows.
    total, count = np.zeros(totals.shape[1]), np.zeros(totals.shape[1])
    for weight, ring_total, ring_values in zip(weights, totals, values, strict=True):
        total += weight * ring_total.astype(float)
        count += weight * ring_values.astype(float)
    with np.errstate(invalid="ignore"):
        means: npt.NDArray[np.float64] = total / count
    return means


def recurring(
    granules: Granules, length: int, levels: Sequence[WindowLevel], intervals: Sequence[tuple[int, int]]
) -> tuple[Int64s, Int64s, Int64s]:
    """Return the recurring items at the end of every window of the widest level.

    Args:
        granules: ordered; `key` is the code of a pair of key and item.
        length: the length of a granule, in microseconds; divides all ranges and the slide of the widest
            level.
        levels: the levels, the finest first.
        intervals: as in `Granules.windows`.

    Returns:
        The code of each pair, the end of its window in microseconds, and its number of records in each ring,
        the nearest first, with shape (levels, items). They are ordered by code and then by time.
    """
    windows, ranges = granules.windows(levels[-1], intervals), [level.range for level in levels]
    (counts,) = sums_of_rings(granules, length, windows.key, windows.end, ranges, granules.records)
    everywhere = np.all(counts > 0, axis=0)
    return windows.key[everywhere], windows.end[everywhere], counts[:, everywhere]
