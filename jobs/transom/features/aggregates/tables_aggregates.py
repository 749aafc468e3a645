"""The tables `aggregates` and `alerts`.

`aggregates`: windows over granules, by one vectorised pass over each partition of keys. `alerts`: rows of
`aggregates` that meet a condition of the stream file. Titles and severities do not change them (`findings`).
"""

from collections.abc import Mapping

from pyspark.sql import functions as F

from transom.engine.hours import extend_back, incomplete_hours, quoted, to_ranges
from transom.features.aggregates.aggregate_rows import AggregateBuilder
from transom.features.aggregates.output_columns import alert_conditions
from transom.features.aggregates.resolve import AggregateBlock
from transom.features.aggregates.spec import Aggregation
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.spec.stream import Stream
from transom.storage.block_rows import BlockRows, select


def aggregates_of(request: StepRequest, blocks: Mapping[str, AggregateBlock]) -> StepResult:
    """Return the aggregates of the windows that end in the target hours."""
    tasks = []
    for name, targets in request.targets.items():
        block = blocks[name]
        hours = extend_back(targets, block.reach)
        columns = ("granule", *block.key, "records", *block.state)
        rows = select(request.pins, [BlockRows("granules", name, hours, {of: of for of in columns})])
        compute = AggregateBuilder(block, to_ranges(targets), incomplete_hours(request, name))
        tasks.append(BlockTask(name, rows, compute_counting=compute, by=[*block.key]))
    return StepResult(tasks)


def alerts_of(request: StepRequest, blocks: Mapping[str, AggregateBlock], stream: Stream) -> StepResult:
    """Return a row for each aggregate of the target hours and each alert whose condition it meets."""
    tasks = []
    for name, targets in request.targets.items():
        matching = []
        for alert, condition in alert_conditions(stream, name).items():
            met, level = F.expr(condition.sql), stream.blocks(Aggregation)[name].alert[alert].level
            met = met if level is None else met & (F.col("level") == level)
            matching.append(F.when(met, F.lit(alert)))
        rows = request.pins.read("aggregates", targets).where(F.col("block") == name)
        # A null condition is not met.
        rows = rows.withColumn("alert", F.explode(F.array_compact(F.array(*matching))))
        tasks.append(BlockTask(name, rows.select(*quoted(blocks[name].schema("alerts").names))))
    return StepResult(tasks)
