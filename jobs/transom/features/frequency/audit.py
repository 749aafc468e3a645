"""Compare frequencies with an exact count of the same windows.

The audit measures the error of a sketch, and how often it exceeds `epsilon` of the records. Variants that
forget approximately have no bound for that.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from transom.arrays.arrow import int64s
from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import Interval, number_of
from transom.engine.hours import extend_back, hour_number, quoted
from transom.features.frequency import tables_cells as cells
from transom.features.frequency import tables_frequencies as frequencies
from transom.features.frequency import tables_tick_matrices as tick_matrices
from transom.features.frequency.algorithm.row_hashes import columns_of
from transom.features.frequency.algorithm.window_sketch import WindowSketch
from transom.features.frequency.resolve import FrequencyBlock, frequency_block_of
from transom.features.frequency.spec import NEVER_BELOW, Frequency
from transom.features.frequency.windows import Hours, rows_of_windows
from transom.features.items.audit import AuditResult, audit_block, compare
from transom.features.items.bytes import bytes_of
from transom.features.items.columns import HOUR_NUMBER
from transom.ledger.freshness import Freshness
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.store import Store

COUNTS = ("items", "records", "error", "most", "beyond", "below", "outside")


def audit(
    spark: SparkSession, stream: Stream, interval: Interval, root: str, freshness: Freshness
) -> Iterator[AuditResult]:
    """Count every block exactly in the windows that an interval's published and fresh hours report."""
    store = Store(spark, root)
    for name in stream.blocks(Frequency):
        block = frequency_block_of(stream, name)
        hours = freshness.readable_hours("frequency", name, frequencies.TABLE, interval.hours())
        count = partial(_count, store, freshness.snapshot, block)
        yield from audit_block(stream, hours, count, partial(result_of, name, block.variant))


def result_of(block: str, variant: str, windows: int, counts: Mapping[str, int]) -> AuditResult:
    """Return the audit of a block.

    Args:
        block: the name of the block.
        variant: its variant.
        windows: the number of windows.
        counts: `items` and `records`. `error`, the sum of the differences between estimates and true counts,
            and `most`, their maximum. `beyond`, the estimates too large by `epsilon` of the other items'
            records or more. `below`, those too small. `outside`, the reported items whose true count is
            outside their bounds.
    """
    items = max(counts["items"], 1)
    rates = {"mean_error": counts["error"] / items, "beyond_epsilon": counts["beyond"] / items}
    text = (
        f"{block}, {variant}, {windows} windows: {counts['items']} items of {counts['records']} "
        f"records, wrong by {rates['mean_error']:.2f} on average and {counts['most']} at most;"
        f" {counts['beyond']} too large by epsilon or more ({rates['beyond_epsilon']:.2%}),"
        f" {counts['below']} too small, {counts['outside']} outside the published bounds"
    )
    sound = not (counts["outside"] or (variant in NEVER_BELOW and counts["below"]))
    return AuditResult(block, windows, counts, rates, sound, text)


def _count(
    store: Store, snapshot: LedgerSnapshot, block: FrequencyBlock, hours: Sequence[datetime]
) -> dict[str, int]:
    tables = {"events", tick_matrices.TABLE, frequencies.TABLE, *([cells.TABLE] if block.chained else [])}
    pins, required = store.pin(tables, snapshot.previous_versions()), snapshot.required_hours
    windows = extend_back(hours, block.back) & required
    rows = rows_of_windows(pins, block, windows, hours)
    if isinstance(rows, DataFrame):
        # Sketches need no items.
        of_sketch = F.col("row_kind").isNull() | (F.col("row_kind") == tick_matrices.WHOLE)
        rows = rows.where(of_sketch).toArrow()
    of_hours = Hours(block, rows.combine_chunks())
    sketches = [of_hours.sketch(number_of(hour)) for hour in hours]
    read = required if block.variant == "vanilla" else windows
    counted = tick_matrices.count_by_tick(pins.read("events", read), block).where("NOT long")
    counted = counted.groupBy(*quoted(block.item), HOUR_NUMBER).agg(F.sum("records").alias("records"))
    reported = pins.read(frequencies.TABLE, hours)
    reported = reported.where((F.col("block") == block.name) & F.col("low").isNotNull())
    reported = reported.select(*quoted(block.item), hour_number().alias(HOUR_NUMBER), "low", "high")
    return compare(counted, reported, block.item, partial(_compare, block, sketches), COUNTS)


def _compare(
    block: FrequencyBlock,
    sketches: Sequence[WindowSketch],
    rows: pa.Table,
    item: Int64s,
    firsts: Int64s,
    is_reported: Bools,
) -> Iterator[dict[str, Any]]:
    """Yield `COUNTS` of some items in the window of each sketch; an `items.audit.Comparison`."""
    shape = block.shape
    keys = bytes_of(rows.select(list(block.item)).take(pa.array(firsts)))
    columns = columns_of(keys, shape)
    hour, records, low, high = (int64s(rows[name]) for name in (HOUR_NUMBER, "records", "low", "high"))
    for sketch in sketches:
        last = sketch.step // block.ticks
        first = block.first_hour
        if block.variant != "vanilla":
            first = max(first, last - block.hours + 1)
        of_window = ~is_reported & (hour >= first) & (hour <= last)
        truth = np.zeros(len(keys), dtype=np.int64)
        np.add.at(truth, item[of_window], records[of_window])
        of_report = is_reported & (hour == last)
        actual = truth[item[of_report]]
        present = truth > 0
        off = (sketch.estimates_at(columns) - truth)[present]
        bound = shape.epsilon * (sketch.records - truth[present])
        yield {
            "items": np.count_nonzero(present),
            "records": truth.sum(),
            "error": np.abs(off).sum(),
            "most": np.abs(off).max(initial=0),
            "beyond": np.count_nonzero((off > 0) & (off >= bound)),
            "below": np.count_nonzero(off < 0),
            "outside": np.count_nonzero((actual < low[of_report]) | (actual > high[of_report])),
        }
