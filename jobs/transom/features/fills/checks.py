"""What the gate of fills asks: whether they have the rows that a plain filter finds."""

from functools import reduce
from operator import and_

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from transom.engine.hours import quoted
from transom.features.fills.resolve import FillBlock
from transom.features.frames.sources import TIME

SAMPLED = 2
"""Rows of an hour that are counted again: which ones depends on the hour alone."""


def counted_again(fills: DataFrame, rows: DataFrame, block: FillBlock) -> DataFrame:
    """Of how many fills, among a few, the rows are not as many as a plain filter finds; by block and hour.

    Args:
        fills: as they are told.
        rows: what fills them: the columns of `by`, and `TIME`.
    """
    told = fills.where((F.col("block") == block.name) & F.col("shift_s").isNotNull())
    chance = F.xxhash64("frame_id", "fragment", "shift_s")
    of_hour = F.row_number().over(Window.partitionBy("hour").orderBy(chance))
    end = F.unix_micros("end_time")
    some = (
        told.withColumn("__place", of_hour)
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
    near = [time >= F.col("__from"), time < F.col("__to")]
    same = [F.col(f"`{name}`") == F.col(f"`__{name}`") for name in block.join_on]
    found = rows.select(*quoted(block.join_on), TIME).join(
        F.broadcast(some), reduce(and_, [*same, *near]), "right"
    )
    counts = found.groupBy("block", "hour", "__fill", "rows_matched").agg(F.count(TIME).alias("__many"))
    wrong = (F.col("__many") != F.col("rows_matched")).cast("bigint").alias("wrong")
    # Which hours are sampled depends on the run, and what is said of an hour must not.
    every = told.select("block", "hour", F.lit(0).cast("bigint").alias("wrong"))
    found_wrong = every.unionByName(counts.select("block", "hour", wrong))
    return found_wrong.groupBy("block", "hour").agg(F.sum("wrong").alias("fills_miscounted"))
