"""The rows and aggregates that fill the frames of an hour.

An hour fills the frames that it reports, each fragment as a whole. So a fill depends on its frame's row and
on the hours that it reads. Late events of these hours make it stale.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transom.core.intervals import HOUR_LENGTH, merge_hours, micros
from transom.engine.hours import quoted
from transom.features.fills.between_join import FROM, TO, aggregate_between
from transom.features.fills.check_metrics import counted_again
from transom.features.fills.resolve import FillBlock
from transom.features.frames.source_rows import in_hours, in_unit, reduce_values, rows_of, steps_column
from transom.features.frames.spec import Combination
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.storage.external_source import TIME

SECOND = 1_000_000


def fills_of(request: StepRequest, blocks: Mapping[str, FillBlock]) -> StepResult:
    """Return the fills of every block's target hours."""
    tasks, rows = [], {}
    for name, targets in request.targets.items():
        block = blocks[name]
        reported = request.rows.get((block.frame.name, "frames"), {})
        if not any(reported.get(hour) for hour in targets):
            continue
        required = block.hours_of(targets) & request.rows.get(block.source.table[1:], {}).keys()
        frames = request.pins.read("frames", targets).where(F.col("block") == block.frame.name)
        fills, rows[name] = _fills(request, block, _periods(frames, block, required), required)
        tasks.append(BlockTask(name, fills))

    def metrics(read: Callable[[], DataFrame]) -> list[DataFrame]:
        return [counted_again(read(), of_block, blocks[name]) for name, of_block in rows.items()]

    return StepResult(tasks, metrics, least_rows=1)


def _periods(frames: DataFrame, block: FillBlock, required: Iterable[datetime]) -> DataFrame:
    """Return the period to fill, in microseconds, for each row of a frame and each shift."""
    end = F.unix_micros("last_time") + F.lit(block.frame.framing.every + block.lag)
    shifted = frames.select(
        "hour",
        "frame_id",
        *quoted(block.frame.key),
        "fragment",
        F.col("state").alias("__state"),
        (F.unix_micros("start_time") - F.lit(block.lead)).alias("__whole"),
        end.alias(TO),
        F.explode(F.array(*map(F.lit, block.shifts))).alias("__shift"),
    )
    moved = shifted.withColumns({name: F.col(name) - F.col("__shift") for name in ("__whole", TO)})
    periods = moved.withColumn(FROM, F.greatest("__whole", F.col(TO) - F.lit(block.longest)))
    return periods.withColumn("__covered", _coverage(required))


def _rows(
    request: StepRequest, block: FillBlock, required: Iterable[datetime], low: int, high: int
) -> DataFrame:
    """Return the rows of the hours in `[low, high)`: the columns of `join_on`, the time, and the measured
    columns in whole steps."""
    source, key = block.source, block.join_on
    near = {hour for hour in required if low - HOUR_LENGTH < micros(hour) < high}
    if source.filler is None:
        table = request.pins.read(source.table[2], near)
    else:
        table = request.pins.read_filler(source.filler, near)
    measured = dict.fromkeys(column for _, column in block.measures.values())
    if block.where is None:
        rows = rows_of(source, table, key, (), measured)
    else:
        readable = source.fields if source.over is None else source.over.measures
        rows = rows_of(source, table, key, readable, measured).where(F.expr(block.where))
    return rows.select(*quoted(key), TIME, *map(steps_column, measured))


def _fills(
    request: StepRequest, block: FillBlock, periods: DataFrame, required: Iterable[datetime]
) -> tuple[DataFrame, DataFrame]:
    """Return the fills of periods, and the rows that fill them."""
    read: list[DataFrame] = []

    def rows(low: int, high: int) -> DataFrame:
        read.append(_rows(request, block, required, low, high))
        return read[0]

    how: dict[str, tuple[str, str | None]] = {"rows_matched": ("count", None)}
    how |= {name: (function, steps_column(column)) for name, (function, column) in block.measures.items()}
    periods = periods.withColumn("__apart", F.lit(False))
    if block.combine is not None:
        periods = periods.unionByName(_disjoint_periods(periods))
    joined = aggregate_between(periods, rows, TIME, block.join_on, how, lambda: request.pins.are_few)
    is_final = (F.col("__state") == "final") & in_hours(F.col(TO) - 1, required)
    fills = joined.select(
        "hour",
        "frame_id",
        *quoted(block.frame.key),
        "fragment",
        (F.col("__shift") / SECOND).cast("double").alias("shift_s"),
        F.timestamp_micros("__whole").alias("start_time"),
        F.timestamp_micros(TO).alias("end_time"),
        # Without coverage the number of rows is unknown, not 0.
        F.when(F.col("__covered") > 0, F.col("rows_matched")).alias("rows_matched"),
        F.col("__covered").alias("coverage"),
        F.when(is_final, "final").otherwise("partial").alias("state"),
        *(
            in_unit(F.col(f"`{name}`"), block.source.unit(column)).cast(block.kinds[name]).alias(name)
            for name, (_, column) in block.measures.items()
        ),
        "__apart",
    )
    own = fills.where(~F.col("__apart")).drop("__apart")
    if block.combine is not None:
        own = own.unionByName(_combine_shifts(fills, block, block.combine))
    return own, read[0]


def _disjoint_periods(periods: DataFrame) -> DataFrame:
    """Return the covered periods of all shifts of a row of a frame, each without its overlap with earlier
    ones, so that a row counts once."""
    of_row = Window.partitionBy("hour", "frame_id", "fragment").orderBy(FROM, TO)
    earlier = F.max(TO).over(of_row.rowsBetween(Window.unboundedPreceding, -1))
    covered = periods.where(F.col("__covered") >= 1)
    cut = F.least(TO, F.greatest(FROM, F.coalesce(earlier, FROM)))
    return covered.withColumns({FROM: cut, "__apart": F.lit(True)})


def _coverage(required: Iterable[datetime]) -> Column:
    """Return the share of a period that is in some hours."""
    covered = F.lit(0)
    for run in merge_hours(required):
        end, start = F.least(TO, F.lit(micros(run.end))), F.greatest(FROM, F.lit(micros(run.start)))
        covered = covered + F.greatest(F.lit(0), end - start)
    return covered.cast("double") / (F.col(TO) - F.col("__whole"))


def _combine_shifts(fills: DataFrame, block: FillBlock, combine: Combination) -> DataFrame:
    """Return one row for all shifts of a row of a frame, with the values of those with a coverage of 1."""
    whole, own = F.col("coverage") >= 1, ~F.col("__apart")
    keys = ["hour", "frame_id", *block.frame.key, "fragment"]
    measured = {name: F.collect_list(F.when(own & whole, F.col(f"`{name}`"))) for name in block.kinds}
    return fills.groupBy(*quoted(keys)).agg(
        F.lit(None).cast("double").alias("shift_s"),
        F.min(F.when(own, F.col("start_time"))).alias("start_time"),
        F.max(F.when(own, F.col("end_time"))).alias("end_time"),
        F.sum(F.when(~own, F.col("rows_matched"))).alias("rows_matched"),
        (F.count_if(own & whole) / F.count_if(own)).alias("coverage"),
        F.when(F.bool_and(F.col("state") == "final"), "final").otherwise("partial").alias("state"),
        *(
            reduce_values(F.array_sort(values), combine).cast(block.kinds[name]).alias(name)
            for name, values in measured.items()
        ),
    )
