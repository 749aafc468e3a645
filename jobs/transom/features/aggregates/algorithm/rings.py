"""What lies between the rears of neighbouring levels, for many windows at once (Patroumpas, Sellis: III, IV).

At `f`, where a level reports, ring 0 is `[f - range_0, f)` and ring i `[f - range_i, f - range_{i-1})`: all
rings up to a level are its window. Aging weighs them, so that what is long ago counts less; an item is
recurring if it is in each of them.

`stairwise.Report.rings` are the same, record by record.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transom.core.exact_sums import Int64s
from transom.features.aggregates.algorithm.granules import Granules, position


@dataclass(frozen=True)
class Rings:
    """Where the rings of some windows are among ordered granules.

    Attributes:
        preceding: shape (levels + 1, windows): how many granules precede each window's end, and the rear of
            each of its levels, the finest first.
    """

    preceding: Int64s

    @classmethod
    def of(cls, granules: Granules, length: int, key: Int64s, end: Int64s, ranges: Sequence[int]) -> "Rings":
        """The rings of windows by their key and end.

        Args:
            granules: ordered; of each key all that its windows hold.
            length: of a granule, in microseconds; divides ends and ranges.
            ranges: of the levels, the finest first, in microseconds.
        """
        unit = granules.start // length
        rears = [position(granules.key, unit, key, (end - back) // length) for back in (0, *ranges)]
        return cls(np.stack(rears))

    def sums(self, amounts: Int64s) -> Int64s:
        """What each ring has of an amount of the granules; shape (levels, windows).

        Exact where the window's own sum is.
        """
        running = np.concatenate([[np.int64(0)], np.cumsum(amounts)])
        upto = running[self.preceding]
        found: Int64s = upto[:-1] - upto[1:]
        return found


def aged_mean(weights: Sequence[float], totals: Int64s, values: Int64s) -> npt.NDArray[np.float64]:
    """The mean of each window's values, each weighed as its ring is: `sum(w * total) / sum(w * values)`.

    Args:
        weights: above 0, one a ring, the nearest first.
        totals, values: of each ring; shape (rings, windows).

    Returns:
        NaN where a window has no value.
    """
    # Ring after ring: numpy's own sums add in an order that depends on the number of windows.
    pairs = list(zip(weights, totals.astype(float), values.astype(float), strict=True))
    total = sum((weight * of_ring for weight, of_ring, _ in pairs), np.zeros(totals.shape[1]))
    number = sum((weight * of_ring for weight, _, of_ring in pairs), np.zeros(totals.shape[1]))
    with np.errstate(invalid="ignore"):
        found: npt.NDArray[np.float64] = total / number
    return found
