"""The table `batches`: what the long batches of a pattern are built from, hour by hour.

A batch is the first and the last L records of its time interval. These are among the first and the last L
records of each part of it. So the rows of an hour depend on its events alone, and a window of days is built
from the rows of the requested hours.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transom.arrays.arrow import build_batches
from transom.core.intervals import HOUR_LENGTH
from transom.features.patterns.algorithm.batches import KeyedRecords, keep_first_and_last
from transom.features.patterns.records import PatternRecords, by_key, of_events
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
        events = of_events(request.pins.read("events", set(targets) & requested), block)
        builder = BatchBuilder(block, block.schema(TABLE))
        tasks.append(BlockTask(name, by_key(events, block), compute_counting=builder))
    return StepResult(tasks)


@dataclass(frozen=True)
class BatchBuilder:
    """Computes the rows of a task; `schema` is `block.schema(TABLE)`."""

    block: PatternBlock
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch], counters: TaskCounters) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some keys, given all their records."""
        widening = self.block.widening
        records = PatternRecords.gathered(batches, self.block)
        if records is None:
            return
        length, hour = widening.length(self.block.lowest), records.time // HOUR_LENGTH
        # Batches can end within an hour, if an hour is not a multiple of the shortest ones.
        bounds = [np.diff(column) != 0 for column in (records.key, hour, records.time // length)]
        first = np.flatnonzero(np.append(True, np.logical_or.reduce(bounds)))
        part = np.repeat(np.arange(len(first)), np.diff(first, append=len(hour)))
        cut = keep_first_and_last(KeyedRecords(part, records.time, records.cut), length, widening.max_records)
        set_max(counters, LONGEST_BATCH, hour[first], cut.count)
        rows = records.table.take(pa.array(np.flatnonzero(cut.retained)))
        columns = {
            **{name: rows[name] for name in self.block.record_columns},
            "hour": cut.rows.time // HOUR_LENGTH * HOUR_LENGTH,
            "truncated_after": cut.rows.cut,
        }
        yield from build_batches(rows.num_rows, columns, self.schema)
