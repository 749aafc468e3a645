"""What fills the frames of an hour: rows of a log between their ends, or of its past, counted and summed.

An hour fills the frames that it tells of, each fragment as a whole: so a fill depends on its frame's row
and on the hours that it reaches, and late ones make it anew."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transom.core.intervals import HOUR_LENGTH, merge_hours, micros
from transom.engine.hours import quoted
from transom.features.fills.between_join import FROM, TO, aggregate_between
from transom.features.fills.checks import counted_again
from transom.features.fills.resolve import FillBlock
from transom.features.frames.combine import reduce_values
from transom.features.frames.source_rows import read_source, rows_of, steps_column
from transom.features.frames.sources import TIME
from transom.features.frames.spec import Combination
from transom.ledger.stage import BlockTask, StepRequest, StepResult

SECOND = 1_000_000


def fills_of(request: StepRequest, blocks: Mapping[str, FillBlock]) -> StepResult:
    """What fills the frames of every fill's target hours."""
    shares, rows = [], {}
    for name, targets in request.targets.items():
        block = blocks[name]
        due = block.hours_of(targets) & request.rows.get(block.source.table[1:], {}).keys()
        frames = request.pins.read("frames", targets).where(F.col("block") == block.frame.name)
        stretches = _periods(frames, block, due)
        rows[name] = _rows(request, block, stretches, due)
        shares.append(BlockTask(name, _fills(block, stretches, rows[name], due)))

    def metrics(told: DataFrame) -> list[DataFrame]:
        return [counted_again(told, some, blocks[name]) for name, some in rows.items()]

    return StepResult(shares, metrics)


def _periods(frames: DataFrame, block: FillBlock, due: Iterable[datetime]) -> DataFrame:
    """The stretch that is looked at for each row of a frame and each shift, in microseconds."""
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
    stretches = moved.withColumn(FROM, F.greatest("__whole", F.col(TO) - F.lit(block.longest)))
    return stretches.withColumn("__covered", _covered(due))


def _rows(request: StepRequest, block: FillBlock, stretches: DataFrame, due: Iterable[datetime]) -> DataFrame:
    """What may fill some stretches: the columns of `by`, the time, and what is measured in whole steps."""
    told = stretches.agg(F.min(FROM), F.max(TO)).first()
    low, high = (0, 0) if told is None or told[0] is None else told
    near = {hour for hour in due if low - HOUR_LENGTH < micros(hour) < high}
    measured = dict.fromkeys(column for _, column in block.measures.values())
    table = read_source(block.source, request.pins, near)
    rows = rows_of(block.source, table, block.join_on, _read(block), measured)
    if block.where is not None:
        rows = rows.where(F.expr(block.where))
    return rows.select(*quoted(block.join_on), TIME, *(F.col(steps_column(column)) for column in measured))


def _fills(block: FillBlock, stretches: DataFrame, rows: DataFrame, due: Iterable[datetime]) -> DataFrame:
    how: dict[str, tuple[str, str | None]] = {"rows_matched": ("count", None)}
    how |= {name: (function, steps_column(column)) for name, (function, column) in block.measures.items()}
    stretches = stretches.withColumn("__apart", F.lit(False))
    if block.combine is not None:
        stretches = stretches.unionByName(_disjoint_periods(stretches))
    found = aggregate_between(stretches, rows, TIME, block.join_on, how)
    known = F.col("__covered") > 0
    out = found.select(
        "hour",
        "frame_id",
        *quoted(block.frame.key),
        "fragment",
        (F.col("__shift") / SECOND).cast("double").alias("shift_s"),
        F.timestamp_micros("__whole").alias("start_time"),
        F.timestamp_micros(TO).alias("end_time"),
        # Where nothing is known, no rows are no zero.
        F.when(known, F.col("rows_matched")).alias("rows_matched"),
        F.col("__covered").alias("coverage"),
        F.when((F.col("__state") == "final") & _is_readable(due), "final")
        .otherwise("partial")
        .alias("state"),
        *(_in_unit(block, name).alias(name) for name in block.measures),
        "__apart",
    )
    told = out.where(~F.col("__apart")).drop("__apart")
    return told if block.combine is None else told.unionByName(_combine_shifts(out, block, block.combine))


def _disjoint_periods(stretches: DataFrame) -> DataFrame:
    """The stretches of all shifts of a row of a frame that are covered, each less what an earlier one has: by
    them a row counts once."""
    of_row = Window.partitionBy("hour", "frame_id", "fragment").orderBy(FROM, TO)
    earlier = F.max(TO).over(of_row.rowsBetween(Window.unboundedPreceding, -1))
    covered = stretches.where(F.col("__covered") >= 1)
    cut = F.least(TO, F.greatest(FROM, F.coalesce(earlier, FROM)))
    return covered.withColumns({FROM: cut, "__apart": F.lit(True)})


def _read(block: FillBlock) -> list[str]:
    """The columns that the condition may read."""
    if block.where is None:
        return []
    over = block.source.over
    return list(block.source.fields) if over is None else list(over.measures)


def _covered(due: Iterable[datetime]) -> Column:
    """The share of a stretch that lies in hours that stand."""
    inside = [
        F.greatest(
            F.lit(0),
            F.least(F.col(TO), F.lit(micros(one.end))) - F.greatest(FROM, F.lit(micros(one.start))),
        )
        for one in merge_hours(due)
    ]
    total = reduce(Column.__add__, inside, F.lit(0))
    return total.cast("double") / (F.col(TO) - F.col("__whole"))


def _is_readable(due: Iterable[datetime]) -> Column:
    """Whether the last hour of a stretch stands."""
    last = F.col(TO) - 1
    inside = [
        (last >= F.lit(micros(one.start))) & (last < F.lit(micros(one.end))) for one in merge_hours(due)
    ]
    return reduce(Column.__or__, inside, F.lit(False))


def _in_unit(block: FillBlock, name: str) -> Column:
    """A measure in its own unit, of whole steps."""
    function, column = block.measures[name]
    unit = block.source.unit(column)
    up, down = unit.step
    if unit.is_whole and function != "mean":
        return F.col(f"`{name}`").cast(block.kinds[name])
    return (F.col(f"`{name}`").cast("double") * F.lit(float(up)) / F.lit(float(down))).cast(block.kinds[name])


def _combine_shifts(rows: DataFrame, block: FillBlock, take: Combination) -> DataFrame:
    """One row of all shifts of a row of a frame: of those that are covered whole."""
    whole, own = F.col("coverage") >= 1, ~F.col("__apart")
    keys = ["hour", "frame_id", *block.frame.key, "fragment"]
    measured = {name: F.collect_list(F.when(own & whole, F.col(f"`{name}`"))) for name in block.kinds}
    return rows.groupBy(*quoted(keys)).agg(
        F.lit(None).cast("double").alias("shift_s"),
        F.min(F.when(own, F.col("start_time"))).alias("start_time"),
        F.max(F.when(own, F.col("end_time"))).alias("end_time"),
        F.sum(F.when(~own, F.col("rows_matched"))).alias("rows_matched"),
        (F.count_if(own & whole) / F.count_if(own)).alias("coverage"),
        F.when(F.bool_and(F.col("state") == "final"), "final").otherwise("partial").alias("state"),
        *(
            reduce_values(F.array_sort(values), take).cast(block.kinds[name]).alias(name)
            for name, values in measured.items()
        ),
    )
