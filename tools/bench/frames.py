"""Compute the same windows with Spark's window frames, `rangeBetween` over granules, as a careful user would.

A frame has an output row per input row, but a window also reports when no new records have come. So each unit
of a level's slide is repeated, empty, at every report until the key's next unit, or until it has left the
window. Each report is computed once, and frames read no more rows than reports.
"""

from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transom.features.aggregates.algorithm.granules import WindowLevel

FIGURES = {"count": F.sum, "values": F.sum, "sum": F.sum, "min": F.min, "max": F.max}
"""Functions that merge each value of parts."""


def framed(granules: DataFrame, level: WindowLevel, measure: str, until: datetime) -> DataFrame:
    """Return all windows of a level that contain a record and end at `until` or before.

    Args:
        granules: the granules with `window_end`, and values with the column names of reports.
        until: a report time of the level, and the end of the data.
    """
    names = {name if name == "count" else f"{name}_{measure}": make for name, make in FIGURES.items()}
    mean = f"mean_{measure}"
    key = [name for name in granules.columns if name not in (*names, "window_end", mean)]
    # A granule may end with its unit.
    unit = F.expr(f"(unix_micros(window_end) - 1) div {level.slide}").alias("unit")
    units = granules.groupBy(*key, unit).agg(*(make(name).alias(name) for name, make in names.items()))
    following = F.lead("unit").over(Window.partitionBy(*key).orderBy("unit"))
    last = int(until.timestamp()) * 1_000_000 // level.slide
    leaves = F.least(F.col("unit") + level.range // level.slide, F.coalesce("following", F.lit(last)))
    reports = F.sequence(F.col("unit") + 1, F.least(leaves, F.lit(last)))
    repeated = units.withColumn("following", following).select("*", F.explode(reports).alias("report"))

    def once(name: str) -> Column:
        return F.when(F.col("report") == F.col("unit") + 1, F.col(name))

    frame = Window.partitionBy(*key).orderBy("report").rangeBetween(1 - level.range // level.slide, 0)
    windows = repeated.select(
        *key,
        F.timestamp_micros(F.col("report") * level.slide).alias("window_end"),
        *(make(once(name)).over(frame).alias(name) for name, make in names.items()),
    )
    return windows.withColumn(mean, F.try_divide(F.col(f"sum_{measure}"), F.col(f"values_{measure}")))
