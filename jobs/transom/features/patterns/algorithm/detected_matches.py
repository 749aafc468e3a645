"""Matches in the windows of a level, each in the first window that shows it, for many keys at once.

The built-in detector searches many windows in one pass (`matching.minimal`); a custom one is called window by
window, as a black box. The same rules apply to both: a match spans at most L records and t_max, does not span
a cut, and belongs to the level `Widening.level_of`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from transom.arrays.range_queries import expand_ranges
from transom.core.exact_sums import Bools, Int64s
from transom.features.patterns.algorithm.batches import DetectorWindows
from transom.features.patterns.algorithm.matching import RecordWindows, minimal
from transom.features.patterns.algorithm.pattern import EventPattern
from transom.features.patterns.algorithm.reference import Widening

AT_A_TIME = 2**18
"""The number of records of pieces that are searched together."""
PAIRS_AT_A_TIME = 2**22
"""The number of pairs of records of one piece that are searched together: if later steps agree with a value,
a record can follow as many bindings as there are records before it."""


@dataclass(frozen=True)
class DetectedMatches:
    """Ranges of records that contain a match.

    Attributes:
        first, last: the rows of its first and its last record.
        end: of the window, in microseconds.
    """

    first: Int64s
    last: Int64s
    end: Int64s


@dataclass(frozen=True)
class _Pieces:
    """Parts of windows, each a range of rows. Each match belongs to exactly one of them.

    Attributes:
        first, stop: the rows `[first, stop)`.
        own: the piece owns the matches that begin before this row.
        end: the end of its window, in microseconds.
    """

    first: Int64s
    stop: Int64s
    own: Int64s
    end: Int64s

    @classmethod
    def of(cls, windows: DetectorWindows, max_records: int) -> "_Pieces":
        """Split windows with more than 4L records, of level 0, into pieces of 2L that slide by L, since a
        match spans at most L. Other windows stay whole."""
        sizes = windows.stop - windows.first
        window, number = expand_ranges(
            np.zeros_like(sizes), np.where(sizes > 4 * max_records, -(-sizes // max_records) - 1, 1)
        )
        first, whole = windows.first[window] + number * max_records, sizes[window] <= 4 * max_records
        stop = np.where(
            whole, windows.stop[window], np.minimum(first + 2 * max_records, windows.stop[window])
        )
        own = np.where(stop == windows.stop[window], stop, first + max_records)
        return cls(first, stop, own, windows.end[window])

    def batches(self) -> Iterator["_Pieces"]:
        """Yield as many pieces at a time as fit into memory; at least one."""
        sizes = self.stop - self.first
        records, pairs = np.cumsum(sizes), np.cumsum(sizes * sizes)
        at = 0
        while at < len(sizes):
            base = (records[at - 1], pairs[at - 1]) if at else (0, 0)
            after = max(
                at + 1,
                min(
                    int(np.searchsorted(records, base[0] + AT_A_TIME, side="right")),
                    int(np.searchsorted(pairs, base[1] + PAIRS_AT_A_TIME, side="right")),
                ),
            )
            batch = slice(at, after)
            yield _Pieces(self.first[batch], self.stop[batch], self.own[batch], self.end[batch])
            at = after


def detect_matches(
    pattern: EventPattern,
    widening: Widening,
    level: int,
    windows: DetectorWindows,
    time: Int64s,
    bits: Int64s,
    codes: Mapping[str, Int64s],
) -> Iterator[DetectedMatches]:
    """Yield the minimal instances that belong to a level, some windows at a time.

    Args:
        windows: the windows of the level, narrowed, so that no window spans a cut.
        time, bits, codes: columns of the level's rows, as in `RecordWindows`.
    """
    for pieces in _Pieces.of(windows, widening.max_records).batches():
        piece, rows = expand_ranges(pieces.first, pieces.stop)
        of_rows = {name: code[rows] for name, code in codes.items()}
        first, last = minimal(pattern, RecordWindows(piece, time[rows], bits[rows], of_rows))
        end, own = pieces.end[piece[last]], pieces.own[piece[last]]
        first, last = rows[first], rows[last]
        selected = belongs(widening, level, end, time[first], time[last]) & (first < own)
        yield DetectedMatches(first[selected], last[selected], end[selected])


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
