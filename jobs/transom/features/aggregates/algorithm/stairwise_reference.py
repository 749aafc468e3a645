"""Multi-granular sliding windows, record by record: the stairwise chain (Patroumpas, Sellis: III, IV).

Level k slides at every `c` with `(c - s) mod beta_k = 0` and then covers `[c - omega_k, c)`, without times
before the start `s`. Its rear is `r_k = c - omega_k`. A chain of nodes, the nearest first, holds the records
of the widest window:

    d_0 | g_0 | d_1 | g_1 | ... | g_{n-1}

A *core* node `g_k` holds `[r_k, r_{k-1})` as granules. A *buffer* node `d_k` holds granules that left level
k-1, until level k slides. Each record is read once, at the bottom; above it only granules move, each with its
sum. So the cost of a record does not depend on ranges, and a further level costs little.

    levels 4, 8 and 16 long, sliding by 1, 2 and 4; at c = 16 every level has just slid, the buffers are empty

    g_2                             g_1             g_0
    [0      |4      )               [8  |10 )       [12|13|14|15)        granules of 4, 2 and 1

A granule has any `GranuleSummary`: `Sums` or `Items` below, `linear_fit.Line`, or
`distinct_count.AdaptiveSample`. The definition of a window without a chain is `granules.reference`; the fast
form is `Granules.windows`.
"""

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from math import gcd
from operator import add
from typing import Generic, Protocol, Self, TypeVar

from transom.features.aggregates.algorithm.granules import WindowLevel


class GranuleSummary(Protocol):
    """The summary of a granule's records."""

    def __add__(self, later: Self) -> Self:
        """Return the sum with a later part."""

    def without(self, oldest: Self) -> Self | None:
        """Return the summary without its oldest part; None if it must be recomputed from the other parts."""


T = TypeVar("T", bound=GranuleSummary)


@dataclass(frozen=True)
class Sums:
    """Figures of the values of some records.

    Attributes:
        records: the number of records, with or without a value.
        values: the number of values; if 0, `minimum` and `maximum` are None.
    """

    records: int
    values: int
    total: int
    minimum: int | None
    maximum: int | None

    @classmethod
    def of(cls, value: int | None) -> "Sums":
        """Return the summary of one record."""
        return cls(1, 0, 0, None, None) if value is None else cls(1, 1, value, value, value)

    def __add__(self, later: "Sums") -> "Sums":
        minima = [part.minimum for part in (self, later) if part.minimum is not None]
        maxima = [part.maximum for part in (self, later) if part.maximum is not None]
        return Sums(
            self.records + later.records,
            self.values + later.values,
            self.total + later.total,
            min(minima, default=None),
            max(maxima, default=None),
        )

    def without(self, oldest: "Sums") -> "Sums | None":
        """Subtract counts and sums; return None if the oldest part has an extreme of the whole."""
        if oldest.values and (oldest.minimum == self.minimum or oldest.maximum == self.maximum):
            return None
        records, values = self.records - oldest.records, self.values - oldest.values
        return Sums(records, values, self.total - oldest.total, self.minimum, self.maximum)


@dataclass(frozen=True)
class Items:
    """The number of records of each item, without zeros.

    Coarser granules add the numbers of finer ones, where the paper (section 4.C) ORs bits.
    """

    records: Mapping[Hashable, int]

    @classmethod
    def of(cls, item: Hashable) -> "Items":
        """Return the summary of one record."""
        return cls({item: 1})

    def __add__(self, later: "Items") -> "Items":
        return Items(Counter(self.records) + Counter(later.records))

    def without(self, oldest: "Items") -> "Items":
        """Return the summary without its oldest part."""
        return Items(Counter(self.records) - Counter(oldest.records))


@dataclass(frozen=True)
class LevelReport(Generic[T]):
    """The report of one level when it slides.

    Attributes:
        end: the window is `[end - omega_k, end)`.
        rings: for each level up to this one, the nearest first, the summary between its rear and that of the
            level below; None if that is empty. If each slide is a multiple of the one below, these are the
            rings `[r_i, r_{i-1})` at `end`.
    """

    level: int
    end: int
    rings: tuple[T | None, ...]

    @property
    def window(self) -> T | None:
        """The summary of the whole window."""
        return _added(reversed(self.rings))


def recurring_items(report: LevelReport[Items]) -> dict[Hashable, tuple[int, ...]]:
    """Return the items that occur in every ring of a report of the widest level, with their numbers of
    records in the rings."""
    rings = [ring.records if ring else {} for ring in report.rings]
    return {item: tuple(ring[item] for ring in rings) for item in set(rings[0]).intersection(*rings[1:])}


class _Node(Generic[T]):
    """A queue of granules, the oldest first, and their sum."""

    def __init__(self, length: int, start: int) -> None:
        self.length, self.start = length, start
        self.granules: deque[tuple[int, T]] = deque()
        self.partial: T | None = None

    def accept(self, time: int, summary: T) -> None:
        """Add a summary with a time that is not before any other in the node."""
        begin = time - (time - self.start) % self.length
        same = self.granules and self.granules[-1][0] == begin
        self.granules.append((begin, self.granules.pop()[1] + summary if same else summary))
        self.partial = summary if self.partial is None else self.partial + summary

    def expired(self, rear: int) -> Iterator[tuple[int, T]]:
        """Remove and yield the granules before `rear`."""
        while self.granules and self.granules[0][0] < rear:
            begin, oldest = self.granules.popleft()
            remaining = None if self.partial is None or not self.granules else self.partial.without(oldest)
            self.partial = _added(summary for _, summary in self.granules) if remaining is None else remaining
            yield begin, oldest

    def since(self, rear: int) -> T | None:
        """Return the summary of the granules that are not before `rear`."""
        if not self.granules or self.granules[0][0] >= rear:
            return self.partial
        # A level that did not slide for a while can reach further back than the one above, if their ranges
        # differ by less than its slide.
        return _added(summary for begin, summary in self.granules if begin >= rear)

    def emptied(self) -> Iterator[tuple[int, T]]:
        """Remove and yield all granules."""
        yield from self.granules
        self.granules.clear()
        self.partial = None


class Chain(Generic[T]):
    """The windows of one key, over a stream in the order of time.

    Args:
        levels: the finest first; ranges grow, slides do not shrink.
        start: `s`; no record is earlier.
    """

    def __init__(self, levels: Sequence[WindowLevel], start: int) -> None:
        self.levels, self.start, self.clock = levels, start, start
        slides = [level.slide for level in levels]
        # As coarse as all levels from here on allow: the level's own slide if it divides those above.
        lengths = [reduce(gcd, slides[k:]) for k in range(len(levels))]
        self._cores: list[_Node[T]] = [_Node(length, start) for length in lengths]
        # A buffer has granules of the level below.
        self._buffers: list[_Node[T]] = [_Node(length, start) for length in [lengths[0], *lengths[:-1]]]

    def receive(self, time: int, summary: T) -> Iterator[LevelReport[T]]:
        """Yield the reports up to a record's time, then add the record.

        Raises:
            ValueError: its time is before that of an earlier record.
        """
        if time < self.clock:
            raise ValueError(f"a record of {time} comes after one of {self.clock}")
        yield from self.advance(time)
        self._buffers[0].accept(time, summary)

    def advance(self, until: int) -> Iterator[LevelReport[T]]:
        """Advance to a time and yield the reports up to it, inclusive."""
        while (due := min(self._next(level.slide) for level in self.levels)) <= until:
            self.clock = due
            yield from self._slide(due)
        self.clock = until

    def horizon(self, length: int) -> T | None:
        """Return the summary of `[c - length, c)`, where c is the current time: a continuous report (section
        3.C).

        Adds the nodes from the bottom up to the horizon; None if they are empty.

        Raises:
            ValueError: the horizon begins inside a granule, or before the records of the widest level.
        """
        rear = self.clock - length
        widest = self.levels[-1]
        covered_since = self.clock - (self.clock - self.start) % widest.slide - widest.range
        if rear < covered_since and self.start < covered_since:
            raise ValueError(
                f"a horizon of {length} at {self.clock} reaches further back than the widest level"
            )
        inside = []
        # Nodes of different levels do not overlap, however long their granules are.
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
        """The number of granules in all nodes."""
        return sum(len(node.granules) for node in (*self._cores, *self._buffers))

    def _next(self, slide: int) -> int:
        return self.clock + slide - (self.clock - self.start) % slide

    def _slide(self, now: int) -> Iterator[LevelReport[T]]:
        """Slide all levels that are due, from the bottom up."""
        for k, level in enumerate(self.levels):
            if (now - self.start) % level.slide:
                continue
            # Promotion of granules that waited below: they fit between the nodes.
            for time, granule in self._buffers[k].emptied():
                self._cores[k].accept(time, granule)
            # Shift, before the level above is promoted: at one instant a granule may climb several levels.
            for time, granule in self._cores[k].expired(now - level.range):
                if k + 1 < len(self.levels):
                    self._buffers[k + 1].accept(time, granule)
            # Buffers are only needed if slides are no multiples of each other.
            rear, nodes = now - level.range, zip(self._cores, self._buffers, strict=True)
            rings = tuple(_added(node.since(rear) for node in pair) for pair in islice(nodes, k + 1))
            if any(ring is not None for ring in rings):
                yield LevelReport(k, now, rings)


def _added(summaries: Iterable[T | None]) -> T | None:
    """Return the sum of summaries, the oldest first; None if there is none."""
    present = [summary for summary in summaries if summary is not None]
    return reduce(add, present) if present else None


def reports(
    records: Iterable[tuple[int, T]], levels: Sequence[WindowLevel], start: int, until: int
) -> Iterator[LevelReport[T]]:
    """Yield every report of one key's records, in the order of time, up to `until`, inclusive.

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
