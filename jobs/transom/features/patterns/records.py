"""The records of a pattern: Spark selects them from events and stored batches, then a task sorts them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import concat_batches, encode_keys, int64s, ranks
from transom.core.exact_sums import Bools, Int64s
from transom.engine.hours import quoted, read_events
from transom.features.patterns.algorithm.batches import KeyedRecords
from transom.features.patterns.custom_detector import Record
from transom.features.patterns.resolve import RECORD, PatternBlock
from transom.features.patterns.validate import carried_column
from transom.storage.store import PinnedTables


def events_of(pins: PinnedTables, hours: Iterable[datetime], block: PatternBlock) -> DataFrame:
    """Return the events of some hours that are records of a pattern, as `of_events`."""
    columns = {*block.key, *RECORD, *block.carried}
    return of_events(read_events(pins, hours, columns, block.takes, *block.conditions), block)


def of_events(events: DataFrame, block: PatternBlock) -> DataFrame:
    """Select the events that are records of a pattern, with the columns of its records."""
    if block.takes is not None:
        events = events.where(F.expr(block.takes))
    met = [
        F.when(F.expr(sql), F.lit(1 << bit)).otherwise(F.lit(0)).cast("bigint")
        for bit, sql in enumerate(block.conditions)
    ]
    return events.select(
        F.lit(False).alias("stored"),
        *quoted([*block.key, *RECORD]),
        reduce(Column.bitwiseOR, met, F.lit(0)).cast("bigint").alias("step_mask"),
        F.lit(False).alias("truncated_after"),
        *(F.col(f"`{name}`").alias(carried_column(name)) for name in block.carried),
    )


@dataclass(frozen=True)
class PatternRecords(KeyedRecords):
    """All records of a task, ordered by key, time, file and line. A record may occur twice: from the events,
    and from a stored batch.

    Attributes:
        table: the rows.
        stored: whether each row is from a stored batch.
        takes: the mask of the conditions that each record meets.
    """

    table: pa.Table
    stored: Bools
    takes: Int64s

    @classmethod
    def gathered(cls, batches: Iterable[pa.RecordBatch], block: PatternBlock) -> "PatternRecords | None":
        """Return the sorted rows of a task; None if there are none."""
        table = concat_batches(batches)
        if table is None:
            return None
        key, _ = encode_keys(table, list(block.key))
        time = int64s(table["event_time"])
        order = np.lexsort((int64s(table["source_line"]), ranks(table["source_id"]), time, key))
        table = table.take(pa.array(order))
        stored, cut = (
            table[name].to_numpy(zero_copy_only=False).astype(bool) for name in ("stored", "truncated_after")
        )
        return cls(key[order], time[order], cut, table, stored, int64s(table["step_mask"]))

    def shown(self, block: PatternBlock) -> list[Record]:
        """Return all records as a custom detector gets them."""
        columns = list(dict.fromkeys([*block.key, *block.columns]))
        values = self.table.select([block.record_column(column) for column in columns]).to_pydict().values()
        rows = zip(*values, strict=True) if columns else [()] * len(self.time)
        times = self.table["event_time"].to_pylist()
        return [
            Record(time, dict(zip(columns, row, strict=True))) for time, row in zip(times, rows, strict=True)
        ]
