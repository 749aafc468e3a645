"""Recurring items of the stage `aggregates`: what comes back at every granularity.

Two tables. `item_granules`, state: how often each item of a key comes in each granule of an hour, by Spark's
own groupBy. `recurring`, the result: items that are in every ring between neighbouring levels when the widest
one reports (`transom.features.aggregates.algorithm.recurring`), by one vectorised pass over each partition
of keys and items.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from transom.arrays.arrow import as_type, concat_batches, encode_keys, hour_of_end, int64s, overlaps_any
from transom.core.exact_sums import Int64s
from transom.engine.hours import extend_back, granule, hours_of, incomplete_hours, quoted, to_ranges
from transom.features.aggregates.algorithm.granules import Granules
from transom.features.aggregates.algorithm.recurring import recurring
from transom.features.aggregates.events import select_events
from transom.features.aggregates.resolve import AggregateBlock
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.storage.tables import ARROW_TYPES


def item_granules_of(request: StepRequest, blocks: Mapping[str, AggregateBlock]) -> StepResult:
    """How often each item comes, in every granule of every block's target hours."""
    hours = hours_of(request)
    events = request.pins.read("events", hours)
    shares = []
    for name, targets in request.targets.items():
        block = blocks[name]
        with_item = select_events(events, block, targets, hours).dropna(subset=list(block.item))
        shares.append(
            BlockTask(
                name,
                with_item.groupBy(
                    "hour", granule(block.item_base), *quoted(block.key), *quoted(block.item)
                ).agg(F.count("*").alias("records")),
            )
        )
    return StepResult(shares)


def recurring_of(request: StepRequest, blocks: Mapping[str, AggregateBlock]) -> StepResult:
    """The items that are recurring when the widest level reports in every block's target hours."""
    shares = []
    for name, targets in request.targets.items():
        block = blocks[name]
        of_items = [*quoted(block.key), *quoted(block.item)]
        needed = extend_back(targets, block.reach_of(block.levels[-1]))
        rows = request.pins.read("item_granules", needed).where(F.col("block") == name)
        # The granules of one item of a key have to meet in one pass, and no others.
        rows = rows.select("granule", *of_items, "records").repartition(*of_items)
        made = RecurringItems(block, to_ranges(targets), incomplete_hours(request, name))
        shares.append(BlockTask(name, rows, made))
    return StepResult(shares)


@dataclass(frozen=True)
class RecurringItems:
    """What a task makes of its partition's granules of items.

    Attributes:
        ranges: in which reports are wanted, as `Granules.windows` takes them.
        incomplete: the hours in which something is missing, in microseconds, ordered.
    """

    block: AggregateBlock
    ranges: Sequence[tuple[int, int]]
    incomplete: Int64s

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The recurring ones of some items, of which these are all granules."""
        table = concat_batches(batches)
        if table is None:
            return
        block = self.block
        # A column may belong to the key and to the item.
        names = list(dict.fromkeys([*block.key, *block.item]))
        of_items, firsts = encode_keys(table, names)
        granules = Granules(of_items, int64s(table["granule"]), int64s(table["records"]), {}).ordered()
        found = recurring(granules, block.item_base, block.levels, self.ranges)
        pairs = table.select(names).take(pa.array(firsts[found.code]))
        rings = len(block.levels)
        offsets = np.arange(0, rings * len(found.end) + 1, rings, dtype=np.int32)
        counts = pa.ListArray.from_arrays(pa.array(offsets), pa.array(found.counts.T.reshape(-1)))
        columns = {
            "window_end": found.end,
            **{name: pairs[name] for name in names},
            "counts": counts,
            "complete": ~overlaps_any(found.end - block.levels[-1].range, found.end, self.incomplete),
            "hour": hour_of_end(found.end),
        }
        kinds = {
            "window_end": "timestamp",
            **block.key,
            **block.item,
            "counts": "array<bigint>",
            "complete": "boolean",
            "hour": "timestamp",
        }
        schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in kinds.items()])
        arrays = [as_type(columns[field.name], field.type) for field in schema]
        yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=65536)
