"""Granules of aggregates: the events of an hour by key and base granule, by Spark's own operators."""

from collections.abc import Iterator, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.core.exact_sums import MAX_EXACT_SUM
from transom.engine.hours import granule, hours_of, quoted
from transom.features.aggregates.distinct_hashes import with_hashes
from transom.features.aggregates.events import select_events
from transom.features.aggregates.resolve import AggregateBlock
from transom.ledger.stage import BlockTask, StepRequest, StepResult


def granules_of(request: StepRequest, blocks: Mapping[str, AggregateBlock]) -> StepResult:
    """The base granules of every block's target hours."""
    hours = hours_of(request)
    events = request.pins.read("events", hours)
    by_block = []
    for name, targets in request.targets.items():
        block = blocks[name]
        events_of = select_events(events, block, targets, hours)
        for column, unit in block.units.items():
            up, down = unit.step
            units = F.col(f"`{column}`").cast("double") * down / up
            exact = F.col(f"`{column}`") if unit.is_whole else F.rint(units).cast("bigint")
            events_of = events_of.withColumn(f"__{column}", exact)
        grouped = events_of.groupBy("hour", granule(block.base), *quoted(block.key)).agg(
            F.count("*").alias("records"), *_sums(block)
        )
        for column in block.hashed:
            grouped = with_hashes(grouped, events_of, block, column)
        by_block.append(BlockTask(name, grouped))

    # What a block takes of an hour is counted apart from the granules, and needs no look where it is all.
    standing = request.rows.get(("events", "events"))
    whole = [name for name in request.targets if blocks[name].where is None and standing is not None]
    known = {
        (name, hour): {"matching_events": (standing or {}).get(hour, 0)}
        for name in whole
        for hour in request.targets[name]
    }

    def matching(_: DataFrame) -> list[DataFrame]:
        return [
            select_events(events, blocks[name], targets, hours)
            .groupBy("hour")
            .agg(F.count("*").alias("matching_events"))
            .withColumn("block", F.lit(name))
            for name, targets in request.targets.items()
            if name not in whole
        ]

    return StepResult(by_block, matching, known)


def _sums(block: AggregateBlock) -> Iterator[Column]:
    for column in block.units:
        value = F.col(f"`__{column}`")
        values, least, most = F.count(value), F.min(value), F.max(value)
        # As `ColumnSummary.exact` has it. Where the rule is broken, what comes out of the additions, and
        # whether anything does, goes by their order.
        largest = F.greatest(F.abs(least.cast("double")), F.abs(most.cast("double")))
        exact = largest * values < F.lit(float(MAX_EXACT_SUM))
        yield values.alias(f"values_{column}")
        yield F.when(exact, F.try_sum(value)).alias(f"sum_{column}")
        yield least.alias(f"min_{column}")
        yield most.alias(f"max_{column}")
