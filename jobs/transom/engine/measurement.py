"""Measure computed rows by partition, and evaluate their checks."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.core.intervals import moment_of, number_of
from transom.core.partitions import CheckResult, PartitionKey
from transom.engine.evaluate_checks import evaluate_checks
from transom.engine.failing_rows import format_row, sample_failing_rows
from transom.engine.outcomes import NO_ROWS
from transom.ledger.stage import StepResult, TableStep
from transom.ledger.task_counters import TaskCounters
from transom.ledger.waivers import Waiver, check_result_of
from transom.storage import digest as digests
from transom.storage.digest import HASH
from transom.storage.driver_io import bytes_of
from transom.storage.store import cast_to_table

SIZE = "__bytes"
"""The column with the approximate size of a row in bytes."""


def hash_rows(step: TableStep, rows: DataFrame) -> DataFrame:
    """Return rows in the table's types, with a hash of the columns that their block fills."""
    rows = cast_to_table(rows, step.table)
    cases = " ".join(
        f"WHEN '{block}' THEN {digests.row_hash_sql(rows.schema, output.columns)}"
        for block, output in step.outputs.items()
    )
    return hashed(rows, f"CASE block {cases} END")


def hashed(rows: DataFrame, row_hash: str) -> DataFrame:
    """Return rows for `measure`, with their sizes and hashes.

    Args:
        rows: the rows.
        row_hash: the hash of a row, as Spark SQL.
    """
    return rows.select("*", F.expr(row_hash).alias(HASH), bytes_of(rows).alias(SIZE))


def measure(
    step: TableStep,
    rows: DataFrame | None,
    computed: StepResult,
    partitions: Iterable[PartitionKey],
    counted: Mapping[str, TaskCounters],
    by: Literal["block", "table"] = "block",
) -> dict[PartitionKey, dict[str, Any]]:
    """Return digest, count and all metrics of each partition, from one aggregation of the rows.

    Args:
        step: the step that declares the metrics.
        rows: the rows of the partitions, from `hashed`; None if there are none.
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
    if rows is not None:
        own = rows.groupBy(by, "hour").agg(
            F.count("*").alias("count"),
            digests.digest_of(F.count("*"), digests.total_hash(F.col(HASH))).alias("digest"),
            F.sum(SIZE).alias("bytes"),
            *(F.expr(metric).alias(name) for name, metric in step.metrics.items()),
        )
        union = reduce(
            partial(DataFrame.unionByName, allowMissingColumns=True), [own, *computed.metrics(rows)]
        )
        for row in union.toArrow().to_pylist():
            values = by_hour[row.pop(by), row.pop("hour")]
            values.update({name: value for name, value in row.items() if value is not None})
    for block, counters in counted.items():
        for number, name, amount in counters.figures():
            if (block_hour := (block, moment_of(number))) in by_hour:
                by_hour[block_hour][name] = amount
    for values in metrics.values():
        values.update({name: derive(values) for name, derive in step.derived.items()})
    return metrics


def evaluate(
    step: TableStep, metrics: Mapping[PartitionKey, Mapping[str, Any]], waivers: Sequence[Waiver]
) -> list[CheckResult]:
    """Return the results of a step's checks for every partition."""
    keys = list(metrics)
    results = evaluate_checks(step.checks, [metrics[key] for key in keys])
    return [check_result_of(keys[result.row], result, waivers) for result in results]


def with_failing_rows(
    step: TableStep, rows: DataFrame | None, result: CheckResult, counted: Mapping[str, TaskCounters]
) -> CheckResult:
    """Return a failed check with notes of tasks, or else with some failing rows."""
    key, condition = result.partition, step.failing_row_filters.get(result.check)
    notes = counted.get(key.block, TaskCounters()).notes.get((number_of(key.hour), result.check))
    if notes or condition is None or rows is None:
        return result.with_failing_rows(notes) if notes else result
    failing = rows.where((F.col("block") == key.block) & (F.col("hour") == F.lit(key.hour)))
    columns = [name for name in step.outputs[key.block].columns if name != "hour"]
    sample = sample_failing_rows(failing.where(F.expr(condition)), columns)
    return result.with_failing_rows(map(format_row, sample))
