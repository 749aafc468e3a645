"""Rings: the parts of windows between neighbouring levels, for many windows at once (Patroumpas, Sellis: III,
IV).

At `f`, where a level reports, ring 0 is `[f - range_0, f)` and ring i `[f - range_i, f - range_{i-1})`: the
rings up to a level make its window. Aging weighs the rings, so that old records count less. An item is
recurring if it occurs in each ring.

`stairwise_reference.LevelReport.rings` are the same, record by record.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transom.core.exact_sums import Int64s
from transom.features.aggregates.algorithm.granules import Granules, position


@dataclass(frozen=True)
class Rings:
    """The positions of the rings of windows among ordered granules.

    Attributes:
        preceding: the number of granules before each window's end, and before the start of each of its
            levels, the finest first; shape (levels + 1, windows).
    """

    preceding: Int64s

    @classmethod
    def of(cls, granules: Granules, length: int, key: Int64s, end: Int64s, ranges: Sequence[int]) -> "Rings":
        """Return the rings of windows.

        Args:
            granules: ordered; for each key all granules of its windows.
            length: the length of a granule, in microseconds; divides ends and ranges.
            ranges: the ranges of the levels, the finest first, in microseconds.
        """
        unit = granules.start // length
        rears = [position(granules.key, unit, key, (end - back) // length) for back in (0, *ranges)]
        return cls(np.stack(rears))

    def sums(self, amounts: Int64s) -> Int64s:
        """Return the sum of the granules' amounts in each ring; shape (levels, windows).

        Exact if the window's own sum is.
        """
        running = np.concatenate([[np.int64(0)], np.cumsum(amounts)])
        upto = running[self.preceding]
        ring_sums: Int64s = upto[:-1] - upto[1:]
        return ring_sums


def aged_mean(weights: Sequence[float], totals: Int64s, values: Int64s) -> npt.NDArray[np.float64]:
    """Return the mean of each window's values, weighed by ring: `sum(w * total) / sum(w * values)`.

    Args:
        weights: above 0, one per ring, the nearest first.
        totals, values: of each ring; shape (rings, windows).

    Returns:
        The means; NaN if a window has no value.
    """
    # Ring by ring: the order of numpy's sums depends on the number of windows.
    pairs = list(zip(weights, totals.astype(float), values.astype(float), strict=True))
    total = sum((weight * of_ring for weight, of_ring, _ in pairs), np.zeros(totals.shape[1]))
    number = sum((weight * of_ring for weight, _, of_ring in pairs), np.zeros(totals.shape[1]))
    with np.errstate(invalid="ignore"):
        means: npt.NDArray[np.float64] = total / number
    return means
