"""The readings that frames go by: a key's events or granules, one a time, and what conditions say of them."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.core.intervals import MICROSECOND, merge_hours, micros
from transom.engine.hours import granule, quoted
from transom.features.frames.combine import reduce_values
from transom.features.frames.resolve import ResolvedFrames
from transom.features.frames.source_rows import rows_of, steps_column
from transom.features.frames.sources import TIME
from transom.features.frames.validate import BASELINE
from transom.ledger.stage import StepRequest

TURN = "__turn"
ORDER = ("__time", "__place")
"""By which records of one turn are ordered, where one of them is picked; the place is file and line."""
LINES = 31
"""Bits of a place that count lines."""


def order_of(block: ResolvedFrames) -> tuple[str, ...]:
    """The columns of `ORDER` that tell records of one turn apart."""
    return ORDER if block.framing.every > 1 else ORDER[1:]


def readings_of(request: StepRequest, block: ResolvedFrames, targets: Sequence[datetime]) -> DataFrame:
    """The readings in some hours: the key, `time`, `value`, `lacking`, `holds`, `starts`, `ends`, and `ORDER`
    where the first or the last of several at one time is to be picked."""
    _, of, table = block.source.table
    standing = request.rows.get((of, table), {})
    rows = _read(request, block, set(targets) & standing.keys())
    if block.baseline is not None:
        rows = _with_baseline(request, block, rows, targets)
    met = {
        field: F.expr(block.conditions[field]) if field in block.conditions else F.lit(default)
        for field, default in (("where", True), ("starts_when", True), ("ends_when", False))
    }
    value = F.lit(None).cast("bigint") if block.value is None else F.col(steps_column(block.value))
    missing = (
        met["where"].isNull()
        if "where" in block.conditions
        else value.isNull() & F.lit(block.value is not None)
    )
    picked = quoted(ORDER) if block.picks else []
    return rows.select(
        *quoted(block.key),
        F.unix_micros(TURN).alias("time"),
        value.alias("value"),
        missing.alias("lacking"),
        *(
            F.coalesce(met[field], F.lit(False)).alias(name)
            for field, name in (("where", "holds"), ("starts_when", "starts"), ("ends_when", "ends"))
        ),
        *picked,
    )


def _read(request: StepRequest, block: ResolvedFrames, hours: Collection[datetime]) -> DataFrame:
    """The columns that are read, of some hours, with the turn that a reading stands for."""
    table = request.pins.read(block.source.table[2], set(hours))
    more = ("source_id", "source_line") if block.picks else ()
    steps = block.read if block.on_duplicate_time in ("sum", "mean") else filter(None, [block.value])
    rows = rows_of(block.source, table, block.key, (*block.read, *more), steps)
    if "only" in block.conditions:
        rows = rows.where(F.expr(block.conditions["only"]))
    if block.source.over is not None:
        return rows.withColumn(TURN, F.col(TIME))
    if block.picks:
        # Files have no order but what some function of them gives; lines do, within a file.
        file, line = F.crc32(F.col("source_id").cast("binary")), F.least("source_line", F.lit(2**LINES - 1))
        order = (F.unix_micros(TIME), file * F.lit(2**LINES) + line)
        return rows.withColumns({TURN: granule(block.framing.every), **dict(zip(ORDER, order, strict=True))})
    together = {name: _combine_values(block, name) for name in block.read}
    if block.value is not None:
        together[steps_column(block.value)] = _combine_steps(block, block.value)
    turn = granule(block.framing.every).alias(TURN)
    return rows.groupBy(*quoted(block.key), turn).agg(
        F.min(TIME).alias(TIME), *(column.alias(name) for name, column in together.items())
    )


def _combine_values(block: ResolvedFrames, name: str) -> Column:
    """What is made of several values of a column at one time."""
    if block.on_duplicate_time in ("min", "max"):
        return getattr(F, block.on_duplicate_time)(f"`{name}`")  # type: ignore[no-any-return]
    (up, down), steps = block.source.unit(name).step, _combine_steps(block, name)
    return steps if block.source.unit(name).is_whole else steps * F.lit(float(up)) / F.lit(float(down))


def _combine_steps(block: ResolvedFrames, name: str) -> Column:
    steps = F.col(steps_column(name))
    if block.on_duplicate_time in ("min", "max"):
        return getattr(F, block.on_duplicate_time)(steps)  # type: ignore[no-any-return]
    # Sums of doubles go by their order, those of whole steps do not.
    total = F.try_sum(steps)
    return (
        F.rint(total.cast("double") / F.count(steps)).cast("bigint")
        if block.on_duplicate_time == "mean"
        else total
    )


def _with_baseline(
    request: StepRequest, block: ResolvedFrames, rows: DataFrame, targets: Sequence[datetime]
) -> DataFrame:
    """Rows with what is made of the readings at the same times of earlier days, where there are any."""
    assert block.baseline is not None
    _, of, table = block.source.table
    standing = request.rows.get((of, table), {}).keys()
    earlier = []
    for shift in block.shifts:
        ago = shift * MICROSECOND
        hours = {
            h
            for h in standing
            for stretch in merge_hours(targets)
            if stretch.start - ago - _HOUR < h < stretch.end - ago
        }
        moved = F.timestamp_micros(F.unix_micros(TURN) + F.lit(shift)).alias(TURN)
        value = F.col(f"`{block.baseline.value}`").cast("double").alias("__then")
        order = quoted(ORDER) if block.picks else []
        turns = _read(request, block, hours).select(*quoted(block.key), moved, value, *order)
        earlier.append(_picked(turns, block) if block.picks else turns)
    then = reduce(DataFrame.unionByName, earlier)
    keys = [*block.key, TURN]
    found = then.groupBy(*quoted(keys)).agg(F.array_sort(F.collect_list("__then")).alias("__then"))
    rows = rows.join(found, keys, "left")
    values = F.coalesce("__then", F.array().cast("array<double>"))
    if block.baseline.missing == "zero":
        asked = sum((_was_requested(shift, standing).cast("int") for shift in block.shifts), F.lit(0))
        zeros = F.array_repeat(F.lit(0.0), asked - F.size(values))
        values = F.array_sort(F.concat(values, zeros))
    return rows.withColumn(BASELINE, reduce_values(values, block.baseline.combine)).drop("__then")


def _picked(turns: DataFrame, block: ResolvedFrames) -> DataFrame:
    """Of several records of a key in one turn the one that is its reading."""
    pick = F.min_by if block.on_duplicate_time == "first" else F.max_by
    return turns.groupBy(*quoted(block.key), TURN).agg(
        pick("__then", F.struct(*quoted(ORDER), "__then")).alias("__then")
    )


def _was_requested(shift: int, hours: Collection[datetime]) -> Column:
    """Whether somebody has asked for the hour of a reading, so long ago."""
    time = F.unix_micros(TURN) - F.lit(shift)
    inside = [(time >= micros(s.start)) & (time < micros(s.end)) for s in merge_hours(hours)]
    return reduce(Column.__or__, inside, F.lit(False))


_HOUR = 3600 * 10**6 * MICROSECOND
