"""What the long batches of a pattern are made of, hour by hour.

A batch is the first and the last L records of its stretch of time, and these are among the first and the last
L of each part of it. So what is stored of an hour depends on its own events alone, and a batch of days is put
together when a window is, of the hours that somebody has asked for.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transom.arrays.arrow import as_type
from transom.core.intervals import HOUR_LENGTH
from transom.features.patterns.algorithm.batches import KeyedRecords, keep_first_and_last
from transom.features.patterns.record_rows import of_events, of_one_key
from transom.features.patterns.records import PatternRecords
from transom.features.patterns.resolve import RECORD, PatternBlock
from transom.features.patterns.work_bounds import count_batches
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.ledger.task_counters import TaskCounters
from transom.storage.tables import ARROW_TYPES

TABLE = "batches"


def batches_of(request: StepRequest, blocks: Mapping[str, PatternBlock]) -> StepResult:
    """What is stored of every pattern's target hours."""
    due = request.rows.get(("events", "events"), {}).keys()
    shares = []
    for name, targets in request.targets.items():
        block = blocks[name]
        events = of_events(request.pins.read("events", set(targets) & due), block)
        shares.append(BlockTask(name, of_one_key(events, block), compute_counting=BatchBuilder(block)))
    return StepResult(shares)


@dataclass(frozen=True)
class BatchBuilder:
    """What a task makes of its partition's records."""

    block: PatternBlock

    def __call__(self, batches: Iterable[pa.RecordBatch], tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        """Of some keys, of which these are all records, what is stored."""
        block = self.block
        records = PatternRecords.gathered(batches, block)
        if records is None:
            return
        length, hour = block.widening.length(block.lowest), records.time // HOUR_LENGTH
        # Batches end inside hours, too, where an hour is not a multiple of the shortest one.
        bounds = [np.diff(column) != 0 for column in (records.key, hour, records.time // length)]
        first = np.flatnonzero(np.append(True, np.logical_or.reduce(bounds)))
        part = np.repeat(np.arange(len(first)), np.diff(first, append=len(hour)))
        left = keep_first_and_last(
            KeyedRecords(part, records.time, records.cut), length, block.widening.max_records
        )
        count_batches(tally, hour[first], left.count)
        rows = records.table.take(pa.array(np.flatnonzero(left.retained)))
        columns = {
            **{name: rows[name] for name in block.record_columns},
            "hour": hour[left.retained] * HOUR_LENGTH,
            "truncated_after": left.cut[left.retained],
        }
        schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in kinds_of(block).items()])
        arrays = [as_type(columns[field.name], field.type) for field in schema]
        yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=65536)


def kinds_of(block: PatternBlock) -> dict[str, str]:
    """The columns of `batches` that a pattern fills, with their types."""
    return {
        "hour": "timestamp",
        **block.key,
        **RECORD,
        "step_mask": "bigint",
        "truncated_after": "boolean",
        **block.carried_columns(),
    }
