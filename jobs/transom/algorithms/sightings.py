"""Matches in the windows of a level, each in the first window that shows it; of many keys at once.

The one detector of ours looks at many windows in one pass (`matching.minimal`); one that is given is called
window by window, as the black box that it is. What both find is held to the same rules: a match spans at most
L records and t_max of time, none that lies across a cut is one, and it belongs to the level that
`Widening.level_of` names.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from transom.algorithms.batches import Bools, Shown
from transom.algorithms.exact import Int64s
from transom.algorithms.matching import Windows, minimal
from transom.algorithms.patterns import Pattern
from transom.algorithms.ranges import expanded
from transom.algorithms.widening import Widening

AT_A_TIME = 2**18
"""Records of whole windows that are looked at together."""


@dataclass(frozen=True)
class Sightings:
    """Stretches of records in which there is a match.

    Attributes:
        first, last: the rows that hold its first and its last record.
        end: of the window, in microseconds.
    """

    first: Int64s
    last: Int64s
    end: Int64s


def sightings(
    pattern: Pattern,
    widening: Widening,
    level: int,
    shown: Shown,
    time: Int64s,
    bits: Int64s,
    codes: Mapping[str, Int64s],
) -> Sightings:
    """The minimal instances that belong to a level.

    Args:
        shown: of the level, narrowed, so that no window lies across a cut.
        time, bits, codes: of the rows of the level's batches, as `Windows` has them.
    """
    found = [_of_some(pattern, widening, level, some, time, bits, codes) for some in _by_windows(shown)]
    return Sightings(
        *(
            np.concatenate([np.empty(0, dtype=np.int64), *(getattr(one, name) for one in found)])
            for name in ("first", "last", "end")
        )
    )


def _of_some(
    pattern: Pattern,
    widening: Widening,
    level: int,
    shown: Shown,
    time: Int64s,
    bits: Int64s,
    codes: Mapping[str, Int64s],
) -> Sightings:
    window, rows = expanded(shown.first, shown.behind)
    first, last = minimal(
        pattern, Windows(window, time[rows], bits[rows], {name: code[rows] for name, code in codes.items()})
    )
    end = shown.end[window[last]]
    first, last = rows[first], rows[last]
    kept = belongs(widening, level, end, time[first], time[last])
    return Sightings(first[kept], last[kept], end[kept])


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


def _by_windows(shown: Shown) -> Iterator[Shown]:
    """Some windows at a time."""
    many = np.cumsum(shown.behind - shown.first)
    at = 0
    while at < len(many):
        before = many[at - 1] if at else 0
        after = max(int(np.searchsorted(many, before + AT_A_TIME, side="right")), at + 1)
        taken = slice(at, after)
        none = shown.keys[:0], shown.ends[:0]
        of = shown.first[taken], shown.behind[taken], shown.end[taken]
        yield Shown(*of, *none, shown.oversized[taken])
        at = after
