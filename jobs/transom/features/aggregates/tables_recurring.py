"""Recurring items of aggregates: those that occur at every granularity.

`item_granules`, state: the number of records of each item of a key in each granule of an hour, by Spark's
groupBy. `recurring`, the result: the items that occur in every ring between neighbouring levels when the
widest level reports (`algorithm.rings`), by one vectorised pass over each partition of keys and items.
"""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import functions as F

from transom.arrays.arrow import build_batches, encode_keys, hour_of_end, int64s, lists, overlaps_any
from transom.engine.hours import extend_back, granule, hours_of, incomplete_hours, quoted, to_ranges
from transom.features.aggregates.algorithm.granules import Granules
from transom.features.aggregates.algorithm.rings import recurring
from transom.features.aggregates.reports import WindowTask
from transom.features.aggregates.resolve import AggregateBlock
from transom.features.aggregates.tables_granules import select_events
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.storage.tables import ARROW_TYPES


def item_granules_of(request: StepRequest, blocks: Mapping[str, AggregateBlock]) -> StepResult:
    """Return the number of records of each item in every granule of the target hours."""
    hours = hours_of(request)
    events = request.pins.read("events", hours)
    tasks = []
    for name, targets in request.targets.items():
        block = blocks[name]
        rows = select_events(events, block, targets, hours).dropna(subset=list(block.item))
        by = [F.col("hour"), granule(block.item_base), *quoted(block.key), *quoted(block.item)]
        tasks.append(BlockTask(name, rows.groupBy(*by).agg(F.count("*").alias("records"))))
    return StepResult(tasks)


def recurring_of(request: StepRequest, blocks: Mapping[str, AggregateBlock]) -> StepResult:
    """Return the recurring items at the reports of the widest level in the target hours."""
    tasks = []
    for name, targets in request.targets.items():
        block = blocks[name]
        item = [*quoted(block.key), *quoted(block.item)]
        hours = extend_back(targets, block.reach_of(block.levels[-1]))
        rows = request.pins.read("item_granules", hours).where(F.col("block") == name)
        # All granules of an item of a key must be in one partition.
        rows = rows.select("granule", *item, "records").repartition(*item)
        compute = RecurringItems(block, to_ranges(targets), incomplete_hours(request, name))
        tasks.append(BlockTask(name, rows, compute))
    return StepResult(tasks)


class RecurringItems(WindowTask):
    """The function of a task: the recurring items among its partition's granules of items."""

    def reports(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """As in `WindowTask`."""
        block, widest = self.block, self.block.levels[-1]
        # A column may belong to the key and to the item.
        item = {**block.key, **block.item}
        codes, firsts = encode_keys(table, list(item))
        granules = Granules(codes, int64s(table["granule"]), int64s(table["records"]), {}).ordered()
        code, end, counts = recurring(granules, block.item_base, block.levels, self.ranges)
        types = {
            "window_end": "timestamp",
            **item,
            "counts": "array<bigint>",
            "complete": "boolean",
            "hour": "timestamp",
        }
        if len(code):
            rows = table.select(list(item)).take(pa.array(firsts[code]))
            columns = {
                **{name: rows[name] for name in item},
                "window_end": end,
                "counts": lists(counts.T.reshape(-1), len(code)),
                "complete": ~overlaps_any(end - widest.range, end, self.incomplete),
                "hour": hour_of_end(end),
            }
            schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in types.items()])
            yield from build_batches(len(code), columns, schema)
