"""Matches in the windows of a level, each in the first window that shows it, for many keys at once.

The built-in detector searches many windows in one pass (`matching.minimal`); a custom one is called window by
window, as a black box. The same rules apply to both: a match spans at most L records and t_max, does not span
a cut, and belongs to the level `Widening.level_of`.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from transom.arrays.range_queries import expand_ranges
from transom.core.exact_sums import Bools, Int64s
from transom.features.patterns.algorithm.batches import DetectorWindows
from transom.features.patterns.algorithm.matching import RecordWindows, minimal
from transom.features.patterns.algorithm.pattern import EventPattern
from transom.features.patterns.algorithm.widening import Widening

AT_A_TIME = 2**18
"""The number of records of pieces that are searched together."""
PAIRS_AT_A_TIME = 2**22
"""The number of pairs of records of one piece that are searched together: if later steps agree with a value,
a record can follow as many bindings as there are records before it."""


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
        time, bits, codes: columns of the level's rows, as in `RecordWindows`.

    Yields:
        The rows of the first and of the last record of each, and the end of its window in microseconds.
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
    """Split windows with more than 4L records, of level 0, into pieces of 2L that slide by L, since a match
    spans at most L. Other windows stay whole.

    Returns:
        The rows `[first, stop)` of each piece; the row before which the matches begin that belong to this
        piece and no other; and the end of its window, in microseconds.
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
    """Return which matches are shown by a window of this level for the first time.

    This is the window that the last record completes, if the window that it completes one level below begins
    after the first record.

    Args:
        end: of the window.
        first, last: times of the first and of the last record, both inside the window.
    """
    length = widening.length(level)
    is_first: Bools = last >= end - length
    if level:
        below = length // 2
        is_first &= first < (last // below + 1) * below - length
    return is_first
