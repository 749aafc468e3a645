"""Compare persistent items with an exact count of the same windows."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from transom.arrays.arrow import int64s
from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import Interval, number_of
from transom.engine.hours import extend_back, hour_number, quoted
from transom.features.items.audit import AuditResult, audit_block, compare
from transom.features.items.columns import HOUR_NUMBER, flags
from transom.features.persistence import tables_tuples as tuples
from transom.features.persistence.algorithm.vectorised import WATCHED, ExactTracker
from transom.features.persistence.resolve import PersistenceBlock, persistence_block_of
from transom.features.persistence.spec import Persistence
from transom.ledger.freshness import Freshness
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.store import Store

COUNTS = ("items", "pairs", "persistent", "missed", "transient", "named_wrongly", "below", "beyond")


def audit(
    spark: SparkSession, stream: Stream, interval: Interval, root: str, freshness: Freshness
) -> Iterator[AuditResult]:
    """Count every block exactly in the windows that an interval's published and fresh hours report."""
    store = Store(spark, root)
    for name in stream.blocks(Persistence):
        block = persistence_block_of(stream, name)
        reporting = (hour for hour in interval.hours() if block.tracking.reports(number_of(hour)))
        hours = freshness.readable_hours("persistence", name, tuples.TABLE, reporting)
        count = partial(_count, store, freshness.snapshot, block)
        yield from audit_block(stream, hours, count, partial(result_of, name))


def result_of(block: str, windows: int, counts: Mapping[str, int]) -> AuditResult:
    """Return the audit of a block, with the paper's rates.

    Args:
        block: the name of the block.
        windows: the number of windows.
        counts: `items`. `pairs` of an item and a slot, which an exact count stores. `tuples`. `persistent`
            items, and `missed`, those without a report. `transient` items, which are not persistent, and
            `named_wrongly`, those with a report. `below`, reported items with a persistence below the
            guarantee. `beyond`, items with a persistence outside their bounds.
    """
    rates = {
        "false_negatives": counts["missed"] / max(counts["persistent"], 1),
        "false_positives": counts["named_wrongly"] / max(counts["transient"], 1),
        "space_compression": counts["pairs"] / max(counts["tuples"], 1),
    }
    text = (
        f"{block}, {windows} windows: {counts['missed']} of {counts['persistent']} persistent items"
        f" missed ({rates['false_negatives']:.2%}), {counts['named_wrongly']} of {counts['transient']} others"
        f" named ({rates['false_positives']:.2%}), {counts['below']} below the guarantee, {counts['beyond']}"
        f" outside their bounds; {counts['tuples']} tuples, where an exact count"
        f" stores {counts['pairs']} pairs of item and slot, {rates['space_compression']:.1f} times as many"
    )
    sound = not (counts["below"] or counts["beyond"])
    return AuditResult(block, windows, counts, rates, sound, text)


def _count(
    store: Store, snapshot: LedgerSnapshot, block: PersistenceBlock, hours: Sequence[datetime]
) -> dict[str, int]:
    pins = store.pin({"events", tuples.TABLE}, snapshot.previous_versions())
    read = extend_back(hours, block.back) & snapshot.required_hours
    pairs = tuples.observe_slots(pins.read("events", read), block).where("NOT long")
    rows = pins.read(tuples.TABLE, hours).where(F.col("block") == block.name)
    start, named = F.unix_micros("start").alias("start"), F.col("since").isNotNull().alias("named")
    columns = (hour_number().alias(HOUR_NUMBER), F.col("counted").alias("low"), start, named)
    reported = rows.where(F.col("row_kind") == tuples.ITEM).select(*quoted(block.item), *columns)
    comparison = partial(_compare, block, [number_of(hour) for hour in hours])
    counts = compare(pairs.select(*quoted(block.item), "slot"), reported, block.item, comparison, COUNTS)
    started = (F.col("row_kind") == tuples.TUPLE) & (F.col("instance") != WATCHED)
    return counts | {"tuples": rows.where(started).count()}


def _compare(
    block: PersistenceBlock,
    hours: Sequence[int],
    rows: pa.Table,
    item: Int64s,
    firsts: Int64s,
    is_reported: Bools,
) -> Iterator[dict[str, Any]]:
    """Yield `COUNTS` of some items in the window of each hour; an `items.audit.Comparison`."""
    tracking, params = block.tracking, block.tracking.params
    tracker = ExactTracker(item[~is_reported], int64s(rows["slot"])[~is_reported], len(firsts))
    hour, low, start = (int64s(rows[name]) for name in (HOUR_NUMBER, "low", "start"))
    named = flags(rows["named"])
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
        yield {
            "items": np.count_nonzero(persistence),
            "pairs": persistence.sum(),
            "persistent": np.count_nonzero(persistent),
            "missed": np.count_nonzero(persistent & ~is_named),
            "transient": np.count_nonzero(transient),
            "named_wrongly": np.count_nonzero(transient & is_named),
            "below": np.count_nonzero(is_named & (persistence < params.min_reported)),
            "beyond": np.count_nonzero((truth < lower) | (truth > upper)),
        }
