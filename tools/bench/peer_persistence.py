"""Time ways to find persistent hosts in contacts, in Spark.

Usage: spark-submit peer_persistence.py WAY STREAM LAKE PASSES RESULT
"""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from bench.data_frames import DataFrameTables, ddl
from bench.draw import END, FIRST, HOURS
from bench.persistence_log import SLOT
from bench.staged import staged
from bench.ways import timed
from transom.core.intervals import HOUR, Interval
from transom.engine.staging import partitioned
from transom.features.persistence import tables_tuples as tuples
from transom.features.persistence.resolve import PersistenceBlock, persistence_block_of
from transom.ledger.stage import StepRequest
from transom.ledger.task_counters import TaskCounters
from transom.storage.session import session
from transom.storage.store import Store
from transom.storage.tables import Table
from transom.stream import load

INTERVAL = Interval(FIRST, END)
LAST = Interval(END - HOUR, END)


def computed(
    events: DataFrame, before: DataFrame, block: PersistenceBlock, store: Store, of: Interval
) -> DataFrame:
    """Compute state and reports of some hours with the stage's function."""
    hours, name = list(of.hours()), block.name
    columns = Table.load(tuples.TABLE).declare(item=block.item).columns
    due = {("events", "events"): dict.fromkeys(hours, 1), (name, tuples.TABLE): {hours[0] - HOUR: 1}}
    tables = DataFrameTables(store, {"events": events, tuples.TABLE: before})
    share = tuples.tuples_of(StepRequest(tables, {name: hours}, {name: []}, due), block, hours)
    made = share.compute_counting
    assert made is not None
    kinds = {column: kind for column, kind in columns.items() if column != "block"}
    return partitioned(share).mapInArrow(lambda batches: made(batches, TaskCounters()), ddl(kinds))


def pairs_of(events: DataFrame) -> DataFrame:
    """Return the distinct pairs of host and slot."""
    return events.select("client", F.expr(f"unix_micros(event_time) div {SLOT}L").alias("slot")).distinct()


def exact(events: DataFrame, least: int) -> DataFrame:
    """Return hosts that are persistent at the end of an hour with records of them, by exact counts."""
    pairs = pairs_of(events).withColumn("hour", F.expr("slot div 4"))
    of_hours = pairs.groupBy("client", "hour").agg(F.count("*").alias("slots"))
    window = Window.partitionBy("client").orderBy("hour").rangeBetween(1 - HOURS, 0)
    return of_hours.withColumn("slots", F.sum("slots").over(window)).where(F.col("slots") >= least)


def main(way: str, stream_file: str, lake: str, passes: str, result: str) -> None:
    """Run one way several times, and write the seconds of each pass and the size of the state."""
    stream = load(Path(stream_file))
    spark = session(f"bench {way}")
    store = Store(spark, f"{lake}/{stream.name}")
    events = spark.read.format("delta").load(f"{store.root}/events")
    block = persistence_block_of(stream, "hosts")
    least = block.tracking.params.min_certain
    kept = Path(result).with_suffix(".kept")
    shutil.rmtree(kept, ignore_errors=True)
    none = spark.createDataFrame([], ddl(Table.load(tuples.TABLE).declare(item=block.item).columns))
    before, earlier = none, pairs_of(events)
    if way in ("hour", "exact_hour"):
        past = events.where(F.col("hour") < F.lit(LAST.start))
        if way == "hour":
            made = computed(past, none, block, store, Interval(FIRST, LAST.start))
            made = made.where(F.col("hour") == F.lit(LAST.start - HOUR)).withColumn(
                "block", F.lit(block.name)
            )
            made.write.parquet(str(kept / "tuples"))
            before = spark.read.parquet(str(kept / "tuples"))
        else:
            pairs_of(past).write.parquet(str(kept / "pairs"))
            earlier = spark.read.parquet(str(kept / "pairs"))
    last = events.where(F.col("hour") == F.lit(LAST.start))
    window = earlier.unionByName(pairs_of(last)).distinct() if way == "exact_hour" else earlier
    ways: dict[str, Callable[[], DataFrame]] = {
        "computed": lambda: computed(events, none, block, store, INTERVAL),
        "exact": lambda: exact(events, least),
        "floor": lambda: pairs_of(events),
        "hour": lambda: computed(last, before, block, store, LAST),
        "exact_hour": lambda: window.groupBy("client").count().where(F.col("count") >= least),
    }
    if way == "stage":
        seconds = staged(spark, "persistence", stream, INTERVAL, lake, kept, passes)
    else:
        seconds = timed(passes, lambda number: ways[way]().write.format("noop").mode("overwrite").save())
    place = kept / str(len(seconds) - 1)
    facts: dict[str, Any] = {"seconds": seconds}
    if way == "stage":
        facts |= _of_last_hour(f"{place}/{stream.name}")
    elif way == "exact_hour":
        facts |= _of_files(kept / "pairs") | {
            "kept": earlier.count(),
            "read": earlier.count() + pairs_of(last).count(),
        }
    elif way == "hour":
        facts |= {"read": before.count() + pairs_of(last).count()}
    shutil.rmtree(kept, ignore_errors=True)
    Path(result).write_text(json.dumps(facts))
    spark.stop()


def _of_last_hour(root: str) -> dict[str, int]:
    """Return the rows and bytes of the state of the last hour, and the number of reported hosts."""
    files = DeltaTable(f"{root}/{tuples.TABLE}").get_add_actions(flatten=True)
    rows = [row for row in map(dict, _rows(files)) if row["partition.hour"] == LAST.start]
    items = DeltaTable(f"{root}/persistent_items").to_pyarrow_table(filters=[("hour", "=", LAST.start)])
    return {
        "kept": sum(row["num_records"] for row in rows),
        "kept_bytes": sum(row["size_bytes"] for row in rows),
        "named": items.num_rows,
    }


def _rows(files: Any) -> list[dict[str, Any]]:
    import pyarrow as pa

    found: list[dict[str, Any]] = pa.table(files).to_pylist()
    return found


def _of_files(folder: Path) -> dict[str, int]:
    return {"kept_bytes": sum(file.stat().st_size for file in folder.glob("*.parquet"))}


if __name__ == "__main__":
    main(*sys.argv[1:])
