"""Matches in the windows of a level, each in the first window that shows it; of many keys at once.

The one detector of ours looks at many windows in one pass (`matching.minimal`); one that is given is called
window by window, as the black box that it is. What both find is held to the same rules: a match spans at most
L records and t_max of time, none that lies across a cut is one, and it belongs to the level that
`Widening.level_of` names.
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
"""Records of pieces that are looked at together."""
PAIRS_AT_A_TIME = 2**22
"""Pairs of records of one piece that are looked at together: where later steps agree with a value, a record
may follow as many bindings as there are records before it."""


@dataclass(frozen=True)
class DetectedMatches:
    """Stretches of records in which there is a match.

    Attributes:
        first, last: the rows that hold its first and its last record.
        end: of the window, in microseconds.
    """

    first: Int64s
    last: Int64s
    end: Int64s


@dataclass(frozen=True)
class _Pieces:
    """Parts of windows, each a range of rows, such that each match is the match of one of them.

    Attributes:
        first, behind: the rows `[first, behind)`.
        own: the matches that begin in rows before this one are its own.
        end: of its window, in microseconds.
    """

    first: Int64s
    stop: Int64s
    own: Int64s
    end: Int64s

    @classmethod
    def of(cls, shown: DetectorWindows, most: int) -> "_Pieces":
        """A window of more than 4L records, of level 0, in pieces of 2L that slide by L, for a match spans at
        most L; others whole."""
        many = shown.stop - shown.first
        of, number = expand_ranges(np.zeros_like(many), np.where(many > 4 * most, -(-many // most) - 1, 1))
        first, whole = shown.first[of] + number * most, many[of] <= 4 * most
        behind = np.where(whole, shown.stop[of], np.minimum(first + 2 * most, shown.stop[of]))
        own = np.where(behind == shown.stop[of], behind, first + most)
        return cls(first, behind, own, shown.end[of])

    def batches(self) -> Iterator["_Pieces"]:
        """As many at a time as fit into memory; one at least."""
        many = self.stop - self.first
        records, pairs = np.cumsum(many), np.cumsum(many * many)
        at = 0
        while at < len(many):
            done = (records[at - 1], pairs[at - 1]) if at else (0, 0)
            after = max(
                at + 1,
                min(
                    int(np.searchsorted(records, done[0] + AT_A_TIME, side="right")),
                    int(np.searchsorted(pairs, done[1] + PAIRS_AT_A_TIME, side="right")),
                ),
            )
            taken = slice(at, after)
            yield _Pieces(self.first[taken], self.stop[taken], self.own[taken], self.end[taken])
            at = after


def detect_matches(
    pattern: EventPattern,
    widening: Widening,
    level: int,
    shown: DetectorWindows,
    time: Int64s,
    bits: Int64s,
    codes: Mapping[str, Int64s],
) -> Iterator[DetectedMatches]:
    """The minimal instances that belong to a level, those of some windows at a time.

    Args:
        shown: of the level, narrowed, so that no window lies across a cut.
        time, bits, codes: of the rows of the level's batches, as `RecordWindows` has them.
    """
    for pieces in _Pieces.of(shown, widening.max_records).batches():
        piece, rows = expand_ranges(pieces.first, pieces.stop)
        of_rows = {name: code[rows] for name, code in codes.items()}
        first, last = minimal(pattern, RecordWindows(piece, time[rows], bits[rows], of_rows))
        end, own = pieces.end[piece[last]], pieces.own[piece[last]]
        first, last = rows[first], rows[last]
        kept = belongs(widening, level, end, time[first], time[last]) & (first < own)
        yield DetectedMatches(first[kept], last[kept], end[kept])


def belongs(widening: Widening, level: int, end: Int64s, first: Int64s, last: Int64s) -> Bools:
    """Which matches a window of a level is the first to show.

    It is so of the window that the last record completes, where the window of the level below that this
    record completes begins after the first one.

    Args:
        end: of the window.
        first, last: times of the first and of the last record, both inside the window.
    """
    length = widening.length(level)
    kept: Bools = last >= end - length
    if level:
        below = length // 2
        kept &= first < (last // below + 1) * below - length
    return kept
