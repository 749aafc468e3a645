"""The most frequent items of a window, without a count for each item.

Of each hour the items with the most records are kept with their exact counts, and how many records an item
may have that is not: at most as many as the first that was left out. So of an item it is known, whatever
sketch there is besides, that

    kept <= f <= kept + unseen

where `top_k_and_watched` is the sum of its counts in the hours of the window in which it was kept, and
`unseen` that of what the other hours have left out at most. An item that was kept in no hour was seen at most
as often as all hours have left out together: it can be missed where that is more than what the last of the
top is known to have.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transom.core.exact_sums import Bools, Int64s

NO_ITEMS: Int64s = np.zeros(0, dtype=np.int64)


def top_k(records: Int64s, keys: Sequence[Any], many: int) -> tuple[Int64s, int]:
    """The items with the most records, and the most records that one of the others has.

    Args:
        records: of each item.
        keys: of each, which decide where there are as many: the smaller ones are taken.
        many: how many are taken.

    Returns:
        Their places, in order; 0 where all are taken.
    """
    if len(records) <= many:
        return np.arange(len(records)), 0
    least = int(np.partition(records, len(records) - many)[len(records) - many])
    above, equal = np.flatnonzero(records > least), np.flatnonzero(records == least)
    room = many - len(above)
    chosen = heapq.nsmallest(room, equal.tolist(), key=keys.__getitem__)
    taken = np.sort(np.concatenate([above, np.array(chosen, dtype=np.int64)]))
    left_out = least if len(equal) > room else int(records[records < least].max(initial=0))
    return taken, left_out


def top_k_and_watched(records: Int64s, keys: Sequence[Any], always: Bools, many: int) -> tuple[Int64s, int]:
    """The same, with items that are taken whatever they have, beside so many of the others."""
    others = np.flatnonzero(~always)
    taken, left_out = top_k(records[others], [keys[place] for place in others.tolist()], many)
    return np.concatenate([np.flatnonzero(always), others[taken]]), left_out


@dataclass(frozen=True)
class HourlyTopItems:
    """Items that hours have kept.

    Attributes:
        item: codes, from 0 up, in the order of their keys.
        hour: of each, by its number; ordered by hour.
        records: how often it was seen then.
        hours: numbers of all hours that anything was seen in, in order.
        left_out: of each of these, how many records an item has at most that was not kept.
    """

    item: Int64s
    hour: Int64s
    records: Int64s
    hours: Int64s
    left_out: Int64s

    def within(self, first: int, last: int, always: Int64s, others: Int64s = NO_ITEMS) -> "WindowCandidates":
        """What is known of the items of some hours.

        Args:
            always: items that every hour has kept in which they were seen.
            others: more that are asked for, whether or not an hour has kept them.
        """
        # None, of a window that ends before anything counts.
        behind = max(first, last + 1)
        here = slice(*np.searchsorted(self.hour, [first, behind]))
        items, place = np.unique(np.concatenate([self.item[here], always, others]), return_inverse=True)
        kept, known = np.zeros(len(items), dtype=np.int64), np.zeros(len(items), dtype=np.int64)
        of_rows = place[: here.stop - here.start]
        np.add.at(kept, of_rows, self.records[here])
        at = np.searchsorted(self.hours, self.hour[here])
        np.add.at(known, of_rows, self.left_out[at])
        some = slice(*np.searchsorted(self.hours, [first, behind]))
        unseen = int(self.left_out[some].sum())
        more = unseen - known
        more[np.isin(items, always)] = 0
        return WindowCandidates(items, kept, kept + more, unseen)


@dataclass(frozen=True)
class WindowCandidates:
    """What is known of the items of a window.

    Attributes:
        item: codes, in order.
        low, high: how often each was seen at least, and at most.
        unseen: how often one was seen at most that is none of these.
    """

    item: Int64s
    low: Int64s
    high: Int64s
    unseen: int


def ranked(estimate: Int64s, low: Int64s, item: Int64s) -> Int64s:
    """Return the places of items from the most frequent to the least.

    The larger estimate comes first; of equal ones the larger `low`; of these the smaller code, which follows
    the order of the items.
    """
    order: Int64s = np.lexsort([item, -low, -estimate])
    return order
