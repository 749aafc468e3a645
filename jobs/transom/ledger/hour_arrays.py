"""Arithmetic on arrays of hours: which ranges contain some hours, and how far a chain carries a change."""

import numpy as np

from transom.core.exact_sums import Bools, Int64s


def first_in_ranges(hours: Int64s, first: Int64s, last: Int64s) -> tuple[Bools, Int64s]:
    """Return which ranges contain one of some hours, and the place of the first such hour.

    Args:
        hours: the hours, ascending.
        first: the first hour of each range.
        last: the last hour of each range, inclusive; a range is empty if it is before the first.
    """
    places = np.searchsorted(hours, first)
    inside = places < len(hours)
    inside[inside] = hours[places[inside]] <= last[inside]
    return inside, places


def spread_along_chain(seeds: Bools, hours: Int64s, back: int) -> Bools:
    """Return some hours of a chain, and every later hour that they reach.

    >>> hours = np.array([0, 1, 2, 9, 10])
    >>> spread_along_chain(np.array([False, True, False, False, False]), hours, 2).tolist()
    [False, True, True, False, False]

    Args:
        seeds: which hours.
        hours: all hours of the chain, ascending.
        back: the number of hours that each hour reads before it.
    """
    # Nothing passes a gap that is longer than `back`.
    part = np.zeros(len(hours), dtype=np.int64)
    part[1:] = np.cumsum(np.diff(hours) > back)
    reached: Bools = np.maximum.accumulate(np.where(seeds, part, -1)) == part
    return reached
