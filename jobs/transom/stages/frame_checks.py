"""What the gate of frames asks: whether they keep the rules of their kind, and count what is there."""

from collections.abc import Mapping
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transom.algorithms.cuts import Of
from transom.algorithms.framing import Aggregate, Boundary, Delta
from transom.intervals import HOUR
from transom.stages.frame_readings import ORDER
from transom.stages.framings import FrameBlock
from transom.stages.slices import quoted

SAMPLED, MOST = 5, 20
"""Frames of an hour that are counted again, and of a run."""


def broken(blocks: Mapping[str, FrameBlock]) -> Column:
    """Whether a frame that is told is not what its kind and its lengths allow; null of other rows."""
    cases = [(F.col("block") == name) & ~_kept(block) for name, block in blocks.items()]
    return (F.col("row") != "left") & reduce(or_, cases, F.lit(False))


def _kept(block: FrameBlock) -> Column:
    framing, kind = block.framing, block.framing.kind
    records, length = F.col("records"), F.col("length")
    rules = [records >= framing.fewest, length >= framing.least_time]
    if framing.most_records is not None:
        rules.append(records <= framing.most_records)
    if framing.most_time is not None:
        rules.append(length <= F.greatest(F.lit(framing.most_time), F.lit(framing.every)))
    low, high = F.col("low"), F.col("high")
    match kind:
        case Delta(below):
            rules.append(high - low < below)
        case Boundary(step):
            rules.append(F.floor(low / step) == F.floor(high / step))
        case Aggregate(minimal=minimal):
            rules.append(_comes_to(kind) if not minimal else (F.col("row") == "partial") | _comes_to(kind))
    return reduce(and_, rules)


def _comes_to(kind: Aggregate) -> Column:
    """Whether what a frame holds together is what it is to be."""
    p, q = kind.bound.numerator, kind.bound.denominator
    measured = {
        "count": F.col("records"),
        "sum": F.col("total"),
        "avg": F.col("total") * q - F.col("records") * p,
        "min": F.col("low"),
        "max": F.col("high"),
    }[kind.function]
    return measured * Of(kind).sign >= Of(kind).bound


def overlapping(rows: DataFrame, blocks: Mapping[str, FrameBlock]) -> list[DataFrame]:
    """How many frames of an hour begin before the one before them ends, by block and hour; `frames`, as they
    are told, of kinds that lie apart."""
    found = []
    for name, block in blocks.items():
        if block.overlap:
            continue
        of_key = Window.partitionBy("hour", *quoted(block.key)).orderBy("start", "fragment")
        end = F.lag("end").over(of_key)
        # A liberal extent ends where the next frame's may begin.
        meets = F.col("start") < end if block.liberal else F.col("start") <= end
        of_block = rows.where(F.col("block") == name).select("block", "hour", meets.alias("__meets"))
        many = F.sum(F.col("__meets").cast("bigint")).alias("frames_overlapping")
        found.append(of_block.groupBy("block", "hour").agg(many))
    return found


def counted_again(rows: DataFrame, readings: DataFrame, block: FrameBlock) -> DataFrame:
    """Of how many frames, among a few of each hour, the readings of the hour are not those that a plain
    filter finds between their ends, or do not all meet the threshold; by block and hour.

    Args:
        rows: of `open_frames`.
        readings: of the hours.
    """
    told = rows.where((F.col("block") == block.name) & (F.col("row") != "left"))
    chance = F.xxhash64(*quoted(block.key), "first")
    of_hour = F.row_number().over(Window.partitionBy("hour").orderBy(chance, "first"))
    some = told.withColumn("__place", of_hour).where(F.col("__place") <= SAMPLED).orderBy(chance).limit(MOST)
    first = F.unix_micros("first")
    # What is missing at the end is no reading, and no filter finds it.
    latest = first + F.col("length") - F.lit(block.framing.every)
    hour = F.unix_micros("hour")
    some = some.select(
        "block",
        "hour",
        *(F.col(f"`{name}`").alias(f"__{name}") for name in block.key),
        "new",
        F.greatest(first, hour).alias("__from") if block.stretch is None else first.alias("__from"),
        F.least(latest, hour + F.lit(_HOUR - 1)).alias("__to"),
    )
    same = [F.col(f"`{name}`").eqNullSafe(F.col(f"`__{name}`")) for name in block.key]
    near = [F.col("time") >= F.col("__from"), F.col("time") <= F.col("__to")]
    found = readings.join(F.broadcast(some), reduce(and_, [*same, *near]), "right")
    frame = ["block", "hour", "__from", "__to", "new", *(f"__{name}" for name in block.key)]
    if block.picks:
        pick = F.min_by if block.ties == "first" else F.max_by
        one = pick(F.struct("lacking", "holds"), F.struct(*quoted(ORDER))).alias("__one")
        found = found.groupBy(*quoted([*frame, "time"])).agg(one).select("*", "__one.*")
    there = F.col("time").isNotNull() & ~F.col("lacking")
    recounted = found.groupBy(*quoted(frame)).agg(
        F.count_if(there).alias("many"), F.bool_and(F.when(there, F.col("holds"))).alias("hold")
    )
    wrong = (F.col("many") != F.col("new")) | ~F.coalesce("hold", F.lit(True))
    # Which hours are sampled depends on the run, and what is said of an hour must not.
    every = told.select("block", "hour", F.lit(0).cast("bigint").alias("wrong"))
    found_wrong = every.unionByName(recounted.select("block", "hour", wrong.cast("bigint").alias("wrong")))
    return found_wrong.groupBy("block", "hour").agg(F.sum("wrong").alias("frames_miscounted"))


_HOUR = int(HOUR.total_seconds()) * 10**6
