"""Multi-granular sliding windows, record by record: the stairwise chain (Patroumpas, Sellis: III, IV).

Level k slides at every `c` with `(c - s) mod beta_k = 0` and then covers `[c - omega_k, c)`, or what of that
is not before the start `s`. Its rear is `r_k = c - omega_k`. A chain of nodes, the nearest first, holds what
lies in the widest window:

    d_0 | g_0 | d_1 | g_1 | ... | g_{n-1}

A *core* node `g_k` holds `[r_k, r_{k-1})` as granules; a *buffer* node `d_k` holds what has left level k-1
and waits until level k slides. Each record is read once, at the bottom; above it only granules move, each
with the sum of what it is made of. So the cost of a record does not depend on ranges, and that of a further
level is small.

    levels 4, 8 and 16 long, sliding by 1, 2 and 4; at c = 16 every level has just slid, the buffers are empty

    g_2                             g_1             g_0
    [0      |4      )               [8  |10 )       [12|13|14|15)        granules of 4, 2 and 1

What granules hold is any `GranuleSummary`: `Sums` here; `Line`, for the linear fit. The definition of a
window without any chain is `granules.reference`; the form that is fast is `granules.Granules.windows`.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd
from operator import add
from typing import Generic, Protocol, Self, TypeVar

from transom.features.aggregates.algorithm.granules import WindowLevel


class GranuleSummary(Protocol):
    """What a granule holds of its records."""

    def __add__(self, later: Self) -> Self:
        """With what comes after it."""

    def without(self, oldest: Self) -> Self | None:
        """What is left when the oldest part of it leaves; None where that takes all other parts to tell."""


T = TypeVar("T", bound=GranuleSummary)


@dataclass(frozen=True)
class Sums:
    """Figures of the values of some records.

    Attributes:
        records: how many, those without a value, too.
        values: how many have one; of none `minimum` and `maximum` are None.
    """

    records: int
    values: int
    total: int
    minimum: int | None
    maximum: int | None

    @classmethod
    def of(cls, value: int | None) -> "Sums":
        """Of one record."""
        return cls(1, 0, 0, None, None) if value is None else cls(1, 1, value, value, value)

    def __add__(self, later: "Sums") -> "Sums":
        least = [value for value in (self.minimum, later.minimum) if value is not None]
        most = [value for value in (self.maximum, later.maximum) if value is not None]
        return Sums(
            self.records + later.records,
            self.values + later.values,
            self.total + later.total,
            min(least, default=None),
            max(most, default=None),
        )

    def without(self, oldest: "Sums") -> "Sums | None":
        """Counts and sums are taken away; an extreme has to be searched for where the part that leaves held
        it."""
        if oldest.values and (oldest.minimum == self.minimum or oldest.maximum == self.maximum):
            return None
        return Sums(
            self.records - oldest.records,
            self.values - oldest.values,
            self.total - oldest.total,
            self.minimum,
            self.maximum,
        )


@dataclass(frozen=True)
class LevelReport(Generic[T]):
    """What one level says when it has slid.

    Attributes:
        end: the window is `[end - omega_k, end)`.
        rings: of each level up to this one, the nearest first, what lies between its rear and that of the
            level below; None where nothing does. Where each slide is a multiple of the one below these are
            the rings `[r_i, r_{i-1})` as they are at `end`.
    """

    level: int
    end: int
    rings: tuple[T | None, ...]

    @property
    def window(self) -> T | None:
        """Of the whole window."""
        return _added(reversed(self.rings))


class _Node(Generic[T]):
    """A queue of granules, the oldest first, and the sum of all."""

    def __init__(self, length: int, start: int) -> None:
        self.length, self.start = length, start
        self.granules: deque[tuple[int, T]] = deque()
        self.partial: T | None = None

    def accept(self, time: int, summary: T) -> None:
        """Adds what is of a time not before any other here."""
        begin = time - (time - self.start) % self.length
        if self.granules and self.granules[-1][0] == begin:
            summary_before = self.granules.pop()[1]
            self.granules.append((begin, summary_before + summary))
        else:
            self.granules.append((begin, summary))
        self.partial = summary if self.partial is None else self.partial + summary

    def expired(self, rear: int) -> Iterator[tuple[int, T]]:
        """Gives away what is before `rear`."""
        while self.granules and self.granules[0][0] < rear:
            begin, oldest = self.granules.popleft()
            left = None if self.partial is None or not self.granules else self.partial.without(oldest)
            self.partial = _added(summary for _, summary in self.granules) if left is None else left
            yield begin, oldest

    def since(self, rear: int) -> T | None:
        """Of what is not before `rear`."""
        if not self.granules or self.granules[0][0] >= rear:
            return self.partial
        # A level that has not slid for a while reaches further back than one above, where their ranges differ
        # by less than its slide.
        return _added(summary for begin, summary in self.granules if begin >= rear)

    def emptied(self) -> Iterator[tuple[int, T]]:
        """Gives all away."""
        yield from self.granules
        self.granules.clear()
        self.partial = None


class Chain(Generic[T]):
    """The windows of one key, over a stream that comes in the order of time.

    Args:
        levels: the finest first; ranges grow, slides do not shrink.
        start: `s`; nothing is of a time before it.
    """

    def __init__(self, levels: Sequence[WindowLevel], start: int) -> None:
        self.levels, self.start, self.clock = levels, start, start
        slides = [level.slide for level in levels]
        # As coarse as every level from here on permits: its own slide, where that divides those above.
        lengths = [reduce(gcd, slides[k:]) for k in range(len(levels))]
        self._cores: list[_Node[T]] = [_Node(length, start) for length in lengths]
        # What waits has the granules that it had below.
        self._buffers: list[_Node[T]] = [_Node(length, start) for length in [lengths[0], *lengths[:-1]]]

    def receive(self, time: int, summary: T) -> Iterator[LevelReport[T]]:
        """Takes a record; first gives the reports of all times until then.

        Raises:
            ValueError: its time is before that of an earlier one.
        """
        if time < self.clock:
            raise ValueError(f"a record of {time} comes after one of {self.clock}")
        yield from self.advance(time)
        self._buffers[0].accept(time, summary)

    def advance(self, until: int) -> Iterator[LevelReport[T]]:
        """Moves on to a time, and gives the reports of all times until then, this one included."""
        while (at := self._next()) <= until:
            self.clock = at
            yield from self._slide(at)
        self.clock = until

    def horizon(self, length: int) -> T | None:
        """Of `[c - length, c)`, where c is the time that was moved on to: a continuous report (section 3.C).

        The nodes from the bottom up, as far as the horizon reaches; None where nothing is in them.

        Raises:
            ValueError: the horizon begins inside a granule of the node that it reaches, or before what the
                widest level holds.
        """
        rear = self.clock - length
        widest = self.levels[-1]
        held_since = self.clock - (self.clock - self.start) % widest.slide - widest.range
        if rear < held_since and self.start < held_since:
            raise ValueError(
                f"a horizon of {length} at {self.clock} reaches further back than the widest level"
            )
        inside = []
        # Nodes above a level hold nothing that it holds, however long their granules are.
        limit = self.clock
        for level, *nodes in zip(self.levels, self._buffers, self._cores, strict=True):
            for node in nodes:
                for begin, granule in reversed(node.granules):
                    end = min(begin + node.length, limit)
                    if begin < rear < end:
                        raise ValueError(f"{rear} lies inside the granule [{begin}, {end})")
                    if begin >= rear:
                        inside.append(granule)
            limit = self.clock - (self.clock - self.start) % level.slide - level.range
        return _added(reversed(inside))

    @property
    def granules(self) -> int:
        """How many there are in all nodes."""
        return sum(len(node.granules) for node in (*self._cores, *self._buffers))

    def _next(self) -> int:
        """When a level slides next."""
        past = self.clock - self.start
        return min(self.clock + level.slide - past % level.slide for level in self.levels)

    def _slide(self, now: int) -> Iterator[LevelReport[T]]:
        """All levels whose time it is, from the bottom up."""
        for k, level in enumerate(self.levels):
            if (now - self.start) % level.slide:
                continue
            # Promotion: what has waited below. It is not younger than what is here, and not older.
            for time, granule in self._buffers[k].emptied():
                self._cores[k].accept(time, granule)
            # Shift, before the level above is promoted: at one instant a granule may climb several stairs.
            for time, granule in self._cores[k].expired(now - level.range):
                if k + 1 < len(self.levels):
                    self._buffers[k + 1].accept(time, granule)
            rings = self._rings(k, now - level.range)
            if any(ring is not None for ring in rings):
                yield LevelReport(k, now, rings)

    def _rings(self, level: int, rear: int) -> tuple[T | None, ...]:
        """Core and buffer of each level; buffers hold something only where slides are no multiples of each
        other."""
        return tuple(
            _added(node.since(rear) for node in (self._cores[k], self._buffers[k])) for k in range(level + 1)
        )


def _added(summaries: Iterable[T | None]) -> T | None:
    """Of some summaries, the oldest first, the sum; None of none."""
    there = [summary for summary in summaries if summary is not None]
    return reduce(add, there) if there else None


def reports(
    records: Iterable[tuple[int, T]], levels: Sequence[WindowLevel], start: int, until: int
) -> Iterator[LevelReport[T]]:
    """Every report of one key's records, in the order of time, up to and with `until`.

    A window without records is not reported.

    Args:
        records: time and summary, in the order of time.
        levels: the finest first.
        start: `s`.
    """
    chain: Chain[T] = Chain(levels, start)
    for time, summary in records:
        if time >= until:
            break
        yield from chain.receive(time, summary)
    yield from chain.advance(until)
