"""Compare persistent items with an exact count of the same windows.

The audit reads all events of the windows, so it is no part of an hourly run. The ledger records it as a run
whose cause is `audit`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from transom.arrays.arrow import int64s
from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import Interval, number_of
from transom.engine.hours import extend_back, quoted
from transom.features.items.audit import compare
from transom.features.items.columns import HOUR_NUMBER, flags, numbered_hour
from transom.features.persistence import tables_tuples as tuples
from transom.features.persistence.algorithm.exact_count import ExactTracker
from transom.features.persistence.algorithm.vectorised import WATCHED
from transom.features.persistence.resolve import PersistenceBlock, persistence_block_of
from transom.features.persistence.spec import Persistence
from transom.ledger.freshness import Freshness
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.store import Store

COUNTS = ("items", "pairs", "persistent", "missed", "transient", "named_wrongly", "below", "beyond")


@dataclass(frozen=True)
class PersistenceAudit:
    """The audit of a block.

    Attributes:
        windows: the number of windows.
        counts: over all windows: `items`; `pairs` of an item and a slot, which an exact count stores;
            `tuples`; `persistent` items, and those of them that are `missed`; `transient` ones, which are not
            persistent, and those of them that are `named_wrongly`; reported items with a persistence `below`
            the guarantee; and items with a persistence `beyond` their bounds.
    """

    block: str
    windows: int
    counts: dict[str, int]

    @property
    def rates(self) -> dict[str, float]:
        """The paper's measures: the share of persistent items that are missed, the share of others that are
        reported, and the number of pairs for each tuple."""
        counts = self.counts
        return {
            "false_negatives": counts["missed"] / max(counts["persistent"], 1),
            "false_positives": counts["named_wrongly"] / max(counts["transient"], 1),
            "space_compression": counts["pairs"] / max(counts["tuples"], 1),
        }

    @property
    def sound(self) -> bool:
        """Whether the guarantees that do not depend on chance hold."""
        return not (self.counts["below"] or self.counts["beyond"])

    def __str__(self) -> str:
        of, rates = self.counts, self.rates
        return (
            f"{self.block}, {self.windows} windows: {of['missed']} of {of['persistent']} persistent items"
            f" missed ({rates['false_negatives']:.2%}), {of['named_wrongly']} of {of['transient']} others"
            f" named ({rates['false_positives']:.2%}), {of['below']} below the guarantee, {of['beyond']}"
            f" outside their bounds; {of['tuples']} tuples for {of['pairs']} pairs,"
            f" {rates['space_compression']:.1f} times as many"
        )


def audit(
    spark: SparkSession, stream: Stream, interval: Interval, root: str, freshness: Freshness
) -> list[PersistenceAudit]:
    """Count every block exactly in the windows that an interval's hours report.

    Args:
        root: the folder of the stream's tables.
        freshness: hours that are not published and fresh are skipped.
    """
    store, audits = Store(spark, root), []
    for name in stream.blocks(Persistence):
        block = persistence_block_of(stream, name)
        reporting = (hour for hour in interval.hours() if block.tracking.reports(number_of(hour)))
        hours = freshness.readable_hours("persistence", name, tuples.TABLE, reporting)
        if hours:
            counts = _compared(store, freshness.snapshot, block, hours)
            audits.append(PersistenceAudit(name, len(hours), counts))
    return audits


def _compared(
    store: Store, snapshot: LedgerSnapshot, block: PersistenceBlock, hours: Sequence[datetime]
) -> dict[str, int]:
    pins = store.pin({"events", tuples.TABLE}, snapshot.previous_versions())
    read = extend_back(hours, block.back) & snapshot.required_hours
    pairs = tuples.observe_slots(pins.read("events", read), block).where("NOT long")
    rows = pins.read(tuples.TABLE, hours).where(F.col("block") == block.name)
    reported = rows.where(F.col("row_kind") == tuples.ITEM).select(
        *quoted(block.item),
        numbered_hour(),
        F.col("counted").alias("low"),
        F.unix_micros("start").alias("start"),
        F.col("since").isNotNull().alias("named"),
    )
    counted = pairs.select(*quoted(block.item), "slot")
    comparison = partial(_compare, block, [number_of(hour) for hour in hours])
    started = (F.col("row_kind") == tuples.TUPLE) & (F.col("instance") != WATCHED)
    return compare(counted, reported, block.item, comparison, COUNTS) | {
        "tuples": rows.where(started).count()
    }


def _compare(
    block: PersistenceBlock,
    hours: Sequence[int],
    rows: pa.Table,
    item: Int64s,
    firsts: Int64s,
    is_reported: Bools,
) -> dict[str, int]:
    """Return `COUNTS` of some items in the windows of some hours; an `items.audit.Comparison`."""
    tracking, params = block.tracking, block.tracking.params
    tracker = ExactTracker(item[~is_reported], int64s(rows["slot"])[~is_reported], len(firsts))
    hour, low, start = (int64s(rows[name]) for name in (HOUR_NUMBER, "low", "start"))
    named, counts = flags(rows["named"]), dict.fromkeys(COUNTS, 0)
    for number in hours:
        last = tracking.slot(number)
        first = last - params.slots + 1
        of_hour = is_reported & (hour == number)
        persistence, is_named = tracker.persistences(first, last), np.zeros(len(firsts), dtype=bool)
        is_named[item[of_hour & named]] = True
        persistent = persistence >= params.min_certain
        transient = (persistence > 0) & ~persistent
        truth, lower = persistence[item[of_hour]], low[of_hour]
        upper = lower + start[of_hour] // tracking.length - first
        for name, which in {
            "items": persistence > 0,
            "persistent": persistent,
            "missed": persistent & ~is_named,
            "transient": transient,
            "named_wrongly": transient & is_named,
            "below": is_named & (persistence < params.min_reported),
            "beyond": (truth < lower) | (truth > upper),
        }.items():
            counts[name] += int(np.count_nonzero(which))
        counts["pairs"] += int(persistence.sum())
    return counts
