"""The between-join on DataFrames: rows of one that lie between two times of another, without a nested loop.

    between_join(outages, flows, on=("start", "end", "at"), by=["router"], lead=minutes(5),
                 how={"flows": "count", "sent": "sum(bytes)", "largest": "max(bytes)"})

gives every outage with how many flows there were, of the same router, from five minutes before its start up
to its end. Spark joins by such a condition row against row, key by key or in all; here rows meet intervals in
vectorised passes (`transom.features.fills.algorithm.between_join`), and what an interval has of several
passes is added up. For
aggregates over few intervals these go to where the rows are, which stay there. Else rows and intervals of a
key and of a slice of time come together; so a key that has most of the rows is split like any other."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from transom.arrays.arrow import concat_batches, encode_keys, int64s, rebatch
from transom.arrays.sorted_index import SortedIndex, sort_by_key_and_time
from transom.core.durations import microseconds
from transom.core.exact_sums import Int64s
from transom.engine.hours import quoted
from transom.features.fills.algorithm.between_join import Between
from transom.features.fills.between_join_arguments import WHOLE, Aggregate, aggregate_of, check
from transom.ledger.stage import PartitionFunction

BROADCAST_LIMIT = 2**18
"""Up to so many intervals go to where the rows are."""
SLICES = 32
"""Into how many slices of time rows are cut at most, so that one key's need not be in one place."""
MAX_SLICES_PER_INTERVAL = 8
"""How many intervals a slice is as long as, at least."""
FROM, TO, _SLICE, _MANY = "__from", "__to", "__slice", "__many"
_FRAME, _ROW = "__frame", "__row"
AT_A_TIME = 2**18
"""Matches that a task puts together at a time."""
ROWS_AT_A_TIME = 2**22
"""Rows of its own that a task sorts at a time."""


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
    """Each frame with the rows that lie in `[start - lead - shift, end + lag - shift)`, or what they come to.

    Frames may overlap, or lie inside each other; those without a row are there with aggregates, and are not
    with rows. A frame or a row whose time or key is null has no match.

    Args:
        frames: intervals, with the columns of `by`.
        rows: what fills them.
        on: the columns that are an interval's start and end, and a row's time; timestamps.
        by: columns that both have, in which frame and row agree; none, and all rows count for every frame.
        lead: how much earlier than a frame its rows may begin.
        lag: how much later they end; `end` itself is outside unless this says otherwise.
        shift: how long ago the rows are looked for: the same stretch of an earlier day.
        how: `rows`: a row for each match, the frame's columns and then the row's, but for those of `by`. Or
            aggregates by the names of their columns: `count`, or `sum`, `mean`, `min` or `max` of a column,
            as `sum(bytes)`. Sums and means take whole numbers and are exact; the others leave nulls out.

    Returns:
        The frames' columns and what `how` says, sorted by key, start and end.

    Raises:
        ValueError: a column is not there or has another type, or is in both without being in `by`; an
            aggregate is none.
    """
    start, end, time = on
    aggregates = None if how == "rows" else {name: aggregate_of(name, text) for name, text in how.items()}
    check(frames, rows, on, by, aggregates)
    spans = frames.withColumns(
        {
            FROM: F.unix_micros(start) - F.lit(microseconds(lead) + microseconds(shift)),
            TO: F.unix_micros(end) + F.lit(microseconds(lag) - microseconds(shift)),
        }
    )
    if aggregates is None:
        found = _rows(_intervals(spans, by), rows.where(_known([*by, time])), frames.columns, time, by)
        return found.orderBy(*quoted([*by, start, end, time, *found.columns]))
    found = aggregate_between(spans, rows, time, by, aggregates).drop(FROM, TO)
    return found.orderBy(*quoted([*by, start, end, *found.columns]))


def aggregate_between(
    spans: DataFrame,
    rows: DataFrame,
    time: str,
    by: Sequence[str],
    aggregates: Mapping[str, Aggregate],
) -> DataFrame:
    """Each of some stretches with what its rows come to, in any order; as `between_join`, which checks.

    Args:
        spans: with `FROM` and `TO`, `[from, to)` in microseconds.
    """
    intervals = _intervals(spans, by).select(*quoted(by), FROM, TO).distinct()
    found = _aggregates(intervals, rows.where(_known([*by, time])), time, by, aggregates)
    return spans.join(found, [*by, FROM, TO], "left").select(
        *quoted(spans.columns), *(_sql_aggregate(of).alias(name) for name, of in aggregates.items())
    )


def _intervals(spans: DataFrame, by: Sequence[str]) -> DataFrame:
    return spans.where((F.col(FROM) < F.col(TO)) & _known(by))


def _known(names: Sequence[str]) -> Column:
    return reduce(Column.__and__, (F.col(f"`{name}`").isNotNull() for name in names), F.lit(True))


@dataclass(frozen=True)
class _Slices:
    """Time, cut into slices of one length, in microseconds."""

    low: int
    width: int

    def of(self, moment: Column) -> Column:
        """The number of the slice that a moment is in."""
        return F.floor((moment - F.lit(self.low)) / F.lit(self.width)).cast("int")


def _bounded(rows: DataFrame, low: int | None, high: int | None) -> DataFrame:
    """Those of `[low, high)`; none where there is no interval that would have bounds."""
    return rows.where((F.col(FROM) >= F.lit(low)) & (F.col(FROM) < F.lit(high)))


def _sliced(
    intervals: DataFrame,
    rows: DataFrame,
    by: Sequence[str],
    make: Callable[[_Slices], PartitionFunction],
    schema: StructType | str,
) -> DataFrame:
    """What is made of the intervals and the rows of a key and a slice of time, where these meet.

    Args:
        intervals: with `FROM` and `TO`.
        rows: with their time as `FROM`.
    """
    told = intervals.agg(F.min(FROM), F.max(TO), F.avg(F.col(TO) - F.col(FROM))).first()
    low, high, mean = (0, 0, 1) if told is None or told[0] is None else told
    # Much longer than an interval is on average: so few are in two slices.
    slices = _Slices(low, max(-(-(high - low) // SLICES), int(MAX_SLICES_PER_INTERVAL * mean), 1))
    number = F.explode(F.sequence(slices.of(F.col(FROM)), slices.of(F.col(TO) - 1)))
    together = (
        _bounded(rows, low, high)
        .withColumn(_SLICE, slices.of(F.col(FROM)))
        .unionByName(intervals.withColumn(_SLICE, number), allowMissingColumns=True)
    )
    return together.repartition(*quoted(by), _SLICE).mapInArrow(make(slices), schema)


def _rows(
    intervals: DataFrame, rows: DataFrame, frame: Sequence[str], time: str, by: Sequence[str]
) -> DataFrame:
    frames = intervals.select(*quoted(by), FROM, TO, F.struct(*quoted(frame)).alias(_FRAME))
    near = rows.select(
        *quoted(by), F.unix_micros(time).alias(FROM), F.struct(*quoted(rows.columns)).alias(_ROW)
    )
    schema = StructType([frames.schema[_FRAME], near.schema[_ROW]])
    found = _sliced(frames, near, by, lambda slices: _PairJoin(tuple(by), slices), schema)
    own = [name for name in rows.columns if name not in by]
    return found.select(f"{_FRAME}.*", *(F.col(f"{_ROW}.`{name}`") for name in own))


def _aggregates(
    intervals: DataFrame,
    rows: DataFrame,
    time: str,
    by: Sequence[str],
    aggregates: Mapping[str, Aggregate],
) -> DataFrame:
    """What each interval has, added up over passes: how many rows, and of each column the figures."""
    asked: dict[str, set[str]] = {}
    for function, column in aggregates.values():
        if column is not None:
            asked.setdefault(column, set()).add({"mean": "sum"}.get(function, function))
    whole = {column: isinstance(rows.schema[column].dataType, WHOLE) for column in asked}
    near = rows.select(
        *quoted(by),
        F.unix_micros(time).alias(FROM),
        *(
            F.col(f"`{column}`").cast("bigint" if whole[column] else "double").alias(f"__{column}")
            for column in asked
        ),
    )
    keys = ", ".join(f"`{name}` {intervals.schema[name].dataType.simpleString()}" for name in by)
    figures = {
        _figure(figure, column): kind
        for column, functions in asked.items()
        for figure, kind in (
            ("values", "bigint"),
            *((one, "bigint" if whole[column] else "double") for one in sorted(functions)),
        )
    }
    columns = ", ".join(
        f"`{name}` {kind}"
        for name, kind in {FROM: "bigint", TO: "bigint", _MANY: "bigint", **figures}.items()
    )
    figured = {column: tuple(sorted(functions)) for column, functions in asked.items()}
    schema = ", ".join(filter(None, [keys, columns]))
    few = intervals.limit(BROADCAST_LIMIT + 1).toArrow()
    if few.num_rows > BROADCAST_LIMIT:
        found = _sliced(intervals, near, by, lambda slices: _Filled(tuple(by), figured, slices), schema)
    else:
        bounds = pc.min(few[FROM]).as_py(), pc.max(few[TO]).as_py()
        found = _bounded(near, *bounds).mapInArrow(_Filled(tuple(by), figured, few), schema)
    together = {"min": F.min, "max": F.max}
    return found.groupBy(*quoted(by), FROM, TO).agg(
        F.sum(_MANY).alias(_MANY),
        *(together.get(name.split("_")[2], F.sum)(f"`{name}`").alias(name) for name in figures),
    )


def _figure(figure: str, column: str) -> str:
    return f"__{figure}_{column}"


def _sql_aggregate(of: Aggregate) -> Column:
    function, column = of
    if column is None:
        return F.coalesce(_MANY, F.lit(0))
    if function == "mean":
        return F.col(f"`{_figure('sum', column)}`") / F.col(f"`{_figure('values', column)}`")
    return F.col(f"`{_figure(function, column)}`")


@dataclass(frozen=True)
class _JoinPartition:
    """Intervals and rows of a pass.

    Attributes:
        intervals: as far as they lie in a slice each, where there are slices.
        table: in which the rows are.
        rows: where there, by key and then by time.
    """

    intervals: pa.Table
    table: pa.Table
    rows: Int64s
    between: Between

    @classmethod
    def of(cls, table: pa.Table, by: Sequence[str], slices: _Slices | None = None) -> "_JoinPartition":
        """Of a table that holds both."""
        is_interval = pc.is_valid(table[TO]).to_numpy(zero_copy_only=False)
        pieces, rows = np.flatnonzero(is_interval), np.flatnonzero(~is_interval)
        key, time = encode_keys(table, by)[0], int64s(table[FROM])
        order, *of_rows = sort_by_key_and_time(key[rows], time[rows])
        intervals = table.take(pa.array(pieces))
        first, behind = int64s(intervals[FROM]), int64s(intervals[TO])
        if slices is not None:
            # A task may have several slices of a key, and an interval is in each of them.
            start = slices.low + int64s(intervals[_SLICE]) * slices.width
            first, behind = np.maximum(first, start), np.minimum(behind, start + slices.width)
        between = Between.of(SortedIndex(*of_rows), key[pieces], first, behind)
        return cls(intervals, table, rows[order], between)


@dataclass(frozen=True)
class _PairJoin:
    """What a task makes of its intervals and rows: the pairs that belong together."""

    by: tuple[str, ...]
    slices: _Slices

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = concat_batches(batches)
        if table is None:
            return
        met = _JoinPartition.of(table, self.by, self.slices)
        many = met.between.count()
        # As many intervals at a time as have so many matches; one has what it has.
        group = (np.cumsum(many) - many) // AT_A_TIME
        for first, behind in zip(*_groups(group), strict=True):
            some = Between(met.between.first[first:behind], met.between.stop[first:behind])
            interval, row = some.pairs()
            if len(interval):
                frames, rows = met.intervals[_FRAME], met.table[_ROW]
                columns = [frames.take(pa.array(interval + first)), rows.take(pa.array(met.rows[row]))]
                yield from pa.Table.from_arrays(columns, [_FRAME, _ROW]).combine_chunks().to_batches()


@dataclass(frozen=True)
class _Filled:
    """What a task makes of its rows and of intervals: figures of each interval that has a row.

    Attributes:
        requested: which figures, by column.
        intervals: all that there are; or the slices of those that come with the rows.
    """

    by: tuple[str, ...]
    requested: Mapping[str, tuple[str, ...]]
    intervals: pa.Table | _Slices

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if isinstance(self.intervals, _Slices):
            table = concat_batches(batches)
            if table is not None:
                yield from self._output(_JoinPartition.of(table, self.by, self.intervals))
            return
        for rows in rebatch(batches, ROWS_AT_A_TIME):
            both = pa.concat_tables([rows, self.intervals], promote_options="default")
            yield from self._output(_JoinPartition.of(both.combine_chunks(), self.by))

    def _output(self, met: _JoinPartition) -> Iterator[pa.RecordBatch]:
        many = met.between.count()
        columns = {name: met.intervals[name] for name in (*self.by, FROM, TO)}
        columns[_MANY] = pa.array(many)
        for column, figures in self.requested.items():
            of = met.table[f"__{column}"].combine_chunks()
            there = pc.is_valid(of).to_numpy(zero_copy_only=False)[met.rows]
            values = many if there.all() else met.between.sums(there.astype(np.int64))
            columns[_figure("values", column)] = pa.array(values)
            for figure in figures:
                columns[_figure(figure, column)] = pa.array(
                    self._of(met, of, figure, column), mask=values == 0
                )
        yield from pa.table(columns).filter(pa.array(many > 0)).combine_chunks().to_batches()

    def _of(self, met: _JoinPartition, of: pa.Array, figure: str, column: str) -> Any:
        if figure == "sum":
            try:
                return met.between.sums(of.fill_null(0).to_numpy(zero_copy_only=False)[met.rows])
            except OverflowError as error:
                raise OverflowError(f"{column}: {error}") from None
        whole = pa.types.is_integer(of.type)
        # As in Spark, what is no number is larger than every number.
        least = np.minimum if whole else np.fmin
        join = least if figure == "min" else np.maximum
        none: Any = (
            (np.iinfo(np.int64).max if whole else np.nan)
            if figure == "min"
            else (np.iinfo(np.int64).min if whole else -np.inf)
        )
        values = of.fill_null(none).to_numpy(zero_copy_only=False)[met.rows]
        return met.between.extremes(values, join, none)


def _groups(numbers: Int64s) -> tuple[list[int], list[int]]:
    """Where runs of equal numbers begin and end."""
    first = np.flatnonzero(np.append(True, np.diff(numbers) != 0)[: len(numbers)]).tolist()
    return first, [*first[1:], len(numbers)] if first else []
