"""The readings that frames go by: a key's events or granules, one a time, and what conditions say of them."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.intervals import ranges
from transom.lake.stage import Request
from transom.stages.blocks import MICROSECOND, Block
from transom.stages.framings import MEAN_STEPS, FrameBlock
from transom.stages.slices import granule, micros, quoted
from transom.stream.frame_columns import BASELINE

TIME, TURN = "event_time", "__turn"
ORDER = ("__time", "__file", "__line")
"""By which records at one time are ordered, where one of them is picked."""


def readings_of(request: Request, block: FrameBlock, targets: Sequence[datetime]) -> DataFrame:
    """The readings in some hours: the key, `time`, `value`, `lacking`, `holds`, `starts`, `ends`, and `ORDER`
    where the first or the last of several at one time is to be picked."""
    _, of, table = block.table
    standing = request.rows.get((of, table), {})
    rows = _read(request, block, set(targets) & standing.keys())
    if block.baseline is not None:
        rows = _with_baseline(request, block, rows, targets)
    met = {
        field: F.expr(block.conditions[field]) if field in block.conditions else F.lit(default)
        for field, default in (("where", True), ("starts_when", True), ("ends_when", False))
    }
    value = F.lit(None).cast("bigint") if block.value is None else _units(block)
    missing = (
        met["where"].isNull()
        if "where" in block.conditions
        else value.isNull() & F.lit(block.value is not None)
    )
    picked = quoted(ORDER) if block.ties in ("first", "last") else []
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


def _read(request: Request, block: FrameBlock, hours: Collection[datetime]) -> DataFrame:
    """The columns that are read, of some hours, with the time that a reading stands at."""
    rows = request.pins.read(block.table[2], set(hours))
    return _of_events(rows, block) if block.over is None else _of_granules(rows, block, block.over)


def _of_events(events: DataFrame, block: FrameBlock) -> DataFrame:
    if "only" in block.conditions:
        events = events.where(F.expr(block.conditions["only"]))
    turn = granule(block.framing.every).alias(TURN)
    if block.ties in ("first", "last"):
        file = F.conv(F.substring("source_id", 1, 15), 16, 10).cast("bigint")
        order = (F.unix_micros(TIME), file, F.col("source_line"))
        named = (column.alias(name) for column, name in zip(order, ORDER, strict=True))
        return events.select(*quoted(block.key), TIME, turn, *quoted(block.read), *named)
    return events.groupBy(*quoted(block.key), turn).agg(
        F.min(TIME).alias(TIME), *(_together(block, name).alias(name) for name in block.read)
    )


def _together(block: FrameBlock, name: str) -> Column:
    """What is made of several values of a column at one time."""
    column, (up, down) = F.col(f"`{name}`"), block.units[name].step
    if block.ties in ("min", "max"):
        return getattr(F, block.ties)(column)  # type: ignore[no-any-return]
    # Sums of doubles go by their order, those of whole steps do not.
    steps = column if block.units[name].whole else F.rint(column.cast("double") * down / up).cast("bigint")
    total = F.try_sum(steps)
    if block.ties == "mean":
        total = F.rint(total.cast("double") / F.count(steps)).cast("bigint")
    return total if block.units[name].whole else total * F.lit(float(up)) / F.lit(float(down))


def _of_granules(granules: DataFrame, block: FrameBlock, of: Block) -> DataFrame:
    rows = granules.where(F.col("block") == of.name).select(
        *quoted(block.key),
        F.col("granule").alias(TIME),
        F.col("granule").alias(TURN),
        *(_measure(of, name).alias(name) for name in block.read),
        *([_steps(of, block.value).alias("__value")] if block.value else []),
    )
    return rows.where(F.expr(block.conditions["only"])) if "only" in block.conditions else rows


def _measure(of: Block, name: str) -> Column:
    """A measure of a granule, as conditions see it."""
    function, column = of.measures[name]
    if column is None:
        return F.col("records")
    up, down = of.units[column].step
    if function == "mean":
        return F.col(f"sum_{column}") * F.lit(float(up)) / F.lit(float(down)) / F.col(f"values_{column}")
    figure = F.col(f"{function}_{column}")
    return figure if of.units[column].whole else figure * F.lit(float(up)) / F.lit(float(down))


def _steps(of: Block, name: str) -> Column:
    """The same in whole steps."""
    function, column = of.measures[name]
    if column is None:
        return F.col("records")
    if function == "mean":
        mean = F.col(f"sum_{column}").cast("double") / F.col(f"values_{column}")
        return F.rint(mean * F.lit(float(MEAN_STEPS))).cast("bigint")
    return F.col(f"{function}_{column}")


def _units(block: FrameBlock) -> Column:
    if block.over is not None:
        return F.col("__value")
    up, down = block.unit.step
    column = F.col(f"`{block.value}`")
    return column if block.unit.whole else F.rint(column.cast("double") * down / up).cast("bigint")


def _with_baseline(
    request: Request, block: FrameBlock, rows: DataFrame, targets: Sequence[datetime]
) -> DataFrame:
    """Rows with what is made of the readings at the same times of earlier days, where there are any."""
    assert block.baseline is not None
    _, of, table = block.table
    standing = request.rows.get((of, table), {}).keys()
    earlier = []
    for shift in block.shifts:
        ago = shift * MICROSECOND
        hours = {
            h
            for h in standing
            for stretch in ranges(targets)
            if stretch.start - ago - _HOUR < h < stretch.end - ago
        }
        moved = F.timestamp_micros(F.unix_micros(TURN) + F.lit(shift))
        earlier.append(
            _read(request, block, hours).select(
                *quoted(block.key),
                moved.alias(TURN),
                F.col(f"`{block.baseline.of}`").cast("double").alias("__then"),
            )
        )
    then = reduce(DataFrame.unionByName, earlier)
    keys = [*block.key, TURN]
    found = then.groupBy(*quoted(keys)).agg(F.array_sort(F.collect_list("__then")).alias("__then"))
    rows = rows.join(found, keys, "left")
    values = F.coalesce("__then", F.array().cast("array<double>"))
    if block.baseline.missing == "zero":
        asked = sum((_asked(shift, standing).cast("int") for shift in block.shifts), F.lit(0))
        zeros = F.array_repeat(F.lit(0.0), asked - F.size(values))
        values = F.array_sort(F.concat(values, zeros))
    return rows.withColumn(BASELINE, _taken(values, block.baseline.take)).drop("__then")


def _asked(shift: int, hours: Collection[datetime]) -> Column:
    """Whether somebody has asked for the hour of a reading, so long ago."""
    time = F.unix_micros(TURN) - F.lit(shift)
    inside = [(time >= micros(s.start)) & (time < micros(s.end)) for s in ranges(hours)]
    return reduce(Column.__or__, inside, F.lit(False))


def _taken(values: Column, take: str) -> Column:
    """What is made of ordered values."""
    many = F.size(values)
    match take:
        case "min":
            found = F.element_at(values, 1)
        case "max":
            found = F.element_at(values, -1)
        case "mean":
            found = F.aggregate(values, F.lit(0.0), lambda total, value: total + value) / many
        case _:
            low, high = (F.get(values, F.floor((many - one) / 2).cast("int")) for one in (1, 0))
            found = (low + high) / 2
    return F.when(many > 0, found)


_HOUR = 3600 * 10**6 * MICROSECOND
