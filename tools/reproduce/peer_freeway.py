"""Time ways to compute frames of a freeway's sensors over some days, in Spark.

Usage: spark-submit peer_freeway.py WAY KIND STREAM LAKE DAYS PASSES RESULT
"""

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from bench.measure import LONG
from bench.peer_framing import computed, totals
from reproduce.freeway import EVERY, FIRST, LEAST
from transom.core.intervals import Interval
from transom.features.frames.resolve import frame_block_of
from transom.features.frames.spec import Frame
from transom.storage.session import session
from transom.storage.store import Store, in_hours
from transom.stream import load


def windowed(events: DataFrame, where: str, interval: Interval) -> DataFrame:
    """Compute the paper's frame-like window query.

    It selects windows of the minimum length in which all readings are present and meet the condition, and
    merges adjacent ones. Frames that are open at the end are omitted.
    """
    step, length = EVERY * 1_000_000, LEAST * EVERY * 1_000_000
    window = F.window("event_time", f"{LEAST * EVERY} seconds", f"{EVERY} seconds")
    met = events.groupBy("sensor", window.alias("window")).agg(
        F.count_if(F.expr(where)).alias("met"), F.max("speed").alias("high")
    )
    start = F.unix_micros("window.start").alias("start")
    full = met.where(F.col("met") == LEAST).select("sensor", start, "high")
    of_key = Window.partitionBy("sensor").orderBy("start")
    begins = F.coalesce(F.col("start") - F.lag("start").over(of_key) > step, F.lit(True))
    pieces = full.withColumn("begins", begins.cast("int"))
    frames = pieces.withColumn("frame", F.sum("begins").over(of_key)).groupBy("sensor", "frame")
    end = int(interval.end.timestamp()) * 1_000_000
    return frames.agg(
        F.min("start").alias("first"),
        (F.max("start") + length - step).alias("last"),
        (F.count("*") + LEAST - 1).alias("records"),
        F.rint(F.max("high") * 10).cast("bigint").alias("high"),
    ).where(F.col("last") < end - step)


def main(way: str, kind: str, stream_file: str, lake: str, days: str, passes: str, result: str) -> None:
    """Run one way several times, and write the seconds of each pass, and totals of the answer."""
    stream = load(Path(stream_file))
    spark = session(f"reproduce {way}")
    store = Store(spark, f"{lake}/{stream.name}")
    first = datetime.fromtimestamp(FIRST, UTC)
    interval = Interval(first, first + timedelta(days=int(days)))
    hours = [*interval.hours()]
    events = spark.read.format("delta").load(f"{store.root}/events").where(in_hours(hours))
    block = frame_block_of(stream, kind)
    ways: dict[str, Callable[[], DataFrame]] = {
        "frames": lambda: computed(events, block, store, interval),
        "windows": lambda: windowed(events, str(stream.blocks(Frame)[kind].where), interval),
        "reading": lambda: events.select("sensor", "event_time", "speed"),
    }
    seconds = []
    for _ in range(int(passes)):
        began = time.monotonic()
        ways[way]().write.format("noop").mode("overwrite").save()
        seconds.append(round(time.monotonic() - began, 2))
        if seconds[-1] > LONG:
            break
    found = None if way == "reading" else totals(way, ways[way]())
    Path(result).write_text(json.dumps({"seconds": seconds, "totals": found}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
