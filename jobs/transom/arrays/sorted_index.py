"""Moments of many keys in order, among which others are looked for."""

import numpy as np

from transom.core.exact_sums import MAX_EXACT_SUM, Bools, Int64s


def sort_by_key_and_time(key: Int64s, time: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The order of moments by key and then by time, and the keys and times in this order.

    Args:
        key: codes, from 0 up.
    """
    if not len(time):
        none = np.empty(0, dtype=np.int64)
        return none, none, none
    origin, keys = int(time.min()), int(key.max()) + 1
    span = int(time.max()) - origin + 1
    if span * keys >= MAX_EXACT_SUM:
        order: Int64s = np.lexsort([time, key])
        return order, key[order], time[order]
    # One number is sorted in a third of the time of two; and what it is made of need not be fetched again.
    number = key * span + (time - origin)
    order = np.argsort(number)
    of_key = np.repeat(np.arange(keys), np.bincount(key))
    return order, of_key, number[order] - of_key * span + origin


class SortedIndex:
    """Moments of keys, in order, among which others are looked for.

    Args:
        key: codes, from 0 up.
        time: of each, in microseconds; by key and then by time.
    """

    def __init__(self, key: Int64s, time: Int64s) -> None:
        self.key, self.time = key, time
        self._origin, latest = (int(time.min()) - 1, int(time.max())) if len(time) else (0, 0)
        span, keys = latest - self._origin + 2, int(key.max(initial=0)) + 1
        # A key and a moment are one number; where that is too large, a moment counts by its place.
        self._moments = np.unique(time) if span * keys >= MAX_EXACT_SUM else None
        self._span = span if self._moments is None else len(self._moments) + 2
        self._numbers = key * self._span + self._within(time)

    def first_after(self, key: Int64s, moment: Int64s) -> Int64s:
        """The first one behind a moment of a key; behind the key where there is none."""
        found: Int64s = np.searchsorted(self._numbers, key * self._span + self._within(moment), side="right")
        return found

    def _within(self, moment: Int64s) -> Int64s:
        if self._moments is not None:
            return np.searchsorted(self._moments, moment, side="right")
        clipped: Int64s = np.clip(moment, self._origin, self._origin + self._span - 1) - self._origin
        return clipped


def this_or_next(flags: Bools) -> Int64s:
    """For each row itself, or the first one behind it, that has a flag; behind all where there is none."""
    at = np.where(flags, np.arange(len(flags)), len(flags))
    found: Int64s = np.minimum.accumulate(at[::-1])[::-1]
    return found
