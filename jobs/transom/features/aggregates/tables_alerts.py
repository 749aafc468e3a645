"""Alerts of the stage `aggregates`: the reports that meet a condition which the stream declares.

The table `alerts` is a function of the reports of its hour alone. What a person is told of them, in which
words and how bad it is, shapes none of it (`transom.features.aggregates.findings`).
"""

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from transom.engine.hours import quoted
from transom.features.aggregates import alerts
from transom.features.aggregates.spec import Aggregation
from transom.ledger.stage import BlockOutput, BlockTask, StepRequest, StepResult
from transom.spec.stream import Stream


def alerts_of(request: StepRequest, stream: Stream, parts: Mapping[str, BlockOutput]) -> StepResult:
    """The reports of every block's target hours that meet a condition; a row for each that they meet."""
    shares = []
    for name, targets in request.targets.items():
        reports = request.pins.read("aggregates", targets).where(F.col("block") == name)
        # One that is null is not met.
        met = F.array_compact(F.array(*_matching_alerts(stream, name)))
        rows = reports.withColumn("alert", F.explode(met)).select(*quoted(parts[name].columns))
        shares.append(BlockTask(name, rows))
    return StepResult(shares)


def _matching_alerts(stream: Stream, block: str) -> list[Column]:
    """The name of each alert, where a report meets its condition."""
    found = []
    for name, condition in alerts.conditions(stream, block).items():
        met, level = F.expr(condition.sql), stream.blocks(Aggregation)[block].alert[name].level
        if level is not None:
            met = met & (F.col("level") == level)
        found.append(F.when(met, F.lit(name)))
    return found
