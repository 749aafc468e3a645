"""Episodes: matches of one key that overlap or are at most `merge` apart, hour by hour.

An hour has the matches that are detected in it, `(hour, hour + 1 hour]`. They are joined with each other and
with the episodes that are open before the hour, transitively:

    open      [--a--]       [b]                 [c] is farther than `merge`
    matches        [-x-]  [y]    [z]
    rows      [-------- a ---------]  [b] joined to a

An hour has a row for each episode that gets matches, that becomes part of another one (`joined`), or that no
later match can join (`final`). An episode is final in an hour if

    end + merge <= hour + 1 hour - (top + within)

Reason: the window that shows a match ends with a batch of at most `top` with the match's last record. So if a
match is detected after the hour's end, its last record is later than that end minus `top`. Its first record
is at most `within` earlier.

So an hour needs its matches and the rows of a few earlier hours, see `Merging.reach`. With n rows and matches
in its reach, it costs `O(n * log(n))`. The hour of a row is the start of the hour. Times are in microseconds;
the order of ids is that of the identifiers that they stand for.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import HOUR_LENGTH

PARTIAL, FINAL, JOINED = range(3)
STATES = ("partial", "final", "joined")
"""The names of the states."""
NONE = -1
"""The id for no episode."""


@dataclass(frozen=True)
class Merging:
    """Parameters that join matches to episodes.

    Attributes:
        merge: the maximal gap between joined matches, in microseconds; 0 or more. Longer: an hour reads more
            hours, and episodes are final later.
        within: the maximal duration of a match, in microseconds.
        top: the length of the longest batches, in microseconds.
    """

    merge: int
    within: int
    top: int

    def final(self, end: Any, by: int) -> Any:
        """Return whether no match that is detected after `by` can join an episode that ends at `end`.

        >>> Merging(merge=1, within=5, top=10).final(end=4, by=20)
        True
        """
        return end + self.merge <= by - self.top - self.within

    @property
    def reach(self) -> int:
        """The maximal number of hours from the last row of an open episode to the hour where it is open:
        `ceil(D / 1 hour)` with `D = top + within + merge`.

        Let r be the hour of the last row. All its records are before r + 1 hour, as a match is detected after
        its last record. The episode is open before hour h, so it is not final: r + 1 hour > h - D. So h - r
        is less than D + 1 hour, and in whole hours at most ceil(D / 1 hour).
        """
        return -(-(self.merge + self.within + self.top) // HOUR_LENGTH)


EpisodeRows = npt.NDArray[np.void]
"""Rows of episodes in hours; or matches, each as an episode of its own."""
FIELDS = (
    "hour",
    "id",
    "key",
    "start",  # time of the first record
    "end",  # time of the last record
    "matches",
    "new",  # the number of its matches that are detected in the hour
    "detected_at",  # end of the window that showed its first detected match
    "level",  # of this window
    "state",
    "joined",  # the episode that it became part of, or `NONE`
)
DTYPE = np.dtype([(name, np.int64) for name in FIELDS])
"""The type of `EpisodeRows`."""


def episodes(
    matches: EpisodeRows, stored: EpisodeRows, hours: Iterable[int], merging: Merging
) -> EpisodeRows:
    """Return the rows of some hours.

    Args:
        matches: the matches of these hours.
        stored: the rows of other hours in reach.
        hours: the hours to compute, ascending.
    """
    matches, stored = (rows[np.argsort(rows["hour"], kind="stable")] for rows in (matches, stored))
    still_open = np.empty(0, DTYPE)
    output, known = [still_open], 0
    for hour in hours:
        stored_stop = int(np.searchsorted(stored["hour"], hour))
        if known < stored_stop:
            still_open = _open(np.concatenate([still_open, stored[known:stored_stop]]))
            known = stored_stop
        still_open = still_open[still_open["hour"] >= hour - merging.reach * HOUR_LENGTH]
        first, stop = np.searchsorted(matches["hour"], [hour, hour + 1])
        if stop > first or len(still_open):
            rows, still_open = _of_hour(hour, matches[first:stop], still_open, merging)
            output.append(rows)
    return np.concatenate(output)


def _open(rows: EpisodeRows) -> EpisodeRows:
    """Return the last row of each episode if it is open."""
    rows = rows[np.lexsort((rows["hour"], rows["id"]))]
    last = np.append(rows["id"][1:] != rows["id"][:-1], True)
    open_rows: EpisodeRows = rows[last & (rows["state"] == PARTIAL)]
    return open_rows


def _of_hour(
    hour: int, matches: EpisodeRows, still_open: EpisodeRows, merging: Merging
) -> tuple[EpisodeRows, EpisodeRows]:
    """Return the rows of an hour, and the open episodes at its end."""
    rows = np.concatenate([still_open, matches])
    order = np.lexsort((rows["start"], rows["key"]))
    rows, new = rows[order], order >= len(still_open)
    begins = _begins(rows, merging.merge)
    firsts, group = np.flatnonzero(begins), np.cumsum(begins) - 1
    new_counts = np.add.reduceat(new, firsts, dtype=np.int64)
    # Open episodes lead before new ones, then the one detected first.
    leader = np.lexsort((rows["id"], rows["detected_at"], new, group))[firsts]
    end = np.maximum.reduceat(rows["end"], firsts)
    whole = _replaced(
        rows[leader],
        hour=hour,
        start=rows["start"][firsts],
        end=end,
        matches=np.add.reduceat(rows["matches"], firsts),
        new=new_counts,
        state=np.where(merging.final(end, hour + HOUR_LENGTH), FINAL, PARTIAL),
    )[new_counts > 0]
    unmatched, ended = new_counts[group] == 0, merging.final(rows["end"], hour + HOUR_LENGTH)
    swallowed = ~new & ~unmatched
    swallowed[leader] = False
    leaders = rows["id"][leader[group[swallowed]]]
    joined = _replaced(rows[swallowed], hour=hour, new=0, state=JOINED, joined=leaders)
    final = _replaced(rows[unmatched & ended], hour=hour, new=0, state=FINAL)
    open_rows = np.concatenate([rows[unmatched & ~ended], whole[whole["state"] == PARTIAL]])
    return np.concatenate([whole, joined, final]), open_rows


def _replaced(rows: EpisodeRows, **columns: Int64s | int) -> EpisodeRows:
    rows = rows.copy()
    for name, values in columns.items():
        rows[name] = values
    return rows


def _begins(rows: EpisodeRows, merge: int) -> Bools:
    """Return which rows begin an episode: they start more than `merge` after the end of all earlier ones.

    Args:
        rows: the rows, ordered by key and start.
        merge: as in `Merging`.
    """
    ends, rank = np.unique(rows["end"], return_inverse=True)
    # The running maximum of the ends of each key, for all keys at once.
    latest = np.maximum.accumulate(rows["key"] * len(ends) + rank)[:-1] % len(ends)
    far = rows["start"][1:] > ends[latest] + merge
    begins: Bools = np.append(True, far | (rows["key"][1:] != rows["key"][:-1]))
    return begins
