"""What the gate of frames asks: whether they keep the rules of their kind, and count what is there."""

from collections.abc import Mapping
from functools import reduce
from operator import and_, or_

import numpy as np
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.engine.hours import quoted
from transom.features.frames.algorithm.boundaries import Of
from transom.features.frames.algorithm.readings import Ordered, Readings
from transom.features.frames.algorithm.reference import Aggregate, Boundary, Delta
from transom.features.frames.algorithm.vectorised import Reports
from transom.features.frames.resolve import FrameBlock


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
        case Delta(apart):
            rules.append(high - low < apart)
        case Boundary(step):
            of, many = F.lit(step.numerator), step.denominator
            below, above = (end * many - F.pmod(end * many, of) for end in (low, high))
            rules.append(below == above)
        case Aggregate():
            rules.append(_comes_to(kind))
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
    apart = {name: block for name, block in blocks.items() if not block.overlap}
    if not apart:
        return []
    keys = dict.fromkeys(column for block in apart.values() for column in block.key)
    of_key = Window.partitionBy("block", "hour", *quoted(keys)).orderBy("start", "fragment")
    end = F.lag("end").over(of_key)
    # A liberal extent ends where the next frame's may begin.
    liberal = F.col("block").isin([name for name, block in apart.items() if block.liberal])
    meets = (F.col("start") < end) | (~liberal & (F.col("start") == end))
    of_blocks = rows.where(F.col("block").isin(list(apart))).select("block", "hour", meets.alias("__meets"))
    many = F.sum(F.col("__meets").cast("bigint")).alias("frames_overlapping")
    return [of_blocks.groupBy("block", "hour").agg(many)]


def leading_away(readings: Readings, block: FrameBlock) -> Int64s:
    """Which readings lead away from what the sum of a minimal frame is to come to."""
    kind = block.framing.kind
    if not isinstance(kind, Aggregate) or not kind.minimal or kind.function != "sum":
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(~readings.missing & (Of(kind).sign * readings.value < 0))


def miscounted(reports: Reports, readings: Readings, block: FrameBlock) -> Int64s:
    """Which frames have not as many readings in their hour or stretch as lie between their ends, or have one
    that does not meet the threshold.

    Args:
        reports: rows by their number.
        readings: of the same keys, those of the hours at least.
    """
    there = readings.taken(~readings.missing)
    within = Ordered(there.key, there.time)
    # What is missing at the end is no reading, and no search finds it.
    last = np.minimum(reports.first + reports.length - block.framing.every, reports.hour + HOUR_LENGTH - 1)
    begin = np.maximum(reports.first, reports.hour) if block.stretch is None else reports.first
    first = within.behind(reports.key, begin - 1)
    behind = np.maximum(within.behind(reports.key, last), first)
    unmet = np.append(0, np.cumsum(~there.holds))
    many = behind - first
    if block.framing.begins:
        # Whatever is missing is in the frame as well: it has every turn.
        every = block.framing.every
        many = np.maximum((last - reports.first) // every - (begin - reports.first - 1) // every, 0)
    return np.flatnonzero((many != reports.new) | (unmet[behind] != unmet[first]))
