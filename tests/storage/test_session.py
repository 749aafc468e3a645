"""Settings of the session for queries over few rows."""

import pytest
from pyspark.sql import SparkSession

from transom.storage.session import FEW_ROWS, FOR_FEW_ROWS, suited_to


@pytest.mark.parametrize(("rows", "few"), [(0, True), (FEW_ROWS, True), (FEW_ROWS + 1, False), (None, False)])
def test_only_queries_over_few_rows_are_interpreted(spark: SparkSession, rows: int | None, few: bool) -> None:
    spark, name = spark.newSession(), "spark.sql.shuffle.partitions"
    spark.conf.set(name, "7")
    before = {setting: spark.conf.get(setting) for setting in FOR_FEW_ROWS}
    with suited_to(spark, rows):
        assert spark.conf.get(name) == ("1" if few else "7")
        assert spark.range(3).groupBy("id").count().count() == 3
    assert {setting: spark.conf.get(setting) for setting in FOR_FEW_ROWS} == before
