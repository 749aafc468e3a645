"""Faults inserted between the rows that a step computes and the published ones."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from transom.core.intervals import number_of
from transom.core.partitions import CheckResult, PartitionKey
from transom.engine import publisher
from transom.engine.hours import quoted
from transom.engine.measurement import RunRows, hashed
from transom.ledger.stage import BlockTask, Stage, StepRequest, StepResult, TableStep
from transom.ledger.task_counters import TaskCounters
from transom.storage.session import frame_of


def tampered(stage: Stage, table: str, change: Callable[[DataFrame], DataFrame]) -> Stage:
    """Return a stage whose rows of one table are changed before they are audited."""

    def of(step: TableStep) -> Callable[[StepRequest], StepResult]:
        def run(request: StepRequest) -> StepResult:
            computed = step.compute(request)
            return replace(
                computed,
                tasks=[BlockTask(share.block, change(block_rows(step, share))) for share in computed.tasks],
            )

        return run

    steps = [replace(step, compute=of(step)) if step.table.name == table else step for step in stage.steps]
    return replace(stage, steps=tuple(steps))


def overcounted(stage: Stage, table: str, more: Mapping[str, int], hours: Collection[int] = ()) -> Stage:
    """Return a stage whose task counters are too large, for every hour of a table with counters.

    Args:
        hours: since the epoch; other hours with counters.
    """

    def of(share: BlockTask) -> BlockTask:
        counted = share.compute_counting
        assert counted is not None

        def run(batches: Iterable[pa.RecordBatch], tally: TaskCounters) -> Iterator[pa.RecordBatch]:
            yield from counted(batches, tally)
            for hour in {*hours, *(hour for hour, _ in (*tally.sums, *tally.maxima))}:
                for name, amount in more.items():
                    (tally.set_max if name.startswith("longest") else tally.add)(name, [hour], [amount])

        return replace(share, compute_counting=run)

    def run(request: StepRequest) -> StepResult:
        computed = step.compute(request)
        return replace(computed, tasks=[of(share) for share in computed.tasks])

    (step,) = (step for step in stage.steps if step.table.name == table)
    steps = (replace(step, compute=run) if one is step else one for one in stage.steps)
    return replace(stage, steps=tuple(steps))


def block_rows(step: TableStep, share: BlockTask) -> DataFrame:
    """Return the rows of a block as a DataFrame."""
    frame = share.frame
    if isinstance(frame, pa.Table):
        frame = frame_of(SparkSession.active(), frame)
    # Tasks do not receive the share, which contains the session.
    make, count, columns = share.compute, share.compute_counting, list(step.outputs[share.block].columns)
    if make is None and count is None:
        return frame

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = count(batches, TaskCounters()) if count else make(batches) if make else ()
        return (batch.select(columns) for batch in rows)

    if share.by is not None:
        frame = frame.repartition(*quoted(share.by)) if share.by else frame.repartition(1)
    return frame.mapInArrow(run, ", ".join(f"`{name}` {step.table.columns[name]}" for name in columns))


def one_more_where(condition: str) -> Callable[[DataFrame], DataFrame]:
    """Add one to the counts of some rows."""

    def change(rows: DataFrame) -> DataFrame:
        names = [name for name in ("records", "count", "n") if name in rows.columns]
        more = F.when(F.expr(condition), 1).otherwise(0)
        return rows.withColumns({name: F.col(name) + more for name in names})

    return change


@dataclass(frozen=True)
class Audit:
    """The input of a step's checks. /  / Attributes:
    nodes: the computed hours, all of which are to be evaluated.
    counted: the tasks' counters, by block.
    """

    step: TableStep
    rows: DataFrame
    computed: StepResult
    nodes: tuple[PartitionKey, ...]
    counted: Mapping[str, TaskCounters]

    def node(self, block: str, hour: datetime) -> PartitionKey:
        """Return the partition of a block and an hour."""
        (node,) = (node for node in self.nodes if (node.block, node.hour) == (block, hour))
        return node

    def with_rows(self, node: PartitionKey, change: Callable[[DataFrame], DataFrame]) -> "Audit":
        """Return a copy with the rows of one partition changed."""
        of_node = (F.col("block") == node.block) & (F.col("hour") == F.lit(node.hour))
        return replace(self, rows=self.rows.where(~of_node).unionByName(change(self.rows.where(of_node))))

    def with_counts(self, node: PartitionKey, more: Mapping[str, int]) -> "Audit":
        """Return a copy in which the tasks counted more of one partition."""
        tally = TaskCounters.of_json(self.counted.get(node.block, TaskCounters()).to_json())
        for name, amount in more.items():
            (tally.set_max if name.startswith("longest") else tally.add)(
                name, [number_of(node.hour)], [amount]
            )
        return replace(self, counted={**self.counted, node.block: tally})

    def failures(self) -> list[CheckResult]:
        """Return the failures of the step's own metrics and checks."""
        rows = RunRows(lambda: hashed(self.rows, "0L"))
        values = publisher.measure(self.step, rows, self.computed, self.nodes, self.counted)
        return [verdict for verdict in publisher.evaluate(self.step, values, ()) if not verdict.success]


@contextmanager
def audits() -> Iterator[dict[str, Audit]]:
    """Return the input of each step's checks while stages run, by table, without the rows' sources."""
    observed: dict[str, Audit] = {}
    measure = publisher.measure

    def watched(
        step: TableStep,
        rows: RunRows | None,
        computed: StepResult,
        nodes: Iterable[PartitionKey],
        counted: Mapping[str, TaskCounters],
        by: Literal["block", "table"] = "block",
    ) -> dict[PartitionKey, dict[str, Any]]:
        nodes = tuple(nodes)
        if rows is not None and by == "block":
            # The files of tasks are the table's afterwards, or are removed.
            frame = rows.read()
            there = frame.sparkSession.createDataFrame(frame.toArrow(), frame.schema)
            observed[step.table.name] = Audit(step, there, computed, nodes, counted)
        return measure(step, rows, computed, nodes, counted, by)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publisher, "measure", watched)
        yield observed
