"""The records of a pattern as Spark reads them: of events, and of stored batches."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.engine.hours import quoted
from transom.features.patterns.resolve import RECORD, PatternBlock
from transom.features.patterns.validate import carried_column


def of_events(events: DataFrame, block: PatternBlock) -> DataFrame:
    """The events that are of a pattern's stream, as rows of its records."""
    if block.takes is not None:
        events = events.where(F.expr(block.takes))
    met = [
        F.when(F.expr(sql), F.lit(1 << bit)).otherwise(F.lit(0)).cast("bigint")
        for bit, sql in enumerate(block.conditions)
    ]
    return events.select(
        F.lit(False).alias("stored"),
        *quoted([*block.key, *RECORD]),
        reduce(Column.bitwiseOR, met, F.lit(0)).cast("bigint").alias("step_mask"),
        F.lit(False).alias("truncated_after"),
        *(F.col(f"`{name}`").alias(carried_column(name)) for name in block.carried),
    )


def of_batches(rows: DataFrame, block: PatternBlock) -> DataFrame:
    """The rows of `batches` of a pattern, as rows of its records."""
    return rows.where(F.col("block") == block.name).select(
        F.lit(True).alias("stored"), *quoted(block.record_columns)
    )


def of_one_key(rows: DataFrame, block: PatternBlock) -> DataFrame:
    """Rows so that one key's meet in one pass, in whatever order."""
    return rows.repartition(*quoted(block.key)) if block.key else rows.repartition(1)


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of some frames, which have the same columns."""
    return reduce(DataFrame.unionByName, frames)
