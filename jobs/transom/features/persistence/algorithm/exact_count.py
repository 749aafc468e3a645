"""Exact persistences of many items at once, to measure a sketch by: every item with all its slots.

Item by item: `transom.features.persistence.algorithm.reference.Exact`. It stores as many pairs as the sum of
all persistences; a sketch stores a share `tau` of them."""

import numpy as np

from transom.core.exact_sums import Int64s


class ExactTracker:
    """The persistence of every item in any window, from pairs of an item and a slot.

    Args:
        item: codes, from 0 up.
        slot: of each item; pairs may come in any order, also repeated.
        count: the number of items.
    """

    def __init__(self, item: Int64s, slot: Int64s, count: int) -> None:
        self._count = count
        self._origin = int(slot.min(initial=0)) if len(slot) else 0
        self._span = (int(slot.max()) - self._origin + 1) if len(slot) else 1
        # One number for an item and a slot.
        self._pairs = np.unique(item * self._span + (slot - self._origin))

    def persistences(self, first: int, last: int) -> Int64s:
        """Return the number of slots of each item, from a first to a last one, by its code."""
        low = min(max(first - self._origin, 0), self._span)
        stop = min(max(last + 1 - self._origin, low), self._span)
        items = np.arange(self._count) * self._span
        first_pair, stop_pair = (np.searchsorted(self._pairs, items + end) for end in (low, stop))
        counts: Int64s = stop_pair - first_pair
        return counts
