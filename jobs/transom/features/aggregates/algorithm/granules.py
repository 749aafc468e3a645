"""Multi-granular sliding windows from granules (Patroumpas and Sellis, sections 3 and 4).

A *granule* is the summary of one key's records in a short interval that is aligned to the epoch: counts,
sums in whole units of a column's resolution, and extremes. A window combines its granules. So each record is
read once, for any number of levels and any ranges. For a window of level k that ends at `f`, and `agg` one of
count, sum, minimum and maximum, the exact result is

    agg({x : f - range_k <= time(x) < f})

Sums are exact if `max(|minimum|, |maximum|) * values < 2**62` (`ColumnSummary.exact`). Then every partial sum
fits into int64, in any order of addition. A window meets this rule only if its granules do.

`Granules.windows` slides over many keys at a time with numpy. With g ordered granules and w windows, a level
costs `O(g * log(w) + w * log(range / slide))`, without a step per key. A shorter slide gives more
windows.

>>> granules = Granules(np.array([0, 0]), np.array([0, 2]), np.array([3, 1]), {})
>>> windows = granules.windows(WindowLevel(range=2, slide=1), [(0, 4)])
>>> windows.end, windows.records
(array([1, 2, 3, 4]), array([3, 3, 1, 1]))
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from transom.arrays.range_queries import expand_ranges, extreme
from transom.arrays.sorted_index import SortedIndex
from transom.core.exact_sums import MAX_EXACT_SUM, Bools, Int64s
from transom.features.aggregates.algorithm.linear_fit import (
    BITS,
    MAX_UNIT_VALUE,
    FittedLines,
    Series,
    means,
    running_sums,
)

_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class WindowLevel:
    """One granularity: windows `[f - range, f)` at every `f` that is a multiple of `slide`.

    Attributes:
        range: the length of a window in microseconds; a positive multiple of `slide`.
        slide: the time between the ends of windows, in microseconds; above 0.
    """

    range: int
    slide: int

    def __post_init__(self) -> None:
        if self.slide <= 0 or self.range <= 0 or self.range % self.slide:
            raise ValueError(f"range {self.range} must be a positive multiple of slide {self.slide}")


class ColumnSummary(NamedTuple):
    """Partial aggregates of one column, one element per granule or window, in units of its resolution.

    Attributes:
        values: the number of values.
        total: their sum; undefined if it is not exact.
        minimum: the smallest value; undefined if `values` is 0.
        maximum: the largest value; undefined if `values` is 0.
    """

    values: Int64s
    total: Int64s
    minimum: Int64s
    maximum: Int64s

    @property
    def largest(self) -> Any:
        """The largest magnitude of a value, as float64."""
        return np.maximum(np.abs(self.minimum.astype(float)), np.abs(self.maximum.astype(float)))

    @property
    def exact(self) -> Bools:
        """Whether `total` is certainly the exact sum of the values."""
        # The error of a product of doubles is far less than the factor of two up to int64's limit.
        exact: Bools = self.largest * self.values < MAX_EXACT_SUM
        return exact


@dataclass(frozen=True)
class Windows:
    """Windows of one level, ordered by key, then by end.

    Attributes:
        key: the code of each window's key.
        end: the end in microseconds; the window is `[end - range, end)`.
        records: the number of records in the window, at least 1.
        columns: a summary for each measured column.
        lines: the fitted lines of each requested series, by column; None is the count of records.
    """

    key: Int64s
    end: Int64s
    records: Int64s
    columns: Mapping[str, ColumnSummary]
    lines: Mapping[str | None, FittedLines]


@dataclass(frozen=True)
class Granules:
    """Granules of many keys.

    Attributes:
        key: the code of each granule's key, 0 .. keys - 1.
        start: the start of each granule, in microseconds.
        records: the number of records in each granule, at least 1.
        columns: a summary for each measured column.
    """

    key: Int64s
    start: Int64s
    records: Int64s
    columns: Mapping[str, ColumnSummary]

    def ordered(self) -> "Granules":
        """Return these granules ordered by key and then by time."""
        return self.take(self.order())

    def order(self) -> Int64s:
        """Return the order by key and then by time."""
        return _order(self.key, self.start)

    def by_keys(self, limit: int) -> Iterator["Granules"]:
        """Yield some whole keys at a time of ordered granules, so that they fit into a processor's cache.

        Args:
            limit: the number of granules at a time, at least 1; exceeded by the granules of one key at most.
        """
        firsts = np.flatnonzero(np.diff(self.key, prepend=-1))
        cuts = firsts[np.diff(firsts // limit, prepend=-1) > 0]
        for start, end in pairwise([*cuts.tolist(), len(self.key)]):
            yield self.take(slice(start, end))

    def take(self, order: Int64s | slice) -> "Granules":
        """Return some of the granules, in the given order."""
        columns = {
            name: ColumnSummary(*(figure[order] for figure in summary))
            for name, summary in self.columns.items()
        }
        return Granules(self.key[order], self.start[order], self.records[order], columns)

    def coarsened(self, length: int) -> "Granules":
        """Combine ordered granules to granules of `length` microseconds."""
        unit = self.start // length
        begins = (np.diff(self.key, prepend=-1) != 0) | (np.diff(unit, prepend=unit[:1]) != 0)
        first = np.flatnonzero(begins)
        columns = {}
        for name, summary in self.columns.items():
            empty = summary.values == 0
            columns[name] = ColumnSummary(
                np.add.reduceat(summary.values, first),
                np.add.reduceat(summary.total, first),
                np.minimum.reduceat(np.where(empty, _INT64.max, summary.minimum), first),
                np.maximum.reduceat(np.where(empty, _INT64.min, summary.maximum), first),
            )
        return Granules(self.key[first], unit[first] * length, np.add.reduceat(self.records, first), columns)

    def series(self, column: str | None, unit: int, value: str = "mean", carried: bool = True) -> Series:
        """Return the values of a column of ordered granules, one for each unit with a value.

        Args:
            column: the column; None is the count of records, which is 0 in a unit without any.
            unit: the length of a unit, in microseconds; a multiple of that of granules.
            value: the function of a unit's values: mean, sum, min or max.
            carried: as in `Series`; ignored for the count of records.
        """
        units = self.coarsened(unit)
        if column is None:
            valid: Bools | np.bool_ = np.True_
            figure, carried = units.records, False
        else:
            units = units.take(np.flatnonzero(units.columns[column].values))
            values, total, minimum, maximum = summary = units.columns[column]
            if value == "mean":
                fits = summary.exact & (summary.largest < MAX_UNIT_VALUE)
                fixed = means(np.where(fits, total, 0), values)
                return Series(units.key, units.start // unit, fixed, fits, unit, carried)
            figure = {"sum": total, "min": minimum, "max": maximum}[value]
            # A sum that may have wrapped around is not exact.
            valid = summary.exact if value == "sum" else np.True_
        fits = valid & (np.abs(figure.astype(float)) < MAX_UNIT_VALUE)
        return Series(units.key, units.start // unit, np.where(fits, figure, 0) << BITS, fits, unit, carried)

    def windows(
        self,
        level: WindowLevel,
        intervals: Sequence[tuple[int, int]],
        series: Mapping[str | None, Series] | None = None,
    ) -> Windows:
        """Return every window of a level that contains a record and ends inside one of the intervals.

        Args:
            level: the level; granules divide its slide.
            intervals: pairs `(a, b)` in microseconds: windows that end at `f` with `a < f <= b` are returned.
            series: the series to fit lines to, by column; None is the count of records. Units divide slides.
        """
        units, mu = self.coarsened(level.slide), level.range // level.slide
        unit = units.start // level.slide
        # Each window is returned once, for its newest unit. A unit is the newest one in the windows after
        # it, until the key's next unit or until it leaves the window.
        following = np.full(len(unit), _INT64.max)
        same = units.key[1:] == units.key[:-1]
        following[:-1][same] = unit[1:][same]
        pairs = [np.empty((2, 0), np.int64)]
        for after, until in intervals:
            low = np.maximum(unit, after // level.slide) + 1
            stop = np.minimum(np.minimum(unit + mu, following), until // level.slide) + 1
            pairs.append(np.stack(expand_ranges(low, np.maximum(stop, low))))
        last, end = np.concatenate(pairs, axis=1)
        if len(intervals) > 1:
            order = _order(units.key[last], end)
            last, end = last[order], end[order]
        # Each unit looks up the first window without it. In a long interval there are fewer units than
        # windows, and searches are slow; in an hour it is the other way, but most of the time is elsewhere.
        without = SortedIndex(units.key[last], end).first_after(units.key, unit + mu)
        first = np.cumsum(np.bincount(without, minlength=len(last) + 1))[:-1]
        lines: dict[str | None, FittedLines] = {}
        for name, line_series in (series or {}).items():
            # A window has the values of its units, so their positions are looked up once per unit.
            slides = line_series.unit * line_series.length // level.slide
            starts = SortedIndex(line_series.key, slides).first_after(units.key, unit - 1)
            stops = np.append(starts, len(line_series.key))[last + 1]
            ends = end * (level.slide // line_series.length)
            lines[name] = line_series.lines(starts[first], stops, ends, level.range // line_series.length)
        return Windows(
            units.key[last],
            end * level.slide,
            _window_sums(units.records, first, last),
            {name: _slide(summary, first, last) for name, summary in units.columns.items()},
            lines,
        )


def _order(key: Int64s, time: Int64s) -> Int64s:
    """Return the order by key and then by time; ties in any order. Codes of keys may have gaps."""
    if not len(key):
        return key
    since = time - time.min()
    units = since // max(int(np.gcd.reduce(since)), 1)
    width = int(units.max()) + 1
    # Sorting one combined number is several times as fast as sorting two.
    fits = (int(key.max()) + 1) * width <= _INT64.max
    return np.argsort(key * width + units) if fits else np.lexsort((units, key))


def _window_sums(amounts: Int64s, first: Int64s, last: Int64s) -> Int64s:
    running = running_sums(amounts)
    sums: Int64s = running[last + 1] - running[first]
    return sums


def _slide(summary: ColumnSummary, first: Int64s, last: Int64s) -> ColumnSummary:
    return ColumnSummary(
        _window_sums(summary.values, first, last),
        _window_sums(summary.total, first, last),
        extreme(summary.minimum, first, last + 1, np.minimum),
        extreme(summary.maximum, first, last + 1, np.maximum),
    )
