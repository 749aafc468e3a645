"""Rings: the parts of windows between neighbouring levels, for many windows at once (Patroumpas and Sellis,
sections 3 and 4).

At `f`, where a level reports, ring 0 is `[f - range_0, f)` and ring i `[f - range_i, f - range_{i-1})`: the
rings up to a level make its window. Aging weighs the rings, so that old records count less. An item of a key
is recurring at `f` if it occurs in every ring (section 4.C): now, in the hours before, and in the days before
those. Its numbers of records in the rings show how regular it is.

`stairwise_reference.LevelReport.rings` are the same, record by record.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transom.arrays.sorted_index import SortedIndex
from transom.core.exact_sums import Int64s
from transom.features.aggregates.algorithm.granules import Granules, WindowLevel
from transom.features.aggregates.algorithm.linear_fit import running_sums


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
        index = SortedIndex(granules.key, granules.start // length)
        rears = [index.first_after(key, (end - back) // length - 1) for back in (0, *ranges)]
        return cls(np.stack(rears))

    def sums(self, amounts: Int64s) -> Int64s:
        """Return the sum of the granules' amounts in each ring; shape (levels, windows).

        Exact if the window's own sum is.
        """
        return -np.diff(running_sums(amounts)[self.preceding], axis=0)


def aged_mean(weights: Sequence[float], totals: Int64s, values: Int64s) -> npt.NDArray[np.float64]:
    """Return the mean of each window's values, weighed by ring: `sum(w * total) / sum(w * values)`.

    Args:
        weights: above 0, one per ring, the nearest first.
        totals, values: of each ring; shape (rings, windows).

    Returns:
        The means; NaN if a window has no value.
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
    """Return the recurring items at every report of the widest level.

    Args:
        granules: of each pair of key and item, ordered; `key` is the pair's code.
        length: of a granule, in microseconds; divides every range, and the slide of the widest level.
        levels: the finest first.
        intervals: pairs `(a, b)` in microseconds: reports at `f` with `a < f <= b` are returned.

    Returns:
        The pairs' codes, the times of the reports in microseconds, and the numbers of records in each ring,
        the nearest first, with shape (levels, items); ordered by code and then by time.
    """
    reports = granules.windows(levels[-1], intervals)
    rings = Rings.of(granules, length, reports.key, reports.end, [level.range for level in levels])
    counts = rings.sums(granules.records)
    everywhere = np.all(counts > 0, axis=0)
    return reports.key[everywhere], reports.end[everywhere], counts[:, everywhere]
