"""Find the most frequent items of a window without a count for each item.

Each hour stores the exact counts of its top items, and the largest count of an item that it dropped. So for
each item with count f, independent of any sketch,

    kept <= f <= kept + unseen

where `kept` is the sum of its stored counts in the hours of the window, and `unseen` the sum of the largest
dropped counts of the other hours. An item that no hour stored can be missed only if the `unseen` of all hours
exceeds the lower bound of the last reported item.

An hour with n distinct items takes `O(n log k)` time and stores k of them. A larger k tightens the bounds.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transom.core.exact_sums import Int64s

NO_ITEMS: Int64s = np.zeros(0, dtype=np.int64)
"""Codes of no items."""


def top_k(records: Int64s, keys: Sequence[Any], k: int) -> tuple[Int64s, int]:
    """Return the positions of the k items with the most records, ascending, and the largest number of records
    of the others, or 0.

    Args:
        records: the number of records of each item.
        keys: the key of each item; of items with equal records, those with smaller keys come first.
        k: the number of items to return; 1 or more.

    >>> places, dropped = top_k(np.array([5, 1, 3, 3]), "abcd", 2)
    >>> places.tolist(), dropped
    ([0, 2], 3)
    """
    if len(records) <= k:
        return np.arange(len(records)), 0
    threshold = int(np.partition(records, len(records) - k)[len(records) - k])
    above, equal = np.flatnonzero(records > threshold), np.flatnonzero(records == threshold)
    room = k - len(above)
    chosen = heapq.nsmallest(room, equal.tolist(), key=keys.__getitem__)
    places = np.sort(np.concatenate([above, np.array(chosen, dtype=np.int64)]))
    left_out = threshold if len(equal) > room else int(records[records < threshold].max(initial=0))
    return places, left_out


@dataclass(frozen=True)
class HourlyTopItems:
    """The top items of hours.

    Attributes:
        item: the code of each stored item, from 0 up, in the order of their keys.
        hour: the number of its hour, ascending.
        records: its count in the hour.
        hours: the numbers of all hours with records, ascending.
        left_out: for each hour of `hours`, the largest count of an item that it dropped.
    """

    item: Int64s
    hour: Int64s
    records: Int64s
    hours: Int64s
    left_out: Int64s

    def within(self, first: int, last: int, always: Int64s, others: Int64s = NO_ITEMS) -> "WindowCandidates":
        """Return the candidates of a window with their bounds.

        Args:
            first: the number of the first hour.
            last: the number of the last hour.
            always: items that are stored in every hour in which they occur.
            others: further candidates, stored or not.
        """
        # Empty for a window that ends before the first hour.
        stop = max(first, last + 1)
        rows = slice(*np.searchsorted(self.hour, [first, stop]))
        items, place = np.unique(np.concatenate([self.item[rows], always, others]), return_inverse=True)
        counted, known = np.zeros(len(items), dtype=np.int64), np.zeros(len(items), dtype=np.int64)
        of_rows = place[: rows.stop - rows.start]
        np.add.at(counted, of_rows, self.records[rows])
        np.add.at(known, of_rows, self.left_out[np.searchsorted(self.hours, self.hour[rows])])
        unseen = int(self.left_out[slice(*np.searchsorted(self.hours, [first, stop]))].sum())
        extra = np.where(np.isin(items, always), 0, unseen - known)
        return WindowCandidates(items, counted, counted + extra, unseen)


@dataclass(frozen=True)
class WindowCandidates:
    """The candidates of a window.

    Attributes:
        item: codes, ascending.
        low: the lower bound of each count.
        high: the upper bound of each count.
        unseen: the upper bound of the count of any other item.
    """

    item: Int64s
    low: Int64s
    high: Int64s
    unseen: int
