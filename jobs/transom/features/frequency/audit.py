"""Frequencies beside an exact count of the same windows: by how much a sketch is wrong, and how often by more
than `epsilon` of the records, which the variants that forget as they go do not promise.

It counts all items of the windows, which the stage need not: so it is asked for, and no part of an hourly
run."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from transom.arrays.arrow import concat_batches, encode_keys, int64s
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH, Interval, number_of
from transom.engine.hours import extend_back, hour_number, quoted
from transom.features.frequency import tables_cells as cells
from transom.features.frequency import tables_frequencies as frequencies
from transom.features.frequency import tables_tick_matrices as tick_matrices
from transom.features.frequency.algorithm.row_hash_arrays import columns_of
from transom.features.frequency.algorithm.window_sketch import WindowSketch
from transom.features.frequency.resolve import FrequencyBlock, frequency_block_of
from transom.features.frequency.spec import NEVER_BELOW, Frequency
from transom.features.frequency.tables_tick_matrices import AT, counts
from transom.features.frequency.windows import Hours, rows_of_windows
from transom.features.items.bytes import bytes_of
from transom.ledger.freshness import Freshness
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.store import PinnedTables, Store

SUMS = ("items", "records", "error", "beyond", "below", "outside")
MAX_COLUMN = "most"


@dataclass(frozen=True)
class FrequencyAudit:
    """What an audit has found of a block, over all its windows and their items.

    Attributes:
        variant: how records are forgotten.
        windows: how many there are.
        counts: `items`; `records`; `error`, by how much the sketch's estimates differ from the truth, all
            together; `most`, by how much one does at most; `beyond`, how many are too large by `epsilon` of
            the records of others, or more; `below`, how many are too small; `outside`, of how many that
            are told the truth lies outside of what is told.
    """

    block: str
    variant: str
    windows: int
    counts: dict[str, int]

    @property
    def rates(self) -> dict[str, float]:
        """The mean error, and the share of items whose estimate is too large by `epsilon` or more."""
        items = max(self.counts["items"], 1)
        return {"mean_error": self.counts["error"] / items, "beyond_epsilon": self.counts["beyond"] / items}

    @property
    def sound(self) -> bool:
        """Whether what does not depend on chance holds."""
        return not (self.counts["outside"] or (self.variant in NEVER_BELOW and self.counts["below"]))

    def __str__(self) -> str:
        of, rates = self.counts, self.rates
        return (
            f"{self.block}, {self.variant}, {self.windows} windows: {of['items']} items of {of['records']} "
            f"records, wrong by {rates['mean_error']:.2f} on average and {of['most']} at most;"
            f" {of['beyond']} too large by epsilon or more ({rates['beyond_epsilon']:.2%}),"
            f" {of['below']} too small, {of['outside']} outside of what is told"
        )


def audit(
    spark: SparkSession, stream: Stream, interval: Interval, root: str, freshness: Freshness
) -> list[FrequencyAudit]:
    """Counts every block exactly over the windows that an interval's hours report, chunk by chunk.

    Args:
        root: the stream's folder in the lake.
        freshness: hours that are not published and fresh are left out.
    """
    store, book = Store(spark, root), freshness.snapshot
    found = []
    for name in stream.blocks(Frequency):
        block = frequency_block_of(stream, name)
        hours = freshness.readable_hours("frequency", name, frequencies.TABLE, interval.hours())
        many = stream.chunk // timedelta(hours=1)
        portions = [hours[n : n + many] for n in range(0, len(hours), many)]
        each = [_counted(store, book, block, portion) for portion in portions]
        if each:
            sums = {name: sum(one[name] for one in each) for name in SUMS}
            most = max(one[MAX_COLUMN] for one in each)
            found.append(FrequencyAudit(name, block.variant, len(hours), sums | {MAX_COLUMN: most}))
    return found


def _counted(
    store: Store, book: LedgerSnapshot, block: FrequencyBlock, hours: Sequence[datetime]
) -> dict[str, int]:
    tables = {"events", tick_matrices.TABLE, frequencies.TABLE, *([cells.TABLE] if block.chained else [])}
    pins = store.pin(tables, book.previous_versions())
    sketches = _sketches(pins, book, block, hours)
    due = (
        book.required_hours
        if block.variant == "vanilla"
        else extend_back(hours, block.back) & book.required_hours
    )
    seen = counts(pins.read("events", due), block).where("NOT long")
    seen = seen.groupBy(*quoted(block.item), AT).agg(F.sum("records").alias("records"))
    told = pins.read(frequencies.TABLE, hours).where(
        (F.col("block") == block.name) & F.col("low").isNotNull()
    )
    told = told.select(*quoted(block.item), hour_number().alias(AT), "low", "high")
    together = seen.unionByName(told, allowMissingColumns=True).repartition(*quoted(block.item))
    made = _FrequencyComparison(block, sketches)
    schema = ", ".join(f"{name} bigint" for name in (*SUMS, MAX_COLUMN))
    row = (
        together.mapInArrow(made, schema)
        .agg(*(F.sum(name).alias(name) for name in SUMS), F.max(MAX_COLUMN).alias(MAX_COLUMN))
        .first()
    )
    assert row is not None
    return {name: int(row[name] or 0) for name in (*SUMS, MAX_COLUMN)}


def _sketches(
    pins: PinnedTables, book: LedgerSnapshot, block: FrequencyBlock, hours: Sequence[datetime]
) -> list[WindowSketch]:
    """What the windows of some hours hold: a matrix each."""
    rows = rows_of_windows(pins, block, extend_back(hours, block.back) & book.required_hours, hours)
    of_cells = F.col("row_kind").isNull()
    rows = rows.where(of_cells | (F.col("row_kind") == tick_matrices.WHOLE))
    of = Hours.of(block, rows.toArrow().combine_chunks())
    return [of.sketch(number_of(hour)) for hour in hours]


@dataclass(frozen=True)
class _FrequencyComparison:
    """What a task counts of its items, of which it has all rows."""

    block: FrequencyBlock
    sketches: Sequence[WindowSketch]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = concat_batches(batches)
        if table is None:
            return
        columns = list(self.block.item)
        item, firsts = encode_keys(table, columns)
        keys, shape = bytes_of(table.select(columns).take(pa.array(firsts))), self.block.shape
        of_items = columns_of(keys, shape.rows, shape.columns, shape.seed)
        is_told = pc.is_valid(table["low"]).to_numpy(zero_copy_only=False)
        hour, records = int64s(table[AT]), int64s(table["records"])
        low, high = int64s(table["low"]), int64s(table["high"])
        found = dict.fromkeys((*SUMS, MAX_COLUMN), 0)
        for sketch in self.sketches:
            last = sketch.step // self.block.ticks
            here = ~is_told & (hour >= self._first(last)) & (hour <= last)
            truth = np.zeros(len(keys), dtype=np.int64)
            np.add.at(truth, item[here], records[here])
            told = is_told & (hour == last)
            of_told = truth[item[told]]
            found["outside"] += int(np.count_nonzero((of_told < low[told]) | (of_told > high[told])))
            self._add(found, sketch, truth, sketch.estimates_at(of_items))
        yield pa.RecordBatch.from_pylist([found])

    def _first(self, last: int) -> int:
        start = (self.block.start or 0) // HOUR_LENGTH
        return start if self.block.variant == "vanilla" else max(start, last - self.block.hours + 1)

    def _add(self, found: dict[str, int], sketch: WindowSketch, truth: Int64s, estimate: Int64s) -> None:
        there = truth > 0
        off = (estimate - truth)[there]
        bound = self.block.shape.epsilon * (sketch.records - truth[there])
        found["items"] += int(np.count_nonzero(there))
        found["records"] += int(truth.sum())
        found["error"] += int(np.abs(off).sum())
        found["most"] = max(found["most"], int(np.abs(off).max(initial=0)))
        found["beyond"] += int(np.count_nonzero((off > 0) & (off >= bound)))
        found["below"] += int(np.count_nonzero(off < 0))
