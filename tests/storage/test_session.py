"""Settings of the session for queries over few rows, and its Python workers."""

from collections.abc import Iterable, Iterator

import psutil
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from transom.storage.session import FEW_ROWS, FOR_FEW_ROWS, start_workers, suited_to


@pytest.mark.parametrize(("rows", "few"), [(0, True), (FEW_ROWS, True), (FEW_ROWS + 1, False), (None, False)])
def test_only_queries_over_few_rows_are_interpreted(spark: SparkSession, rows: int | None, few: bool) -> None:
    spark, name = spark.newSession(), "spark.sql.shuffle.partitions"
    spark.conf.set(name, "7")
    before = {setting: spark.conf.get(setting) for setting in FOR_FEW_ROWS}
    with suited_to(spark, rows):
        assert spark.conf.get(name) == ("1" if few else "7")
        assert spark.range(3).groupBy("id").count().count() == 3
    assert {setting: spark.conf.get(setting) for setting in FOR_FEW_ROWS} == before


def test_workers_that_start_ahead_are_those_of_stages(spark: SparkSession) -> None:
    java = psutil.Process(spark.sparkContext._gateway.proc.pid)

    def parents_of_workers() -> set[int]:
        return {process.pid for process in java.children()}

    def unchanged(batches: Iterator[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        return batches

    spark.range(1).mapInArrow(unchanged, "id bigint").collect()
    before = parents_of_workers()
    start_workers(spark)
    assert parents_of_workers() == before != set()
