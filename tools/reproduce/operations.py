"""Operations that the paper's figures maintain over windows (Patroumpas and Sellis, section 4), in four ways.

*stairwise*: the connections of a unit are read once, and become one granule; granules climb one chain.
*separate*: each level has its own chain, like one window query per granularity; each reads all connections.
*from tuples*: each report is computed from the stored connections of its window.
*vectorised*: the granules of all units are processed at once, as the stage computes its reports.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np

from reproduce.connections import PROTOCOLS, Connections
from transom.core.exact_sums import Int64s
from transom.features.aggregates.algorithm.granules import ColumnSummary, Granules, WindowLevel
from transom.features.aggregates.algorithm.linear_fit import Series, to_ints
from transom.features.aggregates.algorithm.reference import LevelReport, recurring_items
from transom.features.aggregates.algorithm.reference_summaries import Items, Line, Sums, mean
from transom.features.aggregates.algorithm.rings import recurring

MOST_ITEMS = len(PROTOCOLS)
NONE = np.array([], dtype=np.int64)

T = TypeVar("T", Sums, Line, Items)
Answers = Mapping[tuple[int, int], Any]
"""The answer of each level and report time."""
Stream = Sequence[Connections]


class Operation(ABC, Generic[T]):
    """An operation over windows that is maintained incrementally.

    Attributes:
        words: the number of int64 values in a granule, as in the tables; for recurrence, per item.
    """

    name: str
    words: int

    @abstractmethod
    def granule(self, unit: int, of: Connections) -> T:
        """Return the granule of one unit's connections."""

    @abstractmethod
    def answer(self, report: LevelReport[T]) -> Any:
        """Return the answer of a chain's report."""

    @abstractmethod
    def from_tuples(self, stream: Stream, levels: Sequence[WindowLevel], level: int, end: int) -> Any:
        """Return the answer for the window of a level that ends at `end`, from the connections."""

    @abstractmethod
    def vectorised(self, stream: Stream, levels: Sequence[WindowLevel]) -> Answers:
        """Return the answers of all reports of a stream."""

    def combined(self, windows: Mapping[tuple[int, int], T], levels: Sequence[WindowLevel]) -> Answers:
        """Return the answers from windows of separate chains."""
        return {at: self.answer(LevelReport(at[0], at[1], (window,))) for at, window in windows.items()}


class Aggregation(Operation[Sums]):
    """Count, sum, minimum and maximum of the durations."""

    name, words = "aggregation", 5

    def granule(self, unit: int, of: Connections) -> Sums:
        """As in `Operation`."""
        known = of.duration
        return Sums(len(of.protocol), len(known), int(known.sum()), int(known.min()), int(known.max()))

    def answer(self, report: LevelReport[Sums]) -> Any:
        """As in `Operation`."""
        found = report.window
        return found and (found.records, found.values, found.total, found.minimum, found.maximum)

    def from_tuples(self, stream: Stream, levels: Sequence[WindowLevel], level: int, end: int) -> Any:
        """As in `Operation`."""
        inside = stream[max(end - levels[level].range, 0) : end]
        known = np.concatenate([of.duration for of in inside])
        records = sum(len(of.protocol) for of in inside)
        return records, len(known), int(known.sum()), int(known.min()), int(known.max())

    def vectorised(self, stream: Stream, levels: Sequence[WindowLevel]) -> Answers:
        """As in `Operation`."""
        granules = _granules(stream)
        answers: dict[tuple[int, int], Any] = {}
        for number, level in enumerate(levels):
            found = granules.windows(level, [(0, len(stream))])
            of = found.columns["duration"]
            columns = (found.records, of.values, of.total, of.minimum, of.maximum)
            rows = zip(*(column.tolist() for column in columns), strict=True)
            answers |= {(number, end): row for end, row in zip(found.end.tolist(), rows, strict=True)}
        return answers


class Regression(Operation[Line]):
    """A line through the units' mean durations.

    A granule has the known units, their sum, and the sum of number times value.
    """

    name, words = "regression", 5

    def granule(self, unit: int, of: Connections) -> Line:
        """As in `Operation`."""
        return Line.of(unit, mean(int(of.duration.sum()), len(of.duration)))

    def answer(self, report: LevelReport[Line]) -> Any:
        """As in `Operation`."""
        line = report.window
        return line and (line.until - line.first, line.total, line.moment - line.first * line.total)

    def from_tuples(self, stream: Stream, levels: Sequence[WindowLevel], level: int, end: int) -> Any:
        """As in `Operation`."""
        inside = stream[max(end - levels[level].range, 0) : end]
        means = [mean(int(of.duration.sum()), len(of.duration)) for of in inside]
        return len(means), sum(means), sum(number * value for number, value in enumerate(means))

    def vectorised(self, stream: Stream, levels: Sequence[WindowLevel]) -> Answers:
        """As in `Operation`."""
        granules = _granules(stream)
        series: Mapping[str | None, Series] = {"duration": granules.series("duration", 1)}
        answers: dict[tuple[int, int], Any] = {}
        for number, level in enumerate(levels):
            found = granules.windows(level, [(0, len(stream))], series)
            of = found.lines["duration"]
            rows = zip(of.units.tolist(), to_ints(of.total), to_ints(of.moment), strict=True)
            answers |= {(number, end): row for end, row in zip(found.end.tolist(), rows, strict=True)}
        return answers


class Recurrence(Operation[Items]):
    """The protocols in all rings with their counts, reported with the widest level."""

    name, words = "recurrence", 1

    def granule(self, unit: int, of: Connections) -> Items:
        """As in `Operation`."""
        counts = np.bincount(of.protocol)
        return Items({item: int(counts[item]) for item in np.flatnonzero(counts).tolist()})

    def answer(self, report: LevelReport[Items]) -> Any:
        """As in `Operation`."""
        return recurring_items(report)

    def from_tuples(self, stream: Stream, levels: Sequence[WindowLevel], level: int, end: int) -> Any:
        """As in `Operation`."""
        bounds = [end, *(max(end - of.range, 0) for of in levels[: level + 1])]
        rings = []
        for near, far in pairwise(bounds):
            inside = [of.protocol for of in stream[far:near]]
            rings.append(np.bincount(np.concatenate([*inside, NONE]), minlength=MOST_ITEMS))
        counts = np.stack(rings)
        return {
            item: tuple(counts[:, item].tolist()) for item in np.flatnonzero(np.all(counts, axis=0)).tolist()
        }

    def combined(self, windows: Mapping[tuple[int, int], Items], levels: Sequence[WindowLevel]) -> Answers:
        """As in `Operation`."""
        answers = {}
        for number, end in windows:
            rings, before = [], Items({})
            for level in range(number + 1):
                rings.append(Items(Counter(windows[level, end].records) - Counter(before.records)))
                before = windows[level, end]
            answers[number, end] = recurring_items(LevelReport(number, end, tuple(rings)))
        return answers

    def vectorised(self, stream: Stream, levels: Sequence[WindowLevel]) -> Answers:
        """As in `Operation`."""
        counts = np.stack([np.bincount(of.protocol, minlength=MOST_ITEMS) for of in stream], axis=1)
        items, units = np.nonzero(counts)
        granules = Granules(items, units, counts[items, units], {})
        codes, ends, rings = recurring(granules, 1, levels, [(0, len(stream))])
        top = len(levels) - 1
        answers: dict[tuple[int, int], dict[int, Any]] = {}
        for end in range(levels[-1].slide, len(stream) + 1, levels[-1].slide):
            answers[top, end] = {}
        for item, end, counts_of in zip(codes.tolist(), ends.tolist(), rings.T.tolist(), strict=True):
            answers[top, end][item] = tuple(counts_of)
        return answers


def _granules(stream: Stream) -> Granules:
    """Return the granules of all units."""

    def each(figure: Callable[[Connections], int]) -> Int64s:
        return np.array([figure(of) for of in stream], dtype=np.int64)

    summary = ColumnSummary(
        each(lambda of: len(of.duration)),
        each(lambda of: int(of.duration.sum())),
        each(lambda of: int(of.duration.min())),
        each(lambda of: int(of.duration.max())),
    )
    units = np.arange(len(stream), dtype=np.int64)
    return Granules(np.zeros_like(units), units, each(lambda of: len(of.protocol)), {"duration": summary})
