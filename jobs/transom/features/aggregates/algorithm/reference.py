"""Multi-granular sliding windows, record by record: the stairwise chain (Patroumpas, Sellis: III, IV).

Level k slides at every `c` with `(c - s) mod beta_k = 0` and then covers `[c - omega_k, c)`, without times
before the start `s`. Its rear is `r_k = c - omega_k`. A chain of nodes, the nearest first, holds the records
of the widest window:

    d_0 | g_0 | d_1 | g_1 | ... | g_{n-1}

A *core* node `g_k` has `[r_k, r_{k-1})` as granules. A *buffer* node `d_k` has granules that left level k-1,
until level k slides. Each record is read once, at the bottom; above it only granules move, each with its sum.
So the cost of a record does not depend on ranges, and a further level costs little.

    levels 4, 8 and 16 long, sliding by 1, 2 and 4; at c = 16 every level slides, the buffers are empty

    g_2                             g_1             g_0
    [0      |4      )               [8  |10 )       [12|13|14|15)        granules of 4, 2 and 1

A granule has any summary of `reference_summaries`. `recompute` defines the windows without a chain.

>>> from transom.features.aggregates.algorithm.reference_summaries import Sums
>>> records = [(0, Sums.of(5)), (2, Sums.of(3))]
>>> [(r.end, r.window.total) for r in reports(records, [WindowLevel(range=2, slide=1)], start=0, until=4)]
[(1, 5), (2, 5), (3, 3), (4, 3)]
"""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from math import gcd
from operator import add
from typing import Any, Generic, TypeVar

from transom.features.aggregates.algorithm.granules import WindowLevel
from transom.features.aggregates.algorithm.reference_summaries import GranuleSummary, Items


def recompute(
    records: Iterable[tuple[Any, int, Mapping[str, int | None]]], level: WindowLevel, after: int, until: int
) -> Iterator[dict[str, Any]]:
    """Yield every window of a level that ends at `f` with `after < f <= until`: the definition.

    Args:
        records: key, time, and the value of each column or None.
        after: `f` is later than this time.
        until: `f` is not later than this time.

    Yields:
        Key, end, records, and for each column values, total, minimum and maximum (None without values).
    """
    by_key: dict[Any, list[tuple[int, Mapping[str, int | None]]]] = {}
    for key, time, values in records:
        by_key.setdefault(key, []).append((time, values))
    for key, rows in by_key.items():
        for f in range(after - after % level.slide + level.slide, until + 1, level.slide):
            inside = [values for time, values in rows if f - level.range <= time < f]
            window: dict[str, Any] = {"key": key, "end": f, "records": len(inside)}
            for column in inside[0] if inside else ():
                known = [value for values in inside if (value := values[column]) is not None]
                extremes = min(known, default=None), max(known, default=None)
                window[column] = (len(known), sum(known), *extremes)
            if inside:
                yield window


T = TypeVar("T", bound=GranuleSummary)


@dataclass(frozen=True)
class LevelReport(Generic[T]):
    """The report of one level when it slides.

    Attributes:
        level: the number of the level, k; 0 is the finest.
        end: the window is `[end - omega_k, end)`.
        rings: for each level up to this one, the nearest first, the summary between its rear and that of the
            next finer one; None if that is empty. If each slide is a multiple of the next finer one, these
            are the rings `[r_i, r_{i-1})` at `end`.
    """

    level: int
    end: int
    rings: tuple[T | None, ...]

    @property
    def window(self) -> T | None:
        """The summary of the whole window."""
        return _added(reversed(self.rings))


def recurring_items(report: LevelReport[Items]) -> dict[Hashable, tuple[int, ...]]:
    """Return the items in every ring of a report of the widest level, with their records in the rings."""
    rings = [ring.records if ring else {} for ring in report.rings]
    return {item: tuple(ring[item] for ring in rings) for item in set(rings[0]).intersection(*rings[1:])}


class _Node(Generic[T]):
    """A queue of granules, the oldest first, and their sum.

    Args:
        length: the length of its granules.
        start: the time at which a granule starts.
    """

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
        # A level that has not slid for some time can reach further back than the next coarser one, if their
        # ranges differ by less than its slide.
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
        start: `s`, the start of time; no record is earlier.
    """

    def __init__(self, levels: Sequence[WindowLevel], start: int) -> None:
        self.levels, self.start, self.clock = levels, start, start
        slides = [level.slide for level in levels]
        # As coarse as all levels from here on allow: the level's own slide if it divides coarser ones.
        lengths = [reduce(gcd, slides[k:]) for k in range(len(levels))]
        self._cores: list[_Node[T]] = [_Node(length, start) for length in lengths]
        # A buffer has granules of the next finer level.
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
        while (now := min(self.clock + level.slide - self._since(level) for level in self.levels)) <= until:
            self.clock = now
            for k, level in enumerate(self.levels):
                if not self._since(level):
                    yield from self._slide(k, now)
        self.clock = until

    def _since(self, level: WindowLevel) -> int:
        """Return the time since a level has slid."""
        return (self.clock - self.start) % level.slide

    def _slide(self, k: int, now: int) -> Iterator[LevelReport[T]]:
        """Slide a level, after all finer ones."""
        rear = now - self.levels[k].range
        # Promote granules that waited in the buffer: they are between the nodes.
        for time, granule in self._buffers[k].emptied():
            self._cores[k].accept(time, granule)
        # Shift, before the next coarser level promotes: at one instant a granule may climb several levels.
        for time, granule in self._cores[k].expired(rear):
            if k + 1 < len(self.levels):
                self._buffers[k + 1].accept(time, granule)
        # Buffers only matter if slides are no multiples of each other.
        nodes = islice(zip(self._cores, self._buffers, strict=True), k + 1)
        rings = tuple(_added(node.since(rear) for node in pair) for pair in nodes)
        if any(ring is not None for ring in rings):
            yield LevelReport(k, now, rings)

    def horizon(self, length: int) -> T | None:
        """Return the summary of `[c - length, c)`, where c is the current time; None if it is empty.

        This is a continuous report (section 3.C): it adds the nodes from the bottom up to the horizon.

        Raises:
            ValueError: the horizon begins inside a granule, or before the records of the widest level.
        """
        rear, limit, inside = self.clock - length, self.clock, []
        covered_since = self.clock - self._since(self.levels[-1]) - self.levels[-1].range
        if rear < covered_since and self.start < covered_since:
            raise ValueError(
                f"a horizon of {length} at {self.clock} reaches further back than the widest level"
            )
        for level, *nodes in zip(self.levels, self._buffers, self._cores, strict=True):
            for node in nodes:
                for begin, granule in reversed(node.granules):
                    # Nodes of different levels do not overlap, however long their granules are.
                    end = min(begin + node.length, limit)
                    if begin < rear < end:
                        raise ValueError(f"{rear} lies inside the granule [{begin}, {end})")
                    if begin >= rear:
                        inside.append(granule)
            limit = self.clock - self._since(level) - level.range
        return _added(reversed(inside))

    @property
    def granules(self) -> int:
        """The number of granules in all nodes."""
        return sum(len(node.granules) for node in (*self._cores, *self._buffers))


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
        levels: as in `Chain`.
        start: as in `Chain`.
        until: the end of the last window.
    """
    chain: Chain[T] = Chain(levels, start)
    for time, summary in records:
        if time >= until:
            break
        yield from chain.receive(time, summary)
    yield from chain.advance(until)
