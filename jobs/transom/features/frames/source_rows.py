"""The rows of a source as Spark reads them: columns as conditions see them, and numbers in whole steps."""

from collections.abc import Collection, Iterable
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.engine.hours import quoted
from transom.features.aggregates.resolve import AggregateBlock
from transom.features.frames.sources import MEAN_STEPS, TIME, FrameSource
from transom.storage.store import PinnedTables


def steps_column(name: str) -> str:
    """Return the column that holds a number in whole steps of its unit."""
    return f"__steps_{name}"


def read_source(source: FrameSource, pins: PinnedTables, hours: Collection[datetime]) -> DataFrame:
    """Return the rows of some hours."""
    if source.filler is not None:
        return pins.read_filler(source.filler, hours)
    return pins.read(source.table[2], hours)


def rows_of(
    source: FrameSource, table: DataFrame, key: Iterable[str], columns: Iterable[str], steps: Iterable[str]
) -> DataFrame:
    """Return rows of the source's table: the key, `TIME`, some columns as conditions see them, and some
    numbers in whole steps."""
    key, names, counted = list(key), [c for c in columns if c not in key and c != TIME], list(steps)
    if source.over is None:
        in_steps = (_event_steps(source, name).alias(steps_column(name)) for name in counted)
        return table.select(*quoted(key), TIME, *quoted(names), *in_steps)
    over = source.over
    return table.where(F.col("block") == over.name).select(
        *quoted(key),
        F.col("granule").alias(TIME),
        *(_measure(over, name).alias(name) for name in names),
        *(_granule_steps(over, name).alias(steps_column(name)) for name in counted),
    )


def _event_steps(source: FrameSource, name: str) -> Column:
    unit, column = source.unit(name), F.col(f"`{name}`")
    up, down = unit.step
    # What others have written may be no number, or too large for one.
    return column if unit.is_whole else F.rint(column.cast("double") * down / up).try_cast("bigint")


def _measure(over: AggregateBlock, name: str) -> Column:
    function, column = over.measures[name]
    if column is None:
        return F.col("records")
    up, down = over.units[column].step
    if function == "mean":
        return F.col(f"sum_{column}") * F.lit(float(up)) / F.lit(float(down)) / F.col(f"values_{column}")
    figure = F.col(f"{function}_{column}")
    return figure if over.units[column].is_whole else figure * F.lit(float(up)) / F.lit(float(down))


def _granule_steps(over: AggregateBlock, name: str) -> Column:
    function, column = over.measures[name]
    if column is None:
        return F.col("records")
    if function == "mean":
        mean = F.col(f"sum_{column}").cast("double") / F.col(f"values_{column}")
        return F.rint(mean * F.lit(float(MEAN_STEPS))).cast("bigint")
    return F.col(f"{function}_{column}")
