"""Measure computed rows by partition, and evaluate their checks."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.core.intervals import moment_of, number_of
from transom.core.partitions import CheckResult, PartitionKey
from transom.engine.evaluate_checks import evaluate_checks
from transom.engine.failing_rows import format_row, sample_failing_rows
from transom.engine.outcomes import NO_ROWS
from transom.ledger.check import predict_results
from transom.ledger.stage import StepResult, TableStep
from transom.ledger.task_counters import TaskCounters
from transom.ledger.waivers import Waiver, check_result_of
from transom.storage import digest as digests
from transom.storage.digest import HASH
from transom.storage.driver_io import SIZE, bytes_of
from transom.storage.session import to_arrow


@dataclass(frozen=True)
class RunRows:
    """The rows that a run publishes.

    Attributes:
        read: returns the rows; from `hashed` if `aggregates` is None.
        aggregates: digest, number, size and metrics of each group, as of `aggregate_rows`, if the tasks that
            have written the rows have them. None: the rows must be read.
        others: returns the rows that `aggregates` omits, from `hashed`; None if there are none.
        unmeasured: the metrics that `aggregates` omits: Spark SQL aggregates, by name.
    """

    read: Callable[[], DataFrame]
    aggregates: Sequence[Mapping[str, Any]] | None = None
    others: Callable[[], DataFrame] | None = None
    unmeasured: Mapping[str, str] = field(default_factory=dict)


def hashed(rows: DataFrame, row_hash: str, more: Sequence[str] = ()) -> DataFrame:
    """Return rows for `measure`, with their sizes and hashes.

    Args:
        rows: the rows.
        row_hash: the hash of a row, as Spark SQL.
        more: columns that are not of the table, and so not in the size.
    """
    return rows.select("*", F.expr(row_hash).alias(HASH), bytes_of(rows.drop(*more)).alias(SIZE))


def aggregate_rows(metrics: Mapping[str, str], rows: DataFrame, by: Sequence[str]) -> DataFrame:
    """Return digest, number, size and metrics of the rows of each group.

    Args:
        metrics: Spark SQL aggregates, by name.
        rows: the rows, from `hashed`.
        by: the columns that identify a group.
    """
    return rows.groupBy(*by).agg(
        F.count("*").alias("count"),
        digests.digest_of(F.count("*"), digests.total_hash(F.col(HASH))).alias("digest"),
        F.sum(SIZE).alias("bytes"),
        *_columns(metrics),
    )


def _columns(metrics: Mapping[str, str]) -> Iterator[Column]:
    return (F.expr(metric).alias(name) for name, metric in metrics.items())


def measure(
    step: TableStep,
    rows: RunRows | None,
    computed: StepResult,
    partitions: Iterable[PartitionKey],
    counted: Mapping[str, TaskCounters],
    by: Literal["block", "table"] = "block",
) -> dict[PartitionKey, dict[str, Any]]:
    """Return digest, count and all metrics of each partition, from one aggregation of the rows.

    Args:
        step: the step that declares the metrics.
        rows: the rows of the partitions; None if there are none.
        computed: the result of the step, with further metrics.
        partitions: the partitions, with and without rows.
        counted: the counters of the tasks, by the value of the column `by`; other hours are ignored.
        by: the column that identifies, with `hour`, the partition of a row.
    """
    metrics: dict[PartitionKey, dict[str, Any]] = {
        key: {
            "block": key.block,
            **NO_ROWS,
            **dict.fromkeys(step.metrics, None),
            **dict.fromkeys(step.counters, 0),
            **computed.precomputed_metrics.get((key.block, key.hour), {}),
        }
        for key in partitions
    }
    by_hour = {(getattr(key, by), key.hour): values for key, values in metrics.items()}
    for row in _rows_of_metrics(step, rows, computed, by):
        values = by_hour[row[by], row["hour"]]
        values.update(
            {name: value for name, value in row.items() if value is not None and name not in (by, "hour")}
        )
    for block, counters in counted.items():
        for number, name, amount in counters.figures():
            if (block_hour := (block, moment_of(number))) in by_hour:
                by_hour[block_hour][name] = amount
    for values in metrics.values():
        values.update({name: derive(values) for name, derive in step.derived.items()})
    return metrics


def _rows_of_metrics(
    step: TableStep, rows: RunRows | None, computed: StepResult, by: str
) -> Iterator[Mapping[str, Any]]:
    """Yield metrics, in parts, each with the column `by` and its hour."""
    if rows is None:
        return
    yield from rows.aggregates or ()
    unread = rows.read if rows.aggregates is None else rows.others
    frames = [] if unread is None else [aggregate_rows(step.metrics, unread(), (by, "hour"))]
    if rows.unmeasured and rows.aggregates:
        frames.append(rows.read().groupBy(by, "hour").agg(*_columns(rows.unmeasured)))
    most = max((row["count"] for row in rows.aggregates or ()), default=0)
    if computed.metrics is not None and (rows.aggregates is None or most >= computed.least_rows):
        frames += computed.metrics(rows.read)
    if frames:
        union = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames)
        yield from to_arrow(union).to_pylist()


def evaluate(
    step: TableStep,
    metrics: Mapping[PartitionKey, Mapping[str, Any]],
    waivers: Sequence[Waiver],
    is_plan: bool = False,
) -> list[CheckResult]:
    """Return the results of a step's checks for every partition; those of a plan are predicted."""
    keys = list(metrics)
    results_of = predict_results if is_plan else evaluate_checks
    results = results_of(step.checks, [metrics[key] for key in keys])
    return [check_result_of(keys[result.row], result, waivers) for result in results]


def with_failing_rows(
    step: TableStep, rows: RunRows | None, result: CheckResult, counted: Mapping[str, TaskCounters]
) -> CheckResult:
    """Return a failed check with notes of tasks, or else with some failing rows."""
    key, condition = result.partition, step.failing_row_filters.get(result.check)
    notes = counted.get(key.block, TaskCounters()).notes.get((number_of(key.hour), result.check))
    if notes or condition is None or rows is None:
        return result.with_failing_rows(notes) if notes else result
    failing = rows.read().where((F.col("block") == key.block) & (F.col("hour") == F.lit(key.hour)))
    columns = [name for name in step.outputs[key.block].columns if name != "hour"]
    sample = sample_failing_rows(failing.where(F.expr(condition)), columns)
    return result.with_failing_rows(map(format_row, sample))
