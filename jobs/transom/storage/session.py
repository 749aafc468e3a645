"""The only place that builds a Spark session.

What is set here is what correctness needs, wherever the job runs. What makes a small local run quick
(one partition for a snapshot, the short compiler, no UI) stands in the configuration that set-up
writes, and is never forced on a cluster.
"""

import os
import time

from pyspark.sql import SparkSession

REQUIRED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Readers without Spark (delta-rs) have to follow every table.
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
    # A batch is what the vectorised passes work on at a time.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}


def session(name: str) -> SparkSession:
    """The Spark session of a job, in UTC throughout."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    builder = SparkSession.builder.appName(name)
    for key, value in REQUIRED.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
