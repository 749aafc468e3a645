"""The tables `aggregates` and `alerts`.

`aggregates`: windows over granules, by one vectorised pass over each partition of keys. `alerts`: rows of
`aggregates` that meet a condition of the stream file. Titles and severities do not change them (`findings`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transom.engine.check_builders import declared, judged_block, row_meets
from transom.engine.hours import extend_back, incomplete_hours, quoted, to_ranges
from transom.features.aggregates.aggregate_rows import AggregateBuilder
from transom.features.aggregates.check_metrics import measures_of_columns
from transom.features.aggregates.output_columns import aggregate_types, alert_conditions
from transom.features.aggregates.resolve import AggregateBlock
from transom.features.aggregates.spec import Aggregation
from transom.ledger.stage import BlockTask, StepRequest, StepResult, rows_where
from transom.spec.stream import Stream


def aggregates_of(request: StepRequest, blocks: Mapping[str, AggregateBlock], stream: Stream) -> StepResult:
    """Return the aggregates of the windows that end in the target hours."""
    tasks = []
    for name, targets in request.targets.items():
        block = blocks[name]
        rows = request.pins.read("granules", extend_back(targets, block.reach)).where(F.col("block") == name)
        rows = rows.select("granule", *quoted(block.key), "records", *block.state)
        # All granules of a key must be in one partition, in any order: numpy sorts them there.
        rows = rows.repartition(*quoted(block.key)) if block.key else rows.repartition(1)
        compute = AggregateBuilder(block, to_ranges(targets), incomplete_hours(request, name))
        tasks.append(BlockTask(name, rows, compute))

    def metrics(read: Callable[[], DataFrame]) -> list[DataFrame]:
        rows = read()
        return [_wide_beside_narrow(rows, measures_of_columns(blocks)), *_shares(rows, blocks, stream)]

    return StepResult(tasks, metrics, least_rows=1)


def _wide_beside_narrow(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return metrics that compare windows of neighbouring levels with the same end, by block and hour.

    `wide_short_of_narrow` is the maximal number of records by which a level is below the next finer one.
    `narrow_beyond_wide` is the number of levels whose extremes exceed those of the next coarser one. Both
    compare all keys together: a key in a narrow window is also in the wide one.

    Args:
        names: the measures with the columns `min_*` and `max_*`.
    """
    extremes = [
        extreme(f"`{column}`").alias(column)
        for name in names
        for extreme, column in ((F.min, f"min_{name}"), (F.max, f"max_{name}"))
    ]
    totals = rows.groupBy("block", "hour", "window_end", "level").agg(
        F.sum("count").alias("records"), *extremes
    )
    by_end = Window.partitionBy("block", "hour", "window_end").orderBy("level")

    def finer(column: str) -> Column:
        return F.lag(f"`{column}`").over(by_end)

    # Null: the block lacks the measure, the window has no value, or the level is the finest one.
    beyond = [
        F.coalesce(
            (finer(f"min_{name}") < F.col(f"`min_{name}`")) | (finer(f"max_{name}") > F.col(f"`max_{name}`")),
            F.lit(False),
        )
        for name in names
    ]
    compared = totals.select(
        "block",
        "hour",
        F.greatest(F.lit(0), finer("records") - F.col("records")).alias("short"),
        reduce(or_, beyond, F.lit(False)).cast("bigint").alias("beyond"),
    )
    return compared.groupBy("block", "hour").agg(
        F.max("short").alias("wide_short_of_narrow"), F.sum("beyond").alias("narrow_beyond_wide")
    )


def _shares(rows: DataFrame, blocks: Mapping[str, AggregateBlock], stream: Stream) -> Iterator[DataFrame]:
    """Yield the share of aggregates that meet each declared condition, by block and hour."""
    for rule in declared(stream, "aggregates"):
        if rule.every is not None:
            block = judged_block(rule.block, blocks)
            share = F.expr(rows_where(row_meets(rule.every, aggregate_types(stream, block)))) / F.count("*")
            of_block = rows.where(F.col("block") == block)
            yield of_block.groupBy("block", "hour").agg(share.alias(rule.metric))


def alerts_of(request: StepRequest, blocks: Mapping[str, AggregateBlock], stream: Stream) -> StepResult:
    """Return a row for each aggregate of the target hours and each alert whose condition it meets."""
    tasks = []
    for name, targets in request.targets.items():
        matching = []
        for alert, condition in alert_conditions(stream, name).items():
            met, level = F.expr(condition.sql), stream.blocks(Aggregation)[name].alert[alert].level
            met = met if level is None else met & (F.col("level") == level)
            matching.append(F.when(met, F.lit(alert)))
        rows = request.pins.read("aggregates", targets).where(F.col("block") == name)
        # A null condition is not met.
        rows = rows.withColumn("alert", F.explode(F.array_compact(F.array(*matching))))
        tasks.append(BlockTask(name, rows.select(*quoted(blocks[name].schema("alerts").names))))
    return StepResult(tasks)
