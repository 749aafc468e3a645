"""The between-join: what lies between the ends of intervals, of many keys at once and with no nested loop
(Grossniklaus, Maier, Moorthy and Tufte, section 4.5).

With the rows in order, those of an interval are one stretch of them, whose ends are found by two searches. So
the rows themselves cost what there is of them; counts and sums are the difference of two running sums,
whatever lies between; the smallest and the largest are told of any stretch by two blocks that overlap. It
does not matter whether intervals overlap, or lie inside each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from transom.arrays.batched_search import extreme
from transom.arrays.sorted_index import SortedIndex
from transom.core.exact_sums import MAX_EXACT_SUM, Int64s


class KeyInterval(NamedTuple):
    """One interval `[start, end)` of a key, as the plain form takes it."""

    key: object
    start: int
    end: int


def nested_loop(
    intervals: Sequence[KeyInterval], rows: Sequence[tuple[object, int]]
) -> Iterator[tuple[int, int]]:
    """Every interval against every row: the numbers of those that belong together, as definition 6 has it."""
    for number, interval in enumerate(intervals):
        for place, (key, time) in enumerate(rows):
            if key == interval.key and interval.start <= time < interval.end:
                yield number, place


@dataclass(frozen=True)
class Between:
    """Which rows lie in each of many intervals.

    Attributes:
        first, behind: of each interval, where its rows begin among those in order, and the first one behind.
    """

    first: Int64s
    stop: Int64s

    @classmethod
    def of(cls, rows: SortedIndex, key: Int64s, start: Int64s, end: Int64s) -> "Between":
        """Of intervals `[start, end)`, in any order.

        Args:
            rows: by key and then by time.
            key: of each interval, a code as of the rows.
        """
        first = rows.first_after(key, start - 1)
        return cls(first, np.maximum(rows.first_after(key, end - 1), first))

    def count(self) -> Int64s:
        """How many rows each interval has."""
        return self.stop - self.first

    def pairs(self) -> tuple[Int64s, Int64s]:
        """The numbers of the intervals and of the rows that belong together: as many as there are matches."""
        many = self.count()
        before = np.cumsum(many) - many
        interval = np.repeat(np.arange(len(many)), many)
        return interval, np.arange(len(interval)) + np.repeat(self.first - before, many)

    def sums(self, values: Int64s) -> Int64s:
        """The sum of each interval's values, exact.

        Raises:
            OverflowError: it might not fit into 62 bits.
        """
        largest = max(abs(int(values.max(initial=0))), abs(int(values.min(initial=0))))
        if largest * int(self.count().max(initial=0)) >= MAX_EXACT_SUM:
            raise OverflowError(
                f"sums must stay below 2^62 steps of the column's resolution; got "
                f"{int(self.count().max())} values of up to {largest} steps: a coarser resolution helps"
            )
        # Running sums may go round; the difference of two does not, as it fits.
        sums = np.append(0, np.cumsum(values))
        found: Int64s = sums[self.stop] - sums[self.first]
        return found

    def extremes(self, values: Int64s, join: np.ufunc, none: int) -> Int64s:
        """The largest or smallest value of each interval.

        Args:
            join: maximum or minimum.
            none: what an interval without rows has.
        """
        found = np.full(len(self.first), none, dtype=values.dtype)
        some = np.flatnonzero(self.stop > self.first)
        found[some] = extreme(values, self.first[some], self.stop[some], join)
        return found
