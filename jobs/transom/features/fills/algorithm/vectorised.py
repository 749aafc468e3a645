"""The between-join: aggregate the rows inside intervals, for many keys at once and without a nested loop
(Grossniklaus, Maier, Moorthy and Tufte, section 4.5).

The rows are sorted by key and time, so those of an interval are one range, and two binary searches find its
ends. Counts and sums are differences of running sums. Minima and maxima combine two overlapping blocks, whose
length is a power of two. Intervals may overlap or contain each other.

Guarantee: the matches are those of `reference.nested_loop`; counts and sums are exact.

Cost: `O((n + m) log n)` time for `n` rows and `m` intervals; for minima and maxima also `O(n log k)`, if the
longest interval has `k` rows. Memory is `O(n + m)`, independent of the number of matches.
"""

from dataclasses import dataclass

import numpy as np

from transom.arrays.column_batch import ColumnBatch
from transom.arrays.range_queries import expand_ranges, extreme
from transom.arrays.sorted_index import SortedIndex
from transom.core.exact_sums import MAX_EXACT_SUM, Int64s


@dataclass(frozen=True)
class Between(ColumnBatch):
    """The rows inside each of many intervals: `[first, stop)` of the sorted rows.

    Attributes:
        first: the first row of each interval.
        stop: the row after its last one.
    """

    first: Int64s
    stop: Int64s

    @classmethod
    def of(cls, rows: SortedIndex, key: Int64s, start: Int64s, end: Int64s) -> "Between":
        """Return the rows inside the intervals `[start, end)`, which may come in any order.

        Args:
            rows: the rows, ordered by key and then by time.
            key: the key of each interval, as a code of the rows.
            start: the start of each interval.
            end: the end of each interval (exclusive).

        >>> rows = SortedIndex(np.array([0, 0, 0, 1]), np.array([10, 20, 30, 20]))
        >>> between = Between.of(rows, np.array([0, 1]), np.array([20, 0]), np.array([40, 20]))
        >>> between.count().tolist()
        [2, 0]
        """
        first = rows.first_after(key, start - 1)
        return cls(first, np.maximum(rows.first_after(key, end - 1), first))

    def count(self) -> Int64s:
        """Return the number of rows of each interval."""
        return self.stop - self.first

    def pairs(self) -> tuple[Int64s, Int64s]:
        """Return the number of the interval and the number of the row of each match."""
        return expand_ranges(self.first, self.stop)

    def sums(self, values: Int64s) -> Int64s:
        """Return the exact sum of each interval's values.

        Raises:
            OverflowError: a sum may not fit into 62 bits.
        """
        largest = max(abs(int(values.max(initial=0))), abs(int(values.min(initial=0))))
        count = int(self.count().max(initial=0))
        if largest * count >= MAX_EXACT_SUM:
            raise OverflowError(
                f"sums must stay below 2^62 steps of the column's resolution; got {count} values of up to "
                f"{largest} steps: a coarser resolution helps"
            )
        # Running sums may wrap around; the difference of two is still exact, as it fits.
        sums = np.append(0, np.cumsum(values))
        interval_sums: Int64s = sums[self.stop] - sums[self.first]
        return interval_sums

    def extremes(self, values: Int64s, join: np.ufunc, none: int) -> Int64s:
        """Return the largest or smallest value of each interval.

        Args:
            values: the value of each row.
            join: the maximum or minimum of two values.
            none: the value for an interval without rows.
        """
        return extreme(values, self.first, self.stop, join, none)
