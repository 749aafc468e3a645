"""Every item with every slot in which it was seen, of many items at once: what a sketch is measured by.

One by one: `transom.features.persistence.algorithm.reference.Exact`. It remembers as many pairs as the
persistences of all items come to, where a sketch remembers a share `tau` of them."""

import numpy as np

from transom.core.exact_sums import Int64s


class ExactTracker:
    """Pairs of an item and a slot, and the persistence of every item in any window.

    Args:
        item: codes, from 0 up.
        slot: of each; pairs may come in any order, and again.
        many: how many items there are.
    """

    def __init__(self, item: Int64s, slot: Int64s, many: int) -> None:
        self._many = many
        self._origin = int(slot.min(initial=0)) if len(slot) else 0
        self._span = (int(slot.max()) - self._origin + 1) if len(slot) else 1
        # One number for an item and a slot.
        self._pairs = np.unique(item * self._span + (slot - self._origin))

    def persistences(self, first: int, last: int) -> Int64s:
        """In how many slots from a first to a last one each item was seen, by its code."""
        low = min(max(first - self._origin, 0), self._span)
        behind = min(max(last + 1 - self._origin, low), self._span)
        items = np.arange(self._many) * self._span
        first_pair, pair_behind = (np.searchsorted(self._pairs, items + end) for end in (low, behind))
        found: Int64s = pair_behind - first_pair
        return found
