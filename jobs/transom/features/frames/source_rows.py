"""Rows of a source as Spark reads them, and the readings that are computed from them.

Rows have their columns as conditions see them, and numbers in whole steps. A key has one reading at each
time, with the results of the conditions.
"""

from collections.abc import Collection, Iterable, Sequence, Set
from datetime import datetime
from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.core.intervals import HOUR, MICROSECOND, merge_hours, micros
from transom.engine.hours import granule, quoted
from transom.features.aggregates.resolve import AggregateBlock, Unit
from transom.features.frames.input_columns import BASELINE, CONDITIONS
from transom.features.frames.resolve import MEAN_STEPS, FrameSource, ResolvedFrames
from transom.features.frames.spec import Combination
from transom.ledger.stage import StepRequest
from transom.storage.external_source import TIME

TURN, MOMENT, VALUE = "__turn", "__moment", "__value"
"""Columns of readings; no column of a key has such a name."""
FLAG_BITS = 4
"""Bits of a moment for flags: no value, and the results of the last three of `CONDITIONS`."""
ORDER = ("__time", "__place")
"""The order of records of one turn, if the first or the last is selected; the place is file and line."""
LINE_BITS = 31
"""Bits of a place that count lines."""


def steps_column(name: str) -> str:
    """Return the column that holds a number in whole steps of its unit."""
    return f"__steps_{name}"


def in_unit(steps: Column, unit: Unit) -> Column:
    """Convert a number of whole steps to its unit."""
    up, down = (F.lit(float(number)) for number in unit.step)
    return steps if unit.is_whole else steps * up / down


def rows_of(
    source: FrameSource, table: DataFrame, key: Iterable[str], columns: Iterable[str], steps: Iterable[str]
) -> DataFrame:
    """Return rows of the source's table.

    Args:
        source: the source.
        table: its table.
        key: the columns of the key.
        columns: further columns, as conditions see them.
        steps: numeric columns to return in whole steps, too, under `steps_column`.
    """
    key, over = list(key), source.over
    names = [column for column in columns if column not in key and column != TIME]
    if over is None:
        in_steps = (_event_steps(source, name).alias(steps_column(name)) for name in steps)
        return table.select(*quoted(key), TIME, *quoted(names), *in_steps)
    return table.where(F.col("block") == over.name).select(
        *quoted(key),
        F.col("granule").alias(TIME),
        *(_measure(over, name).alias(name) for name in names),
        *(_measure(over, name, in_steps=True).alias(steps_column(name)) for name in steps),
    )


def _event_steps(source: FrameSource, name: str) -> Column:
    unit, column = source.unit(name), F.col(f"`{name}`")
    up, down = unit.step
    # External tables may have values that are NaN or too large.
    return column if unit.is_whole else F.rint(column.cast("double") * down / up).try_cast("bigint")


def _measure(over: AggregateBlock, name: str, in_steps: bool = False) -> Column:
    """Return a measure of a granule, in whole steps or as conditions see it."""
    function, column = over.measures[name]
    if column is None:
        return F.col("records")
    unit, figure = over.units[column], F.col(f"{'sum' if function == 'mean' else function}_{column}")
    if function != "mean":
        return figure if in_steps else in_unit(figure, unit)
    values = F.col(f"values_{column}")
    if in_steps:
        return F.rint(figure.cast("double") / values * F.lit(float(MEAN_STEPS))).cast("bigint")
    up, down = (F.lit(float(number)) for number in unit.step)
    return figure * up / down / values


def in_hours(time: Column, hours: Iterable[datetime]) -> Column:
    """Return whether a time, in microseconds, is in one of some hours."""
    runs = ((micros(run.start), micros(run.end)) for run in merge_hours(hours))
    return reduce(Column.__or__, ((time >= start) & (time < end) for start, end in runs), F.lit(False))


def reduce_values(values: Column, combine: Combination) -> Column:
    """Combine the values of an array; null if it is empty.

    Args:
        values: an array, sorted, without nulls.
        combine: how they are combined.
    """
    count = F.size(values)
    match combine:
        case "min":
            result = F.element_at(values, 1)
        case "max":
            result = F.element_at(values, -1)
        case "mean":
            result = F.aggregate(values, F.lit(0.0), lambda sum_, value: sum_ + value.cast("double")) / count
        case "median":
            low, high = (F.get(values, F.floor((count - one) / 2).cast("int")) for one in (1, 0))
            result = (low + high) / 2
    return F.when(count > 0, result)


def order_of(block: ResolvedFrames) -> tuple[str, ...]:
    """Return the columns of `ORDER` that order records of one turn; none if no record is selected."""
    return () if not block.picks else ORDER if block.framing.every > 1 else ORDER[1:]


def readings_of(request: StepRequest, block: ResolvedFrames, targets: Sequence[datetime]) -> DataFrame:
    """Return the readings of some hours: the key, `MOMENT`, `VALUE` and the columns of `order_of`.

    Each column adds to the cost of the shuffle, so `MOMENT` has time and flags in one number. The latest time
    of Spark in microseconds is below 2^58, which leaves bits for the flags.
    """
    rows = _read(request, block, set(targets) & _requested(request, block))
    if block.spec.baseline is not None:
        rows = _with_baseline(request, block, rows, targets)
    value = F.lit(None).cast("bigint") if block.value is None else F.col(steps_column(block.value))
    missing = value.isNull() & F.lit(block.value is not None)
    if "where" in block.conditions:
        missing = F.expr(block.conditions["where"]).isNull()
    conditions = [
        F.coalesce(F.expr(block.conditions.get(name, default)), F.lit(False))
        for name, default in zip(CONDITIONS[1:], ("true", "true", "false"), strict=True)
    ]
    flags = (flag.cast("bigint") * F.lit(1 << bit) for bit, flag in enumerate([missing, *conditions]))
    moment = reduce(add, flags, F.unix_micros(TURN) * F.lit(1 << FLAG_BITS)).alias(MOMENT)
    return rows.select(*quoted(block.key), moment, value.alias(VALUE), *quoted(order_of(block)))


def _requested(request: StepRequest, block: ResolvedFrames) -> Set[datetime]:
    """Return the requested hours of the readings' table."""
    return request.rows.get(block.source.table[1:], {}).keys()


def _read(request: StepRequest, block: ResolvedFrames, hours: Collection[datetime]) -> DataFrame:
    """Return the rows of some hours with the columns that are read, and the turn of each reading."""
    table = request.pins.read(block.source.table[2], set(hours))
    more = ("source_id", "source_line") if block.picks else ()
    steps = block.read if block.spec.on_duplicate_time in ("sum", "mean") else filter(None, [block.value])
    rows = rows_of(block.source, table, block.key, (*block.read, *more), steps)
    if "only" in block.conditions:
        rows = rows.where(F.expr(block.conditions["only"]))
    if block.source.over is not None:
        return rows.withColumn(TURN, F.col(TIME))
    turn = granule(block.framing.every).alias(TURN)
    if block.picks:
        # Files have no order of their own, so a hash orders them; lines have an order within a file.
        file = F.crc32(F.col("source_id").cast("binary"))
        place = file * F.lit(2**LINE_BITS) + F.least("source_line", F.lit(2**LINE_BITS - 1))
        return rows.withColumns({TURN: turn, ORDER[0]: F.unix_micros(TIME), ORDER[1]: place})
    combined = [_combined(block, name).alias(name) for name in block.read]
    if block.value is not None:
        combined.append(_combined(block, block.value, in_steps=True).alias(steps_column(block.value)))
    return rows.groupBy(*quoted(block.key), turn).agg(F.min(TIME).alias(TIME), *combined)


def _combined(block: ResolvedFrames, name: str, in_steps: bool = False) -> Column:
    """Combine several values of a column at one time."""
    how, steps = block.spec.on_duplicate_time, F.col(steps_column(name))
    if how in ("min", "max"):
        return (F.min if how == "min" else F.max)(steps if in_steps else f"`{name}`")
    # A sum of doubles depends on their order, one of whole steps does not.
    combined = F.try_sum(steps)
    if how == "mean":
        combined = F.rint(combined.cast("double") / F.count(steps)).cast("bigint")
    return combined if in_steps else in_unit(combined, block.source.unit(name))


def _with_baseline(
    request: StepRequest, block: ResolvedFrames, rows: DataFrame, targets: Sequence[datetime]
) -> DataFrame:
    """Return rows with the combined readings of the same key, each shift ago, as `BASELINE`."""
    assert block.spec.baseline is not None
    requested, keys, earlier = _requested(request, block), [*block.key, TURN], []
    for shift in block.shifts:
        ago = shift * MICROSECOND
        runs = [(run.start - ago - HOUR, run.end - ago) for run in merge_hours(targets)]
        hours = {hour for hour in requested for start, end in runs if start < hour < end}
        moved = F.timestamp_micros(F.unix_micros(TURN) + F.lit(shift)).alias(TURN)
        value = F.col(f"`{block.spec.baseline.value}`").cast("double").alias("__then")
        order = quoted(ORDER) if block.picks else []
        turns = _read(request, block, hours).select(*quoted(block.key), moved, value, *order)
        if block.picks:
            pick = F.min_by if block.spec.on_duplicate_time == "first" else F.max_by
            picked = pick("__then", F.struct(*order, "__then")).alias("__then")
            turns = turns.groupBy(*quoted(keys)).agg(picked)
        earlier.append(turns)
    then = reduce(DataFrame.unionByName, earlier)
    then = then.groupBy(*quoted(keys)).agg(F.array_sort(F.collect_list("__then")).alias("__then"))
    values = F.coalesce("__then", F.array().cast("array<double>"))
    if block.spec.baseline.missing == "zero":
        times = (F.unix_micros(TURN) - F.lit(shift) for shift in block.shifts)
        expected = sum((in_hours(time, requested).cast("int") for time in times), F.lit(0))
        values = F.array_sort(F.concat(values, F.array_repeat(F.lit(0.0), expected - F.size(values))))
    baseline = reduce_values(values, block.spec.baseline.combine)
    return rows.join(then, keys, "left").withColumn(BASELINE, baseline).drop("__then")
