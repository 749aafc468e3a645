"""What granules hold of the values of a column whose distinct values are counted.

The smallest hashes of a granule's values, as many as
`transom.features.aggregates.algorithm.distinct_count` asks for, by Spark's own
operators: what repeats in a task is left out before anything moves.
"""

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transom.engine.hours import granule, quoted
from transom.features.aggregates.algorithm.distinct_count import BITS, SIZE
from transom.features.aggregates.output_columns import hash_column
from transom.features.aggregates.resolve import AggregateBlock


def with_hashes(granules: DataFrame, events: DataFrame, block: AggregateBlock, column: str) -> DataFrame:
    """Granules with the smallest hashes of the values of a column; null where a granule has no value."""
    names = ["hour", "granule", *block.key]
    values = events.where(F.col(f"`{column}`").isNotNull())
    # Under names of their own: both sides are made of the same events.
    by = [f"__of_{name}" for name in names]
    of_granule = [F.col("hour"), granule(block.base), *quoted(block.key)]
    hashes = values.select(
        *(of.alias(name) for of, name in zip(of_granule, by, strict=True)), _hash(column).alias("__hash")
    ).distinct()
    rank = F.row_number().over(Window.partitionBy(*quoted(by)).orderBy("__hash"))
    smallest = hashes.withColumn("__rank", rank).where(F.col("__rank") <= SIZE + 1)
    held = smallest.groupBy(*quoted(by)).agg(
        F.sort_array(F.collect_list("__hash")).alias(hash_column(column))
    )
    # A key may be null.
    same = reduce(
        and_, (F.col(f"`{name}`").eqNullSafe(F.col(f"`{of}`")) for name, of in zip(names, by, strict=True))
    )
    return granules.join(held, same, "left").drop(*by)


def _hash(column: str) -> Column:
    """63 bits of a value's hash, none of which is 0."""
    positive = F.xxhash64(F.col(f"`{column}`")).bitwiseAND(F.lit(2**BITS - 1))
    return F.greatest(positive, F.lit(1).cast("bigint"))
