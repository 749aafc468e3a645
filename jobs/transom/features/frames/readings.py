"""The readings of frames: events or granules of a key, one at a time, with the results of conditions."""

from collections.abc import Collection, Sequence, Set
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.core.intervals import HOUR, MICROSECOND, merge_hours
from transom.engine.hours import granule, quoted
from transom.features.frames.input_columns import BASELINE
from transom.features.frames.resolve import ResolvedFrames
from transom.features.frames.source_rows import in_hours, reduce_values, rows_of, steps_column
from transom.features.frames.sources import TIME
from transom.ledger.stage import StepRequest

TURN, VALUE = "__turn", "__value"
FLAGS = ("__missing", "__holds", "__starts", "__ends")
"""Columns of readings; no column of a key has such a name."""
ORDER = ("__time", "__place")
"""The order of records of one turn, if the first or the last is picked; the place is file and line."""
LINE_BITS = 31
"""Bits of a place that count lines."""


def order_of(block: ResolvedFrames) -> tuple[str, ...]:
    """Return the columns of `ORDER` that distinguish records of one turn."""
    return ORDER if block.framing.every > 1 else ORDER[1:]


def readings_of(request: StepRequest, block: ResolvedFrames, targets: Sequence[datetime]) -> DataFrame:
    """Return the readings of some hours: the key, the time in microseconds as `TURN`, `VALUE`, `FLAGS`, and
    `ORDER` if one of several at one time is picked."""
    rows = _read(request, block, set(targets) & _requested(request, block))
    if block.baseline is not None:
        rows = _with_baseline(request, block, rows, targets)
    value = F.lit(None).cast("bigint") if block.value is None else F.col(steps_column(block.value))
    missing = value.isNull() & F.lit(block.value is not None)
    if "where" in block.conditions:
        missing = F.expr(block.conditions["where"]).isNull()
    flags = [
        F.coalesce(F.expr(block.conditions.get(name, default)), F.lit(False)).alias(flag)
        for flag, name, default in (
            (FLAGS[1], "where", "true"), (FLAGS[2], "starts_when", "true"), (FLAGS[3], "ends_when", "false"),
        )
    ]  # fmt: skip
    picked = quoted(ORDER) if block.picks else []
    time = F.unix_micros(TURN).alias(TURN)
    return rows.select(*quoted(block.key), time, value.alias(VALUE), missing.alias(FLAGS[0]), *flags, *picked)


def _requested(request: StepRequest, block: ResolvedFrames) -> Set[datetime]:
    """Return the requested hours of the readings' table."""
    return request.rows.get(block.source.table[1:], {}).keys()


def _read(request: StepRequest, block: ResolvedFrames, hours: Collection[datetime]) -> DataFrame:
    """Return the columns that are read, of some hours, with the turn of each reading."""
    table = request.pins.read(block.source.table[2], set(hours))
    more = ("source_id", "source_line") if block.picks else ()
    steps = block.read if block.on_duplicate_time in ("sum", "mean") else filter(None, [block.value])
    rows = rows_of(block.source, table, block.key, (*block.read, *more), steps)
    if "only" in block.conditions:
        rows = rows.where(F.expr(block.conditions["only"]))
    if block.source.over is not None:
        return rows.withColumn(TURN, F.col(TIME))
    turn = granule(block.framing.every).alias(TURN)
    if block.picks:
        # Files are ordered by a hash, as they have no order of their own; lines have one within a file.
        file = F.crc32(F.col("source_id").cast("binary"))
        place = file * F.lit(2**LINE_BITS) + F.least("source_line", F.lit(2**LINE_BITS - 1))
        return rows.withColumns({TURN: turn, ORDER[0]: F.unix_micros(TIME), ORDER[1]: place})
    combined = [_combined(block, name).alias(name) for name in block.read]
    if block.value is not None:
        combined.append(_combined(block, block.value, in_steps=True).alias(steps_column(block.value)))
    return rows.groupBy(*quoted(block.key), turn).agg(F.min(TIME).alias(TIME), *combined)


def _combined(block: ResolvedFrames, name: str, in_steps: bool = False) -> Column:
    """Return the combination of several values of a column at one time."""
    steps, unit = F.col(steps_column(name)), block.source.unit(name)
    match block.on_duplicate_time:
        case "min":
            return F.min(steps if in_steps else f"`{name}`")
        case "max":
            return F.max(steps if in_steps else f"`{name}`")
        case "mean":
            combined = F.rint(F.try_sum(steps).cast("double") / F.count(steps)).cast("bigint")
        case _:
            # A sum of doubles depends on their order, one of whole steps does not.
            combined = F.try_sum(steps)
    up, down = (F.lit(float(number)) for number in unit.step)
    return combined if in_steps or unit.is_whole else combined * up / down


def _with_baseline(
    request: StepRequest, block: ResolvedFrames, rows: DataFrame, targets: Sequence[datetime]
) -> DataFrame:
    """Return rows with the combined readings of the same times of earlier days as `BASELINE`."""
    assert block.baseline is not None
    requested, keys, earlier = _requested(request, block), [*block.key, TURN], []
    for shift in block.shifts:
        ago = shift * MICROSECOND
        runs = [(run.start - ago - HOUR, run.end - ago) for run in merge_hours(targets)]
        hours = {hour for hour in requested for start, end in runs if start < hour < end}
        moved = F.timestamp_micros(F.unix_micros(TURN) + F.lit(shift)).alias(TURN)
        value = F.col(f"`{block.baseline.value}`").cast("double").alias("__then")
        order = quoted(ORDER) if block.picks else []
        turns = _read(request, block, hours).select(*quoted(block.key), moved, value, *order)
        if block.picks:
            pick = F.min_by if block.on_duplicate_time == "first" else F.max_by
            picked = pick("__then", F.struct(*order, "__then")).alias("__then")
            turns = turns.groupBy(*quoted(keys)).agg(picked)
        earlier.append(turns)
    then = reduce(DataFrame.unionByName, earlier)
    then = then.groupBy(*quoted(keys)).agg(F.array_sort(F.collect_list("__then")).alias("__then"))
    values = F.coalesce("__then", F.array().cast("array<double>"))
    if block.baseline.missing == "zero":
        times = (F.unix_micros(TURN) - F.lit(shift) for shift in block.shifts)
        expected = sum((in_hours(time, requested).cast("int") for time in times), F.lit(0))
        values = F.array_sort(F.concat(values, F.array_repeat(F.lit(0.0), expected - F.size(values))))
    baseline = reduce_values(values, block.baseline.combine)
    return rows.join(then, keys, "left").withColumn(BASELINE, baseline).drop("__then")
