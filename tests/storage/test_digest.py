"""The digest changes with every difference of a multiset of rows, and not with their order."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from transom.core.partitions import format_digest
from transom.storage.digest import digest_of, row_hash, total_hash

SCHEMA = "a bigint, b string, c double, d array<string>, e timestamp"
NOON = datetime(2015, 5, 17, 12, tzinfo=UTC)
ROWS: list[tuple[Any, ...]] = [
    (1, "x", 0.5, ["p", None], NOON),
    (2, None, None, [], NOON),
    (None, "y", 1.5, None, None),
]
COLUMNS = ["a", "b", "c", "d", "e"]


def digest(df: DataFrame, columns: list[str]) -> str:
    hashed = df.select(row_hash(df, columns).alias("hash"))
    ((result,),) = hashed.agg(digest_of(F.count("*"), total_hash(F.col("hash")))).collect()
    return str(result)


def of(spark: SparkSession, rows: list[tuple[Any, ...]]) -> str:
    return digest(spark.createDataFrame(rows, SCHEMA), COLUMNS)


def test_order_and_partitions_do_not_change_the_digest(spark: SparkSession) -> None:
    frame = spark.createDataFrame(ROWS[::-1], SCHEMA).repartition(3)
    assert digest(frame, COLUMNS) == of(spark, ROWS)
    assert of(spark, []) == "0:0"


def test_order_of_declared_columns_does_not_change_the_digest(spark: SparkSession) -> None:
    frame = spark.createDataFrame(ROWS, SCHEMA)
    assert digest(frame.select(*COLUMNS[::-1]), COLUMNS[::-1]) == digest(frame, COLUMNS)


@pytest.mark.parametrize(
    "rows",
    [
        [(1, "z", 0.5, ["p", None], NOON), *ROWS[1:]],
        [(1, "x", 0.5, [None, "p"], NOON), *ROWS[1:]],
        [ROWS[0], (None, "2", None, [], NOON), ROWS[2]],
        [ROWS[0], (2, None, None, None, NOON), ROWS[2]],
        [ROWS[0], (2, "", None, [], NOON), ROWS[2]],
        [*ROWS, ROWS[0]],
        [*ROWS, ROWS[0], ROWS[0]],
        ROWS[:2],
        [(2, *ROWS[0][1:]), (1, *ROWS[1][1:]), ROWS[2]],
    ],
    ids=[
        "cell", "element", "null moved", "null array", "empty text", "row twice", "row thrice", "row gone",
        "values exchanged",
    ],
)  # fmt: skip
def test_each_difference_changes_the_digest(spark: SparkSession, rows: list[tuple[Any, ...]]) -> None:
    assert of(spark, rows) != of(spark, ROWS)


def test_equal_values_under_another_name_are_other_rows(spark: SparkSession) -> None:
    frame = spark.createDataFrame(ROWS, SCHEMA)
    renamed = frame.withColumnRenamed("a", "z")
    assert digest(renamed, ["z", *COLUMNS[1:]]) != digest(frame, COLUMNS)


def test_sum_of_the_halves_is_the_sum_of_the_hashes(spark: SparkSession) -> None:
    """Hashes of either sign, with the two extremes; and none at all."""
    hashes = [-(2**63), 2**63 - 1, -1, 0, 1, 2**32 - 1, -(2**32), 2**63 - 1, 2**63 - 1]
    frame = spark.createDataFrame([(value,) for value in hashes], "hash bigint")
    total = digest_of(F.count("*"), total_hash(F.col("hash"))).alias("digest")
    assert frame.agg(total).collect() == [(format_digest(len(hashes), sum(hashes)),)]
    assert frame.where("hash = 5").agg(total).collect() == [("0:0",)]
