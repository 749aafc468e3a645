"""Faults that are put between what a step computes and what is published of it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.lake.stage import Computed, Request, Share, Stage, Step


def tampered(stage: Stage, table: str, change: Callable[[DataFrame], DataFrame]) -> Stage:
    """A stage whose rows of one table are changed before they are audited."""

    def of(step: Step) -> Callable[[Request], Computed]:
        def run(request: Request) -> Computed:
            computed = step.compute(request)
            return replace(
                computed, shares=[Share(share.block, change(made(step, share))) for share in computed.shares]
            )

        return run

    steps = [replace(step, compute=of(step)) if step.table.name == table else step for step in stage.steps]
    return replace(stage, steps=tuple(steps))


def made(step: Step, share: Share) -> DataFrame:
    """The rows of a block, in Spark's hands."""
    make, columns = share.made, list(step.parts[share.block].columns)
    if make is None:
        return share.frame

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (batch.select(columns) for batch in make(batches))

    return share.frame.mapInArrow(run, ", ".join(f"`{name}` {step.table.columns[name]}" for name in columns))


def one_more_where(condition: str) -> Callable[[DataFrame], DataFrame]:
    """Adds one to the counts of some rows."""

    def change(rows: DataFrame) -> DataFrame:
        names = [name for name in ("records", "count", "n") if name in rows.columns]
        more = F.when(F.expr(condition), 1).otherwise(0)
        return rows.withColumns({name: F.col(name) + more for name in names})

    return change
