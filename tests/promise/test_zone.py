"""The machine's time zone leaves no trace: all tests run in one that is half an hour off the full hours."""

import time
from collections.abc import Iterable, Iterator

from pyarrow import RecordBatch
from pyspark.sql import SparkSession


def offsets(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    for batch in batches:
        yield RecordBatch.from_pydict({"offset": [time.timezone] * batch.num_rows})


def test_driver_java_and_workers_run_in_a_zone_off_the_hours(spark: SparkSession) -> None:
    half_past = -int(5.5 * 3600)
    zone = spark._jvm.java.util.TimeZone.getDefault()
    (worker,) = spark.range(1).mapInArrow(offsets, "offset long").toArrow().to_pylist()
    assert (time.timezone, zone.getRawOffset() / -1000, worker["offset"]) == (half_past,) * 3
