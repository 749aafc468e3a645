"""Metrics of the checks of fills: their numbers of rows, compared with a plain filter."""

from functools import reduce
from operator import and_

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from transom.engine.hours import quoted
from transom.features.fills.resolve import FillBlock
from transom.storage.external_source import TIME

SAMPLED = 2
"""Number of fills of an hour that are counted again; the selection depends on the hour alone."""


def counted_again(fills: DataFrame, rows: DataFrame, block: FillBlock) -> DataFrame:
    """Return by block and hour how many of a few fills have a wrong number of rows, by a plain filter.

    Args:
        fills: rows of `fills`.
        rows: the rows that fill them: the columns of `join_on`, and `TIME`.
        block: the fill.
    """
    own = fills.where((F.col("block") == block.name) & F.col("shift_s").isNotNull())
    chance = F.xxhash64("frame_id", "fragment", "shift_s")
    place = F.row_number().over(Window.partitionBy("hour").orderBy(chance))
    end = F.unix_micros("end_time")
    sample = (
        own.withColumn("__place", place)
        .where(F.col("__place") <= SAMPLED)
        .select(
            "block",
            "hour",
            chance.alias("__fill"),
            F.coalesce("rows_matched", F.lit(0)).alias("rows_matched"),
            F.greatest(F.unix_micros("start_time"), end - F.lit(block.longest)).alias("__from"),
            end.alias("__to"),
            *(F.col(f"`{name}`").alias(f"__{name}") for name in block.join_on),
        )
    )
    time = F.unix_micros(TIME)
    same = [F.col(f"`{name}`") == F.col(f"`__{name}`") for name in block.join_on]
    matches = reduce(and_, [*same, time >= F.col("__from"), time < F.col("__to")])
    joined = rows.select(*quoted(block.join_on), TIME).join(F.broadcast(sample), matches, "right")
    counts = joined.groupBy("block", "hour", "__fill", "rows_matched").agg(F.count(TIME).alias("__count"))
    wrong = (F.col("__count") != F.col("rows_matched")).cast("bigint").alias("wrong")
    # Every hour has a row, so that the result does not depend on the run.
    hours = own.select("block", "hour", F.lit(0).cast("bigint").alias("wrong"))
    both = hours.unionByName(counts.select("block", "hour", wrong))
    return both.groupBy("block", "hour").agg(F.sum("wrong").alias("fills_miscounted"))
