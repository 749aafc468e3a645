"""Episodes: matches of one key that overlap, or lie at most `merge` apart; hour by hour.

An hour has the matches that are detected in it, `(hour, hour + 1 hour]`. They are joined with each other and
with the episodes that are open before the hour, transitively:

    open      [--a--]       [b]                 c: beyond what `merge` reaches
    matches        [-x-]  [y]    [z]
    rows      [-------- a ---------]  [b] joined to a

An hour has a row for each episode that gets matches, that becomes part of another one (`joined`), or that no
later match can join (`final`). An episode is final if its end plus `merge` is not later than the hour's end
minus `top + within`. Reason: a match that is detected after the hour's end has its last record later than
that end minus `top`, since the window that shows it ends with a batch of at most `top` that contains this
record; and its first record is at most `within` before its last one.

So an hour needs its matches and the rows of a few earlier hours, see `Merging.reach`. The hour of a row is
the start of the hour. Times are in microseconds; ids are numbers in the order of what they identify.
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
"""The names of the states."""
NONE = -1


@dataclass(frozen=True)
class Merging:
    """Parameters that join matches to episodes.

    Attributes:
        merge: the largest gap between joined matches.
        within: the longest duration of a match.
        top: the length of the longest batches.
    """

    merge: int
    within: int
    top: int

    def final(self, end: Any, by: int) -> Any:
        """Return whether no match that is detected later than `by` can join an episode that ends at `end`, a
        number or an array."""
        return end + self.merge <= by - self.top - self.within

    @property
    def reach(self) -> int:
        """The largest number of hours between an hour and the last row of an episode that is open there:
        `ceil((top + within + merge) / 1 hour)`.

        The last row, in hour r, has no record from r + 1 hour on, as a match is detected after its last
        record. The episode ends before r + 1 hour and is open before hour h, so it is not final: r + 1 hour >
        h - (top + within + merge). With D for that sum, h - r is less than D + 1 hour, and in whole hours at
        most ceil(D / 1 hour).
        """
        return -(-(self.merge + self.within + self.top) // HOUR_LENGTH)


@dataclass(frozen=True)
class EpisodeRow:
    """The row of an episode in an hour; or a match, which is an episode by itself.

    Attributes:
        start, end: times of the first and of the last record.
        new: the number of its matches that are detected in the hour.
        detected_at, level: end and level of the window that showed its first detected match.
        joined: the episode that it became part of, or `NONE`.
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
    """Return the rows of an hour: the definition.

    Args:
        matches: the matches of the hour.
        earlier: rows of earlier hours; of those in reach the last row of each episode counts.
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
    """Group rows that overlap or are at most `merge` apart, transitively."""
    groups: list[list[EpisodeRow]] = []
    for row in rows:
        key, start, end = row.key, row.start - merge, row.end + merge
        overlapping = [
            g for g in groups if any(r.key == key and r.start <= end and start <= r.end for r in g)
        ]
        groups = [g for g in groups if g not in overlapping] + [[row, *(r for g in overlapping for r in g)]]
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
        """Return single rows as columns."""
        return cls(**{n: np.array([getattr(row, n) for row in rows], dtype=np.int64) for n in NAMES})

    def __len__(self) -> int:
        return len(self.id)

    def __iter__(self) -> Iterator[EpisodeRow]:
        return (EpisodeRow(*map(int, row)) for row in zip(*(getattr(self, n) for n in NAMES), strict=True))

    def take(self, rows: npt.NDArray[np.generic] | slice) -> "EpisodeRows":
        """Return some of the rows."""
        return EpisodeRows(**{n: getattr(self, n)[rows] for n in NAMES})

    def as_of_hour(self, hour: int, state: Any, **changes: Int64s) -> "EpisodeRows":
        """Return the same episodes as rows of another hour without new matches, except for `changes`."""
        none = np.zeros(len(self), dtype=np.int64)
        return replace(self, **{"hour": none + hour, "new": none, "state": none + state, **changes})

    @staticmethod
    def concat(*rows: "EpisodeRows") -> "EpisodeRows":
        """Return the rows of all arguments."""
        return EpisodeRows(**{n: np.concatenate([getattr(part, n) for part in rows]) for n in NAMES})


NAMES = tuple(field.name for field in fields(EpisodeRows))


def episodes(
    matches: EpisodeRows, stored: EpisodeRows, hours: Iterable[int], merging: Merging
) -> EpisodeRows:
    """Return the rows of some hours, as `rows_of` does.

    Args:
        matches: the matches of these hours.
        stored: the rows of other hours in reach.
        hours: the hours to compute, ascending.
    """
    matches, stored = (rows.take(np.argsort(rows.hour, kind="stable")) for rows in (matches, stored))
    still_open, output, known = EpisodeRows.of([]), [EpisodeRows.of([])], 0
    for hour in hours:
        stored_stop = int(np.searchsorted(stored.hour, hour))
        if known < stored_stop:
            still_open = _open(EpisodeRows.concat(still_open, stored.take(slice(known, stored_stop))))
            known = stored_stop
        still_open = still_open.take(still_open.hour >= hour - merging.reach * HOUR_LENGTH)
        first, stop = np.searchsorted(matches.hour, [hour, hour + 1])
        if stop > first or len(still_open):
            new = matches.take(slice(first, stop))
            rows, still_open = _of_hour(hour, new, still_open, merging)
            output.append(rows)
    return EpisodeRows.concat(*output)


def _open(rows: EpisodeRows) -> EpisodeRows:
    """Return the last row of each episode if it is open."""
    ordered = rows.take(np.lexsort((rows.hour, rows.id)))
    last = np.append(ordered.id[1:] != ordered.id[:-1], True)
    return ordered.take(last & (ordered.state == PARTIAL))


def _of_hour(
    hour: int, matches: EpisodeRows, still_open: EpisodeRows, merging: Merging
) -> tuple[EpisodeRows, EpisodeRows]:
    """Return the rows of an hour, and the open episodes at its end."""
    both = EpisodeRows.concat(still_open, matches)
    order = np.lexsort((both.start, both.key))
    new = order >= len(still_open)
    both = both.take(order)
    begins = _begins(both, merging.merge)
    firsts, group = np.flatnonzero(begins), np.cumsum(begins) - 1
    new_counts = np.add.reduceat(new, firsts, dtype=np.int64)
    # Open episodes come before new ones, then by time of detection.
    leader = np.lexsort((both.id, both.detected_at, new, group))[firsts]
    has_new = new_counts > 0
    end = np.maximum.reduceat(both.end, firsts)
    whole = both.take(leader).as_of_hour(
        hour,
        np.where(merging.final(end, hour + HOUR_LENGTH), FINAL, PARTIAL),
        start=both.start[firsts],
        end=end,
        matches=np.add.reduceat(both.matches, firsts),
        new=new_counts,
    )
    whole = whole.take(has_new)
    unmatched, ends = ~has_new[group], merging.final(both.end, hour + HOUR_LENGTH)
    swallowed = ~new & ~unmatched
    swallowed[leader] = False
    joined = both.take(swallowed).as_of_hour(hour, JOINED, joined=both.id[leader[group[swallowed]]])
    ended = both.take(unmatched & ends).as_of_hour(hour, FINAL)
    open_rows = EpisodeRows.concat(both.take(unmatched & ~ends), whole.take(whole.state == PARTIAL))
    return EpisodeRows.concat(whole, joined, ended), open_rows


def _begins(rows: EpisodeRows, merge: int) -> npt.NDArray[np.bool_]:
    """Return which rows are too far after all earlier ones; rows are ordered by key and start."""
    ends, rank = np.unique(rows.end, return_inverse=True)
    # The running maximum of the ends of each key, for all keys at once.
    latest = np.maximum.accumulate(rows.key * len(ends) + rank)[:-1] % len(ends)
    far = rows.start[1:] > ends[latest] + merge
    begins: npt.NDArray[np.bool_] = np.append(True, far | (rows.key[1:] != rows.key[:-1]))
    return begins
