"""Estimate the number of distinct values in windows by adaptive sampling (Wegman; Flajolet, "On adaptive
sampling", 1990).

Each value has a hash of 63 bits. The summary of a set is its `SIZE + 1` smallest hashes, or all if there are
fewer. It depends on the set alone, not on how it was merged. Its *depth* d is the smallest for which at most
`SIZE` of its hashes are below `2**(63 - d)`, a share of `2**-d` of all hashes. With n hashes below:

    estimate = n * 2**d        standard error = sqrt(estimate * (2**d - 1))

A set of up to `SIZE` values is counted exactly, except for hash collisions (of two among 100,000 values: one
in a billion). For larger sets the relative standard error is about `1.2 / sqrt(SIZE)`. A larger `SIZE` lowers
the error; memory and time grow in proportion: up to `8 * (SIZE + 1)` bytes for each granule.

`AdaptiveSamples.windows` counts for many windows at once. At each depth, a hash counts in the windows without
an earlier occurrence of it. These are a contiguous range of its key's windows, so running sums give all
counts. With h hashes, w windows and depth d, the cost is `O(h log h + d * (h + w))`.

>>> key, start, first, hashes = map(np.array, ([0, 0], [0, 1], [0, 2, 3], [5, 7, 5]))
>>> AdaptiveSamples(key, start, first, hashes).windows(np.array([0]), np.array([2]), length=2)
(array([2]), array([0.]))
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transom.arrays.sorted_index import SortedIndex
from transom.core.exact_sums import Int64s

BITS = 63
SIZE = 1024
"""Sets of up to this size are counted exactly; for larger ones the standard error is about 4 %, at most
5 %."""


@dataclass(frozen=True)
class AdaptiveSamples:
    """The samples of granules of many keys.

    Attributes:
        key: the code of each granule's key.
        start: the start of each granule, in units; ordered by key and then by start.
        first: the position of each granule's first hash, then the number of all hashes.
        hashes: the hashes of all granules, in any order within a granule; at least 1 and below 2**63.
        size: the maximal number of values that are counted exactly; a granule has at most `size + 1` hashes.
    """

    key: Int64s
    start: Int64s
    first: Int64s
    hashes: Int64s
    size: int = SIZE

    def part(self, start: int, end: int) -> "AdaptiveSamples":
        """Return the samples of the granules `[start, end)`."""
        first = self.first[start : end + 1]
        hashes = self.hashes[first[0] : first[-1]]
        return AdaptiveSamples(
            self.key[start:end], self.start[start:end], first - first[0], hashes, self.size
        )

    def windows(self, key: Int64s, end: Int64s, length: int) -> tuple[Int64s, npt.NDArray[np.float64]]:
        """Return the estimated number of distinct values in windows `[end - length, end)`, and its standard
        error; 0 if the number is exact.

        Args:
            key: the code of each window's key.
            end: the end of each window, in units; ordered by key and then by end.
            length: the length of the windows, in units.
        """
        sizes = np.diff(self.first)
        min_depth = np.zeros(len(key), dtype=np.int64)
        counted = np.zeros(len(key), dtype=np.int64)
        open_ = np.ones(len(key), dtype=bool)
        # A full granule gives a lower bound of the depth of every window that contains it.
        deepest = self._min_depths(sizes, _depths(self.hashes))
        index = SortedIndex(self.key, self.start)
        low, high = (index.first_after(key, bound - 1) for bound in (end - length, end))
        opened, closed, depths = self._ranges(sizes, key, end, length)
        for depth in range(BITS + 1):
            if not open_.any():
                break
            active = depths >= depth
            opened, closed, depths = opened[active], closed[active], depths[active]
            change = np.bincount(opened, minlength=len(key) + 1) - np.bincount(closed, minlength=len(key) + 1)
            counts = np.cumsum(change)[: len(key)]
            deep = np.concatenate([[0], np.cumsum(deepest > depth)])
            settled = open_ & (deep[high] == deep[low]) & (counts <= self.size)
            min_depth[settled], counted[settled] = depth, counts[settled]
            open_ &= ~settled
        scale = np.exp2(min_depth.astype(float))
        return counted << min_depth, np.sqrt(counted * scale * (scale - 1))

    def _ranges(self, sizes: Int64s, key: Int64s, end: Int64s, length: int) -> tuple[Int64s, Int64s, Int64s]:
        """Return for each hash the first window in which it counts, the next one in which it does not, and
        its depth. It counts in the windows that contain it and not its previous occurrence."""
        codes, starts = np.repeat(self.key, sizes), np.repeat(self.start, sizes)
        order = np.lexsort((starts, self.hashes, codes))
        codes, starts, hashes = codes[order], starts[order], self.hashes[order]
        repeated = np.zeros(len(codes), dtype=bool)
        repeated[1:] = (codes[1:] == codes[:-1]) & (hashes[1:] == hashes[:-1])
        previous_start = np.concatenate([starts[:1], starts[:-1]])
        since = np.where(repeated, np.maximum(starts, previous_start + length), starts)
        windows = SortedIndex(key, end)
        opened, closed = (windows.first_after(codes, at) for at in (since, starts + length))
        return opened, closed, _depths(hashes)

    def _min_depths(self, sizes: Int64s, depths: Int64s) -> Int64s:
        """Return the depth of each granule's own set."""
        if not len(sizes):
            return sizes
        owner = np.repeat(np.arange(len(sizes)), sizes)
        min_depth = np.full(len(sizes), BITS, dtype=np.int64)
        np.minimum.at(min_depth, owner, depths)
        return np.where(sizes > self.size, min_depth + 1, 0)


def _depths(hashes: Int64s) -> Int64s:
    """Return the largest depth at which each hash counts."""
    # The exponent of a double is one too large if rounding reaches a power of two.
    exponent = np.frexp(hashes.astype(float))[1].astype(np.int64)
    rounded_up = hashes.astype(np.uint64) < np.left_shift(np.uint64(1), (exponent - 1).astype(np.uint64))
    depths: Int64s = BITS - (exponent - rounded_up)
    return depths
