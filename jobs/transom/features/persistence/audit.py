"""Persistent items beside an exact count of the same windows: what a sketch misses, names wrongly, and saves.

It reads all events of the windows, which the stage need not: so it is asked for, and no part of an hourly
run. What it finds is printed, and stands in the ledger as a run whose cause is `audit`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from transom.arrays.arrow import concat_batches, encode_keys, int64s
from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import Interval, number_of
from transom.engine.hours import extend_back, hour_number, quoted
from transom.features.persistence import tables_tuples as tuples
from transom.features.persistence.algorithm.exact_count import ExactTracker
from transom.features.persistence.algorithm.vectorised import WATCHED
from transom.features.persistence.resolve import PersistenceBlock, persistence_block_of
from transom.features.persistence.spec import Persistence
from transom.features.persistence.tables_tuples import AT, observe_slots
from transom.ledger.freshness import Freshness
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.store import Store

COUNTS = (
    "items", "pairs", "tuples", "persistent", "missed", "transient", "named_wrongly", "below", "beyond",
)  # fmt: skip
"""What is counted, over all windows of a block: items that are seen in one; pairs of an item and a slot,
which an exact count remembers; tuples; items that are persistent, those of them that are missed; others,
those of them that are named; named ones whose share is below `alpha - epsilon`; and ones whose persistence
lies outside of what is told of it."""


@dataclass(frozen=True)
class PersistenceAudit:
    """What an audit has found of a block.

    Attributes:
        windows: how many there are.
        counts: by the names of `COUNTS`.
    """

    block: str
    windows: int
    counts: dict[str, int]

    @property
    def false_negatives(self) -> float:
        """The share of persistent items that are missed."""
        return self.counts["missed"] / max(self.counts["persistent"], 1)

    @property
    def false_positives(self) -> float:
        """The share of other items that are named."""
        return self.counts["named_wrongly"] / max(self.counts["transient"], 1)

    @property
    def space_compression(self) -> float:
        """How many pairs an exact count remembers for each tuple."""
        return self.counts["pairs"] / max(self.counts["tuples"], 1)

    @property
    def rates(self) -> dict[str, float]:
        """What the paper goes by, by name."""
        return {
            "false_negatives": self.false_negatives,
            "false_positives": self.false_positives,
            "space_compression": self.space_compression,
        }

    @property
    def sound(self) -> bool:
        """Whether the guarantee that does not depend on chance holds."""
        return not (self.counts["below"] or self.counts["beyond"])

    def __str__(self) -> str:
        of = self.counts
        return (
            f"{self.block}, {self.windows} windows: {of['missed']} of {of['persistent']} persistent items"
            f" missed ({self.false_negatives:.2%}), {of['named_wrongly']} of {of['transient']} others named"
            f" ({self.false_positives:.2%}), {of['below']} below the guarantee, {of['beyond']} outside their"
            f" bounds; {of['tuples']} tuples for {of['pairs']} pairs, {self.space_compression:.1f} times as"
            " many"
        )


def audit(
    spark: SparkSession, stream: Stream, interval: Interval, root: str, freshness: Freshness
) -> list[PersistenceAudit]:
    """Counts every block exactly over the windows that an interval's hours report.

    Args:
        root: the stream's folder in the lake.
        freshness: hours that are not published and fresh are left out.
    """
    store, book = Store(spark, root), freshness.snapshot
    found = []
    for name in stream.blocks(Persistence):
        block = persistence_block_of(stream, name)
        hours = freshness.readable_hours(
            "persistence", name, tuples.TABLE, filter(block.reports, interval.hours())
        )
        if hours:
            found.append(PersistenceAudit(name, len(hours), _counted(store, book, block, hours)))
    return found


def _counted(
    store: Store, book: LedgerSnapshot, block: PersistenceBlock, hours: Sequence[datetime]
) -> dict[str, int]:
    pins = store.pin({"events", tuples.TABLE}, book.previous_versions())
    due = extend_back(hours, block.back) & book.required_hours
    pairs = (
        observe_slots(pins.read("events", due), block).where("NOT long").select(*quoted(block.item), "slot")
    )
    rows = pins.read(tuples.TABLE, hours).where(F.col("block") == block.name)
    told = rows.where(F.col("row_kind") == tuples.ITEM).select(
        *quoted(block.item),
        hour_number().alias(AT),
        F.col("counted").alias("low"),
        F.unix_micros("start").alias("start"),
        F.col("since").isNotNull().alias("named"),
    )
    together = pairs.unionByName(told, allowMissingColumns=True).repartition(*quoted(block.item))
    made = _PersistenceComparison(block, [number_of(hour) for hour in hours])
    schema = ", ".join(f"{name} bigint" for name in COUNTS)
    counts = together.mapInArrow(made, schema).agg(*(F.sum(name).alias(name) for name in COUNTS)).first()
    assert counts is not None
    found = {name: int(counts[name] or 0) for name in COUNTS}
    chosen = (F.col("row_kind") == tuples.TUPLE) & (F.col("instance") != WATCHED)
    return found | {"tuples": rows.where(chosen).count()}


@dataclass(frozen=True)
class _PersistenceComparison:
    """What a task counts of its items, of which it is given all pairs, and all that is told."""

    block: PersistenceBlock
    hours: Sequence[int]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = concat_batches(batches)
        if table is None:
            return
        item, firsts = encode_keys(table, list(self.block.item))
        is_told = pc.is_valid(table["low"]).to_numpy(zero_copy_only=False)
        pair = ~is_told
        tracker = ExactTracker(item[pair], int64s(table["slot"])[pair], len(firsts))
        told = table.filter(pa.array(is_told))
        of_told, hour = item[is_told], int64s(told[AT])
        low, start = int64s(told["low"]), int64s(told["start"])
        named = told["named"].to_numpy(zero_copy_only=False).astype(bool)
        counts = dict.fromkeys(COUNTS, 0)
        for number in self.hours:
            here = hour == number
            self._add(counts, tracker, number, of_told[here], low[here], start[here], named[here])
        yield pa.RecordBatch.from_pylist([counts])

    def _add(
        self,
        counts: dict[str, int],
        tracker: ExactTracker,
        hour: int,
        item: Int64s,
        low: Int64s,
        start: Int64s,
        named: Bools,
    ) -> None:
        tracking, asked = self.block.tracking, self.block.tracking.params
        last = tracking.slot(hour)
        first = last - asked.slots + 1
        persistence = tracker.persistences(first, last)
        is_named = np.zeros(len(persistence), dtype=bool)
        is_named[item[named]] = True
        persistent = persistence >= asked.min_certain
        transient = (persistence > 0) & ~persistent
        high = low + start // tracking.length - first
        of = persistence[item]
        for name, which in {
            "items": persistence > 0,
            "persistent": persistent,
            "missed": persistent & ~is_named,
            "transient": transient,
            "named_wrongly": transient & is_named,
            "below": is_named & (persistence < asked.min_reported),
            "beyond": (of < low) | (of > high),
        }.items():
            counts[name] += int(np.count_nonzero(which))
        counts["pairs"] += int(persistence.sum())
