"""The Spark session of a job, built only here.

It sets only what correctness needs on any cluster. Settings for the speed of small local runs, such as few
partitions for a snapshot and no UI, are in the configuration that `transom setup` writes.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

REQUIRED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Readers without Spark (delta-rs) must be able to read every table.
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
    # The batch size of the vectorised passes.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}

FEW_ROWS = 100_000
"""The number of input rows up to which a query is interpreted in one partition."""
FOR_FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings for queries over few rows. To compile a query takes longer than to interpret it, and to divide it
into stages longer than to run it."""


@contextmanager
def suited_to(spark: SparkSession, rows: int | None) -> Iterator[None]:
    """Within the context, the session's queries suit the number of their input rows; None is unknown."""
    if rows is None or rows > FEW_ROWS:
        yield
        return
    before = {name: str(spark.conf.get(name)) for name in FOR_FEW_ROWS}
    _set(spark, FOR_FEW_ROWS)
    try:
        yield
    finally:
        _set(spark, before)


def _set(spark: SparkSession, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        spark.conf.set(name, value)


def session(name: str) -> SparkSession:
    """Return the Spark session of a job, with UTC as the time zone of Spark and of the process."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    builder = SparkSession.builder.appName(name)
    for key, value in REQUIRED.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
