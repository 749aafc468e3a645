"""The rows of a source as Spark reads them: columns as conditions see them, and numbers in whole steps."""

from collections.abc import Iterable
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.core.intervals import merge_hours, micros
from transom.engine.hours import quoted
from transom.features.aggregates.resolve import AggregateBlock
from transom.features.frames.sources import MEAN_STEPS, TIME, FrameSource
from transom.features.frames.spec import Combination


def steps_column(name: str) -> str:
    """Return the column that holds a number in whole steps of its unit."""
    return f"__steps_{name}"


def rows_of(
    source: FrameSource, table: DataFrame, key: Iterable[str], columns: Iterable[str], steps: Iterable[str]
) -> DataFrame:
    """Return rows of the source's table: the key, `TIME`, some columns as conditions see them, and some
    numbers in whole steps."""
    key, over = list(key), source.over
    names = [column for column in columns if column not in key and column != TIME]
    if over is None:
        in_steps = (_event_steps(source, name).alias(steps_column(name)) for name in steps)
        return table.select(*quoted(key), TIME, *quoted(names), *in_steps)
    return table.where(F.col("block") == over.name).select(
        *quoted(key),
        F.col("granule").alias(TIME),
        *(_measure(over, name).alias(name) for name in names),
        *(_granule_steps(over, name).alias(steps_column(name)) for name in steps),
    )


def _event_steps(source: FrameSource, name: str) -> Column:
    unit, column = source.unit(name), F.col(f"`{name}`")
    up, down = unit.step
    # Tables of others may have values that are no number, or too large.
    return column if unit.is_whole else F.rint(column.cast("double") * down / up).try_cast("bigint")


def _measure(over: AggregateBlock, name: str) -> Column:
    function, column = over.measures[name]
    if column is None:
        return F.col("records")
    unit = over.units[column]
    up, down = (F.lit(float(number)) for number in unit.step)
    if function == "mean":
        return F.col(f"sum_{column}") * up / down / F.col(f"values_{column}")
    steps = F.col(f"{function}_{column}")
    return steps if unit.is_whole else steps * up / down


def _granule_steps(over: AggregateBlock, name: str) -> Column:
    function, column = over.measures[name]
    if column is None:
        return F.col("records")
    if function == "mean":
        mean = F.col(f"sum_{column}").cast("double") / F.col(f"values_{column}")
        return F.rint(mean * F.lit(float(MEAN_STEPS))).cast("bigint")
    return F.col(f"{function}_{column}")


def in_hours(time: Column, hours: Iterable[datetime]) -> Column:
    """Return whether a time, in microseconds, lies in one of some hours."""
    runs = ((micros(run.start), micros(run.end)) for run in merge_hours(hours))
    return reduce(Column.__or__, ((time >= start) & (time < end) for start, end in runs), F.lit(False))


def reduce_values(values: Column, combine: Combination) -> Column:
    """Return one value of an array, or null if it is empty.

    Args:
        values: sorted, without nulls.
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
