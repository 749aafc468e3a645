"""Which of the files that tasks have written a run publishes, and what remains of the others."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from transom.engine import staging as spool
from transom.engine.staging import MOST_FILES, REPORT, TASK, StagedOutput
from transom.ledger.stage import BlockOutput, BlockTask, TableStep
from transom.ledger.task_counters import TaskCounters
from transom.storage.store import Store
from transom.storage.tables import LakeError, Table

DAY = datetime(2015, 5, 17, tzinfo=UTC)
KINDS = {"block": "string", "hour": "timestamp", "n": "bigint"}
LINES = Table("lines", KINDS, ("hour",), frozenset())
SCHEMA = LINES.arrow_schema()
STEP = TableStep(
    LINES, {block: BlockOutput((), "", tuple(KINDS)) for block in "ab"}, metrics={"total": "sum(n)"}
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
    read = spool.aggregate_rows(STEP.metrics, rows.rows(), ("block", "hour")).toArrow().to_pylist()
    assert sorted(map(str, read)) == sorted(
        str({name: row[name] for name in read[0]}) for row in rows.aggregates
    )


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


def test_files_of_one_attempt_of_a_task_count(
    build_spool: Callable[..., StagedOutput], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt whose output is lost is repeated, and the reports of both may arrive."""
    aggregate = spool.aggregate_rows

    def twice(step: TableStep, rows: DataFrame, by: tuple[str, ...], *more: Column) -> DataFrame:
        # In the union, the second attempts have the numbers of the partitions after the first ones.
        attempt = rows.where(f"{REPORT} IS NOT NULL").withColumn(
            TASK, F.concat(F.lit("0-"), F.element_at(F.split(TASK, "-"), 2).cast("int") - 2)
        )
        return aggregate(step, rows.unionByName(attempt), by, *more)

    monkeypatch.setattr(spool, "aggregate_rows", twice)
    rows = build_spool(a=[[1, 2], [2]])
    assert sum(file.rows for file in rows.data_files["a"]) == 3
    assert rows.rows().count() == 3


def test_rows_without_a_file_are_an_error(
    build_spool: Callable[..., StagedOutput], monkeypatch: pytest.MonkeyPatch
) -> None:
    aggregate = spool.aggregate_rows
    monkeypatch.setattr(
        spool, "aggregate_rows", lambda step, rows, *by: aggregate(step, rows.union(rows), *by)
    )
    with pytest.raises(LakeError, match="other rows"):
        build_spool(a=[[1]])


def test_lost_report_of_a_task_without_rows_is_an_error(
    build_spool: Callable[..., StagedOutput], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that only counts reports, too."""

    def counts(batches: Iterator[pa.RecordBatch], counters: TaskCounters) -> Iterator[pa.RecordBatch]:
        counters.add("failures", np.array([1]), np.array([1]))
        return iter(())

    aggregate = spool.aggregate_rows

    def run(lost: bool) -> StagedOutput:
        def without_reports(metrics: Mapping[str, str], rows: DataFrame, *more: Any) -> DataFrame:
            return aggregate(metrics, rows.where(F.col(REPORT).isNull()) if lost else rows, *more)

        monkeypatch.setattr(spool, "aggregate_rows", without_reports)
        store = build_spool().store
        return StagedOutput(store, STEP, [BlockTask("a", store.spark.range(1), compute_counting=counts)], 1)

    assert run(lost=False).counted["a"] != TaskCounters()
    with pytest.raises(LakeError, match="run the interval again"):
        run(lost=True)
