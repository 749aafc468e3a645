"""The tables `item_granules` and `recurring`: items that occur at every granularity.

`item_granules`, state: the number of records of each item of a key in each granule of an hour, by Spark's
groupBy. `recurring`, the result: items in every ring between neighbouring levels (`algorithm.rings`), when a
window of the widest level ends. It is one vectorised pass over each partition of keys and items.
"""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import functions as F

from transom.arrays.arrow import build_batches, encode_keys, hour_of_end, int64s, lists, overlaps_any
from transom.engine.hours import (
    extend_back,
    granule,
    hours_of,
    incomplete_hours,
    quoted,
    read_events,
    to_ranges,
)
from transom.features.aggregates.aggregate_rows import GranuleTask
from transom.features.aggregates.algorithm.granules import Granules
from transom.features.aggregates.algorithm.rings import recurring
from transom.features.aggregates.resolve import AggregateBlock
from transom.features.aggregates.tables_granules import select_events
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.ledger.task_counters import TaskCounters
from transom.storage.block_rows import BlockRows, select


def item_granules_of(request: StepRequest, blocks: Mapping[str, AggregateBlock]) -> StepResult:
    """Return the number of records of each item in every granule of the target hours."""
    hours = hours_of(request)
    computed = [blocks[name] for name in request.targets]
    columns = {name for of in computed for name in ("event_time", *of.key, *of.item)}
    events = read_events(request.pins, hours, columns, *(of.where for of in computed))
    tasks = []
    for name, targets in request.targets.items():
        block = blocks[name]
        rows = select_events(events, block, targets, hours).dropna(subset=list(block.item))
        by = [F.col("hour"), granule(block.item_base), *quoted(block.key), *quoted(block.item)]
        tasks.append(BlockTask(name, rows.groupBy(*by).agg(F.count("*").alias("records"))))
    return StepResult(tasks)


def recurring_of(request: StepRequest, blocks: Mapping[str, AggregateBlock]) -> StepResult:
    """Return the recurring items of the widest level's windows that end in the target hours."""
    tasks = []
    for name, targets in request.targets.items():
        block = blocks[name]
        item = [*block.key, *block.item]
        hours = extend_back(targets, block.reach_of(block.levels[-1]))
        columns = {of: of for of in ("granule", *item, "records")}
        rows = select(request.pins, [BlockRows("item_granules", name, hours, columns)])
        compute = RecurringItems(block, to_ranges(targets), incomplete_hours(request, name))
        tasks.append(BlockTask(name, rows, compute, by=item))
    return StepResult(tasks)


class RecurringItems(GranuleTask):
    """The function of a task: the recurring items among its partition's granules of items."""

    table_name = "recurring"

    def rows(self, table: pa.Table, counters: TaskCounters) -> Iterator[pa.RecordBatch]:
        """As in `GranuleTask`."""
        block, item = self.block, [*self.block.key, *self.block.item]
        codes, firsts = encode_keys(table, item)
        granules = Granules(codes, int64s(table["granule"]), int64s(table["records"]), {}).ordered()
        code, end, counts = recurring(granules, block.item_base, block.levels, self.ranges)
        if len(code):
            columns = {
                **dict(zip(item, table.select(item).take(pa.array(firsts[code])).columns, strict=True)),
                "window_end": end,
                "counts": lists(counts.T.reshape(-1), len(code)),
                "complete": ~overlaps_any(end - block.levels[-1].range, end, self.incomplete),
                "hour": hour_of_end(end),
            }
            yield from build_batches(len(code), columns, self.schema)
