"""The table `batches`: the records from which the long batches of a pattern are built, hour by hour.

A batch is the first and the last L records of its time interval. These are among the first and the last L
records of each part of it. So the rows of an hour depend on its events alone, and a window of days is built
from the rows of its requested hours.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import numpy as np
import pyarrow as pa

from transom.arrays.arrow import build_batches
from transom.core.intervals import HOUR_LENGTH
from transom.features.patterns.algorithm.batches import KeyedRecords, keep_first_and_last
from transom.features.patterns.records import PatternRecords, events_of
from transom.features.patterns.resolve import PatternBlock
from transom.features.patterns.work_bounds import LONGEST_BATCH, set_max
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.ledger.task_counters import TaskCounters

TABLE = "batches"


def batches_of(request: StepRequest, blocks: Mapping[str, PatternBlock]) -> StepResult:
    """Return the rows of the target hours of each pattern."""
    requested = request.rows.get(("events", "events"), {}).keys()
    tasks = []
    for name, targets in request.targets.items():
        block = blocks[name]
        events = events_of(request.pins, set(targets) & requested, block)
        compute = partial(batch_rows, block, block.schema(TABLE))
        tasks.append(BlockTask(name, events, compute_counting=compute, by=[*block.key]))
    return StepResult(tasks)


def batch_rows(
    block: PatternBlock, schema: pa.Schema, batches: Iterable[pa.RecordBatch], counters: TaskCounters
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some keys, given all their records; `schema` is `block.schema(TABLE)`."""
    records = PatternRecords.gathered(batches, block)
    if records is None:
        return
    length, hour = block.widening.length(block.lowest), records.time // HOUR_LENGTH
    # Long batches can end within an hour, if they are no whole number of hours.
    bounds = [np.diff(column) != 0 for column in (records.key, hour, records.time // length)]
    first = np.flatnonzero(np.append(True, np.logical_or.reduce(bounds)))
    part = np.repeat(np.arange(len(first)), np.diff(first, append=len(hour)))
    rows = KeyedRecords(part, records.time, records.cut)
    cut = keep_first_and_last(rows, length, block.widening.max_records)
    set_max(counters, LONGEST_BATCH, hour[first], cut.count)
    table = records.table.take(pa.array(np.flatnonzero(cut.retained)))
    columns = {
        **{name: table[name] for name in block.record_columns},
        "hour": cut.rows.time // HOUR_LENGTH * HOUR_LENGTH,
        "truncated_after": cut.rows.cut,
    }
    yield from build_batches(table.num_rows, columns, schema)
