"""The Spark session of a job, built only here: in a JVM of its own, or on a running Spark Connect server.

It sets only what correctness needs on any cluster. Settings for the speed of small local runs, such as few
partitions for a snapshot and no UI, are in the configuration that `transom setup` writes.
"""

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from transom.core.locations import spark_server
from transom.storage.connect import connect, get_settings, set_settings

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
    is_remote = spark_server() is not None
    before = get_settings(spark, FOR_FEW_ROWS) if is_remote else _get(spark, FOR_FEW_ROWS)
    change = set_settings if is_remote else _set
    change(spark, FOR_FEW_ROWS)
    try:
        yield
    finally:
        change(spark, before)


def _get(spark: SparkSession, names: Iterable[str]) -> dict[str, str]:
    return {name: str(spark.conf.get(name)) for name in names}


def _set(spark: SparkSession, values: Mapping[str, str]) -> None:
    for name, value in values.items():
        spark.conf.set(name, value)


def parallelism(spark: SparkSession) -> int:
    """Return the number of tasks that Spark runs at once: its `defaultParallelism`."""
    if spark_server() is None:
        return max(spark.sparkContext.defaultParallelism, 1)
    # A session of a server has no context, but it plans a range in as many parts.
    (plan,) = spark.sql("EXPLAIN SELECT * FROM range(1)").collect()
    parts = re.search(r"splits=(\d+)", str(plan[0]))
    return int(parts[1]) if parts else 1


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return rows of the driver as a frame."""
    if rows.num_rows:
        return spark.createDataFrame(rows)
    if spark_server() is None:
        # Spark infers an array's type from an empty table only if it has a chunk.
        return spark.createDataFrame(rows.schema.empty_table())
    # A server refuses an empty table.
    return spark.createDataFrame([], from_arrow_schema(rows.schema, prefer_timestamp_ntz=False))


def to_arrow(rows: DataFrame) -> pa.Table:
    """Return the rows of a frame on the driver.

    `toArrow` of a session on a server requests the schema first, which takes as long as a query of few rows;
    the answer of the query has it, too.
    """
    if spark_server() is not None:
        table, schema = rows._to_table()  # type: ignore[operator]
        if schema is not None:
            return table.cast(to_arrow_schema(schema, timezone="UTC"))
    return rows.toArrow()


def use_utc() -> None:
    """Set the time zone of the process to UTC."""
    os.environ["TZ"] = "UTC"
    time.tzset()


def session(name: str, key: str | None = None) -> SparkSession:
    """Return the Spark session of a job, with UTC as the time zone of Spark and of the process.

    With the environment variable `SPARK_REMOTE`, it is a session of the Spark Connect server at this URL.

    Args:
        name: the name of the application.
        key: the key of the session on a server, as of `connect`. Default: the name.

    Raises:
        ServerError: as of `connect`.
    """
    use_utc()
    if url := spark_server():
        return connect(url, key or name, REQUIRED, FOR_FEW_ROWS)
    builder = SparkSession.builder.appName(name)
    for key, value in REQUIRED.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
