"""The table `granules`: events of an hour, aggregated by key and granule with Spark's operators."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transom.core.exact_sums import MAX_EXACT_SUM
from transom.engine.hours import granule, hours_of, quoted, read_events
from transom.features.aggregates.algorithm.distinct_count import BITS, SIZE
from transom.features.aggregates.output_columns import hash_column
from transom.features.aggregates.resolve import AggregateBlock
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.storage.store import in_hours


def select_events(
    events: DataFrame, block: AggregateBlock, targets: Sequence[datetime], hours: Sequence[datetime]
) -> DataFrame:
    """Return the events of `hours` that a block counts in its target hours."""
    if list(targets) != list(hours):
        events = events.where(in_hours(targets))
    return events if block.where is None else events.where(F.expr(block.where))


def granules_of(request: StepRequest, blocks: Mapping[str, AggregateBlock]) -> StepResult:
    """Return the granules of the target hours."""
    hours = hours_of(request)
    computed = [blocks[name] for name in request.targets]
    columns = {name for of in computed for name in ("event_time", *of.key, *of.units, *of.distinct.values())}
    events = read_events(request.pins, hours, columns, *(of.where for of in computed))
    selected = {
        name: select_events(events, blocks[name], targets, hours) for name, targets in request.targets.items()
    }
    tasks = []
    for name, rows in selected.items():
        block = blocks[name]
        for column, unit in block.units.items():
            up, down = unit.step
            units = F.col(f"`{column}`").cast("double") * down / up
            exact = F.col(f"`{column}`") if unit.is_whole else F.rint(units).cast("bigint")
            rows = rows.withColumn(f"__{column}", exact)
        by = [F.col("hour"), granule(block.base), *quoted(block.key)]
        grouped = rows.groupBy(*by).agg(F.count("*").alias("records"), *_sums(block))
        for column in sorted(set(block.distinct.values())):
            grouped = with_hashes(grouped, rows, block, column)
        tasks.append(BlockTask(name, grouped))

    # A check compares granules with the number of events. For a block without `where`, the ledger has it.
    published = request.rows.get(("events", "events"))
    known = {
        (name, hour): {"matching_events": published.get(hour, 0)}
        for name, targets in request.targets.items()
        if blocks[name].where is None and published is not None
        for hour in targets
    }

    def matching(_: object) -> list[DataFrame]:
        return [
            rows.groupBy("hour").agg(F.count("*").alias("matching_events")).withColumn("block", F.lit(name))
            for name, rows in selected.items()
            if blocks[name].where is not None or published is None
        ]

    return StepResult(tasks, matching, precomputed_metrics=known)


def _sums(block: AggregateBlock) -> Iterator[Column]:
    for column in block.units:
        value = F.col(f"`__{column}`")
        values, minimum, maximum = F.count(value), F.min(value), F.max(value)
        # The rule of `ColumnSummary.exact`. A sum that breaks it depends on the order of additions.
        largest = F.greatest(F.abs(minimum.cast("double")), F.abs(maximum.cast("double")))
        exact = largest * values < F.lit(float(MAX_EXACT_SUM))
        yield values.alias(f"values_{column}")
        yield F.when(exact, F.try_sum(value)).alias(f"sum_{column}")
        yield minimum.alias(f"min_{column}")
        yield maximum.alias(f"max_{column}")


def with_hashes(granules: DataFrame, events: DataFrame, block: AggregateBlock, column: str) -> DataFrame:
    """Add the smallest hashes of a column's values, as `algorithm.distinct_count` needs them.

    They are null in a granule without values. Each task drops repeated values before the shuffle.
    """
    names = ["hour", "granule", *block.key]
    # Renamed: both sides of the join are computed from the same events.
    by = [f"__of_{name}" for name in names]
    columns = zip([F.col("hour"), granule(block.base), *quoted(block.key)], by, strict=True)
    # 63 bits, none of which is 0.
    positive = F.xxhash64(F.col(f"`{column}`")).bitwiseAND(F.lit(2**BITS - 1))
    hash_ = F.greatest(positive, F.lit(1).cast("bigint")).alias("__hash")
    values = events.where(F.col(f"`{column}`").isNotNull())
    hashes = values.select(*(part.alias(name) for part, name in columns), hash_).distinct()
    rank = F.row_number().over(Window.partitionBy(*quoted(by)).orderBy("__hash"))
    smallest = hashes.withColumn("__rank", rank).where(F.col("__rank") <= SIZE + 1)
    lists = F.sort_array(F.collect_list("__hash")).alias(hash_column(column))
    # Null-safe, as a key may be null.
    pairs = zip(quoted(names), quoted(by), strict=True)
    same = reduce(and_, (left.eqNullSafe(right) for left, right in pairs))
    return granules.join(smallest.groupBy(*quoted(by)).agg(lists), same, "left").drop(*by)
