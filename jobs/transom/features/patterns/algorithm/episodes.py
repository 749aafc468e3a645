"""Episodes: matches of one key that overlap, or lie at most `merge` apart; hour by hour.

An hour has the matches that are detected in it, `(hour, hour + 1 hour]`. They are joined with each other and
with the episodes that are open before it, across as many of both as reach each other:

    open      [--a--]       [b]                 c: beyond what `merge` reaches
    matches        [-x-]  [y]    [z]
    rows      [-------- a ---------]  [b] joined to a

What an hour says of an episode is a row: of one that matches have joined, of one that has become part of
another (`joined`), and of one that no later match can join any more (`final`). That is so as soon as its end
and `merge` lie no later than the hour's end less `top + within`: a match that is detected after the hour's
end has its last record later than that end less `top`, for the window that shows it ends in a batch of at
most `top` which holds that record; and its first record at most `within` before its last one.

So an hour needs its matches and the rows of a few earlier hours, see `Merging.reach`. A row's hour is its
hour's start. Times are in microseconds; ids are numbers in the order of what they stand for.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH

PARTIAL, FINAL, JOINED = range(3)
STATES = ("partial", "final", "joined")
"""What the numbers of states stand for."""
NONE = -1


@dataclass(frozen=True)
class Merging:
    """What makes matches one episode.

    Attributes:
        merge: how far apart they lie at most.
        within: how long a match takes at most.
        top: the length of the longest batches.
    """

    merge: int
    within: int
    top: int

    def final(self, end: Any, by: int) -> Any:
        """Whether no match that is detected later than `by` can join what ends at `end`, a number or many."""
        return end + self.merge <= by - self.top - self.within

    @property
    def reach(self) -> int:
        """How many hours before an hour the last row of an episode lies that is open there, at most:
        `ceil((top + within + merge) / 1 hour)`.

        The last row, in hour r, holds no record from r + 1 hour on, as a match is detected after its last
        record. That the episode is not final by the hour h before which it is open, its end still being less
        than r + 1 hour, says that r + 1 hour > h - (top + within + merge). With D for that sum, h - r is less
        than D + 1 hour, and in whole hours at most ceil(D / 1 hour).
        """
        return -(-(self.merge + self.within + self.top) // HOUR_LENGTH)


@dataclass(frozen=True)
class EpisodeRow:
    """An episode, as an hour says it; or a match, which is one by itself.

    Attributes:
        start, end: times of the first and of the last record.
        new: how many of its matches are detected in the hour.
        detected_at, level: end and level of the window that has shown its first detected match.
        joined: the episode that it has become part of, or `NONE`.
    """

    hour: int
    id: int
    key: int
    start: int
    end: int
    matches: int
    new: int
    detected_at: int
    level: int
    state: int = PARTIAL
    joined: int = NONE


def rows_of(
    hour: int, matches: Iterable[EpisodeRow], earlier: Iterable[EpisodeRow], merging: Merging
) -> list[EpisodeRow]:
    """The rows of an hour: the definition.

    Args:
        matches: those of the hour.
        earlier: rows of hours before it; of those in reach the last of each episode counts.
    """
    by, latest = hour + HOUR_LENGTH, dict[int, EpisodeRow]()
    for row in sorted(earlier, key=lambda row: row.hour):
        if hour - merging.reach * HOUR_LENGTH <= row.hour < hour:
            latest[row.id] = row
    still_open = [row for row in latest.values() if row.state == PARTIAL]
    rows = []
    for group in _groups([*still_open, *matches], merging.merge):
        new = [row for row in group if row.hour == hour]
        old = [row for row in group if row.hour < hour]
        if not new:
            rows += [replace(r, hour=hour, new=0, state=FINAL) for r in old if merging.final(r.end, by)]
            continue
        first = min(old or new, key=lambda row: (row.detected_at, row.id))
        end = max(row.end for row in group)
        whole = replace(
            first,
            hour=hour,
            start=min(row.start for row in group),
            end=end,
            matches=sum(row.matches for row in group),
            new=len(new),
            state=FINAL if merging.final(end, by) else PARTIAL,
        )
        joined = (row for row in old if row is not first)
        rows += [whole, *(replace(r, hour=hour, new=0, state=JOINED, joined=first.id) for r in joined)]
    return rows


def _groups(rows: Iterable[EpisodeRow], merge: int) -> list[list[EpisodeRow]]:
    """Rows that overlap or lie at most `merge` apart, across others."""
    groups: list[list[EpisodeRow]] = []
    for row in rows:
        key, start, end = row.key, row.start - merge, row.end + merge
        met = [g for g in groups if any(r.key == key and r.start <= end and start <= r.end for r in g)]
        groups = [g for g in groups if g not in met] + [[row, *(r for g in met for r in g)]]
    return groups


@dataclass(frozen=True)
class EpisodeRows:
    """Rows of many keys, as columns."""

    hour: Int64s
    id: Int64s
    key: Int64s
    start: Int64s
    end: Int64s
    matches: Int64s
    new: Int64s
    detected_at: Int64s
    level: Int64s
    state: Int64s
    joined: Int64s

    @classmethod
    def of(cls, rows: Sequence[EpisodeRow]) -> "EpisodeRows":
        """Of rows one by one."""
        return cls(**{n: np.array([getattr(row, n) for row in rows], dtype=np.int64) for n in NAMES})

    def __len__(self) -> int:
        return len(self.id)

    def __iter__(self) -> Iterator[EpisodeRow]:
        return (EpisodeRow(*map(int, row)) for row in zip(*(getattr(self, n) for n in NAMES), strict=True))

    def take(self, rows: npt.NDArray[np.generic] | slice) -> "EpisodeRows":
        """Some of them."""
        return EpisodeRows(**{n: getattr(self, n)[rows] for n in NAMES})

    def as_of_hour(self, hour: int, state: Any, **more: Int64s) -> "EpisodeRows":
        """The same as another hour says them, in which nothing joins them but what `more` says."""
        none = np.zeros(len(self), dtype=np.int64)
        return replace(self, **{"hour": none + hour, "new": none, "state": none + state, **more})

    @staticmethod
    def concat(*rows: "EpisodeRows") -> "EpisodeRows":
        """Several of them."""
        return EpisodeRows(**{n: np.concatenate([getattr(some, n) for some in rows]) for n in NAMES})


NAMES = tuple(field.name for field in fields(EpisodeRows))


def episodes(
    matches: EpisodeRows, stored: EpisodeRows, hours: Iterable[int], merging: Merging
) -> EpisodeRows:
    """The rows of some hours, as `rows_of` has them.

    Args:
        matches: those of these hours.
        stored: the rows of other hours in reach.
        hours: to be computed, ascending.
    """
    matches, stored = (rows.take(np.argsort(rows.hour, kind="stable")) for rows in (matches, stored))
    still_open, made, known = EpisodeRows.of([]), [EpisodeRows.of([])], 0
    for hour in hours:
        before = int(np.searchsorted(stored.hour, hour))
        if known < before:
            still_open = _open(EpisodeRows.concat(still_open, stored.take(slice(known, before))))
            known = before
        still_open = still_open.take(still_open.hour >= hour - merging.reach * HOUR_LENGTH)
        first, behind = np.searchsorted(matches.hour, [hour, hour + 1])
        if behind > first or len(still_open):
            new = matches.take(slice(first, behind))
            rows, still_open = _of_hour(hour, new, still_open, merging)
            made.append(rows)
    return EpisodeRows.concat(*made)


def _open(rows: EpisodeRows) -> EpisodeRows:
    """The last row of each episode, where that says that it is open."""
    ordered = rows.take(np.lexsort((rows.hour, rows.id)))
    last = np.append(ordered.id[1:] != ordered.id[:-1], True)
    return ordered.take(last & (ordered.state == PARTIAL))


def _of_hour(
    hour: int, matches: EpisodeRows, still_open: EpisodeRows, merging: Merging
) -> tuple[EpisodeRows, EpisodeRows]:
    """The rows of an hour, and what is open at its end."""
    both = EpisodeRows.concat(still_open, matches)
    order = np.lexsort((both.start, both.key))
    new = order >= len(still_open)
    both = both.take(order)
    begins = _begins(both, merging.merge)
    firsts, group = np.flatnonzero(begins), np.cumsum(begins) - 1
    many = np.add.reduceat(new, firsts, dtype=np.int64)
    # What was open comes before what is new, then by when it was detected.
    leader = np.lexsort((both.id, both.detected_at, new, group))[firsts]
    met = many > 0
    end = np.maximum.reduceat(both.end, firsts)
    whole = both.take(leader).as_of_hour(
        hour,
        np.where(merging.final(end, hour + HOUR_LENGTH), FINAL, PARTIAL),
        start=both.start[firsts],
        end=end,
        matches=np.add.reduceat(both.matches, firsts),
        new=many,
    )
    whole = whole.take(met)
    alone, ends = ~met[group], merging.final(both.end, hour + HOUR_LENGTH)
    swallowed = ~new & ~alone
    swallowed[leader] = False
    joined = both.take(swallowed).as_of_hour(hour, JOINED, joined=both.id[leader[group[swallowed]]])
    ended = both.take(alone & ends).as_of_hour(hour, FINAL)
    left = EpisodeRows.concat(both.take(alone & ~ends), whole.take(whole.state == PARTIAL))
    return EpisodeRows.concat(whole, joined, ended), left


def _begins(rows: EpisodeRows, merge: int) -> npt.NDArray[np.bool_]:
    """Which rows lie too far behind all those before them; of rows by key and start."""
    ends, rank = np.unique(rows.end, return_inverse=True)
    # The latest end so far of a key, of all keys in one go.
    latest = np.maximum.accumulate(rows.key * len(ends) + rank)[:-1] % len(ends)
    apart = rows.start[1:] > ends[latest] + merge
    begins: npt.NDArray[np.bool_] = np.append(True, apart | (rows.key[1:] != rows.key[:-1]))
    return begins
