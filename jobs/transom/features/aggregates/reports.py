"""From a block's granules to its reports: a vectorised pass over all keys of a partition, level by level."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.arrays.arrow import as_type, concat_batches, encode_keys, hour_of_end, int64s, overlaps_any
from transom.core import rounding
from transom.core.exact_sums import Int64s
from transom.features.aggregates.algorithm.distinct_count import AdaptiveSamples
from transom.features.aggregates.algorithm.granules import ColumnSummary, Granules, ReportWindows, WindowLevel
from transom.features.aggregates.algorithm.linear_fit import FittedLines, Series
from transom.features.aggregates.algorithm.rings import Rings, aged_mean
from transom.features.aggregates.output_columns import hash_column
from transom.features.aggregates.resolve import AggregateBlock, FitParams, Unit
from transom.storage.tables import ARROW_TYPES

AT_A_TIME = 2**17
"""Granules of whole keys over which windows slide at a time."""
SECOND = 1_000_000


@dataclass(frozen=True)
class ReportBuilder:
    """What a task makes of its partition's granules.

    Attributes:
        ranges: in which reports are wanted, as `Granules.windows` takes them.
        incomplete: the hours in which something is missing, in microseconds, ordered.
    """

    block: AggregateBlock
    ranges: Sequence[tuple[int, int]]
    incomplete: Int64s

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The reports of the granules of some keys, all that these keys have."""
        table = concat_batches(batches)
        if table is None:
            return
        block, schema = self.block, schema_of(self.block)
        keys, firsts = encode_keys(table, list(block.key))
        granules = Granules(
            keys,
            int64s(table["granule"]),
            int64s(table["records"]),
            {
                column: ColumnSummary(
                    *(int64s(table[f"{f}_{column}"]) for f in ("values", "sum", "min", "max"))
                )
                for column in block.units
            },
        )
        order = granules.order()
        ordered = granules.take(order)
        samples = {column: samples_of(ordered, block.base, table, column, order) for column in block.hashed}
        after = 0
        # Hashes count as granules do, so that no more of them are looked at together.
        weight = 1 + sum(len(sample.hashes) for sample in samples.values()) // max(len(keys), 1)
        for granules in ordered.by_keys(max(AT_A_TIME // weight, 1)):
            before, after = after, after + len(granules.key)
            series = _series(block, granules)
            of_keys = {column: sample.part(before, after) for column, sample in samples.items()}
            for number, level in enumerate(block.levels):
                found = granules.windows(level, self.ranges, series)
                of_key = table.select(list(block.key)).take(pa.array(firsts[found.key]))
                start = found.end - level.range
                columns = {
                    "level": np.full(len(start), number, dtype=np.int32),
                    "window_start": start,
                    "window_end": found.end,
                    **{name: of_key[name] for name in block.key},
                    "count": found.records,
                    **_figures(block, level, found),
                    **_aged(block, number, granules, found),
                    **_distinct(block, level, found, of_keys),
                    "complete": ~overlaps_any(start, found.end, self.incomplete),
                    "hour": hour_of_end(found.end),
                }
                arrays = [as_type(columns[field.name], field.type) for field in schema]
                yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=65536)


def _series(block: AggregateBlock, granules: Granules) -> dict[str | None, Series]:
    """What the lines of a block's measures go through, by column; None where records are counted."""
    fit = block.fit
    if fit is None:
        return {}
    columns = {column for _, column in block.measures.values()}
    return {
        column: granules.counts(fit.unit)
        if column is None
        else granules.series(column, fit.unit, fit.value, fit.carried)
        for column in columns
    }


def _figures(block: AggregateBlock, level: WindowLevel, found: ReportWindows) -> dict[str, pa.Array]:
    """The columns of all measures."""
    figures: dict[str, pa.Array] = {}
    for name, (function, column) in block.measures.items():
        if column is None:
            figures[name] = pa.array(found.records)
            step = (1, 1)
        else:
            summary, unit = found.columns[column], block.units[column]
            of_column = _of_column(summary, unit)
            figures[name] = of_column[function]
            figures[f"values_{name}"] = pa.array(summary.values)
            figures |= {f"{figure}_{name}": array for figure, array in of_column.items()}
            step = unit.step
        if block.fit:
            line = _line(found.lines[column], block.fit, level, step)
            figures |= {f"{figure}_{name}": array for figure, array in line.items()}
    return figures


def _of_column(summary: ColumnSummary, unit: Unit) -> dict[str, pa.Array]:
    """Sum, mean and extremes of each window."""
    none = summary.values == 0
    no_sum = none | ~summary.exact

    def scaled(units: Int64s, none: Any) -> pa.Array:
        known = np.where(none, 0, units)
        return pa.array(known if unit.is_whole else rounding.value(known, unit.step), mask=none)

    mean = rounding.mean(np.where(none, 0, summary.total), summary.values, unit.step)
    return {
        "sum": scaled(summary.total, no_sum),
        "mean": pa.array(mean, mask=no_sum),
        "min": scaled(summary.minimum, none),
        "max": scaled(summary.maximum, none),
    }


def _aged(
    block: AggregateBlock, number: int, granules: Granules, found: ReportWindows
) -> dict[str, pa.Array]:
    """The aged means of all measures, at a level."""
    if block.aging is None:
        return {}
    ranges = [level.range for level in block.levels[: number + 1]]
    rings = Rings.of(granules, block.base, found.key, found.end, ranges)
    figures = {}
    for name, (_, column) in block.measures.items():
        if column is not None:
            of, whole = granules.columns[column], found.columns[column]
            (up, down), none = block.units[column].step, (whole.values == 0) | ~whole.exact
            aged = aged_mean(block.aging[: number + 1], rings.sums(of.total), rings.sums(of.values))
            figures[f"aged_mean_{name}"] = pa.array(aged * up / down, mask=none)
    return figures


def _line(
    lines: FittedLines, fit: FitParams, level: WindowLevel, step: tuple[int, int]
) -> dict[str, pa.Array]:
    """The line of each window.

    Args:
        step: the resolution of the values.
    """
    up, down = step
    none = ~(lines.exists & lines.exact)
    # From the first known unit back to the window's first one.
    first = lines.units - level.range // fit.unit
    slope = lines.slope() * up / down
    return {
        "units": pa.array(lines.units),
        "slope": pa.array(slope, mask=none),
        "slope_per_second": pa.array(slope / (fit.unit // SECOND), mask=none),
        "intercept": pa.array(lines.at(first) * up / down, mask=none),
    }


def samples_of(ordered: Granules, base: int, table: pa.Table, column: str, order: Int64s) -> AdaptiveSamples:
    """What ordered granules hold of the values of a column that is counted distinct.

    Args:
        base: length of a granule, in microseconds.
        table: the granules' rows.
        order: where each ordered granule's row is.
    """
    lists = table[hash_column(column)].combine_chunks().take(pa.array(order))
    many = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    first = np.concatenate([[0], np.cumsum(many, dtype=np.int64)]).astype(np.int64)
    return AdaptiveSamples(
        ordered.key, ordered.start // base, first, int64s(pa.chunked_array([lists.flatten()]))
    )


def _distinct(
    block: AggregateBlock, level: WindowLevel, found: ReportWindows, samples: Mapping[str, AdaptiveSamples]
) -> dict[str, pa.Array]:
    """How many values of each column that is counted distinct, and the standard error of that."""
    figures: dict[str, pa.Array] = {}
    for name, column in block.distinct.items():
        counts = samples[column].windows(found.key, found.end // block.base, level.range // block.base)
        figures |= {name: pa.array(counts.estimate), f"error_{name}": pa.array(counts.error)}
    return figures


def schema_of(block: AggregateBlock) -> pa.Schema:
    """Of the reports of a block."""
    columns: Mapping[str, str] = {
        "level": "int",
        "window_start": "timestamp",
        "window_end": "timestamp",
        **block.key,
        "count": "bigint",
        **block.figure_columns(),
        "complete": "boolean",
        "hour": "timestamp",
    }
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in columns.items()])
