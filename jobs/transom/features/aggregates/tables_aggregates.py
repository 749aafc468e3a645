"""Reports of aggregates: windows over granules, by one vectorised pass over each partition of keys."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transom.engine.check_builders import Declared, declared, judged_block, row_meets
from transom.engine.hours import extend_back, incomplete_hours, quoted, to_ranges
from transom.features.aggregates.checks import measures_of_columns
from transom.features.aggregates.output_columns import report_types
from transom.features.aggregates.reports import ReportBuilder
from transom.features.aggregates.resolve import AggregateBlock
from transom.features.aggregates.spec import Aggregation
from transom.ledger.stage import BlockTask, StepRequest, StepResult, rows_where
from transom.spec.stream import Stream


def reports_of(request: StepRequest, blocks: Mapping[str, AggregateBlock], stream: Stream) -> StepResult:
    """The windows that report in every block's target hours."""
    by_block = []
    for name, targets in request.targets.items():
        block = blocks[name]
        rows = request.pins.read("granules", extend_back(targets, block.reach)).where(F.col("block") == name)
        rows = rows.select("granule", *quoted(block.key), "records", *block.state_columns())
        # One key's granules have to meet in one pass, in whatever order: numpy sorts them there.
        rows = rows.repartition(*quoted(block.key)) if block.key else rows.repartition(1)
        made = ReportBuilder(block, to_ranges(targets), incomplete_hours(request, name))
        by_block.append(BlockTask(name, rows, made))

    def covering(rows: DataFrame) -> list[DataFrame]:
        rules = declared(stream, "aggregates")
        return [_wide_beside_narrow(rows, measures_of_columns(stream)), *_shares(rules, rows, stream)]

    return StepResult(by_block, covering)


def _wide_beside_narrow(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """How the levels' windows that end together fit each other, by block and hour.

    `wide_short_of_narrow` is by how many records, at most, a level holds fewer than the one below;
    `narrow_beyond_wide` is how many levels have an extreme that the one above does not reach. Both over all
    keys of a window's end: a key that a narrow window holds, a wide one holds too.

    Args:
        names: what the reports have `min_*` and `max_*` of.
    """
    extremes = [
        extreme(f"`{column}`").alias(column)
        for name in names
        for extreme, column in ((F.min, f"min_{name}"), (F.max, f"max_{name}"))
    ]
    totals = rows.groupBy("block", "hour", "window_end", "level").agg(
        F.sum("count").alias("records"), *extremes
    )
    of_one_end = Window.partitionBy("block", "hour", "window_end").orderBy("level")

    def below(column: str) -> Column:
        return F.lag(f"`{column}`").over(of_one_end)

    # Null is what a block does not measure, a window without a value, or what is below the finest level.
    beyond = [
        F.coalesce(
            (below(f"min_{name}") < F.col(f"`min_{name}`")) | (below(f"max_{name}") > F.col(f"`max_{name}`")),
            F.lit(False),
        )
        for name in names
    ]
    compared = totals.select(
        "block",
        "hour",
        F.greatest(F.lit(0), below("records") - F.col("records")).alias("short"),
        reduce(or_, beyond, F.lit(False)).cast("bigint").alias("beyond"),
    )
    return compared.groupBy("block", "hour").agg(
        F.max("short").alias("wide_short_of_narrow"), F.sum("beyond").alias("narrow_beyond_wide")
    )


def _shares(rules: Sequence[Declared], rows: DataFrame, stream: Stream) -> list[DataFrame]:
    """The shares of reports that meet declared conditions, by block and hour."""
    frames = []
    for rule in rules:
        if rule.every is not None:
            block = judged_block(rule.block, stream.blocks(Aggregation))
            share = F.expr(rows_where(row_meets(rule.every, report_types(stream, block)))) / F.count("*")
            chosen = rows.where(F.col("block") == block)
            frames.append(chosen.groupBy("block", "hour").agg(share.alias(rule.metric)))
    return frames
