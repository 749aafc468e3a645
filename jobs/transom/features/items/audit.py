"""Compare reported items with an exact count of the same windows.

The audit reads all events of the windows, so it is no part of an hourly run. The ledger records it as a run
with the trigger `audit`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import concat_batches, encode_keys
from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import HOUR
from transom.engine.hours import quoted
from transom.spec.stream import Stream

Comparison = Callable[[pa.Table, Int64s, Int64s, Bools], Iterator[dict[str, Any]]]
"""Yields the counts of some items, window by window.

Its arguments are all rows of the items, the code of each row's item, the first row of each code, and a flag
for reported rows.
"""
MAXIMA = ("most",)
"""Counts whose maximum over the windows is reported; others are added."""


@dataclass(frozen=True)
class AuditResult:
    """The audit of a block.

    Attributes:
        block: the name of the block.
        windows: the number of windows.
        counts: the counts over all windows and their items.
        rates: shares and means of the counts.
        sound: whether the guarantees that do not depend on chance hold.
        text: the result as a text.
    """

    block: str
    windows: int
    counts: Mapping[str, int]
    rates: Mapping[str, float]
    sound: bool
    text: str

    def __str__(self) -> str:
        return self.text


def audit_block(
    stream: Stream,
    hours: Sequence[datetime],
    count: Callable[[Sequence[datetime]], Mapping[str, int]],
    result: Callable[[int, Mapping[str, int]], AuditResult],
) -> Iterator[AuditResult]:
    """Yield the audit of the windows that end with some hours, if there are any.

    Args:
        stream: the stream, for the length of a chunk.
        hours: the last hours of the windows, ascending.
        count: returns the counts of the windows of a chunk of hours.
        result: returns the audit of a number of windows with these counts.
    """
    chunk = stream.chunk // HOUR
    counts = [count(hours[begin : begin + chunk]) for begin in range(0, len(hours), chunk)]
    if counts:
        totals = {name: (max if name in MAXIMA else sum)(of[name] for of in counts) for name in counts[0]}
        yield result(len(hours), totals)


def compare(
    counted: DataFrame, reported: DataFrame, item: Iterable[str], comparison: Comparison, names: Sequence[str]
) -> dict[str, int]:
    """Return the counts of all items.

    Args:
        counted: rows of an exact count of the items.
        reported: the reported rows, each with `low`.
        item: the columns of an item.
        comparison: compares the rows of some items.
        names: the names of the counts.
    """
    columns = list(item)

    def compute(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = concat_batches(batches)
        if table is not None:
            is_reported = pc.is_valid(table["low"]).to_numpy(zero_copy_only=False)
            counts = comparison(table, *encode_keys(table, columns), is_reported)
            yield pa.RecordBatch.from_pylist(list(counts)).select(names)

    rows = counted.unionByName(reported, allowMissingColumns=True).repartition(*quoted(columns))
    totals = [(F.max if name in MAXIMA else F.sum)(name).alias(name) for name in names]
    row = rows.mapInArrow(compute, ", ".join(f"{name} bigint" for name in names)).agg(*totals).first()
    assert row is not None
    return {name: int(row[name] or 0) for name in names}
