"""The Spark session of a job, built only here.

It sets only what correctness needs on any cluster. Settings for the speed of small local runs, such as few
partitions for a snapshot and no UI, are in the configuration that `transom setup` writes.
"""

import os
import time

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
