"""Load the classes that a job loads, for the class-data archive: write and read a small Delta table."""

import sys

from pyspark.sql import functions as F

from transom.storage.session import session

spark = session("warm-up")
folder = sys.argv[1]
rows = spark.range(0, 100, 1, 2).mapInArrow(lambda batches: batches, "id bigint")
rows = rows.withColumn("hour", F.timestamp_seconds(F.col("id") % 2 * 3600)).persist()
rows.groupBy("hour").agg(F.count("*"), F.sum(F.xxhash64("id").cast("decimal(20,0)"))).toArrow()
for token in (1, 2):
    (
        rows.repartition("hour")
        .write.format("delta")
        .mode("overwrite")
        .partitionBy("hour")
        .option("replaceWhere", "hour >= TIMESTAMP '1970-01-01 00:00:00Z'" if token == 2 else "true")
        .option("txnAppId", "warm-up")
        .option("txnVersion", token)
        .save(f"{folder}/rows")
    )
spark.read.format("delta").option("versionAsOf", 1).load(f"{folder}/rows").where("id > 3").collect()
spark.stop()
