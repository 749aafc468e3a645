"""Multi-granular sliding windows from granules (Patroumpas and Sellis, sections 3 and 4).

A *granule* is the summary of one key's records in a short interval that is aligned to the epoch. It has all
that wider windows need: counts, exact sums in whole units of a column's resolution, and extremes. A window of
level k that reports at `f` covers `[f - range_k, f)` and is the sum of its granules. So every raw record is
read once, and the cost of a further level does not depend on its range.

Sums are exact if `max(|minimum|, |maximum|) * values < 2**62` (`ColumnSummary.exact`). Then int64 holds every
partial sum, in any order of addition. A window meets this rule only if its granules do.

The fast form (`Granules.windows`) slides over many keys at a time with numpy. `reference` recomputes every
window from its records; tests compare the two.

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
    """Figures of one column, one element per granule or window.

    `minimum` and `maximum` are undefined if `values` is zero, `total` if it is not exact.
    """

    values: Int64s
    total: Int64s
    minimum: Int64s
    maximum: Int64s

    @property
    def largest(self) -> npt.NDArray[np.float64]:
        """The largest magnitude of a value."""
        magnitudes = (np.abs(extreme.astype(float)) for extreme in (self.minimum, self.maximum))
        largest: npt.NDArray[np.float64] = np.maximum(*magnitudes)
        return largest

    @property
    def exact(self) -> npt.NDArray[np.bool_]:
        """Whether `total` is certainly the exact sum of the values."""
        # The error of a product of doubles is far less than the factor of two up to int64's limit.
        sure: npt.NDArray[np.bool_] = self.largest * self.values < MAX_EXACT_SUM
        return sure


@dataclass(frozen=True)
class ReportWindows:
    """The reports of one level, ordered by key, then by end.

    Attributes:
        key: the code of the key.
        end: the report time, in microseconds; the window is `[end - range, end)`.
        records: records in the window, at least 1.
        lines: the fitted lines of each requested series.
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
        key: the code of the key, 0 .. keys - 1.
        start: the start of the granule, in microseconds.
        records: records in the granule, at least 1.
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
        """Yield ordered granules, some whole keys at a time, so that they fit into a processor's cache.

        Args:
            limit: granules at a time, at least 1; exceeded by at most the granules of one key.
        """
        firsts = np.flatnonzero(np.diff(self.key, prepend=-1))
        cuts = firsts[np.diff(firsts // limit, prepend=-1) > 0]
        for start, end in pairwise([*cuts.tolist(), len(self.key)]):
            yield self.take(slice(start, end))

    def take(self, order: Int64s | slice) -> "Granules":
        """Return some of the granules, in the given order."""
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
        """Add ordered granules up to granules of `length` microseconds."""
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
        """Return the position of the first granule of each granule of `length`."""
        unit = self.start // length
        new = (self.key[1:] != self.key[:-1]) | (unit[1:] != unit[:-1])
        return np.flatnonzero(np.r_[np.ones(min(len(unit), 1), dtype=bool), new]).astype(np.int64)

    def series(self, column: str, unit: int, value: str = "mean", carried: bool = True) -> Series:
        """Return the values of a column of ordered granules, one for each unit with a value.

        Args:
            unit: length of a unit, in microseconds; a multiple of the granules'.
            value: the figure of a unit: mean, sum, min or max of its values.
            carried: as in `Series`.
        """
        units = self.coarsened(unit)
        has_values = units.columns[column].values > 0
        units = units.take(np.flatnonzero(has_values))
        summary = units.columns[column]
        # A sum that may have wrapped around is not exact.
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
        """Return the number of records of each unit; 0 if there is none."""
        units = self.coarsened(unit)
        fits = units.records < MAX_UNIT_VALUE
        values = np.where(fits, units.records, 0) << BITS
        return Series(units.key, units.start // unit, values, fits, unit, carried=False)

    def windows(
        self,
        level: WindowLevel,
        intervals: Sequence[tuple[int, int]],
        series: Mapping[str | None, Series] | None = None,
    ) -> ReportWindows:
        """Return every window of a level that contains a record and reports inside one of the intervals.

        Args:
            intervals: pairs `(a, b)` in microseconds: reports at `f` with `a < f <= b` are returned.
            series: the series for which lines are fitted, by column; None is the count of records. Units
                divide slides.
        """
        units = self.coarsened(level.slide)
        mu = level.range // level.slide
        unit = units.start // level.slide
        # Each report is found once, by its newest unit: a unit is the newest one in the reports after it,
        # until the key's next unit or until it leaves the window.
        following = np.full(len(unit), np.iinfo(np.int64).max)
        same = units.key[1:] == units.key[:-1]
        following[:-1][same] = unit[1:][same]
        newest, report = [], []
        for after, until in intervals:
            low = np.maximum(unit + 1, after // level.slide + 1)
            high = np.minimum(np.minimum(unit + mu, following), until // level.slide)
            counts = np.maximum(high - low + 1, 0)
            index = np.repeat(np.arange(len(unit)), counts)
            offset = np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts, counts)
            newest.append(index)
            report.append(low[index] + offset)
        last = np.concatenate([np.empty(0, np.int64), *newest]).astype(np.int64)
        end = np.concatenate([np.empty(0, np.int64), *report]).astype(np.int64)
        if len(intervals) > 1:
            order = _order(units.key[last], end)
            last, end = last[order], end[order]
        first = position(units.key, unit, units.key[last], end - mu)
        lines: dict[str | None, FittedLines] = {}
        for name, line_series in (series or {}).items():
            # The values of a window lie in its units, so their positions are looked up once per unit.
            starts = position(
                line_series.key, line_series.unit * line_series.length // level.slide, units.key, unit
            )
            stops = np.append(starts, len(line_series.key))[last + 1]
            ends = end * (level.slide // line_series.length)
            lines[name] = line_series.lines(starts[first], stops, ends, level.range // line_series.length)
        return ReportWindows(
            units.key[last],
            end * level.slide,
            _window_sums(units.records, first, last),
            {name: _slide(summary, first, last) for name, summary in units.columns.items()},
            lines,
        )


def _order(key: Int64s, time: Int64s) -> Int64s:
    """Return the order by key and then by time; ties in any order."""
    if not len(key):
        return key
    since = time - time.min()
    units = since // max(int(np.gcd.reduce(since)), 1)
    width = int(units.max()) + 1
    if (int(key.max()) + 1) * width > np.iinfo(np.int64).max:
        lexical: Int64s = np.lexsort((units, key))
        return lexical
    # Sorting one combined number is several times as fast as sorting two.
    order: Int64s = np.argsort(key * width + units)
    return order


def position(key: Int64s, unit: Int64s, of_key: Int64s, of_unit: Int64s) -> Int64s:
    """Return for each given key and unit the first position that is not before it, in rows ordered by key and
    unit."""
    if not len(key) or not len(of_key):
        return np.zeros(len(of_key), dtype=np.int64)
    base = unit.min()
    # Units outside the range of all others are clipped, which does not change the result.
    clipped = np.clip(of_unit - base, 0, int(unit.max() - base) + 1)
    width = int(unit.max() - base) + 2
    # One number combines key and unit.
    position = np.searchsorted(key * width + (unit - base), of_key * width + clipped)
    positions: Int64s = position.astype(np.int64)
    return positions


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
    """Return the extreme of `values[first .. last]` for each window, by doubling.

    `table[i]` is the extreme of `2**p` values from i on; two overlapping ones cover a window.
    """
    result = np.empty(len(first), np.int64)
    length = last - first + 1
    power = np.frexp(length.astype(np.float64))[1] - 1
    table = values
    for p in range(int(power.max(initial=-1)) + 1):
        rows = power == p
        result[rows] = choose(table[first[rows]], table[last[rows] - 2**p + 1])
        table = choose(table[: -(2**p)], table[2**p :]) if len(table) > 2**p else table[:0]
    return result


def reference(
    records: Iterable[tuple[Any, int, Mapping[str, int | None]]],
    level: WindowLevel,
    after: int,
    until: int,
) -> Iterator[dict[str, Any]]:
    """Yield every window of a level, recomputed from its records: the definition, slow and plain.

    Args:
        records: key, time in microseconds, and the value of each column in units, or None.
        after, until: reports at `f` with `after < f <= until` are yielded.

    Yields:
        Key, end, records, and for each column values, total, minimum and maximum (None without values), by
        key and end.
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
