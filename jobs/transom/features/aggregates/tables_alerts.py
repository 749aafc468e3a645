"""Alerts of the aggregate stage: the reports that meet a condition which the stream declares.

The table `alerts` is a function of the reports of its hour alone. What a person is told of them, in which
words and how bad it is, shapes none of it (`transom.features.aggregates.findings`).
"""

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from transom.engine.hours import quoted
from transom.features.aggregates import alerts, fingerprints
from transom.features.aggregates.alerts import figures
from transom.features.aggregates.resolve import Block
from transom.features.aggregates.spec import Aggregation
from transom.ledger.stage import Computed, Part, Reads, Request, Share, Step
from transom.spec.stream import Stream
from transom.storage.tables import SPARK_TYPES, Table


def step_of(stream: Stream, blocks: Mapping[str, Block]) -> Step:
    """The step of the table, of the blocks that have alerts."""
    asking = {name: block for name, block in blocks.items() if stream.blocks(Aggregation)[name].alert}
    read = {
        name: {column: SPARK_TYPES[kind] for column, kind in figures(stream, name).items()} for name in asking
    }
    table = Table.load("alerts").declare(
        key={name: kind for block in asking.values() for name, kind in block.key.items()},
        figures={name: kind for columns in read.values() for name, kind in columns.items()},
    )
    columns = {
        name: (
            *("hour", "alert", "level", "window_start", "window_end", *block.key, "count"),
            *read[name],
            "complete",
        )
        for name, block in asking.items()
    }
    parts = {
        name: Part(
            (Reads("aggregate", name, "aggregates"),), fingerprints.alerts(stream, name), columns[name]
        )
        for name in asking
    }
    return Step(table, parts, lambda request: alerts_of(request, stream, parts))


def alerts_of(request: Request, stream: Stream, parts: Mapping[str, Part]) -> Computed:
    """The reports of every block's target hours that meet a condition; a row for each that they meet."""
    shares = []
    for name, targets in request.targets.items():
        reports = request.pins.read("aggregates", targets).where(F.col("block") == name)
        # One that is null is not met.
        met = F.array_compact(F.array(*_met(stream, name)))
        rows = reports.withColumn("alert", F.explode(met)).select(*quoted(parts[name].columns))
        shares.append(Share(name, rows))
    return Computed(shares)


def _met(stream: Stream, block: str) -> list[Column]:
    """The name of each alert, where a report meets its condition."""
    found = []
    for name, condition in alerts.conditions(stream, block).items():
        met, level = F.expr(condition.sql), stream.blocks(Aggregation)[block].alert[name].level
        if level is not None:
            met = met & (F.col("level") == level)
        found.append(F.when(met, F.lit(name)))
    return found
