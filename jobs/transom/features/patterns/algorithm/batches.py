"""Batches and windows of many keys at once (Tolpin; record by record:
`transom.features.patterns.algorithm.reference`).

Combined level by level, the batch of any level above 0 comes to this: of the records in its stretch of time
the first L and the last L, with a mark between where there are more than 2L. So a level is one pass over the
rows of the level below, and it does not matter whether these were cut before.

A window is shown only where it can hold something new. What both windows below it hold together with what
came before has been shown: an instance that belongs to level i >= 1 begins in the earlier batch and ends in
the later one, and either begins in the first half of the earlier one or ends in the second half of the later
one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transom.arrays.range_queries import segmented_searchsorted
from transom.core.exact_sums import Bools, Int64s
from transom.features.patterns.algorithm.reference import Widening


@dataclass(frozen=True)
class KeyedRecords:
    """Records of many keys, by key and then in their total order.

    Attributes:
        key: codes, ascending.
        time: in microseconds.
        cut: whether records have been cut out behind this one.
    """

    key: Int64s
    time: Int64s
    cut: Bools

    def take(self, rows: npt.NDArray[np.generic]) -> "KeyedRecords":
        """Some of them."""
        return KeyedRecords(self.key[rows], self.time[rows], self.cut[rows])


@dataclass(frozen=True)
class Cut:
    """What is left of the records of batches.

    Attributes:
        retained: which rows.
        cut: whether records have been cut out behind a row; of all rows.
        count: how many records each batch has, as it is left.
        end: when each batch ends, in microseconds.
    """

    retained: Bools
    cut: Bools
    count: Int64s
    end: Int64s


def keep_first_and_last(rows: KeyedRecords, length: int, most: int) -> Cut:
    """The first L and the last L records of each batch of a level.

    Args:
        length: of a batch, in microseconds.
        most: L.
    """
    first, behind = _batches(rows, length)
    many = behind - first
    of = np.repeat(np.arange(len(first)), many)
    place = np.arange(len(rows.time)) - first[of]
    long = many[of] > 2 * most
    kept = (place < most) | (place >= many[of] - most)
    end = (rows.time[first] // length + 1) * length
    left = np.add.reduceat(kept.astype(np.int64), first) if len(first) else many
    return Cut(kept, np.where(long, place == most - 1, rows.cut), left, end)


@dataclass(frozen=True)
class DetectorWindows:
    """The windows of a level that are shown, by key and end; each is a range of rows.

    Attributes:
        first, behind: of each window, the rows `[first, behind)`.
        end: in microseconds.
        keys, ends: of every window that is not empty, shown or not, whose it is and when it ends.
        oversized: of those shown, whether a batch of level 0 has more than 2L records.
    """

    first: Int64s
    stop: Int64s
    end: Int64s
    keys: Int64s
    ends: Int64s
    oversized: Bools


def windows_to_detect(
    rows: KeyedRecords,
    level: int,
    widening: Widening,
    stretches: Sequence[tuple[int, int]],
    opens: Bools | None = None,
    closes: Bools | None = None,
    needs: Sequence[tuple[Bools, int]] = (),
) -> DetectorWindows:
    """The windows of a level that can hold something new.

    Args:
        rows: of the level's batches.
        stretches: pairs `(a, b)` in microseconds: windows that end at `e` with `a < e <= b` are wanted.
        opens, closes: which records an instance may begin and end with, where what is an instance depends
            on the records from its first to its last alone: then of a window only what may be part of a
            new one is shown. None of a detector that may look at all of its window.
        needs: of which records an instance has how many at least.
    """
    length, time = widening.length(level), rows.time
    first, behind = _batches(rows, length)
    number, key = time[first] // length, rows.key[first]
    follows = np.zeros(len(first), dtype=bool)
    follows[1:] = (key[1:] == key[:-1]) & (number[1:] == number[:-1] + 1)
    end = (number + 1) * length
    alone = np.append(~follows[1:], True)[: len(first)]  # the window behind it holds this batch alone
    every_end, every_key = np.concatenate([end, end[alone] + length]), np.concatenate([key, key[alone]])
    every = _ends_in_ranges(every_end, stretches)
    begin = np.where(follows, np.concatenate([first[:1], first[:-1]]), first)
    many = behind - first
    over = many > 2 * widening.max_records
    # Above level 0 none is, trimmed as they are.
    oversized = over | (follows & np.concatenate([over[:1], over[:-1]]))
    low, high = begin, behind
    wanted = _ends_in_ranges(end, stretches) & (follows | (level == 0))
    if opens is not None and closes is not None:
        low, high = _narrowed(rows, level, widening, begin, first, behind, opens, closes)
        wanted &= low < high
        for some, times in needs:
            before = np.concatenate([[0], np.cumsum(some)])
            wanted &= before[high] - before[low] >= times
    elif level:
        half = length // 2
        wanted &= (time[begin] < end - length - half) | (time[behind - 1] >= end - half)
    return DetectorWindows(
        low[wanted], high[wanted], end[wanted], every_key[every], every_end[every], oversized[wanted]
    )


def _narrowed(
    rows: KeyedRecords,
    level: int,
    widening: Widening,
    begin: Int64s,
    middle: Int64s,
    behind: Int64s,
    opens: Bools,
    closes: Bools,
) -> tuple[Int64s, Int64s]:
    """The part of each window that can be part of a new instance; empty where none can.

    It spans at most L records, and at most t_max of time, ends in the later batch, and above level 0
    begins in the earlier one.
    """
    time, length = rows.time, widening.length(level)
    low = np.maximum(begin, middle - (widening.max_records - 1))
    high = np.minimum(behind, middle + widening.max_records - 1) if level else behind
    behind_opening = middle if level else behind
    # An opening record and a closing one that are near enough: the first and the last of each.
    low = segmented_searchsorted(
        time, low, behind_opening, time[_next(closes, middle, high, behind - 1)] - widening.max_length
    )
    first_open = _next(opens, low, behind_opening, behind)
    # Where none opens, any bound will do.
    reach = time[_last(opens, low, behind_opening)] + widening.max_length
    last_close = _last(closes, middle, segmented_searchsorted(time, middle, high, reach + 1))
    known = first_open <= last_close
    if level:
        half = length // 2
        start = (time[middle] // length) * length
        new = (time[np.where(known, first_open, begin)] < start - half) | (
            time[np.where(known, last_close, middle)] >= start + half
        )
        known &= new
    return np.where(known, first_open, 0), np.where(known, last_close + 1, 0)


def _next(marked: Bools, low: Int64s, high: Int64s, otherwise: Int64s) -> Int64s:
    """The first marked row of each range `[low, high)`, or something else where there is none."""
    places = np.flatnonzero(marked)
    found = np.append(places, len(marked))[np.searchsorted(places, low)]
    return np.where(found < high, found, otherwise)


def _last(marked: Bools, low: Int64s, high: Int64s) -> Int64s:
    """The last marked row of each range `[low, high)`, or -1."""
    places = np.flatnonzero(marked)
    found = np.concatenate([[-1], places])[np.searchsorted(places, high)]
    return np.where(found >= low, found, -1)


def _ends_in_ranges(end: Int64s, stretches: Sequence[tuple[int, int]]) -> Bools:
    """Which ends lie in one of some stretches, `(a, b]`; these are in order and apart."""
    starts, ends = (np.array(side, dtype=np.int64) for side in zip(*stretches, strict=True))
    of = np.searchsorted(starts, end) - 1
    found: Bools = (of >= 0) & (end <= ends[of])
    return found


def _batches(rows: KeyedRecords, length: int) -> tuple[Int64s, Int64s]:
    """The range of rows of each batch that is not empty."""
    number = rows.time // length
    changed = (np.diff(rows.key) != 0) | (np.diff(number) != 0)
    first = np.flatnonzero(np.concatenate([np.ones(min(len(number), 1), dtype=bool), changed]))
    return first, np.append(first[1:], len(number))[: len(first)]
