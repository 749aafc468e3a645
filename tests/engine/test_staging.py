"""Which of the files that tasks have written a run publishes, and what remains of the others."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from transom.core.partitions import PartitionKey
from transom.engine import staging as spool
from transom.engine.measurement import RunRows, aggregate_rows, hashed, measure
from transom.engine.staging import MOST_FILES, StagedOutput, TaskWriter
from transom.engine.task_sums import RowMeasures, TaskSums
from transom.ledger.stage import BlockOutput, BlockTask, StepResult, TableStep
from transom.ledger.task_counters import TaskCounters
from transom.storage.digest import row_hash_sql
from transom.storage.store import Store
from transom.storage.tables import LakeError, Table

DAY = datetime(2015, 5, 17, tzinfo=UTC)
KINDS = {"block": "string", "hour": "timestamp", "n": "bigint"}
LINES = Table("lines", KINDS, ("hour",), frozenset())
SCHEMA = LINES.arrow_schema()
STEP = TableStep(
    LINES,
    {block: BlockOutput((), "", tuple(KINDS)) for block in "ab"},
    metrics={"total": "sum(n)", "largest": "max(n)"},
)


def at(*hours: int) -> list[datetime]:
    return [DAY + timedelta(hours=number) for number in hours]


def rows_of(partitions: list[list[int]], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Spark partition, whose input is its number; each row is an hour."""
    for batch in batches:
        for number in batch.column("id").to_pylist():
            rows = [{"hour": hour, "n": 1} for hour in at(*partitions[number])]
            yield pa.RecordBatch.from_pylist(rows, SCHEMA.remove(0))


@pytest.fixture
def build_spool(spark: SparkSession, tmp_path: Path) -> Callable[..., StagedOutput]:
    """Return a spool with the rows of some blocks, by partition."""

    def of(hours: int = 1, **blocks: list[list[int]]) -> StagedOutput:
        tasks = [
            BlockTask(block, spark.range(0, len(some), 1, len(some)), partial(rows_of, some))
            for block, some in blocks.items()
        ]
        return StagedOutput(Store(spark, str(tmp_path)), STEP, tasks, hours)

    return of


def test_rows_are_aggregated_while_they_are_written(build_spool: Callable[..., StagedOutput]) -> None:
    rows = build_spool(a=[[1, 2, 2], [2, 3]], b=[[1, 2]])
    result = sorted(
        (row["block"], row["hour"].astimezone(UTC), row["count"], row["total"]) for row in rows.aggregates
    )
    assert result == [
        ("a", *at(1), 1, 1), ("a", *at(2), 3, 3), ("a", *at(3), 1, 1),
        ("b", *at(1), 1, 1), ("b", *at(2), 1, 1),
    ]  # fmt: skip
    frame = rows.rows()
    hashed_rows = hashed(frame, row_hash_sql(frame.schema, KINDS))
    metrics = {"total": STEP.metrics["total"]}
    read = aggregate_rows(metrics, hashed_rows, ("block", "hour")).toArrow().to_pylist()
    by_hour = {(row["block"], row["hour"]): row for row in rows.aggregates}
    assert {(row["block"], row["hour"]): {**row} for row in read} == by_hour


def test_only_published_parts_are_used_and_remain(
    build_spool: Callable[..., StagedOutput], tmp_path: Path
) -> None:
    """A quarantined hour, or a block of it, is left to another run."""
    rows = build_spool(a=[[1, 2, 2], [2, 3]], b=[[1, 2]])
    selected = rows.adopt_files({"a": at(2, 4), "b": at(1)})
    assert selected is not None
    result = [(block, part) for block, parts in rows.data_files.items() for part in parts if part in selected]
    assert sorted((block, part.hour, part.rows) for block, part in result) == [
        ("a", *at(2), 1), ("a", *at(2), 2), ("b", *at(1), 1)
    ]  # fmt: skip
    rows.discard()
    assert {path.name for path in tmp_path.rglob("*.parquet")} == {part.name for part in selected}


def test_parts_of_many_files_or_several_hours_are_not_used(
    build_spool: Callable[..., StagedOutput], tmp_path: Path
) -> None:
    few, count = build_spool(a=[[1]] * MOST_FILES), build_spool(a=[[1]] * (MOST_FILES + 1))
    assert len(few.adopt_files({"a": at(1)}) or ()) == MOST_FILES
    together = build_spool(spool.MOST_HOURS + 1, a=[[1]])
    for rows in (count, together):
        assert rows.adopt_files({"a": at(1)}) is None
        rows.discard()
    assert len(list(tmp_path.rglob("*.parquet"))) == MOST_FILES


def test_failed_task_leaves_no_files(spark: SparkSession, tmp_path: Path) -> None:
    def fails(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from rows_of([[1]], batches)
        raise RuntimeError("a full disk")

    with pytest.raises(Exception, match="a full disk"):
        StagedOutput(Store(spark, str(tmp_path)), STEP, [BlockTask("a", spark.range(1), fails)], 1)
    assert not list(tmp_path.rglob("*.parquet"))


def test_repeated_attempt_of_a_task_counts_once(
    build_spool: Callable[..., StagedOutput], tmp_path: Path
) -> None:
    """The first attempt of a task fails after it has written its files."""
    mark = tmp_path / "attempted"

    def fails_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from rows_of([[1, 2], [2]], batches)
        if not mark.exists():
            mark.touch()
            raise RuntimeError("executor lost")

    store = build_spool().store
    task = BlockTask("a", store.spark.range(0, 2, 1, 2), fails_once)
    with pytest.MonkeyPatch.context() as patch:
        # A local session does not repeat tasks, so the job is run twice.
        run = StagedOutput._run_in_spark
        patch.setattr(StagedOutput, "_run_in_spark", lambda self, tasks: _twice(partial(run, self), tasks))
        rows = StagedOutput(store, STEP, [task], 2)
    assert len(list(tmp_path.rglob("*.parquet"))) > len(rows.data_files["a"]) == 3
    assert sum(file.rows for file in rows.data_files["a"]) == 3
    assert sum(row["count"] for row in rows.aggregates) == 3
    assert rows.rows().count() == 3
    rows.discard()
    assert not list(tmp_path.rglob("*.parquet"))


def _twice(run: Callable[[Sequence[BlockTask]], list[str]], tasks: Sequence[BlockTask]) -> list[str]:
    with pytest.raises(Exception, match="executor lost"):
        run(tasks)
    return run(tasks)


def test_task_without_rows_reports_its_counters(build_spool: Callable[..., StagedOutput]) -> None:
    def counts(batches: Iterator[pa.RecordBatch], counters: TaskCounters) -> Iterator[pa.RecordBatch]:
        counters.add("failures", np.array([1]), np.array([1]))
        return iter(())

    store = build_spool().store
    rows = StagedOutput(
        store, STEP, [BlockTask("a", store.spark.range(0, 1, 1, 1), compute_counting=counts)], 1
    )
    assert rows.counted["a"].sums == {(1, "failures"): 1}
    assert not rows.aggregates
    assert rows.rows().count() == 0


def test_metrics_that_tasks_do_not_compute_are_computed_from_the_files(
    build_spool: Callable[..., StagedOutput],
) -> None:
    rows = build_spool(a=[[1, 2, 2], [2]], b=[[1]])
    assert rows.unmeasured == {"largest": "max(n)"}
    keys = [PartitionKey("lines", block, "lines", hour) for block in "ab" for hour in at(1, 2, 3)]
    run_rows = RunRows(rows.rows, rows.aggregates, unmeasured=rows.unmeasured)
    measured = measure(STEP, run_rows, StepResult(()), keys, {})
    assert [measured[key]["largest"] for key in keys] == [1, 1, None, 1, None, None]
    assert [measured[key]["total"] for key in keys] == [1, 3, None, 1, None, None]


def test_few_rows_in_many_batches_are_measured_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (rows,) = rows_of([[2, 1] * 50], [pa.record_batch({"id": [0]})])
    task = BlockTask("a", Mock(), lambda batches: (rows.slice(place, 1) for place in range(len(rows))))
    measured, add = [], TaskSums.add

    def counted(self: TaskSums, rows: pa.RecordBatch, *more: Any) -> None:
        measured.append(len(rows))
        add(self, rows, *more)

    monkeypatch.setattr(TaskSums, "add", counted)
    (report,) = TaskWriter(task, SCHEMA, str(tmp_path), "made", True, RowMeasures(["n"], 3, {}))([])
    assert measured == [100]
    _, _, _, sums = json.loads(report["report"][0].as_py())
    assert [of_hour["__bytes"][1] for _, of_hour in sums] == [50, 50]


WhereTasksRun = Callable[..., tuple[set[str], StagedOutput]]


@pytest.fixture
def where_tasks_run(spark: SparkSession, tmp_path: Path) -> WhereTasksRun:
    """Return a function that runs tasks over two rows of each, and returns which blocks ran on the driver."""
    driver = os.getpid()

    def run(few: bool, **tasks: BlockTask) -> tuple[set[str], StagedOutput]:
        def of_process(batches: Iterable[pa.RecordBatch], counters: TaskCounters) -> Iterator[pa.RecordBatch]:
            here = os.getpid() == driver
            for batch in batches:
                for number in batch["id"].to_pylist():
                    counters.add("here", np.array([number]), np.array([int(here)]))
                yield from rows_of([[1], [2]], [batch])

        ready = [replace(task, compute_counting=of_process) for task in tasks.values()]
        output = StagedOutput(Store(spark, str(tmp_path)), STEP, ready, 2, few)
        here = {block for block, counters in output.counted.items() if any(counters.sums.values())}
        return here, output

    return run


@pytest.mark.parametrize(("few", "here"), [(False, {"b"}), (True, {"a", "b"})], ids=["many rows", "few rows"])
def test_tasks_of_few_rows_run_on_the_driver(
    spark: SparkSession,
    where_tasks_run: WhereTasksRun,
    few: bool,
    here: set[str],
) -> None:
    frame = spark.range(0, 2, 1, 2)
    tasks = {"a": BlockTask("a", frame, by=()), "b": BlockTask("b", pa.table({"id": [0, 1]}))}
    blocks, output = where_tasks_run(few, **tasks)
    assert blocks == here
    counts = {(row["block"], row["hour"].astimezone(UTC)): row["count"] for row in output.aggregates}
    assert counts == {(block, hour): 1 for block in "ab" for hour in at(1, 2)}
    rows = output.rows().toArrow().to_pylist()
    assert {(row["block"], row["hour"].astimezone(UTC), row["n"]) for row in rows} == {
        (block, hour, 1) for block in "ab" for hour in at(1, 2)
    }
    assert len(rows) == 4


def test_task_with_code_of_a_stream_file_never_runs_on_the_driver(
    spark: SparkSession, where_tasks_run: WhereTasksRun
) -> None:
    isolated = BlockTask("a", spark.range(0, 2, 1, 2), isolated=True)
    assert where_tasks_run(True, a=isolated, b=BlockTask("b", spark.range(2)))[0] == {"b"}


@pytest.mark.parametrize(("by", "partitions"), [(None, 4), ((), 1), (("part",), 2)])
def test_equal_values_of_a_task_are_in_one_partition(
    spark: SparkSession, tmp_path: Path, by: Sequence[str] | None, partitions: int
) -> None:
    def counts(batches: Iterable[pa.RecordBatch], counters: TaskCounters) -> Iterator[pa.RecordBatch]:
        parts = {part for batch in batches for part in batch["part"].to_pylist()}
        if parts:
            counters.add("partitions", np.array([0]), np.array([1]))
            counters.add("values", np.array([0]), np.array([len(parts)]))
        return iter(())

    rows = spark.range(0, 400, 1, 4).selectExpr("id % 2 AS part")
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    output = StagedOutput(Store(spark, str(tmp_path)), STEP, [BlockTask("a", rows, None, counts, by)], 1)
    spark.conf.unset("spark.sql.adaptive.enabled")
    assert output.counted["a"].sums[0, "values"] == (2 if by else 2 * partitions)
    assert output.counted["a"].sums[0, "partitions"] <= partitions


def test_staged_file_that_is_lost_is_noticed_before_it_is_read_on_the_driver(
    spark: SparkSession, where_tasks_run: WhereTasksRun, tmp_path: Path
) -> None:
    _, output = where_tasks_run(True, a=BlockTask("a", pa.table({"id": [0, 1]})))
    next(tmp_path.rglob("*.parquet")).unlink()
    with pytest.raises(LakeError, match="1 of 2 files that were written for lines cannot be found"):
        output.rows()


def test_staged_rows_of_long_texts_are_many(spark: SparkSession, tmp_path: Path) -> None:
    """A file has a repeated text once."""
    kinds = {"block": "string", "hour": "timestamp", "text": "string"}
    step = TableStep(Table("lines", kinds, ("hour",), frozenset()), {"a": BlockOutput((), "", tuple(kinds))})

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        length = spool.small.MAX_DRIVER_BYTES // 1000
        for number, _ in enumerate(batches):
            values = [{"hour": hour, "text": f"{number}" * length} for hour in at(1, 2) for _ in range(1100)]
            yield from pa.Table.from_pylist(values, step.table.arrow_schema().remove(0)).to_batches()

    task = BlockTask("a", pa.table({"id": [0]}), rows)
    store = Store(spark, str(tmp_path))
    output = StagedOutput(store, step, [task], 2, few=True)
    files = output.data_files["a"]
    assert sum(file.bytes for file in files) < spool.small.MAX_DRIVER_BYTES // 10
    assert spool.read_here(store, step.table, files) is None
    assert output.rows().count() == 2200
