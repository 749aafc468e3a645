"""The table `frames`: the reports of `open_frames` in the units of the stream file."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from transom.engine.hours import quoted
from transom.features.frames.resolve import ResolvedFrames
from transom.features.frames.tables_open_frames import STATE, TABLE
from transom.ledger.stage import BlockTask, StepRequest, StepResult


def frames_of(request: StepRequest, blocks: Mapping[str, ResolvedFrames]) -> StepResult:
    """Return the reports of every block's target hours."""
    tasks = []
    for name, targets in request.targets.items():
        rows = request.pins.read(TABLE, targets)
        rows = rows.where((F.col("block") == name) & (F.col("row_kind") != STATE))
        tasks.append(BlockTask(name, _to_output(rows, blocks[name])))
    apart = [blocks[name] for name in request.targets if not blocks[name].overlap]
    # Two frames can overlap.
    return StepResult(tasks, (lambda read: [_overlapping(read(), apart)]) if apart else None, least_rows=2)


def _to_output(rows: DataFrame, block: ResolvedFrames) -> DataFrame:
    key = quoted(block.key)
    up, down = map(float, block.unit.step)
    # JSON distinguishes a null from every value, and one column from the next. It has times in milliseconds,
    # so these become numbers of microseconds.
    of_key = [
        F.unix_micros(column) if kind == "timestamp" else column
        for column, kind in zip(key, block.key.values(), strict=True)
    ]
    named = F.struct(F.lit(block.name), F.struct(*of_key), F.unix_micros("first"))
    identity = F.to_json(named, {"ignoreNullFields": "false"})
    mean = F.col("total").cast("double") * up / (F.col("values").cast("double") * down)
    return rows.select(
        "hour",
        F.substring(F.sha2(identity, 256), 1, 32).alias("frame_id"),
        *key,
        F.col("start").alias("start_time"),
        F.col("end").alias("last_time"),
        (F.col("length") / 1_000_000).alias("length_s"),
        "records",
        "missing",
        F.col("new").alias("new_records"),
        "fragment",
        F.col("row_kind").alias("state"),
        (F.col("high").cast("double") * up / down).alias("peak"),
        F.col("peak").alias("peak_time"),
        F.when(F.col("exact") & (F.col("values") > 0), mean).alias("mean"),
    )


def _overlapping(rows: DataFrame, apart: list[ResolvedFrames]) -> DataFrame:
    """Return by block and hour how many frames begin before the previous one ends.

    Args:
        rows: the rows of `frames`.
        apart: the blocks whose frames cannot overlap.
    """
    keys = dict.fromkeys(column for block in apart for column in block.key)
    of_key = Window.partitionBy("block", "hour", *quoted(keys)).orderBy("start_time", "fragment")
    start, end = F.col("start_time"), F.lag("last_time").over(of_key)
    # A liberal extent ends where the next frame's may begin.
    liberal = F.col("block").isin([block.name for block in apart if block.framing.liberal])
    meets = (start < end) | (~liberal & (start == end))
    of_blocks = rows.where(F.col("block").isin([block.name for block in apart]))
    of_blocks = of_blocks.select("block", "hour", meets.alias("__meets"))
    count = F.sum(F.col("__meets").cast("bigint")).alias("frames_overlapping")
    return of_blocks.groupBy("block", "hour").agg(count)
