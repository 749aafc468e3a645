"""Time ways to find the most frequent hosts of the last 24 hours at every hour, in Spark.

Usage: spark-submit peer_frequency.py WAY STREAM LAKE PASSES RESULT
"""

import json
import shutil
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from bench.data_frames import DataFrameTables, ddl
from bench.draw import END, FIRST
from bench.frequency_log import DELTA, EPSILON, TOP, WINDOW
from bench.staged import staged
from bench.ways import timed
from transom.api import read
from transom.core.intervals import HOUR, Interval
from transom.engine.staging import partitioned
from transom.features.frequency import tables_frequencies as frequencies
from transom.features.frequency import tables_tick_matrices as tick_matrices
from transom.features.frequency.resolve import FrequencyBlock, frequency_block_of
from transom.ledger.stage import StepRequest
from transom.ledger.task_counters import TaskCounters
from transom.storage.session import session
from transom.storage.store import Store
from transom.storage.tables import Table
from transom.stream import load

INTERVAL = Interval(FIRST, END)
LAST = END - HOUR
SEED = 0
SAMPLED = 200
"""Number of hosts whose errors are measured."""


def matrices(events: DataFrame, block: FrequencyBlock, store: Store, hours: list[datetime]) -> DataFrame:
    """Compute the matrices of some hours with the stage's function."""
    columns = Table.load(tick_matrices.TABLE).declare(item=block.item).columns
    tables = DataFrameTables(store, {"events": events})
    share = tick_matrices.tick_matrices_of(StepRequest(tables, {block.name: hours}, {}), block, hours)
    made = share.compute_counting
    assert made is not None
    kinds = {column: kind for column, kind in columns.items() if column != "block"}
    rows = partitioned(share).mapInArrow(lambda batches: made(batches, TaskCounters()), ddl(kinds))
    return rows.withColumn("block", F.lit(block.name))


def reports(rows: DataFrame, block: FrequencyBlock, store: Store, hours: list[datetime]) -> DataFrame:
    """Compute the reports of some hours from matrices, with the stage's function."""
    columns = Table.load(frequencies.TABLE).declare(item=block.item).columns
    tables = DataFrameTables(store, {tick_matrices.TABLE: rows})
    share = frequencies.frequencies_of(StepRequest(tables, {block.name: hours}, {}), block, hours)
    made = share.compute_counting
    assert made is not None
    kinds = {name: kind for name, kind in columns.items() if name != "block"}
    return partitioned(share).mapInArrow(lambda batches: made(batches, TaskCounters()), ddl(kinds))


def by_hour(events: DataFrame) -> DataFrame:
    """Count the records of each host and hour."""
    return events.groupBy("client", "hour").agg(F.count("*").alias("records"))


def most(counts: DataFrame) -> DataFrame:
    """Return the most frequent hosts of each window from the counts of all."""
    windows = F.explode(F.expr(f"sequence(hour, hour + INTERVAL {WINDOW - 1} HOURS, INTERVAL 1 HOUR)"))
    sums = counts.select("client", "records", windows.alias("at")).where(F.col("at") < F.lit(END))
    sums = sums.groupBy("client", "at").agg(F.sum("records").alias("records"))
    order = Window.partitionBy("at").orderBy(F.desc("records"), "client")
    return sums.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= TOP)


def most_of_one(counts: DataFrame) -> DataFrame:
    """Return the most frequent hosts of one window from its counts."""
    sums = counts.groupBy("client").agg(F.sum("records").alias("records"))
    return sums.orderBy(F.desc("records"), "client").limit(TOP)


def rebuilt(events: DataFrame) -> DataFrame:
    """Build Spark's own sketch from the records of each window."""
    windows = F.explode(F.expr(f"sequence(hour, hour + INTERVAL {WINDOW - 1} HOURS, INTERVAL 1 HOUR)"))
    of_windows = events.select("client", windows.alias("at")).where(F.col("at") < F.lit(END))
    sketch = F.count_min_sketch("client", F.lit(EPSILON), F.lit(1 - DELTA), F.lit(SEED))
    return of_windows.groupBy("at").agg(sketch.alias("sketch"))


def main(way: str, stream_file: str, lake: str, passes: str, result: str) -> None:
    """Run one way several times, and write the seconds of each pass and the size of the state."""
    stream = load(Path(stream_file))
    spark = session(f"bench {way}")
    store = Store(spark, f"{lake}/{stream.name}")
    events = spark.read.format("delta").load(f"{store.root}/events")
    block = frequency_block_of(stream, "hosts")
    kept = Path(result).with_suffix(".kept")
    shutil.rmtree(kept, ignore_errors=True)
    hours, window = list(INTERVAL.hours()), [LAST - n * HOUR for n in range(WINDOW - 1, -1, -1)]
    last, past = (events.where(F.col("hour") == F.lit(LAST)), events.where(F.col("hour").isin(window[:-1])))
    state = events
    if way in ("hour", "exact_hour"):
        # The state of the hours before the last one, and of the last one, which counts to the size.
        for folder, some, of in (("held", past, window[:-1]), ("now", last, window[-1:])):
            left = by_hour(some) if way == "exact_hour" else matrices(some, block, store, of)
            left.write.parquet(str(kept / folder))
        state = spark.read.parquet(str(kept / "held"))
    ways: dict[str, Callable[[], DataFrame]] = {
        "computed": lambda: reports(matrices(events, block, store, hours), block, store, hours),
        "exact": lambda: most(by_hour(events)),
        "rebuilt": lambda: rebuilt(events),
        "floor": lambda: by_hour(events),
        "hour": lambda: reports(
            state.unionByName(matrices(last, block, store, [LAST])), block, store, [LAST]
        ),
        "exact_hour": lambda: most_of_one(state.unionByName(by_hour(last))),
    }
    if way == "stage":
        seconds = staged(spark, "frequency", stream, INTERVAL, lake, kept, passes)
    else:
        seconds = timed(
            passes,
            lambda number: ways[way]().write.format("noop").mode("overwrite").save(),
            # A pass must not use the cache of another.
            lambda number: spark.catalog.clearCache(),
        )
    place = kept / str(len(seconds) - 1)
    facts: dict[str, Any] = {"seconds": seconds}
    if way == "stage":
        facts |= _of_window(f"{place}/{stream.name}", window)
        sketch, sample = read(place, stream).sketch("hosts", END), _sample(events, window)
        of_hosts = sketch.estimates([host.encode() for host, _ in sample]).tolist()
        off = [estimate - many for estimate, (_, many) in zip(of_hosts, sample, strict=True)]
        facts |= {"error": float(np.mean(off)), "most": max(off)}
    elif way in ("hour", "exact_hour"):
        files = list(kept.glob("*/*.parquet"))
        rows = sum(pq.read_metadata(file).num_rows for file in files)
        facts |= {"kept": rows, "kept_bytes": sum(file.stat().st_size for file in files)}
    elif way == "rebuilt":
        facts |= _of_spark(spark, rebuilt(events).where(F.col("at") == F.lit(LAST)), _sample(events, window))
    shutil.rmtree(kept, ignore_errors=True)
    Path(result).write_text(json.dumps(facts))
    spark.stop()


def _sample(events: DataFrame, window: list[datetime]) -> list[tuple[str, int]]:
    """Return some hosts with their number of records in the last window."""
    counts = events.where(F.col("hour").isin(window)).groupBy("client").count().orderBy(F.xxhash64("client"))
    return [(row["client"], row["count"]) for row in counts.limit(SAMPLED).collect()]


def _of_window(root: str, window: list[datetime]) -> dict[str, int]:
    """Return the rows and bytes of the state of a window's hours."""
    files = pa.table(DeltaTable(f"{root}/{tick_matrices.TABLE}").get_add_actions(flatten=True)).to_pylist()
    rows = [row for row in files if row["partition.hour"] in set(window)]
    return {
        "kept": sum(row["num_records"] for row in rows),
        "kept_bytes": sum(row["size_bytes"] for row in rows),
    }


def _of_spark(spark: Any, sketches: DataFrame, sample: list[tuple[str, int]]) -> dict[str, Any]:
    """Return the errors of Spark's sketch of the last window, and its size in bytes."""
    (row,) = sketches.collect()
    jvm = spark.sparkContext._jvm
    sketch = jvm.org.apache.spark.util.sketch.CountMinSketch.readFrom(row["sketch"])
    off = [sketch.estimateCount(host) - many for host, many in sample]
    return {"error": float(np.mean(off)), "most": max(off), "kept_bytes": len(row["sketch"])}


if __name__ == "__main__":
    main(*sys.argv[1:])
