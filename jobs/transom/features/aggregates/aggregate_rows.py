"""Aggregates from granules: a vectorised pass over all keys of a partition, level by level."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.arrays.arrow import (
    build_batches,
    concat_batches,
    encode_keys,
    hour_of_end,
    int64s,
    overlaps_any,
)
from transom.arrays.sorted_index import SortedIndex
from transom.core import rounding
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.features.aggregates.algorithm.distinct_count import AdaptiveSamples
from transom.features.aggregates.algorithm.granules import ColumnSummary, Granules, WindowLevel, Windows
from transom.features.aggregates.algorithm.linear_fit import FittedLines, Series
from transom.features.aggregates.algorithm.rings import aged_mean, sums_of_rings
from transom.features.aggregates.output_columns import hash_column
from transom.features.aggregates.resolve import AggregateBlock, FitParams, Unit
from transom.ledger.task_counters import TaskCounters

AT_A_TIME = 2**17
"""The number of granules, of whole keys, over which windows slide at a time."""
SECOND = 1_000_000
Figures = dict[str, pa.Array]


class GranuleTask(ABC):
    """The function of a task: rows of a table from the granules of its partition.

    Args:
        ranges: the intervals in which windows end, as in `Granules.windows`.
        incomplete: incomplete hours, in microseconds, ascending.
    """

    table_name: ClassVar[str]

    def __init__(self, block: AggregateBlock, ranges: Sequence[tuple[int, int]], incomplete: Int64s) -> None:
        self.block, self.ranges, self.incomplete = block, ranges, incomplete
        self.schema = block.schema(self.table_name)

    def __call__(
        self, batches: Iterable[pa.RecordBatch], counters: TaskCounters | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows. The batches contain all granules of their keys, or of their items."""
        table = concat_batches(batches)
        if table is not None:
            yield from self.rows(table, counters or TaskCounters())

    @abstractmethod
    def rows(self, table: pa.Table, counters: TaskCounters) -> Iterator[pa.RecordBatch]:
        """Yield the rows of granules, in any order, and count faults."""


class AggregateBuilder(GranuleTask):
    """The function of a task: the aggregates of its partition's granules."""

    table_name = "aggregates"

    def rows(self, table: pa.Table, counters: TaskCounters) -> Iterator[pa.RecordBatch]:
        """As in `GranuleTask`."""
        block = self.block
        keys, firsts = encode_keys(table, list(block.key))
        figures = ("values", "sum", "min", "max")
        summaries = {
            column: ColumnSummary(*(int64s(table[f"{figure}_{column}"]) for figure in figures))
            for column in block.units
        }
        granules = Granules(keys, int64s(table["granule"]), int64s(table["records"]), summaries)
        order = granules.order()
        granules = granules.take(order)
        samples = {
            column: _samples(granules, block.base, table, column, order)
            for column in set(block.distinct.values())
        }
        # Hashes count as granules, so that a pass has a bounded number of both.
        weight = 1 + sum(len(sample.hashes) for sample in samples.values()) // max(len(keys), 1)
        start = 0
        for part in granules.by_keys(max(AT_A_TIME // weight, 1)):
            series = _series(block, part)
            part_samples = {
                column: sample.part(start, start + len(part.key)) for column, sample in samples.items()
            }
            start += len(part.key)
            narrow: Windows | None = None
            for number, level in enumerate(block.levels):
                windows = part.windows(level, self.ranges, series)
                if narrow is not None:
                    count_contradictions(narrow, windows, level.slide, counters)
                narrow = windows
                of_key = table.select(list(block.key)).take(pa.array(firsts[windows.key]))
                window_start = windows.end - level.range
                columns = {
                    "level": number,
                    "window_start": window_start,
                    "window_end": windows.end,
                    **{name: of_key[name] for name in block.key},
                    "count": windows.records,
                    **_measures(block, level, windows),
                    **_aged(block, number, part, windows),
                    **_distinct(block, level, windows, part_samples),
                    "complete": ~overlaps_any(window_start, windows.end, self.incomplete),
                    "hour": hour_of_end(windows.end),
                }
                yield from build_batches(len(windows.key), columns, self.schema)


def count_contradictions(narrow: Windows, wide: Windows, slide: int, counters: TaskCounters) -> None:
    """Count, by hour, windows that contradict the window of the next finer level with the same key and end.

    `wide_short_of_narrow` is the maximum number of records that a window lacks; a missing one lacks all.
    `narrow_beyond_wide` is the number of windows whose extremes are exceeded.

    Args:
        narrow: the windows of the finer level.
        wide: the windows of the coarser level, of the same granules; all end on its slide.
        slide: the slide of the coarser level, in microseconds.
        counters: the counters to change.
    """
    both = np.flatnonzero(narrow.end % slide == 0)
    key, end = narrow.key[both], narrow.end[both]
    of_wide = np.zeros(len(key), dtype=np.int64)
    if len(wide.key):
        of_wide = SortedIndex(wide.key, wide.end).first_after(key, end - 1)
    known = of_wide < len(wide.key)
    known[known] = (wide.key[of_wide[known]] == key[known]) & (wide.end[of_wide[known]] == end[known])
    missing = both[~known]
    missing_hours = hour_of_end(narrow.end[missing]) // HOUR_LENGTH
    counters.set_max("wide_short_of_narrow", missing_hours, narrow.records[missing])
    of_narrow, of_wide = both[known], of_wide[known]
    hours = hour_of_end(wide.end[of_wide]) // HOUR_LENGTH
    short = narrow.records[of_narrow] - wide.records[of_wide]
    lacking = short > 0
    counters.set_max("wide_short_of_narrow", hours[lacking], short[lacking])
    beyond = np.zeros(len(hours), dtype=bool)
    for name, inner in narrow.columns.items():
        outer, has_values = wide.columns[name], inner.values[of_narrow] > 0
        beyond |= has_values & (inner.minimum[of_narrow] < outer.minimum[of_wide])
        beyond |= has_values & (inner.maximum[of_narrow] > outer.maximum[of_wide])
    counters.add("narrow_beyond_wide", *np.unique(hours[beyond], return_counts=True))


def _series(block: AggregateBlock, granules: Granules) -> dict[str | None, Series]:
    """Return the series of a block's lines, by column; None is the count of records."""
    fit = block.fit
    if fit is None:
        return {}
    columns = {column for _, column in block.measures.values()}
    return {column: granules.series(column, fit.unit, fit.value, fit.carried) for column in columns}


def _measures(block: AggregateBlock, level: WindowLevel, windows: Windows) -> Figures:
    """Return the columns of all measures but distinct counts."""
    columns: Figures = {}
    for name, (function, column) in block.measures.items():
        step = (1, 1)
        if column is None:
            columns[name] = pa.array(windows.records)
        else:
            summary, unit = windows.columns[column], block.units[column]
            figures, step = _figures(summary, unit), unit.step
            columns |= {name: figures[function], f"values_{name}": pa.array(summary.values)}
            columns |= {f"{figure}_{name}": array for figure, array in figures.items()}
        if block.fit:
            line = _line(windows.lines[column], block.fit, level, step)
            columns |= {f"{figure}_{name}": array for figure, array in line.items()}
    return columns


def _figures(summary: ColumnSummary, unit: Unit) -> Figures:
    """Return sum, mean and extremes of each window; null without values, or if the sum may be inexact."""
    empty = summary.values == 0
    no_sum = empty | ~summary.exact

    def scaled(units: Int64s, null: Any) -> pa.Array:
        valid = np.where(null, 0, units)
        return pa.array(valid if unit.is_whole else rounding.value(valid, unit.step), mask=null)

    mean = rounding.mean(np.where(empty, 0, summary.total), summary.values, unit.step)
    return {
        "sum": scaled(summary.total, no_sum),
        "mean": pa.array(mean, mask=no_sum),
        "min": scaled(summary.minimum, empty),
        "max": scaled(summary.maximum, empty),
    }


def _aged(block: AggregateBlock, number: int, granules: Granules, windows: Windows) -> Figures:
    """Return the aged means of all measures at a level."""
    if block.aging is None:
        return {}
    ranges = [level.range for level in block.levels[: number + 1]]
    measured = {name: column for name, (_, column) in block.measures.items() if column is not None}
    amounts = (part for column in measured.values() for part in granules.columns[column][:2])
    rings = sums_of_rings(granules, block.base, windows.key, windows.end, ranges, *amounts)
    columns = {}
    for name, column in measured.items():
        values, totals, window = next(rings), next(rings), windows.columns[column]
        up, down = block.units[column].step
        aged = aged_mean(block.aging[: number + 1], totals, values)
        null = (window.values == 0) | ~window.exact
        columns[f"aged_mean_{name}"] = pa.array(aged * up / down, mask=null)
    return columns


def _line(lines: FittedLines, fit: FitParams, level: WindowLevel, step: tuple[int, int]) -> Figures:
    """Return the line of each window; `step` is the resolution of the values."""
    up, down = step
    null = ~(lines.exists & lines.exact)
    slope = lines.slope() * up / down
    # The intercept is at the window's first unit, which may be before the first known one.
    intercept = lines.at(lines.units - level.range // fit.unit) * up / down
    return {
        "units": pa.array(lines.units),
        "slope": pa.array(slope, mask=null),
        "slope_per_second": pa.array(slope / (fit.unit // SECOND), mask=null),
        "intercept": pa.array(intercept, mask=null),
    }


def _samples(granules: Granules, base: int, table: pa.Table, column: str, order: Int64s) -> AdaptiveSamples:
    """Return the samples of a column's values in ordered granules, whose rows are `table.take(order)`."""
    lists = table[hash_column(column)].combine_chunks().take(pa.array(order))
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    first = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
    hashes = int64s(pa.chunked_array([lists.flatten()]))
    return AdaptiveSamples(granules.key, granules.start // base, first, hashes)


def _distinct(
    block: AggregateBlock, level: WindowLevel, windows: Windows, samples: Mapping[str, AdaptiveSamples]
) -> Figures:
    """Return the estimated number of distinct values of each column, and its standard error."""
    columns: Figures = {}
    ends, length = windows.end // block.base, level.range // block.base
    for name, column in block.distinct.items():
        estimate, error = samples[column].windows(windows.key, ends, length)
        columns |= {name: pa.array(estimate), f"error_{name}": pa.array(error)}
    return columns
