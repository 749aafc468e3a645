"""Multi-granular sliding windows from granules (Patroumpas and Sellis, sections 3 and 4).

A *granule* is the summary of one key's records in a short stretch of time aligned to the epoch. All
that wider windows need is kept in it: counts, exact sums in whole units of a column's resolution, and
extremes. A window of level k that reports at `f` covers `[f - range_k, f)` and is the sum of its
granules, so that every raw record is read once and the cost of a further level does not depend on its
range.

Sums are exact where `max(|minimum|, |maximum|) * values < 2**62` (`ColumnSummary.exact`). The magnitudes of
all of a window's values are then no more than that together, and int64 holds every part of their sum, in
whatever order it is made. A window keeps this rule only where its granules do.

The fast form (`Granules.windows`) slides over many keys at a time with numpy; `reference` recomputes
every window from its records, one by one, and is what the fast form is tested against.

Cost of a level: O(granules + reports * log(range / slide)), without a step per key.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from transom.core.exact_sums import MAX_EXACT_SUM, Int64s
from transom.features.aggregates.algorithm.linear_fit import BITS, MAX_UNIT_VALUE, FittedLines, Series, means

_EMPTY_MIN = np.iinfo(np.int64).max
_EMPTY_MAX = np.iinfo(np.int64).min


@dataclass(frozen=True)
class WindowLevel:
    """One granularity: windows `[f - range, f)` at every `f` that is a multiple of `slide`.

    Attributes:
        range: length of the window in microseconds; a multiple of `slide`.
        slide: time between reports in microseconds.
    """

    range: int
    slide: int

    def __post_init__(self) -> None:
        if self.slide <= 0 or self.range <= 0 or self.range % self.slide:
            raise ValueError(f"range {self.range} must be a positive multiple of slide {self.slide}")


@dataclass(frozen=True)
class ColumnSummary:
    """Figures of one column, an element a granule or window.

    `minimum` and `maximum` mean nothing where `values` is zero, `total` nothing where it is not exact.
    """

    values: Int64s
    total: Int64s
    minimum: Int64s
    maximum: Int64s

    @property
    def largest(self) -> npt.NDArray[np.float64]:
        """The largest magnitude of a value."""
        magnitudes = (np.abs(extreme.astype(float)) for extreme in (self.minimum, self.maximum))
        found: npt.NDArray[np.float64] = np.maximum(*magnitudes)
        return found

    @property
    def exact(self) -> npt.NDArray[np.bool_]:
        """Where `total` is the sum of the values, by these figures alone."""
        # A product of doubles may be off by far less than the factor of two up to int64's end.
        sure: npt.NDArray[np.bool_] = self.largest * self.values < MAX_EXACT_SUM
        return sure


@dataclass(frozen=True)
class ReportWindows:
    """The reports of one level, ordered by key, then by end.

    Attributes:
        key: the key's code.
        end: the report time, in microseconds; the window is `[end - range, end)`.
        records: records in the window, at least 1.
        lines: of each series that was asked of.
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
        key: a code for each key, 0 .. keys - 1.
        start: when the granule begins, in microseconds.
        records: records in the granule, at least 1.
        columns: a summary for each measured column.
    """

    key: Int64s
    start: Int64s
    records: Int64s
    columns: Mapping[str, ColumnSummary]

    def ordered(self) -> "Granules":
        """These granules, by key and then by time."""
        return self.take(self.order())

    def order(self) -> Int64s:
        """Where those by key and then by time are among these."""
        return _order(self.key, self.start)

    def by_keys(self, most: int) -> Iterator["Granules"]:
        """Ordered granules, a number of whole keys at a time: what fits a processor's cache is done sooner.

        Args:
            most: granules at a time, at least 1; up to as many more as the last of their keys has.
        """
        firsts = np.flatnonzero(np.diff(self.key, prepend=-1))
        cuts = firsts[np.diff(firsts // most, prepend=-1) > 0]
        for start, end in pairwise([*cuts.tolist(), len(self.key)]):
            yield self.take(slice(start, end))

    def take(self, order: Int64s | slice) -> "Granules":
        """Some of these, or all, in some order."""
        return Granules(
            self.key[order],
            self.start[order],
            self.records[order],
            {
                name: ColumnSummary(s.values[order], s.total[order], s.minimum[order], s.maximum[order])
                for name, s in self.columns.items()
            },
        )

    def coarsened(self, length: int) -> "Granules":
        """Ordered granules added up to granules of `length` microseconds."""
        first = self._firsts(length)
        columns = {}
        for name, summary in self.columns.items():
            empty = summary.values == 0
            columns[name] = ColumnSummary(
                np.add.reduceat(summary.values, first),
                np.add.reduceat(summary.total, first),
                np.minimum.reduceat(np.where(empty, _EMPTY_MIN, summary.minimum), first),
                np.maximum.reduceat(np.where(empty, _EMPTY_MAX, summary.maximum), first),
            )
        start = self.start[first] - self.start[first] % length
        return Granules(self.key[first], start, np.add.reduceat(self.records, first), columns)

    def _firsts(self, length: int) -> Int64s:
        """Where each granule of `length` begins among these."""
        unit = self.start // length
        new = (self.key[1:] != self.key[:-1]) | (unit[1:] != unit[:-1])
        return np.flatnonzero(np.r_[np.ones(min(len(unit), 1), dtype=bool), new]).astype(np.int64)

    def series(self, column: str, unit: int, value: str = "mean", carried: bool = True) -> Series:
        """The values of a column of ordered granules, one a unit that has any.

        Args:
            unit: length of a unit, in microseconds; a multiple of the granules'.
            value: which of its values' figures is a unit's: mean, sum, min or max.
            carried: as in `Series`.
        """
        units = self.coarsened(unit)
        there = units.columns[column].values > 0
        units = units.take(np.flatnonzero(there))
        summary = units.columns[column]
        # What may have wrapped around is not known to be too large, but not to be exact either.
        fits = summary.exact if value in ("mean", "sum") else np.ones(len(units.key), dtype=bool)
        if value == "mean":
            fits &= summary.largest < MAX_UNIT_VALUE
            values = means(np.where(fits, summary.total, 0), summary.values)
        else:
            figures = {"sum": summary.total, "min": summary.minimum, "max": summary.maximum}
            fits &= np.abs(figures[value].astype(float)) < MAX_UNIT_VALUE
            values = np.where(fits, figures[value], 0) << BITS
        return Series(units.key, units.start // unit, values, fits, unit, carried)

    def counts(self, unit: int) -> Series:
        """How many records each unit has; 0 where there is none."""
        units = self.coarsened(unit)
        fits = units.records < MAX_UNIT_VALUE
        values = np.where(fits, units.records, 0) << BITS
        return Series(units.key, units.start // unit, values, fits, unit, carried=False)

    def windows(
        self,
        level: WindowLevel,
        stretches: Sequence[tuple[int, int]],
        series: Mapping[str | None, Series] | None = None,
    ) -> ReportWindows:
        """Every window of a level that holds a record and reports inside one of some stretches.

        Args:
            stretches: pairs `(a, b)` in microseconds: reports at `f` with `a < f <= b` are wanted.
            series: what lines are asked of, by column, None where records are counted; units divide slides.
        """
        units = self.coarsened(level.slide)
        mu = level.range // level.slide
        unit = units.start // level.slide
        # A unit is the newest one in the reports from just after it until the key's next unit, or
        # until it leaves the window: so each report is named once, by its newest unit.
        following = np.full(len(unit), np.iinfo(np.int64).max)
        same = units.key[1:] == units.key[:-1]
        following[:-1][same] = unit[1:][same]
        newest, report = [], []
        for after, until in stretches:
            low = np.maximum(unit + 1, after // level.slide + 1)
            high = np.minimum(np.minimum(unit + mu, following), until // level.slide)
            many = np.maximum(high - low + 1, 0)
            index = np.repeat(np.arange(len(unit)), many)
            offset = np.arange(len(index)) - np.repeat(np.cumsum(many) - many, many)
            newest.append(index)
            report.append(low[index] + offset)
        last = np.concatenate([np.empty(0, np.int64), *newest]).astype(np.int64)
        end = np.concatenate([np.empty(0, np.int64), *report]).astype(np.int64)
        if len(stretches) > 1:
            order = _order(units.key[last], end)
            last, end = last[order], end[order]
        first = position(units.key, unit, units.key[last], end - mu)
        lines: dict[str | None, FittedLines] = {}
        for name, of in (series or {}).items():
            # A window's values lie in its units: these tell where they begin and end, once for all windows.
            before = position(of.key, of.unit * of.length // level.slide, units.key, unit)
            behind = np.append(before, len(of.key))[last + 1]
            ends = end * (level.slide // of.length)
            lines[name] = of.lines(before[first], behind, ends, level.range // of.length)
        return ReportWindows(
            units.key[last],
            end * level.slide,
            _window_sums(units.records, first, last),
            {name: _slide(summary, first, last) for name, summary in units.columns.items()},
            lines,
        )


def _order(key: Int64s, time: Int64s) -> Int64s:
    """By key and then by time; of what is alike in both in any order."""
    if not len(key):
        return key
    since = time - time.min()
    units = since // max(int(np.gcd.reduce(since)), 1)
    width = int(units.max()) + 1
    if (int(key.max()) + 1) * width > np.iinfo(np.int64).max:
        found: Int64s = np.lexsort((units, key))
        return found
    # One number orders by both, several times as fast as two.
    order: Int64s = np.argsort(key * width + units)
    return order


def position(key: Int64s, unit: Int64s, of_key: Int64s, of_unit: Int64s) -> Int64s:
    """Of what is ordered by key and then by unit, the first not before each of some keys and units."""
    if not len(key) or not len(of_key):
        return np.zeros(len(of_key), dtype=np.int64)
    base = unit.min()
    # Units before all others, or behind them, are as good as the nearest that tells as much.
    asked = np.clip(of_unit - base, 0, int(unit.max() - base) + 1)
    width = int(unit.max() - base) + 2
    # One number orders by key and unit at once.
    position = np.searchsorted(key * width + (unit - base), of_key * width + asked)
    found: Int64s = position.astype(np.int64)
    return found


def _window_sums(amounts: Int64s, first: Int64s, last: Int64s) -> Int64s:
    # Running sums may wrap around; differences of them are exact as long as the window's own sum is.
    running = np.concatenate([[np.int64(0)], np.cumsum(amounts)])
    difference: Int64s = running[last + 1] - running[first]
    return difference


def _slide(summary: ColumnSummary, first: Int64s, last: Int64s) -> ColumnSummary:
    return ColumnSummary(
        _window_sums(summary.values, first, last),
        _window_sums(summary.total, first, last),
        _extreme(np.minimum, summary.minimum, first, last),
        _extreme(np.maximum, summary.maximum, first, last),
    )


def _extreme(choose: np.ufunc, values: Int64s, first: Int64s, last: Int64s) -> Int64s:
    """The extreme of `values[first .. last]` for each window, by doubling.

    `table[i]` holds the extreme of `2**p` values from i on; two overlapping ones cover a window.
    """
    result = np.empty(len(first), np.int64)
    length = last - first + 1
    power = np.frexp(length.astype(np.float64))[1] - 1
    table = values
    for p in range(int(power.max(initial=-1)) + 1):
        here = power == p
        result[here] = choose(table[first[here]], table[last[here] - 2**p + 1])
        table = choose(table[: -(2**p)], table[2**p :]) if len(table) > 2**p else table[:0]
    return result


def reference(
    records: Iterable[tuple[Any, int, Mapping[str, int | None]]],
    level: WindowLevel,
    after: int,
    until: int,
) -> Iterator[dict[str, Any]]:
    """Every window of a level, recomputed from its records: the definition, slow and plain.

    Args:
        records: key, time in microseconds, and the value of each column in units, or None.
        after, until: reports at `f` with `after < f <= until` are wanted.

    Yields:
        key, end, records, and for each column values, total, minimum and maximum (None without
        values), by key and end.
    """
    by_key: dict[Any, list[tuple[int, Mapping[str, int | None]]]] = {}
    for key, time, values in records:
        by_key.setdefault(key, []).append((time, values))
    for key, rows in by_key.items():
        f = after - after % level.slide + level.slide
        while f <= until:
            inside = [values for time, values in rows if f - level.range <= time < f]
            if inside:
                report: dict[str, Any] = {"key": key, "end": f, "records": len(inside)}
                for column in inside[0]:
                    known = [value for values in inside if (value := values[column]) is not None]
                    report[column] = (
                        len(known),
                        sum(known),
                        min(known, default=None),
                        max(known, default=None),
                    )
                yield report
            f += level.slide
