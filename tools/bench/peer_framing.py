"""Time ways to compute frames of readings, in Spark.

Usage: spark-submit peer_framing.py WAY STREAM LAKE PASSES RESULT
"""

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from bench.data_frames import DataFrameTables, ddl
from bench.draw import END, FIRST
from bench.framing_log import ABOVE
from bench.staged import staged
from bench.ways import timed
from transom.core.intervals import Interval
from transom.engine.staging import partitioned
from transom.features.frames import tables_open_frames as open_frames
from transom.features.frames.resolve import ResolvedFrames, frame_block_of
from transom.features.frames.spec import Frame
from transom.ledger.stage import StepRequest
from transom.ledger.task_counters import TaskCounters
from transom.storage.session import session
from transom.storage.store import Store
from transom.storage.tables import Table
from transom.stream import load

INTERVAL = Interval(FIRST, END)
TOTALS = ("count(*)", "sum(records)", "sum(last - first)", "sum(records * high)")
"""Totals that are equal for equal answers, over frames that a later reading has closed."""


def computed(events: DataFrame, block: ResolvedFrames, store: Store, interval: Interval) -> DataFrame:
    """Compute the closed frames of the whole interval at once with the stage's function."""
    columns = Table.load(open_frames.TABLE).declare(key=block.key).columns
    hours, name = list(interval.hours()), block.name
    due = {("events", "events"): dict.fromkeys(hours, 1)}
    none = store.spark.createDataFrame([], ddl(columns))
    tables = DataFrameTables(store, {"events": events, open_frames.TABLE: none})
    request = StepRequest(tables, {name: hours}, {name: []}, due)
    (share,) = open_frames.open_frames_of(request, {name: block}).tasks
    made = share.compute_counting
    assert made is not None

    def finals(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Rows with the state of open frames are no frames.
        for rows in made(batches, TaskCounters()):
            yield rows.filter(pc.equal(rows["row_kind"], open_frames.FINAL))

    kinds = {column: kind for column, kind in columns.items() if column != "block"}
    closed = partitioned(share).mapInArrow(finals, ddl(kinds))
    # Only open frames have a column with the last reading; of a final frame, its end is that time.
    return closed.withColumns({name: F.unix_micros(of) for name, of in (("first", "first"), ("last", "end"))})


def ways_of(events: DataFrame, block: ResolvedFrames, store: Store) -> dict[str, Callable[[], DataFrame]]:
    """Return the ways that read events alone, by name."""

    def islands() -> DataFrame:
        of_key = Window.partitionBy("client").orderBy("time")
        # The query assumes that a key has one reading per time, which is true for this data.
        time, value = F.unix_micros("event_time").alias("time"), F.col("bytes").alias("value")
        readings = events.select("client", time, value)
        holds = F.col("value") > ABOVE
        begins = holds & ~F.coalesce(F.lag("value").over(of_key) > ABOVE, F.lit(False))
        flagged = readings.withColumns(
            {
                "holds": holds,
                "begins": begins.cast("int"),
                "behind": F.lead("time").over(of_key).isNotNull(),
            }
        )
        frames = flagged.withColumn("island", F.sum("begins").over(of_key)).where("holds")
        return (
            frames.groupBy("client", "island")
            .agg(
                F.min("time").alias("first"),
                F.max("time").alias("last"),
                F.count("*").alias("records"),
                F.max("value").alias("high"),
                F.bool_and("behind").alias("closed"),
            )
            .where("closed")
        )

    def floor() -> DataFrame:
        rows = events.select("client", F.unix_micros("event_time").alias("time"), "bytes")
        return rows.repartition("client").mapInArrow(_counted, "many bigint")

    return {
        "computed": lambda: computed(events, block, store, INTERVAL),
        "islands": islands,
        "floor": floor,
    }


def totals(way: str, found: DataFrame) -> list[int] | None:
    """Return totals that are equal for equal answers; None for the floor."""
    if way == "floor":
        return None
    return [int(value or 0) for value in found.agg(*map(F.expr, TOTALS)).collect()[0]]


def main(way: str, stream_file: str, lake: str, passes: str, result: str) -> None:
    """Run one way several times, and write the seconds of each pass, and totals of the answer."""
    stream = load(Path(stream_file))
    (name,) = stream.blocks(Frame)
    spark = session(f"bench {way}")
    store = Store(spark, f"{lake}/{stream.name}")
    events = spark.read.format("delta").load(f"{store.root}/events")
    ways = ways_of(events, frame_block_of(stream, name), store)
    kept = Path(result).with_suffix(".kept")
    if way == "stage":
        seconds = staged(spark, "frames", stream, INTERVAL, lake, kept, passes)
    else:
        seconds = timed(passes, lambda number: ways[way]().write.format("noop").mode("overwrite").save())
    shutil.rmtree(kept, ignore_errors=True)
    facts = {"seconds": seconds, "totals": None if way == "stage" else totals(way, ways[way]())}
    Path(result).write_text(json.dumps(facts))
    spark.stop()


def _counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"many": [sum(batch.num_rows for batch in batches)]})


if __name__ == "__main__":
    main(*sys.argv[1:])
