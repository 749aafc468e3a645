"""Ways to what intervals hold of rows, in Spark, each timed.

Usage: spark-submit peer_between.py WAY CASE FOLDER PASSES RESULT
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bench.between_log import CASES, SECOND
from bench.measure import LONG
from transom.lake.session import session
from transom.stages.between import between_join

TOTALS = (
    "sum(many)", "sum(total)", "sum(largest)", "sum(id % 1000 * many)", "sum(id % 997 * total)",
    "sum(id % 991 * largest)",
)  # fmt: skip
"""What tells whether two answers are one; in whole numbers, in any engine."""
FIGURES = {"many": "count", "total": "sum(bytes)", "largest": "max(bytes)"}


def main(way: str, case: str, folder: str, passes: str, result: str) -> None:
    """Goes one way some times, and writes the seconds of each, and totals of the answer."""
    spark = session(f"bench {way}")
    told = CASES[case]
    by = ["client"] if told.keyed else []
    frames = spark.read.parquet(f"{folder}/frames.parquet")
    rows = spark.read.parquet(f"{folder}/rows")

    # Without a key, as evenly as can be.
    shuffled = rows.repartition(*(by or [F.floor(F.rand(1) * 1000)]))

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
        width = F.lit(told.mean * SECOND)

        def slice_of(time: str, less: int = 0) -> Column:
            return F.floor((F.unix_micros(time) - F.lit(less)) / width)

        slices = F.explode(F.sequence(slice_of("start"), slice_of("end", 1))).alias("slice")
        found = joined(frames.select("*", slices), rows.withColumn("slice", slice_of("at")), [*by, "slice"])
        return found

    ways: dict[str, Callable[[], DataFrame]] = {
        "transom": lambda: between_join(frames, rows, on=("start", "end", "at"), by=by, how=FIGURES),
        "rows": lambda: between_join(frames, rows, on=("start", "end", "at"), by=by),
        "range": lambda: joined(frames, rows, by),
        "buckets": bucketed,
        "floor": lambda: rows.repartition(*(by or [F.floor(F.rand(1) * 1000)])).sortWithinPartitions(
            *by, "at"
        ),
    }
    seconds = []
    for _ in range(int(passes)):
        began = time.monotonic()
        ways[way]().write.format("noop").mode("overwrite").save()
        seconds.append(round(time.monotonic() - began, 2))
        if seconds[-1] > LONG:
            break
    totals = None
    if way in ("transom", "range", "buckets"):
        totals = [int(value or 0) for value in ways[way]().agg(*map(F.expr, TOTALS)).collect()[0]]
    if way == "rows":
        totals = [ways[way]().count()]
    Path(result).write_text(json.dumps({"seconds": seconds, "totals": totals}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
