"""Time ways to aggregate rows in intervals, in Spark.

Usage: spark-submit peer_between.py WAY CASE FOLDER PASSES RESULT
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bench.between_log import CASES, SECOND, Case
from bench.ways import timed
from transom.features.fills.between_join import between_join
from transom.storage.session import session

TOTALS = (
    "sum(many)", "sum(total)", "sum(largest)", "sum(id % 1000 * many)", "sum(id % 997 * total)",
    "sum(id % 991 * largest)",
)  # fmt: skip
"""Totals of an answer, as integers in each engine."""
FIGURES = {"many": "count", "total": "sum(bytes)", "largest": "max(bytes)"}


def ways_of(rows: DataFrame, frames: DataFrame, case: Case) -> dict[str, Callable[[], DataFrame]]:
    """Return the ways by name."""
    by = ["client"] if case.keyed else []
    if not case.keyed:
        rows, frames = rows.drop("client"), frames.drop("client")

    def joined(left: DataFrame, right: DataFrame, keys: list[str]) -> DataFrame:
        inside = [right["at"] >= left["start"], right["at"] < left["end"]]
        pairs = left.join(right, [*(left[k] == right[k] for k in keys), *inside], "left")
        figures = [
            F.count(right["at"]).alias("many"),
            F.sum("bytes").alias("total"),
            F.max("bytes").alias("largest"),
        ]
        return pairs.groupBy("id").agg(*figures)

    def bucketed() -> DataFrame:
        width = F.lit(case.mean * SECOND)

        def slice_of(time: str, less: int = 0) -> Column:
            return F.floor((F.unix_micros(time) - F.lit(less)) / width)

        slices = F.explode(F.sequence(slice_of("start"), slice_of("end", 1))).alias("slice")
        return joined(frames.select("*", slices), rows.withColumn("slice", slice_of("at")), [*by, "slice"])

    def floor() -> DataFrame:
        # Without a key, distribute rows evenly.
        shuffled = rows.repartition(*(map(F.col, by) if by else [F.floor(F.rand(1) * 1000)]))
        return shuffled.sortWithinPartitions(*by, "at")

    on = ("start", "end", "at")
    return {
        "transom": lambda: between_join(frames, rows, on=on, by=by, how=FIGURES),
        "rows": lambda: between_join(frames, rows, on=on, by=by),
        "range": lambda: joined(frames, rows, by),
        "buckets": bucketed,
        "floor": floor,
    }


def totals(way: str, found: DataFrame) -> list[int] | None:
    """Return totals that are equal for equal answers; None for the floor."""
    if way == "floor":
        return None
    figures = [F.count("at")] if way == "rows" else map(F.expr, TOTALS)
    return [int(value or 0) for value in found.agg(*figures).collect()[0]]


def main(way: str, case: str, folder: str, passes: str, result: str) -> None:
    """Run one way several times, and write the seconds of each pass, and totals of the answer."""
    spark = session(f"bench {way}")
    rows, frames = (spark.read.parquet(f"{folder}/{name}") for name in ("rows", "frames.parquet"))
    gone = ways_of(rows, frames, CASES[case])[way]
    seconds = timed(passes, lambda number: gone().write.format("noop").mode("overwrite").save())
    Path(result).write_text(json.dumps({"seconds": seconds, "totals": totals(way, gone())}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
