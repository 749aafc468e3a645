"""Batches, windows and the matches in them, for many keys at once (Tolpin, section 3.2). `reference` does the
same record by record.

A batch of a level above 0 is the first L and the last L records of its time interval, with a mark between
them if there are more than 2L. So a level is one pass over the rows of the next lower level, which may be cut
already.

The detector gets a window only if it can contain something new. Windows of lower levels have shown all other
matches. So a match of level i >= 1 begins in the earlier batch and ends in the later one. It also begins in
the first half of the earlier batch, or ends in the second half of the later one.

The built-in detector searches many windows in one pass (`matching.minimal`). A custom one is called window by
window, as a black box. Both obey the same rules: a match spans at most L records and t_max, does not span a
cut, and belongs to the level `Widening.level_of`. No window has more than 4L records, except at level 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transom.arrays.range_queries import expand_ranges, segmented_searchsorted
from transom.core.exact_sums import Bools, Int64s
from transom.features.patterns.algorithm.matching import RecordWindows, minimal
from transom.features.patterns.algorithm.pattern import EventPattern
from transom.features.patterns.algorithm.widening import Widening

AT_A_TIME = 2**18
"""The maximal number of records in pieces that are searched together."""
PAIRS_AT_A_TIME = 2**22
"""The maximal number of pairs of records of one piece in pieces that are searched together. If later steps
agree with a value, a record can follow as many bindings as there are records before it."""


@dataclass(frozen=True)
class KeyedRecords:
    """Records of many keys, ordered by key and then by their total order.

    Attributes:
        key: the code of each record's key, ascending.
        time: the time of each record, in microseconds.
        cut: whether records were dropped after this one.
    """

    key: Int64s
    time: Int64s
    cut: Bools

    def take(self, rows: npt.NDArray[np.generic]) -> "KeyedRecords":
        """Return some of the records."""
        return KeyedRecords(self.key[rows], self.time[rows], self.cut[rows])


@dataclass(frozen=True)
class CutBatches:
    """The first L and the last L records of each batch of a level.

    Attributes:
        retained: which of all records these are.
        rows: these records, with the cuts.
        count: their number in each batch, at most 2L.
        end: the end of each batch, in microseconds.
    """

    retained: Bools
    rows: KeyedRecords
    count: Int64s
    end: Int64s


def keep_first_and_last(rows: KeyedRecords, length: int, max_records: int) -> CutBatches:
    """Keep the first L and the last L records of each batch of a level.

    Args:
        length: the length of a batch, in microseconds.
        max_records: L, at least 1.

    >>> records = KeyedRecords(np.zeros(4, int), np.array([0, 3, 5, 9]), np.zeros(4, bool))
    >>> batch = keep_first_and_last(records, length=10, max_records=1)
    >>> batch.rows.time, batch.rows.cut, batch.count, batch.end
    (array([0, 9]), array([ True, False]), array([2]), array([10]))
    """
    first, stop = _batches(rows, length)
    sizes = stop - first
    batch = np.repeat(np.arange(len(first)), sizes)
    place, size = np.arange(len(batch)) - first[batch], sizes[batch]
    retained = (place < max_records) | (place >= size - max_records)
    cut = np.where(size > 2 * max_records, place == max_records - 1, rows.cut)
    end = (rows.time[first] // length + 1) * length
    rows = KeyedRecords(rows.key, rows.time, cut).take(retained)
    return CutBatches(retained, rows, np.minimum(sizes, 2 * max_records), end)


@dataclass(frozen=True)
class DetectorWindows:
    """The windows of a level that the detector gets, by key and end; each is a range of rows.

    Attributes:
        first: the first row of each window.
        stop: the row after its last one.
        end: the end of each window, in microseconds.
        keys: the key of every window with a record, whether the detector gets it or not.
        ends: the end of every such window, in microseconds.
        oversized: whether a window has a batch of level 0 with more than 2L records.
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
    ranges: Sequence[tuple[int, int]],
    opens: Bools | None = None,
    closes: Bools | None = None,
    needs: Sequence[tuple[Bools, int]] = (),
) -> DetectorWindows:
    """Return the windows of a level that can contain something new.

    Args:
        rows: the rows of the level's batches.
        ranges: pairs `(a, b)` in microseconds: windows that end at `e` with `a < e <= b` are returned.
        opens: the records that may begin an instance, if the detector depends only on the records from the
            first to the last of an instance. Then each window is narrowed to the rows that may be part of a
            new instance. None for a detector that may use its whole window.
        closes: the records that may end an instance; None if `opens` is.
        needs: sets of records, each with the minimal number of them in an instance.
    """
    length, half, time = widening.length(level), widening.length(level) // 2, rows.time
    middle, stop = _batches(rows, length)  # the rows of the later batch of each window
    number, key = time[middle] // length, rows.key[middle]
    follows = np.zeros(len(middle), dtype=bool)
    follows[1:] = (key[1:] == key[:-1]) & (number[1:] == number[:-1] + 1)
    end = (number + 1) * length
    is_last = np.append(~follows[1:], True)[: len(middle)]  # the next window has only this batch
    ends, keys = np.concatenate([end, end[is_last] + length]), np.concatenate([key, key[is_last]])
    inside = _ends_in_ranges(ends, ranges)
    low, high = np.where(follows, np.concatenate([middle[:1], middle[:-1]]), middle), stop
    # Above level 0, no batch is too large: batches are cut.
    over = stop - middle > 2 * widening.max_records
    oversized = over | (follows & np.concatenate([over[:1], over[:-1]]))
    selected = _ends_in_ranges(end, ranges) & (follows | (level == 0))
    if opens is not None and closes is not None:
        low, high = _narrowed(time, level, widening, (low, middle, stop), opens, closes)
        selected &= low < high
        for marked, count in needs:
            running = np.concatenate([[0], np.cumsum(marked)])
            selected &= running[high] - running[low] >= count
    elif level:
        selected &= (time[low] < end - length - half) | (time[stop - 1] >= end - half)
    low, high, end = low[selected], high[selected], end[selected]
    return DetectorWindows(low, high, end, keys[inside], ends[inside], oversized[selected])


def _narrowed(
    time: Int64s,
    level: int,
    widening: Widening,
    windows: tuple[Int64s, Int64s, Int64s],
    opens: Bools,
    closes: Bools,
) -> tuple[Int64s, Int64s]:
    """Return the rows of each window that can be part of a new instance; an empty range if there are none.

    An instance spans at most L records and at most t_max, ends in the later batch, and above level 0 begins
    in the earlier one.

    Args:
        windows: for each window the first row of the earlier and of the later batch, and the exclusive end.
        opens: as in `windows_to_detect`.
        closes: as in `windows_to_detect`.
    """
    begin, middle, stop = windows
    length, half = widening.length(level), widening.length(level) // 2
    low = np.maximum(begin, middle - (widening.max_records - 1))
    high = np.minimum(stop, middle + widening.max_records - 1) if level else stop
    opening_stop = middle if level else stop
    # The first opening record and the last closing record at most t_max apart.
    earliest = time[_next(closes, middle, high, stop - 1)] - widening.max_length
    low = segmented_searchsorted(time, low, opening_stop, earliest)
    first_open = _next(opens, low, opening_stop, stop)
    # If no record opens, any bound is valid.
    reach = time[_last(opens, low, opening_stop)] + widening.max_length
    last_close = _last(closes, middle, segmented_searchsorted(time, middle, high, reach + 1))
    exists = first_open <= last_close
    first_open, stop = np.where(exists, first_open, 0), np.where(exists, last_close + 1, 0)
    if level:
        start = time[middle] // length * length
        exists &= (time[first_open] < start - half) | (time[stop - 1] >= start + half)
    return np.where(exists, first_open, 0), np.where(exists, stop, 0)


def _next(marked: Bools, low: Int64s, high: Int64s, otherwise: Int64s) -> Int64s:
    """Return the first marked row of each range `[low, high)`, or `otherwise` if there is none."""
    places = np.flatnonzero(marked)
    rows = np.append(places, len(marked))[np.searchsorted(places, low)]
    return np.where(rows < high, rows, otherwise)


def _last(marked: Bools, low: Int64s, high: Int64s) -> Int64s:
    """Return the last marked row of each range `[low, high)`, or -1."""
    places = np.flatnonzero(marked)
    rows = np.concatenate([[-1], places])[np.searchsorted(places, high)]
    return np.where(rows >= low, rows, -1)


def _ends_in_ranges(end: Int64s, ranges: Sequence[tuple[int, int]]) -> Bools:
    """Return which ends are in one of the ranges `(a, b]`, which are ascending and disjoint."""
    starts, ends = (np.array(side, dtype=np.int64) for side in zip(*ranges, strict=True))
    number = np.searchsorted(starts, end) - 1
    inside: Bools = (number >= 0) & (end <= ends[number])
    return inside


def _batches(rows: KeyedRecords, length: int) -> tuple[Int64s, Int64s]:
    """Return the range of rows, first and exclusive end, of each batch that is not empty."""
    number = rows.time // length
    changed = (np.diff(rows.key) != 0) | (np.diff(number) != 0)
    first = np.flatnonzero(np.append(True, changed)[: len(number)])
    return first, np.append(first[1:], len(number))[: len(first)]


def detect_matches(
    pattern: EventPattern,
    widening: Widening,
    level: int,
    windows: DetectorWindows,
    time: Int64s,
    bits: Int64s,
    codes: Mapping[str, Int64s],
) -> Iterator[tuple[Int64s, Int64s, Int64s]]:
    """Yield the minimal instances that belong to a level, some windows at a time.

    Args:
        windows: the windows of the level, narrowed, so that no window spans a cut.
        time: the times of the level's rows, as in `RecordWindows`.
        bits: the conditions that they meet, as in `RecordWindows`.
        codes: the codes of their values, as in `RecordWindows`.

    Yields:
        For each instance the rows of its first and last record, and the end of its window in microseconds.
    """
    first, stop, own, ends = _pieces(windows, widening.max_records)
    for part in _parts(stop - first):
        piece, rows = expand_ranges(first[part], stop[part])
        of_rows = {name: code[rows] for name, code in codes.items()}
        start, last = minimal(pattern, RecordWindows(piece, time[rows], bits[rows], of_rows))
        end, owned = ends[part][piece[last]], rows[start] < own[part][piece[last]]
        start, last = rows[start], rows[last]
        selected = belongs(widening, level, end, time[start], time[last]) & owned
        yield start[selected], last[selected], end[selected]


def _pieces(windows: DetectorWindows, max_records: int) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Split windows of level 0 with more than 4L records into pieces of 2L that slide by L, as a match spans
    at most L. Other windows stay whole.

    Returns:
        The rows `[first, stop)` of each piece; the row before which its own matches begin, as those from it
        on belong to the next piece; and the end of its window, in microseconds.
    """
    sizes = windows.stop - windows.first
    counts = np.where(sizes > 4 * max_records, -(-sizes // max_records) - 1, 1)
    window, number = expand_ranges(np.zeros_like(sizes), counts)
    first, last_stop = windows.first[window] + number * max_records, windows.stop[window]
    stop = np.where(counts[window] == 1, last_stop, np.minimum(first + 2 * max_records, last_stop))
    return first, stop, np.where(stop == last_stop, stop, first + max_records), windows.end[window]


def _parts(sizes: Int64s) -> Iterator[slice]:
    """Yield slices of pieces that fit into memory together; at least one piece at a time."""
    totals = (np.cumsum(sizes), AT_A_TIME), (np.cumsum(sizes * sizes), PAIRS_AT_A_TIME)
    start = 0
    while start < len(sizes):
        stops = (
            int(np.searchsorted(total, (total[start - 1] if start else 0) + limit, side="right"))
            for total, limit in totals
        )
        stop = max(start + 1, min(stops))
        yield slice(start, stop)
        start = stop


def belongs(widening: Widening, level: int, end: Int64s, first: Int64s, last: Int64s) -> Bools:
    """Return which matches a window of this level shows first.

    It is the window that the last record completes, if the one that it completes at the next lower level
    begins after the first record.

    Args:
        end: the end of each window, in microseconds.
        first: the time of the first record of each match, inside its window.
        last: the time of the last record, inside the window.
    """
    length = widening.length(level)
    is_first: Bools = last >= end - length
    if level:
        below = length // 2
        is_first &= first < (last // below + 1) * below - length
    return is_first
