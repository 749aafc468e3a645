"""Records of patterns as a task has them: of many keys, in their total order."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from transom.arrays.arrow import concat_batches, encode_keys, int64s, ranks
from transom.core.exact_sums import Bools, Int64s
from transom.features.patterns.algorithm.batches import KeyedRecords
from transom.features.patterns.resolve import PatternBlock


@dataclass(frozen=True)
class PatternRecords:
    """Rows of records, by key and then by time, file and line; a record may have two, from the events and
    from what is stored of an hour.

    Attributes:
        table: the rows.
        key: their keys' codes, ascending.
        stored: which are from the latter.
        cut: whether records have been cut out behind a row.
    """

    table: pa.Table
    key: Int64s
    stored: Bools
    time: Int64s
    cut: Bools

    @classmethod
    def gathered(cls, batches: Iterable[pa.RecordBatch], block: PatternBlock) -> "PatternRecords | None":
        """Of all rows that a task is given; None where there is none."""
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
        return cls(table, key[order], stored, time[order], cut)

    @cached_property
    def takes(self) -> Int64s:
        """Of each row, the bits of the conditions that its record meets."""
        return int64s(self.table["step_mask"])

    def rows(self, places: Int64s, cut: Bools) -> KeyedRecords:
        """Some rows as batches are made of them.

        Args:
            cut: of these rows, whether records have been cut out behind each.
        """
        return KeyedRecords(self.key[places], self.time[places], cut)
