"""Alerts of aggregates: the reports that meet a condition which the stream declares.

The table `alerts` depends on the reports of its hour alone. Titles and severities do not change it
(`transom.features.aggregates.findings`).
"""

from collections.abc import Mapping

from pyspark.sql import functions as F

from transom.engine.hours import quoted
from transom.features.aggregates.output_columns import alert_conditions
from transom.features.aggregates.spec import Aggregation
from transom.ledger.stage import BlockOutput, BlockTask, StepRequest, StepResult
from transom.spec.stream import Stream


def alerts_of(request: StepRequest, stream: Stream, parts: Mapping[str, BlockOutput]) -> StepResult:
    """Return a row for each report of the target hours and each alert whose condition it meets."""
    tasks = []
    for name, targets in request.targets.items():
        matching = []
        for alert, condition in alert_conditions(stream, name).items():
            met, level = F.expr(condition.sql), stream.blocks(Aggregation)[name].alert[alert].level
            met = met if level is None else met & (F.col("level") == level)
            matching.append(F.when(met, F.lit(alert)))
        reports = request.pins.read("aggregates", targets).where(F.col("block") == name)
        # A null condition is not met.
        rows = reports.withColumn("alert", F.explode(F.array_compact(F.array(*matching))))
        tasks.append(BlockTask(name, rows.select(*quoted(parts[name].columns))))
    return StepResult(tasks)
