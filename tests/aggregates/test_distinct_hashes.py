"""A granule contains the smallest hashes of its values, for every key."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from tests.support.stream_factories import changed
from transom.engine.hours import granule, quoted
from transom.features.aggregates.algorithm.distinct_count import SIZE
from transom.features.aggregates.algorithm.reference_summaries import AdaptiveSample
from transom.features.aggregates.resolve import block_of
from transom.features.aggregates.tables_granules import with_hashes
from transom.stream import parse

NOON = datetime(2015, 5, 17, 12, tzinfo=UTC)


@pytest.mark.parametrize("column", ["host", "status"])
def test_granule_contains_the_smallest_hashes_of_its_values(spark: SparkSession, column: str) -> None:
    """The values of each user and granule, whether few, above capacity, or none."""
    of = block_of(
        parse(changed(aggregates__load__measures={"kinds": f"distinct({column})"}), "app.yaml"), "load"
    )
    values: dict[tuple[str | None, int], list[int | None]] = {
        ("many", 0): [*range(SIZE + 200), *range(50), None],
        ("many", 5): [7],
        (None, 0): [1, 2, 2, None],
        (None, 10): [3],
        ("none", 0): [None, None],
    }
    rows = [
        (NOON, NOON + timedelta(minutes=minute), user, value)
        for (user, minute), count in values.items()
        for value in count
    ]
    events = spark.createDataFrame(rows, "hour timestamp, event_time timestamp, user string, status bigint")
    events = events.withColumn("host", F.concat(F.lit("host "), F.col("status")))
    granules = events.groupBy("hour", granule(of.base), *quoted(of.key)).agg(F.count("*").alias("records"))

    stored = {
        (row["user"], round((row["granule"].astimezone(UTC) - NOON).total_seconds()) // 60): (
            row["records"],
            row[f"hashes_{column}"],
        )
        for row in with_hashes(granules, events, of, column).collect()
    }

    def hashes(count: list[int | None]) -> list[int]:
        draws = events.sparkSession.createDataFrame([Row(status=value) for value in {*count} - {None}])
        draws = draws.withColumn("host", F.concat(F.lit("host "), F.col("status")))
        return [max(row[0] & (2**63 - 1), 1) for row in draws.select(F.xxhash64(column)).collect()]

    assert stored == {
        at: (len(count), list(AdaptiveSample.of(hashes(count)).hashes) if set(count) != {None} else None)
        for at, count in values.items()
    }
    assert len(stored["many", 0][1]) == SIZE + 1
