"""Time ways to find the matches of one pattern; all use the same detector.

Usage: spark-submit peer_widen.py WAY STREAM LAKE PASSES RESULT
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.data_frames import DataFrameTables, ddl
from bench.draw import FIRST
from bench.measure import LONG
from bench.widen_log import BEGIN, END, PATTERN, TOLD, WITHIN
from transom.app import run_stage as job
from transom.arrays.range_queries import expand_ranges
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR, MICROSECOND, Interval, micros
from transom.engine.hours import quoted
from transom.engine.staging import partitioned
from transom.features.patterns import tables_batches as batches
from transom.features.patterns import tables_matches as matches
from transom.features.patterns.algorithm.batches import AT_A_TIME
from transom.features.patterns.algorithm.matching import RecordWindows, minimal
from transom.features.patterns.records import PatternRecords, of_events
from transom.features.patterns.resolve import PatternBlock, block_of
from transom.features.patterns.tables_matches import common_codes_of, find_instances, match_rows
from transom.features.patterns.work_bounds import hours_of
from transom.ledger.stage import CountingPartitionFunction, StepRequest
from transom.ledger.task_counters import TaskCounters
from transom.storage.session import session
from transom.storage.store import Store, in_hours
from transom.storage.tables import ARROW_TYPES, Table
from transom.stream import load

INTERVAL, COUNTED = Interval(FIRST, TOLD), Interval(BEGIN, END)
SHARE = 100
"""One of how many keys is processed if a fixed window slides by a batch."""
MATCH = {
    "match_id": "string",
    "first_time": "timestamp",
    "last_time": "timestamp",
    "detected_at": "timestamp",
}
TOLD_BY_TASKS = {**MATCH, "counted": "string"}
"""Columns of a task's output: matches, and one row with its counters."""
END_COLUMN = "window_end"


def seen(frame: DataFrame, counted: CountingPartitionFunction) -> tuple[pa.Table, TaskCounters]:
    """Return the matches that tasks find in a data frame, without carried columns, and their counters."""
    schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in TOLD_BY_TASKS.items()])

    def run(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tally = TaskCounters()
        for rows in counted((batch for batch in some if batch.num_rows), tally):
            found = [rows[name] for name in MATCH]
            yield pa.RecordBatch.from_arrays([*found, pa.nulls(rows.num_rows, pa.string())], schema=schema)
        yield pa.RecordBatch.from_pylist([{"counted": tally.to_json()}], schema)

    rows = frame.mapInArrow(run, ddl(TOLD_BY_TASKS)).toArrow()
    tally = TaskCounters()
    for text in rows["counted"].drop_null().to_pylist():
        tally.merge(TaskCounters.of_json(text))
    return rows.filter(rows["match_id"].is_valid()).select(list(MATCH)), tally


def computed(store: Store, block: PatternBlock, events: DataFrame) -> tuple[pa.Table, TaskCounters]:
    """Compute the whole interval at once with the stage's two functions, without writing batches."""
    hours = list(INTERVAL.hours())
    due = {
        ("events", "events"): dict.fromkeys(hours, 1),
        (block.name, batches.TABLE): dict.fromkeys(hours, 1),
    }
    targets, blocks = {block.name: hours}, {block.name: block}
    request = StepRequest(DataFrameTables(store, {"events": events}), targets, {block.name: []}, due)
    (carried,) = batches.batches_of(request, blocks).tasks
    counted = carried.compute_counting
    assert counted is not None
    table = Table.load(batches.TABLE).declare(key=block.key, carried=block.carried_columns())
    kinds = ddl({name: kind for name, kind in table.columns.items() if name != "block"})
    rows = partitioned(carried).mapInArrow(lambda some: counted(some, TaskCounters()), kinds)
    tables = {"events": events, batches.TABLE: rows.withColumn("block", F.lit(block.name))}
    request = StepRequest(DataFrameTables(store, tables), targets, {block.name: []}, due)
    (found,) = matches.matches_of(request, blocks).tasks
    assert found.compute_counting is not None
    return seen(partitioned(found), found.compute_counting)


@dataclass(frozen=True)
class Looking:
    """Apply the detector to windows; a task has all records of its windows.

    Attributes:
        key: the columns that rows of a window share, or those of its key if this has several windows.
        windows: returns of each window of a task's records the first row, the end row (exclusive), and the
            window's end.
        detects: whether to detect; if not, only count what the detector would process.
    """

    block: PatternBlock
    key: Mapping[str, str]
    windows: Callable[[PatternRecords], tuple[Int64s, Int64s, Int64s]]
    detects: bool = True

    def __call__(self, some: Iterable[pa.RecordBatch], tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        """Yield the matches of some keys, each with the end of the first window that contains it."""
        block = self.block
        records = PatternRecords.gathered(some, replace(block, key=self.key))
        if records is None or block.pattern is None:
            return
        first, behind, end = self.windows(records)
        filled = behind > first
        first, behind, end = first[filled], behind[filled], end[filled]
        many = behind - first
        of, at = np.unique(hours_of(end), return_inverse=True)
        tally.add("detector_calls", of, np.bincount(at))
        tally.add("records_shown", of, np.bincount(at, many))
        if not self.detects:
            return
        codes = common_codes_of(records, block)
        stretches = []
        total = np.cumsum(many)
        for taken in np.split(np.arange(len(first)), np.flatnonzero(np.diff(total // AT_A_TIME)) + 1):
            window, rows = expand_ranges(first[taken], behind[taken])
            shown = RecordWindows(
                window,
                records.time[rows],
                records.takes[rows],
                {name: code[rows] for name, code in codes.items()},
            )
            a, b = minimal(block.pattern, shown)
            stretches.append(np.stack([rows[a], rows[b], end[taken][window[b]]]))
        # Report each match once, although a user of fixed windows might not do this.
        found = np.concatenate(stretches, axis=1)
        found = found[:, np.lexsort(found[::-1])]
        new = np.append(True, (np.diff(found[:2]) != 0).any(axis=0))[: found.shape[1]]
        firsts, lasts, ends = found[:, new]
        spans = zip(firsts, lasts, strict=True)
        matched, steps = find_instances(block.pattern, spans, records.time, records.takes, codes)
        yield from match_rows((0, ends, matched, steps), records, block, block.schema(matches.TABLE))


@dataclass(frozen=True)
class Fixed:
    """Windows of one length for every key.

    Attributes:
        length: the length of windows, in microseconds.
        ends: the ends of windows, in microseconds.
    """

    length: int
    ends: Int64s

    def __call__(self, records: PatternRecords) -> tuple[Int64s, Int64s, Int64s]:
        """Return the windows for `Looking`."""
        ends = self.ends
        # One number orders by key, then time; gaps between keys exceed a window's length.
        origin, span = micros(FIRST), micros(TOLD) - micros(FIRST) + 2 * self.length
        ordered = records.key * span + records.time - origin
        keys = np.arange(records.key[-1] + 1)
        until = (keys[:, None] * span + ends - origin).reshape(-1)
        first, behind = (np.searchsorted(ordered, bound) for bound in (until - self.length, until))
        return first, behind, np.tile(ends, len(keys))


def of_groups(records: PatternRecords) -> tuple[Int64s, Int64s, Int64s]:
    """Return a window for each group of rows with the same end."""
    first = np.flatnonzero(np.diff(records.key, prepend=-1))
    end = records.table[END_COLUMN].to_numpy()[first].astype(np.int64)
    return first, np.append(first[1:], len(records.key)), end


def main(way: str, stream_file: str, lake: str, passes: str, result: str) -> None:
    """Run one way several times, and write the seconds of each pass, the work, and the matches."""
    stream = load(Path(stream_file))
    block = block_of(stream, PATTERN)
    spark = session(f"bench {way}")
    store = Store(spark, f"{lake}/{stream.name}")
    within = block.widening.max_length
    kept = Path(result).with_suffix(".kept")
    shutil.rmtree(kept, ignore_errors=True)

    def events() -> DataFrame:
        return spark.read.format("delta").load(f"{store.root}/events")

    def sliding(
        events: DataFrame, slide: int, counted: Interval = COUNTED, detects: bool = True
    ) -> tuple[pa.Table, TaskCounters]:
        ends = np.arange(micros(counted.start) + slide, micros(counted.end) + 1, slide)
        looking = Looking(block, block.key, Fixed(within, ends), detects)
        return seen(of_events(events, block).repartition(*quoted(block.key)), looking)

    def hourly() -> tuple[pa.Table, TaskCounters]:
        """Run a query per hour over the events of its window."""
        found, tally = [], TaskCounters()
        for hour in COUNTED.hours():
            of_window = Interval(hour + HOUR - WITHIN, hour + HOUR)
            rows = events().where(in_hours(of_window.hours()))
            matched, counts = sliding(rows, HOUR // MICROSECOND, Interval.of_hour(hour))
            found.append(matched)
            tally.merge(counts)
        return pa.concat_tables(found), tally

    def sampled() -> DataFrame:
        return events().where(F.pmod(F.xxhash64(*block.key), F.lit(SHARE)) == 0)

    def grouped() -> tuple[pa.Table, TaskCounters]:
        window = F.window("event_time", f"{2 * within} microseconds", f"{within} microseconds")
        ends = F.unix_micros(window["end"])
        key = {**block.key, END_COLUMN: "bigint"}
        rows = of_events(events().withColumn(END_COLUMN, ends), replace(block, key=key))
        return seen(rows.repartition(*key), Looking(block, key, of_groups))

    def staged(copy: str) -> tuple[pa.Table, TaskCounters]:
        job.run_stage(spark, "patterns", stream, INTERVAL, lake=copy)
        found = spark.read.format("delta").load(f"{copy}/{stream.name}/{matches.TABLE}")
        return found.select(*MATCH).toArrow(), TaskCounters()

    ways: dict[str, Callable[[str], tuple[pa.Table, TaskCounters]]] = {
        "computed": lambda place: computed(store, block, events()),
        "stage": staged,
        "sliding": lambda place: sliding(sampled(), block.widening.batch),
        "hourly": lambda place: hourly(),
        "at_once": lambda place: sliding(events(), HOUR // MICROSECOND),
        "grouped": lambda place: grouped(),
    }
    seconds = []
    for number in range(int(passes)):
        place = str(kept / str(number))
        if way == "stage":
            # Runs add files and never change any, so links are a separate lake.
            shutil.copytree(lake, place, copy_function=os.link)
        began = time.monotonic()
        found, tally = ways[way](place)
        seconds.append(round(time.monotonic() - began, 2))
        if seconds[-1] > LONG:
            break
    if way == "sliding":
        tally = sliding(events(), block.widening.batch, detects=False)[1]
    shutil.rmtree(kept, ignore_errors=True)
    pq.write_table(found, Path(result).with_suffix(".parquet"))
    Path(result).write_text(json.dumps({"seconds": seconds, "work": worked(tally)}))
    spark.stop()


def worked(tally: TaskCounters) -> dict[str, int]:
    """Return the work by name, in windows that end in the measured hours."""
    counted = range(micros(BEGIN) // (HOUR // MICROSECOND), micros(END) // (HOUR // MICROSECOND))
    found: dict[str, int] = {}
    for (hour, name), amount in tally.sums.items():
        if hour in counted:
            found[name] = found.get(name, 0) + amount
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
