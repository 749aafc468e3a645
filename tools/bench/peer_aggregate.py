"""Time ways to aggregate three levels of windows from one table of events.

Usage: spark-submit peer_aggregate.py WAY STREAM LAKE PASSES RESULT [END, exclusive]
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, GroupedData, Observation
from pyspark.sql import functions as F

from bench import frames
from bench.data_frames import DataFrameTables
from bench.draw import END, FIRST
from bench.measure import LONG
from transom.app import run_stage as job
from transom.core.intervals import Interval, format_hour
from transom.engine.staging import partitioned
from transom.features.aggregates.resolve import AggregateBlock, block_of
from transom.features.aggregates.tables_aggregates import aggregates_of
from transom.features.aggregates.tables_granules import granules_of
from transom.ledger.stage import CountingPartitionFunction, PartitionFunction, StepRequest
from transom.ledger.task_counters import TaskCounters
from transom.storage.session import session
from transom.storage.store import Store
from transom.stream import Stream, load

BLOCK, MEASURE = "volume", "sent"
INTERVAL = Interval(FIRST, END)

Totals = list[int]
"""Of the reports of all levels: their number, and the sums of their records, values, sums, minima, maxima and
report times (in seconds)."""


def totals_of() -> dict[str, Column]:
    """Return the aggregates of `Totals` by name."""
    return {
        "reports": F.count("*"), "records": F.sum("count"), "values": F.sum(f"values_{MEASURE}"),
        "sums": F.sum(f"sum_{MEASURE}"), "least": F.sum(f"min_{MEASURE}"),
        "largest": F.sum(f"max_{MEASURE}"), "ends": F.sum(F.unix_seconds("window_end")),
    }  # fmt: skip


def computed(store: Store, stream: Stream, events: DataFrame, interval: Interval = INTERVAL) -> Totals:
    """Compute the reports of the whole interval with the stage's two functions, without writing anything.

    The tasks that compute reports add them up.
    """
    blocks = {BLOCK: block_of(stream, BLOCK)}
    targets = {BLOCK: list(interval.hours())}
    request = StepRequest(DataFrameTables(store, {"events": events}), targets, {BLOCK: []})
    (granules,) = granules_of(request, blocks).tasks
    rows = granules.frame.withColumn("block", F.lit(BLOCK))
    request = StepRequest(DataFrameTables(store, {"granules": rows}), targets, {BLOCK: []})
    (reports,) = aggregates_of(request, blocks).tasks
    names = list(totals_of())
    ddl = ", ".join(f"{name} bigint" for name in names)
    added = partitioned(reports).mapInArrow(_added(reports.compute_counting, names), ddl)
    [row] = added.agg(*(F.sum(name).alias(name) for name in names)).collect()
    return [int(row[name]) for name in names]


def _added(made: CountingPartitionFunction | None, names: Sequence[str]) -> PartitionFunction:
    """Return a function that adds up the rows of a task, as `totals_of` does."""
    assert made is not None
    columns = ["count", *(f"{figure}_{MEASURE}" for figure in ("values", "sum", "min", "max"))]

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in made(batches, TaskCounters()):
            seconds = pc.divide(rows["window_end"].cast(pa.int64()), 1_000_000)
            sums = [pc.sum(rows[name]).as_py() or 0 for name in columns]
            row = [rows.num_rows, *sums, pc.sum(seconds).as_py()]
            yield pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True))])

    return run


def figures(groups: GroupedData, block: AggregateBlock) -> DataFrame:
    """Return the aggregates of each group, with the columns of the stage."""
    (column,) = block.units
    value = F.col(f"`{column}`")
    return groups.agg(
        F.count("*").alias("count"), F.count(value).alias(f"values_{MEASURE}"),
        F.sum(value).alias(f"sum_{MEASURE}"), F.avg(value).alias(f"mean_{MEASURE}"),
        F.min(value).alias(f"min_{MEASURE}"), F.max(value).alias(f"max_{MEASURE}"),
    )  # fmt: skip


def windowed(events: DataFrame, block: AggregateBlock, until: datetime = END) -> list[DataFrame]:
    """Aggregate with Spark's own windows, one query per level."""
    found = []
    for level in block.levels:
        span = [f"{length} microseconds" for length in (level.range, level.slide)]
        groups = events.groupBy(*block.key, F.window("event_time", *span).alias("window"))
        rows = figures(groups, block).withColumn("window_end", F.col("window.end")).drop("window")
        found.append(rows.where(F.col("window_end") <= F.lit(until)))
    return found


def written(some: Iterable[DataFrame], table: str) -> DataFrame:
    """Write the rows of all levels to a Delta table that is partitioned by hour, as the stage does."""
    levels = [frame.withColumn("level", F.lit(number)) for number, frame in enumerate(some)]
    rows = reduce(DataFrame.unionByName, levels)
    # A window that ends on the hour belongs to the hour before.
    completed = F.col("window_end") - F.expr("INTERVAL 1 MICROSECOND")
    rows = rows.withColumn("hour", F.date_trunc("hour", completed)).repartition("hour")
    rows.write.format("delta").partitionBy("hour").save(table)
    return rows.sparkSession.read.format("delta").load(table)


def floor(events: DataFrame, block: AggregateBlock) -> DataFrame:
    """Aggregate only to base granules, as every way from granules must."""
    length = F.window("event_time", f"{block.base} microseconds").alias("window")
    rows = figures(events.groupBy(*block.key, length), block)
    return rows.withColumn("window_end", F.col("window.end")).drop("window")


def framed(events: DataFrame, block: AggregateBlock, until: datetime = END) -> Totals:
    """Compute granules once, partitioned by key, then frames over them, one query per level."""
    granules = floor(events, block).repartition(*block.key).persist()
    totals = drained(frames.framed(granules, level, MEASURE, until) for level in block.levels)
    granules.unpersist()
    return totals


def drained(some: Iterable[DataFrame]) -> Totals:
    """Compute all columns of each data frame in turn, write nothing, and return the totals."""
    wanted = totals_of()
    totals = [0] * len(wanted)
    for frame in some:
        seen = Observation()
        observed = frame.observe(seen, *(column.alias(name) for name, column in wanted.items()))
        observed.write.format("noop").mode("overwrite").save()
        totals = [total + int(seen.get[name] or 0) for total, name in zip(totals, wanted, strict=True)]
    return totals


def main(
    way: str, stream_file: str, lake: str, passes: str, result: str, end: str = format_hour(END)
) -> None:
    """Run one way several times, and write the seconds of each pass, and the totals."""
    stream = load(Path(stream_file))
    block = block_of(stream, BLOCK)
    interval = Interval.parse(format_hour(FIRST), end)
    spark = session(f"bench {way}")
    store = Store(spark, f"{lake}/{stream.name}")
    kept = Path(result).with_suffix(".kept")
    shutil.rmtree(kept, ignore_errors=True)

    def events() -> DataFrame:
        return spark.read.format("delta").load(f"{store.root}/events")

    def staged(copy: str) -> DataFrame:
        job.run_stage(spark, "aggregates", stream, interval, lake=copy)
        return spark.read.format("delta").load(f"{copy}/{stream.name}/aggregates")

    # Read rows that a way keeps only after the timed part.
    keeping: dict[str, Callable[[str], DataFrame]] = {
        "stage": staged,
        "written": lambda place: written(windowed(events(), block, interval.end), place),
    }
    passing: dict[str, Callable[[], Totals]] = {
        "computed": lambda: computed(store, stream, events(), interval),
        "window": lambda: drained(windowed(events(), block, interval.end)),
        "frames": lambda: framed(events(), block, interval.end),
        "floor": lambda: drained([floor(events(), block)]),
    }
    seconds = []
    for number in range(int(passes)):
        place = kept / str(number)
        if way == "stage":
            # Runs add files and never change any, so links are a separate lake.
            shutil.copytree(lake, place, copy_function=os.link)
        began = time.monotonic()
        if way in keeping:
            rows = keeping[way](str(place))
            seconds.append(round(time.monotonic() - began, 2))
            totals = drained([rows])
        else:
            totals = passing[way]()
            seconds.append(round(time.monotonic() - began, 2))
        if seconds[-1] > LONG:
            break
    shutil.rmtree(kept, ignore_errors=True)
    Path(result).write_text(json.dumps({"seconds": seconds, "totals": totals}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
