"""The between-join on DataFrames: match rows with intervals that contain their time, without nested loops.

    between_join(outages, flows, on=("start", "end", "at"), by=["router"], lead=minutes(5),
                 how={"flows": "count", "sent": "sum(bytes)", "largest": "max(bytes)"})

returns every outage with the number and the bytes of the flows of its router, from five minutes before its
start to its end. Spark compares every row with every interval of its key for such a condition. Here,
vectorised passes match them (`transom.features.fills.algorithm.vectorised`), and partial aggregates are
merged. Up to `BROADCAST_LIMIT` intervals are broadcast to the rows. More are partitioned with the rows, by
key and by slice of time, so that a key with most of the rows is split like any other.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial, reduce
from itertools import pairwise
from operator import and_
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from transom.arrays.arrow import concat_batches, encode_keys, int64s, rebatch
from transom.arrays.sorted_index import SortedIndex, sort_by_key_and_time
from transom.core.durations import microseconds
from transom.core.exact_sums import Int64s
from transom.engine.hours import quoted
from transom.features.fills.algorithm.vectorised import Between
from transom.storage.session import frame_of, to_arrow
from transom.storage.tables import ARROW_TYPES

BROADCAST_LIMIT = 2**18
"""Maximum number of intervals that are broadcast."""
SLICES = 32
"""Maximum number of slices of time."""
MIN_INTERVALS_PER_SLICE = 8
"""Minimum length of a slice, in mean lengths of an interval."""
FROM, TO, _SLICE, _COUNT = "__from", "__to", "__slice", "__count"
_FRAME, _ROW = "__frame", "__row"
AT_A_TIME = 2**18
"""Approximate number of matches in a batch of a task."""
ROWS_AT_A_TIME = 2**22
"""Maximum number of rows that a task sorts at once."""
WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
"""Types of whole numbers."""
Aggregate = tuple[str, str | None]
"""A function and its column; `count` has none."""
_AGGREGATE = re.compile(r"\s*(count|sum|mean|min|max)\s*(?:\(\s*(\w+)\s*\))?\s*")


def between_join(
    frames: DataFrame,
    rows: DataFrame,
    *,
    on: tuple[str, str, str],
    by: Sequence[str] = (),
    lead: timedelta = timedelta(0),
    lag: timedelta = timedelta(0),
    shift: timedelta = timedelta(0),
    how: Literal["rows"] | Mapping[str, str] = "rows",
) -> DataFrame:
    """Join each frame with its rows, or with their aggregates.

    A row belongs to a frame with the same values of `by` if

        start - lead - shift <= time < end + lag - shift

    Frames may overlap or contain each other. A frame without a row is returned with aggregates, but not with
    `how="rows"`. A frame or a row whose time or key is null has no match.

    Args:
        frames: intervals, with the columns of `by`.
        rows: the rows to match, with the columns of `by`.
        on: the columns with an interval's start and end, and a row's time; timestamps.
        by: columns of both that must be equal; if empty, all rows are matched with every frame.
        lead: how long before a frame's start rows count.
        lag: how long after a frame's end rows count; with 0, `end` itself is outside.
        shift: how long ago the rows were, such as a day for the same time of the day before.
        how: `rows` for a row for each match, with the frame's columns and then the row's without those of
            `by`. Or aggregates by the names of their columns: `count`, or `sum`, `mean`, `min` or `max` of a
            column, such as `sum(bytes)`. Sums and means take whole numbers and are exact; nulls are skipped.

    Returns:
        The frames' columns and those of `how`, sorted by key, start and end.

    Raises:
        ValueError: a column is missing or has another type, a column outside `by` is in both (with `rows`),
            or an aggregate is invalid.
    """
    start, end, time = on
    _check(frames, rows, on, by)
    spans = frames.withColumns(
        {
            FROM: F.unix_micros(start) - F.lit(microseconds(lead) + microseconds(shift)),
            TO: F.unix_micros(end) + F.lit(microseconds(lag) - microseconds(shift)),
        }
    )
    if how != "rows":
        aggregates = {name: _aggregate_of(name, text, frames, rows) for name, text in how.items()}
        joined = aggregate_between(spans, lambda _from, _to: rows, time, by, aggregates).drop(FROM, TO)
        return joined.orderBy(*quoted([*by, start, end, *joined.columns]))
    for name in frames.columns:
        if name in rows.columns and name not in by:
            raise ValueError(f"frames and rows both have a column {name!r}, which is not in by")
    spans = _matchable(spans, F.col(FROM) < F.col(TO), by)
    rows = _matchable(rows, F.col(f"`{time}`").isNotNull(), by)
    joined = _pairs(spans, rows, frames.columns, time, by)
    return joined.orderBy(*quoted([*by, start, end, time, *joined.columns]))


def _check(frames: DataFrame, rows: DataFrame, on: tuple[str, str, str], by: Sequence[str]) -> None:
    for what, table, times in (("frames", frames, on[:2]), ("rows", rows, on[2:])):
        for name in (*times, *by):
            if name not in table.columns:
                raise ValueError(f"{what}: no column {name!r}; there are {', '.join(table.columns)}")
            kind = table.schema[name].dataType
            if name in times and not isinstance(kind, T.TimestampType):
                raise ValueError(f"{what}: {name} must be a timestamp; it is {kind.simpleString()}")
    for name in by:
        kinds = [table.schema[name].dataType for table in (frames, rows)]
        if kinds[0] != kinds[1]:
            both = " and ".join(kind.simpleString() for kind in kinds)
            raise ValueError(f"by: {name} must be of one type in both; got {both}")


def _aggregate_of(name: str, text: str, frames: DataFrame, rows: DataFrame) -> Aggregate:
    """Return the function and the column of an aggregate."""
    match = _AGGREGATE.fullmatch(text)
    if match is None or (match[1] == "count") is (match[2] is not None):
        rule = "must be count, or sum, mean, min or max of a column, as sum(bytes)"
        raise ValueError(f"how: {name}: {rule}; got {text!r}")
    function, column = match[1], match[2]
    if name in frames.columns:
        raise ValueError(f"how: {name} is a column of frames; choose another name")
    if column is not None and column not in rows.columns:
        raise ValueError(f"how: {name}: no column {column!r}; there are {', '.join(rows.columns)}")
    if column is not None:
        kind, exact = rows.schema[column].dataType, function in ("sum", "mean")
        if not isinstance(kind, WHOLE if exact else (*WHOLE, T.DoubleType, T.FloatType)):
            rule = "takes whole numbers" if exact else "takes numbers"
            raise ValueError(f"how: {name}: {function} {rule}; {column} is {kind.simpleString()}")
    return function, column


def aggregate_between(
    spans: DataFrame,
    read: Callable[[int, int], DataFrame],
    time: str,
    by: Sequence[str],
    aggregates: Mapping[str, Aggregate],
    here: Callable[[], bool] = lambda: False,
) -> DataFrame:
    """Return intervals `[FROM, TO)`, in microseconds, with the aggregates of their rows, in any order.

    The arguments are not validated.

    Args:
        spans: the intervals.
        read: returns the rows. It may omit those outside of its arguments, the earliest start and the latest
            end of an interval; both are 0 if there is none.
        time: the column with a row's time.
        by: the columns that must be equal.
        aggregates: the aggregates, by the names of their columns.
        here: returns, after `read`, whether the rows are so few that the driver joins them.
    """
    intervals = _matchable(spans, F.col(FROM) < F.col(TO), by)
    intervals = intervals.select(*quoted(by), FROM, TO).distinct()
    few = to_arrow(intervals.limit(BROADCAST_LIMIT + 1))
    if few.num_rows > BROADCAST_LIMIT:
        low, high = to_arrow(intervals.agg(F.min(FROM), F.max(TO))).to_pylist()[0].values()
    else:
        low, high = pc.min(few[FROM]).as_py() or 0, pc.max(few[TO]).as_py() or 0
    rows = read(low, high)
    rows = _matchable(rows, F.col(f"`{time}`").isNotNull(), by)
    figures = {
        column: sorted(
            {"values", *("sum" if f == "mean" else f for f, of in aggregates.values() if of == column)}
        )
        for _, column in aggregates.values()
        if column is not None
    }
    kinds = {
        column: "bigint" if isinstance(rows.schema[column].dataType, WHOLE) else "double"
        for column in figures
    }
    values = (F.col(f"`{column}`").cast(kind).alias(f"__value_{column}") for column, kind in kinds.items())
    right = rows.select(*quoted(by), F.unix_micros(time).alias(FROM), *values)
    types = {name: intervals.schema[name].dataType.simpleString() for name in by}
    types |= dict.fromkeys((FROM, TO, _COUNT), "bigint")
    sums = [F.sum(_COUNT).alias(_COUNT)]
    for column, names in figures.items():
        for figure in names:
            name = f"__{figure}_{column}"
            types[name] = "bigint" if figure == "values" else kinds[column]
            sums.append({"min": F.min, "max": F.max}.get(figure, F.sum)(f"`{name}`").alias(name))
    schema = ", ".join(f"`{name}` {kind}" for name, kind in types.items())
    join = partial(_figure_batches, tuple(by), figures)
    if few.num_rows > BROADCAST_LIMIT:
        figures_of_tasks = _sliced(intervals, right, by, join, schema)
    elif here():
        columns = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in types.items()])
        joined = map(pa.table, join(few, to_arrow(_within(right, low, high)).to_batches()))
        tables = (table.select(columns.names).cast(columns) for table in joined)
        all_figures = pa.concat_tables([columns.empty_table(), *tables])
        figures_of_tasks = frame_of(spans.sparkSession, all_figures)
    else:
        figures_of_tasks = _within(right, low, high).mapInArrow(partial(join, few), schema)

    def result(function: str, column: str | None) -> Column:
        if column is None:
            return F.coalesce(_COUNT, F.lit(0))
        if function == "mean":
            return F.col(f"`__sum_{column}`") / F.col(f"`__values_{column}`")
        return F.col(f"`__{function}_{column}`")

    results = (result(*aggregate).alias(name) for name, aggregate in aggregates.items())
    totals = figures_of_tasks.groupBy(*quoted(by), FROM, TO).agg(*sums)
    return spans.join(totals, [*by, FROM, TO], "left").select(*quoted(spans.columns), *results)


def _matchable(table: DataFrame, condition: Column, by: Sequence[str]) -> DataFrame:
    """Return the intervals or rows that can match: they meet a condition, and their key has no null."""
    return table.where(reduce(and_, [F.col(f"`{name}`").isNotNull() for name in by], condition))


class _Slices(NamedTuple):
    """Slices of time of equal length.

    Attributes:
        low: the start of the first slice, in microseconds.
        width: the length of a slice, in microseconds.
    """

    low: int
    width: int

    def number(self, moment: Column) -> Column:
        """Return the number of the slice that contains a moment."""
        return F.floor((moment - F.lit(self.low)) / F.lit(self.width)).cast("int")


def _within(rows: DataFrame, low: int, high: int) -> DataFrame:
    """Return the rows in `[low, high)`."""
    return rows.where((F.col(FROM) >= F.lit(low)) & (F.col(FROM) < F.lit(high)))


def _sliced(
    intervals: DataFrame,
    rows: DataFrame,
    by: Sequence[str],
    join: Callable[[_Slices, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: T.StructType | str,
) -> DataFrame:
    """Return the results of a function of the intervals and the rows of each key and slice of time.

    The time of a row is its `FROM`.
    """
    bounds = intervals.agg(F.min(FROM), F.max(TO), F.avg(F.col(TO) - F.col(FROM))).first()
    low, high, mean = (0, 0, 1) if bounds is None or bounds[0] is None else bounds
    # Much longer than the mean interval, so that few intervals are in two slices.
    slices = _Slices(low, max(-(-(high - low) // SLICES), int(MIN_INTERVALS_PER_SLICE * mean), 1))
    numbers = F.explode(F.sequence(slices.number(F.col(FROM)), slices.number(F.col(TO) - 1)))
    together = (
        _within(rows, low, high)
        .withColumn(_SLICE, slices.number(F.col(FROM)))
        .unionByName(intervals.withColumn(_SLICE, numbers), allowMissingColumns=True)
    )
    return together.repartition(*quoted(by), _SLICE).mapInArrow(partial(join, slices), schema)


def _pairs(
    intervals: DataFrame, rows: DataFrame, frame: Sequence[str], time: str, by: Sequence[str]
) -> DataFrame:
    left = intervals.select(*quoted(by), FROM, TO, F.struct(*quoted(frame)).alias(_FRAME))
    row = F.struct(*quoted(rows.columns)).alias(_ROW)
    right = rows.select(*quoted(by), F.unix_micros(time).alias(FROM), row)
    schema = T.StructType([left.schema[_FRAME], right.schema[_ROW]])
    pairs = _sliced(left, right, by, partial(_pair_batches, tuple(by)), schema)
    own = [name for name in rows.columns if name not in by]
    return pairs.select(f"{_FRAME}.*", *(F.col(f"{_ROW}.`{name}`") for name in own))


@dataclass(frozen=True)
class _Matches:
    """Intervals and rows that are joined at once.

    Attributes:
        intervals: the intervals; those of slices may be repeated, one row for each slice.
        rows: the positions of the rows in the table, by key and then by time.
        between: the matches, as ranges of `rows`.
    """

    intervals: pa.Table
    rows: Int64s
    between: Between

    @classmethod
    def of(cls, table: pa.Table, by: Sequence[str], slices: _Slices | None = None) -> "_Matches":
        """Return the matches in a table that has both intervals and rows."""
        is_interval = pc.is_valid(table[TO]).to_numpy(zero_copy_only=False)
        pieces, rows = np.flatnonzero(is_interval), np.flatnonzero(~is_interval)
        key, time = encode_keys(table, by)[0], int64s(table[FROM])
        order, *sorted_rows = sort_by_key_and_time(key[rows], time[rows])
        intervals = table.take(pa.array(pieces))
        begin, end = int64s(intervals[FROM]), int64s(intervals[TO])
        if slices is not None:
            # A task may have several slices of a key, and an interval is in each of them.
            start = slices.low + int64s(intervals[_SLICE]) * slices.width
            begin, end = np.maximum(begin, start), np.minimum(end, start + slices.width)
        between = Between.of(SortedIndex(*sorted_rows), key[pieces], begin, end)
        return cls(intervals, rows[order], between)


def _pair_batches(
    by: Sequence[str], slices: _Slices, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of intervals and rows of a task."""
    table = concat_batches(batches)
    if table is None:
        return
    matches = _Matches.of(table, by, slices)
    counts = matches.between.count()
    # Intervals with about `AT_A_TIME` matches at a time, or one interval.
    cuts = np.flatnonzero(np.diff((np.cumsum(counts) - counts) // AT_A_TIME)) + 1
    for first, stop in pairwise([0, *cuts.tolist(), len(counts)]):
        interval, row = matches.between.take(slice(first, stop)).pairs()
        if len(interval):
            frames = matches.intervals[_FRAME].take(pa.array(interval + first))
            rows = table[_ROW].take(pa.array(matches.rows[row]))
            yield from pa.table({_FRAME: frames, _ROW: rows}).combine_chunks().to_batches()


def _figure_batches(
    by: Sequence[str],
    figures: Mapping[str, Iterable[str]],
    intervals: pa.Table | _Slices,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield the partial aggregates of each interval that has rows in a task.

    Args:
        by: columns that must be equal.
        figures: the names of the partial aggregates, by column.
        intervals: all intervals; or the slices, if the batches have the intervals.
        batches: the rows of the task.
    """
    slices = intervals if isinstance(intervals, _Slices) else None
    for rows in rebatch(batches, ROWS_AT_A_TIME if slices is None else sys.maxsize):
        parts = [rows] if slices else [rows, intervals]
        table = pa.concat_tables(parts, promote_options="default").combine_chunks()
        matches = _Matches.of(table, by, slices)
        counts = matches.between.count()
        columns = {name: matches.intervals[name] for name in (*by, FROM, TO)} | {_COUNT: pa.array(counts)}
        for column, names in figures.items():
            values = table[f"__value_{column}"].combine_chunks()
            valid = pc.is_valid(values).to_numpy(zero_copy_only=False)[matches.rows]
            valid_counts = counts if valid.all() else matches.between.sums(valid.astype(np.int64))
            for figure in names:
                of = valid_counts if figure == "values" else _figure(matches, values, figure, column)
                mask = None if figure == "values" else valid_counts == 0
                columns[f"__{figure}_{column}"] = pa.array(of, mask=mask)
        yield from pa.table(columns).filter(pa.array(counts > 0)).combine_chunks().to_batches()


def _figure(matches: _Matches, values: pa.Array, figure: str, column: str) -> Any:
    whole, limits = pa.types.is_integer(values.type), np.iinfo(np.int64)
    of_null: Any = {
        "sum": 0, "min": limits.max if whole else np.nan, "max": limits.min if whole else -np.inf
    }[figure]  # fmt: skip
    ordered = values.fill_null(of_null).to_numpy(zero_copy_only=False)[matches.rows]
    if figure != "sum":
        # As in Spark, NaN is larger than every number.
        return matches.between.extremes(ordered, np.maximum if figure == "max" else np.fmin, of_null)
    try:
        return matches.between.sums(ordered)
    except OverflowError as error:
        raise OverflowError(f"{column}: {error}") from None
