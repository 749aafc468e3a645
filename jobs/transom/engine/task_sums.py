"""Digest, number, size and metrics of the rows that a task writes, by hour."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.exact_sums import Int64s
from transom.core.intervals import moment_of
from transom.core.partitions import format_digest
from transom.engine.arrow_metrics import ArrowMetric, Sums
from transom.storage.digest import sums_of_hashes
from transom.storage.driver_io import row_bytes
from transom.storage.row_hashes import row_hashes

HASHES, BYTES = "__hash", "__bytes"
"""Names of sums that belong to no metric."""


@dataclass(frozen=True)
class RowMeasures:
    """The measures of the rows of a block.

    Attributes:
        hashed: the columns that the digest covers.
        columns: the number of columns of the table.
        metrics: the metrics, by name.
    """

    hashed: Sequence[str]
    columns: int
    metrics: Mapping[str, ArrowMetric]

    def aggregates(self, sums: Mapping[str, Sequence[Sums]]) -> dict[str, Any]:
        """Return the aggregates of rows from all their sums, by name, as `measurement.aggregate_rows`."""
        total, count = map(sum, zip(*sums[HASHES], strict=True))
        return {
            "count": count,
            "digest": format_digest(count, total),
            "bytes": sum(size for size, _ in sums[BYTES]),
            **{name: metric.value(sums[name]) for name, metric in self.metrics.items()},
        }

    def by_hour(self, sums: Mapping[int, Mapping[str, Sums]]) -> dict[datetime, dict[str, Any]]:
        """Return the aggregates of each hour from its sums, as of `TaskSums.by_hour`."""
        return {
            moment_of(hour): self.aggregates({name: [of] for name, of in named.items()})
            for hour, named in sums.items()
        }


class TaskSums:
    """Sums over the rows of a task, by hour.

    Attributes:
        by_hour: the sums of each hour since the epoch, by name.
    """

    def __init__(self, measures: RowMeasures) -> None:
        self._measures = measures
        self.by_hour: dict[int, dict[str, Sums]] = {}

    def add(self, rows: pa.RecordBatch, hours: Int64s, starts: Int64s) -> None:
        """Add rows; the arguments are the result of `sort_by_hour`."""
        counts = np.diff(starts, append=rows.num_rows).tolist()
        totals = sums_of_hashes(row_hashes(rows, self._measures.hashed), starts)
        sizes = np.add.reduceat(row_bytes(rows, self._measures.columns), starts).tolist()
        sums: dict[str, Iterable[Sums]] = {
            HASHES: zip(totals, counts, strict=True),
            BYTES: zip(sizes, counts, strict=True),
            **{name: metric.sums(rows, starts) for name, metric in self._measures.metrics.items()},
        }
        for name, of_slices in sums.items():
            for hour, (total, count) in zip(hours.tolist(), of_slices, strict=True):
                of_hour = self.by_hour.setdefault(hour, {})
                before = of_hour.get(name, (0, 0))
                of_hour[name] = before[0] + total, before[1] + count
