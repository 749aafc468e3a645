"""What hours tell of frames, in the form in which people read it."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from transom.engine.hours import quoted
from transom.features.frames import tables_open_frames as open_frames
from transom.features.frames.resolve import ResolvedFrames
from transom.ledger.stage import BlockTask, StepRequest, StepResult


def frames_of(request: StepRequest, blocks: Mapping[str, ResolvedFrames]) -> StepResult:
    """What every kind's target hours tell."""
    shares = []
    for name, targets in request.targets.items():
        rows = request.pins.read(open_frames.TABLE, targets)
        rows = rows.where((F.col("block") == name) & (F.col("row_kind") != open_frames.STATE))
        shares.append(BlockTask(name, _to_output(rows, blocks[name])))
    asked = {name: blocks[name] for name in request.targets}
    return StepResult(shares, lambda rows: _overlapping(rows, asked))


def _to_output(rows: DataFrame, block: ResolvedFrames) -> DataFrame:
    (up, down), key = block.unit.step, quoted(block.key)
    # As text that tells a null from every value, and one column from the next; a time in full, of which JSON
    # has milliseconds.
    of_key = [
        F.unix_micros(column) if kind == "timestamp" else column
        for column, kind in zip(key, block.key.values(), strict=True)
    ]
    named = F.struct(F.lit(block.name), F.struct(*of_key), F.unix_micros("first"))
    identity = F.to_json(named, {"ignoreNullFields": "false"})
    mean = F.col("total").cast("double") * float(up) / (F.col("values").cast("double") * float(down))
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
        (F.col("high").cast("double") * float(up) / float(down)).alias("peak"),
        F.col("peak").alias("peak_time"),
        F.when(F.col("exact") & (F.col("values") > 0), mean).alias("mean"),
    )


def _overlapping(rows: DataFrame, blocks: Mapping[str, ResolvedFrames]) -> list[DataFrame]:
    """How many frames of an hour begin before the one before them ends, by block and hour; `frames`, as they
    are told, of kinds that lie apart."""
    apart = {name: block for name, block in blocks.items() if not block.overlap}
    if not apart:
        return []
    keys = dict.fromkeys(column for block in apart.values() for column in block.key)
    of_key = Window.partitionBy("block", "hour", *quoted(keys)).orderBy("start_time", "fragment")
    end = F.lag("last_time").over(of_key)
    # A liberal extent ends where the next frame's may begin.
    liberal = F.col("block").isin([name for name, block in apart.items() if block.liberal])
    start = F.col("start_time")
    meets = (start < end) | (~liberal & (start == end))
    of_blocks = rows.where(F.col("block").isin(list(apart))).select("block", "hour", meets.alias("__meets"))
    many = F.sum(F.col("__meets").cast("bigint")).alias("frames_overlapping")
    return [of_blocks.groupBy("block", "hour").agg(many)]
