"""How many distinct values a window has: adaptive sampling (Wegman; Flajolet, "On adaptive sampling", 1990).

Of each value a hash of 63 bits is looked at. A set is held by its `SIZE + 1` smallest hashes, or all of
them where it has no more: a function of the set alone, whichever parts it was put together from and in
which order. Its *depth* d is the least for which at most `SIZE` of its hashes lie below `2**(63 - d)`, a
share of `2**-d` of all hashes. With n of them below:

    estimate = n * 2**d        standard error = sqrt(estimate * (2**d - 1))

so that a set of up to `SIZE` values is counted exactly, but for values of one hash (two among 100,000
values: one in a billion). Larger ones are off by about 1.2 / sqrt(SIZE) of themselves, a standard error.

`AdaptiveSample` is that summary for the stairwise chain, set by set; `AdaptiveSamples.windows` counts for
many windows at
once: at each depth, a hash counts in those windows in which it has no earlier occurrence, which are a
stretch of its key's windows, so that two running sums tell all of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transom.core.exact_sums import Int64s
from transom.features.aggregates.algorithm.granules import position

BITS = 63
SIZE = 1024
"""How many values are counted exactly; of more, the standard error is 4 % or so, and at most 5 %."""


def depth_of(value: int) -> int:
    """The largest depth at which a hash is in the sample."""
    return BITS - value.bit_length()


@dataclass(frozen=True)
class AdaptiveSample:
    """What is held of a set of hashes: the smallest ones, in order.

    Attributes:
        size: how many are held, and one more.
    """

    hashes: tuple[int, ...]
    size: int = SIZE

    @classmethod
    def of(cls, hashes: Iterable[int], size: int = SIZE) -> "AdaptiveSample":
        """Of some hashes, each at least 1 and below 2**63."""
        return cls(tuple(sorted(set(hashes))[: size + 1]), size)

    def __add__(self, later: "AdaptiveSample") -> "AdaptiveSample":
        return AdaptiveSample.of((*self.hashes, *later.hashes), self.size)

    def without(self, oldest: "AdaptiveSample") -> None:
        """A value that leaves may also be in what stays."""

    @property
    def depth(self) -> int:
        """The depth of the set."""
        return 0 if len(self.hashes) <= self.size else depth_of(self.hashes[-1]) + 1

    @property
    def count(self) -> int:
        """How many hashes are in the sample."""
        return sum(depth_of(value) >= self.depth for value in self.hashes)


@dataclass(frozen=True)
class Counts:
    """The counts of some windows.

    Attributes:
        estimate: distinct values.
        error: standard error of the estimate; 0 where it is exact.
    """

    estimate: Int64s
    error: npt.NDArray[np.float64]


@dataclass(frozen=True)
class AdaptiveSamples:
    """The samples of granules of many keys.

    Attributes:
        key: a code for each granule's key.
        start: when the granule begins, in units; ordered by key and then by this.
        first: of each granule, where its hashes begin; and behind the last one, where they end.
        hashes: of all granules, those of each in any order; at least 1 and below 2**63.
        size: how many of a granule's hashes are held, and one more.
    """

    key: Int64s
    start: Int64s
    first: Int64s
    hashes: Int64s
    size: int = SIZE

    def part(self, start: int, end: int) -> "AdaptiveSamples":
        """Those of the granules at `[start, end)`."""
        first = self.first[start : end + 1]
        hashes = self.hashes[first[0] : first[-1]]
        return AdaptiveSamples(
            self.key[start:end], self.start[start:end], first - first[0], hashes, self.size
        )

    def windows(self, key: Int64s, end: Int64s, length: int) -> Counts:
        """How many distinct values are in each of some windows `[end - length, end)`.

        Args:
            key, end: of the windows; ordered by key and then by end; in units.
            length: in units.
        """
        many = np.diff(self.first)
        least = np.zeros(len(key), dtype=np.int64)
        held = np.zeros(len(key), dtype=np.int64)
        open_ = np.ones(len(key), dtype=bool)
        # A granule that holds more than its share tells how deep every window that reaches it is.
        deepest = self._min_depths(many, _depths(self.hashes))
        low, high = (position(self.key, self.start, key, bound) for bound in (end - length, end))
        opened, closed, depths = self._ranges(many, key, end, length)
        for depth in range(BITS + 1):
            if not open_.any():
                break
            there = depths >= depth
            opened, closed, depths = opened[there], closed[there], depths[there]
            change = np.bincount(opened, minlength=len(key) + 1) - np.bincount(closed, minlength=len(key) + 1)
            found = np.cumsum(change)[: len(key)]
            deep = np.concatenate([[0], np.cumsum(deepest > depth)])
            settled = open_ & (deep[high] == deep[low]) & (found <= self.size)
            least[settled], held[settled] = depth, found[settled]
            open_ &= ~settled
        scale = np.exp2(least.astype(float))
        return Counts(held << least, np.sqrt(held * scale * (scale - 1)))

    def _ranges(self, many: Int64s, key: Int64s, end: Int64s, length: int) -> tuple[Int64s, Int64s, Int64s]:
        """Of each hash of a granule, the first window that it counts in, the first that it no more does, and
        its depth. It counts in the windows that reach it and not its earlier occurrence."""
        codes, starts = np.repeat(self.key, many), np.repeat(self.start, many)
        order = np.lexsort((starts, self.hashes, codes))
        codes, starts, hashes = codes[order], starts[order], self.hashes[order]
        again = np.zeros(len(codes), dtype=bool)
        again[1:] = (codes[1:] == codes[:-1]) & (hashes[1:] == hashes[:-1])
        before = np.concatenate([starts[:1], starts[:-1]])
        since = np.where(again, np.maximum(starts, before + length), starts) + 1
        opened, closed = (position(key, end, codes, at) for at in (since, starts + length + 1))
        return opened, closed, _depths(hashes)

    def _min_depths(self, many: Int64s, depths: Int64s) -> Int64s:
        """The depth of each granule's own set."""
        if not len(many):
            return many
        owner = np.repeat(np.arange(len(many)), many)
        least_of_full = np.full(len(many), BITS, dtype=np.int64)
        np.minimum.at(least_of_full, owner, depths)
        return np.where(many > self.size, least_of_full + 1, 0)


def _depths(hashes: Int64s) -> Int64s:
    """The largest depth of each hash."""
    # The exponent of a double may be one too large, where rounding takes a number up to a power of two.
    exponent = np.frexp(hashes.astype(float))[1].astype(np.int64)
    rounded_up = hashes.astype(np.uint64) < np.left_shift(np.uint64(1), (exponent - 1).astype(np.uint64))
    found: Int64s = BITS - (exponent - rounded_up)
    return found
