"""Ways to the frames of some readings, in Spark, each timed.

Usage: spark-submit peer_framing.py WAY STREAM LAKE PASSES RESULT
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from bench.draw import END, FIRST
from bench.framing_log import ABOVE
from bench.given import Given, ddl
from bench.measure import LONG
from transom import job
from transom.intervals import Interval
from transom.lake.session import session
from transom.lake.stage import Request
from transom.lake.store import Store
from transom.stages import open_frames
from transom.stages.framings import frame_block_of
from transom.stream import load
from transom.work import WORKS

INTERVAL = Interval(FIRST, END)
TOTALS = ("count(*)", "sum(records)", "sum(unix_micros(last) - unix_micros(first))", "sum(records * high)")
"""What tells whether two answers are one; of frames that a later reading has closed."""


def main(way: str, stream_file: str, lake: str, passes: str, result: str) -> None:
    """Goes one way some times, and writes the seconds of each, and totals of the answer."""
    stream = load(Path(stream_file))
    (name,) = stream.frames
    block = frame_block_of(stream, name)
    spark = session(f"bench {way}")
    root = f"{lake}/{stream.name}"
    kept = Path(result).with_suffix(".kept")

    def events() -> DataFrame:
        return spark.read.format("delta").load(f"{root}/events")

    def computed() -> DataFrame:
        hours = list(INTERVAL.hours())
        due = {("events", "events"): dict.fromkeys(hours, 1)}
        given = Given(Store(spark, root), {"events": events(), open_frames.TABLE: _no_rows(spark, block)})
        request = Request(given, {name: hours}, {name: []}, due)
        (share,) = open_frames.open_frames_of(request, {name: block}).shares
        assert share.made is not None
        kinds = {field.name: _kind(field.type) for field in open_frames.schema_of(block)}
        return share.frame.mapInArrow(share.made, ddl(kinds)).where("row = 'final'")

    def islands() -> DataFrame:
        of_key = Window.partitionBy("client").orderBy("event_time")
        holds = F.col("bytes") > ABOVE
        begins = holds & ~F.coalesce(F.lag(holds).over(of_key), F.lit(False))
        behind = F.lead("event_time").over(of_key).isNotNull()
        told = events().select("client", "event_time", "bytes", holds.alias("holds"), begins.alias("begins"), behind.alias("behind"))
        island = F.sum(F.col("begins").cast("int")).over(of_key)
        return (
            told.withColumn("island", island)
            .where("holds")
            .groupBy("client", "island")
            .agg(
                F.min("event_time").alias("first"), F.max("event_time").alias("last"),
                F.count("*").alias("records"), F.max("bytes").alias("high"), F.bool_and("behind").alias("closed"),
            )
            .where("closed")
        )  # fmt: skip

    def floor() -> DataFrame:
        rows = events().select("client", F.unix_micros("event_time").alias("time"), "bytes")
        return rows.repartition("client").mapInArrow(_counted, "many bigint")

    ways: dict[str, Callable[[], DataFrame]] = {"computed": computed, "islands": islands, "floor": floor}
    seconds = []
    for number in range(int(passes)):
        place = str(kept / str(number))
        if way == "stage":
            # Files of the lake are never changed, only added: links are a lake of their own.
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(lake, place, copy_function=os.link)
        began = time.monotonic()
        if way == "stage":
            job.perform(spark, "frame", stream, INTERVAL, WORKS["frame"], lake=place)
        else:
            ways[way]().write.format("noop").mode("overwrite").save()
        seconds.append(round(time.monotonic() - began, 2))
        if seconds[-1] > LONG:
            break
    totals = None
    if way in ("computed", "islands"):
        totals = [int(value or 0) for value in ways[way]().agg(*map(F.expr, TOTALS)).collect()[0]]
    shutil.rmtree(kept, ignore_errors=True)
    Path(result).write_text(json.dumps({"seconds": seconds, "totals": totals}))
    spark.stop()


def _counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"many": [sum(batch.num_rows for batch in batches)]})


if __name__ == "__main__":
    main(*sys.argv[1:])
