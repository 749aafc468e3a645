"""The peer of ingest: Spark's own scan of text, parsed by SQL functions, and written to Delta.

It writes the same columns with the same types, partitioned by hour. It rejects no lines, adds neither line
numbers nor sources, and does not check or record anything.

Usage: spark-submit peer_ingest.py FORMAT FILES TABLE [--shuffle]
"""

import sys

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.storage.session import session

LINE = (
    r"^(\S+) (\S+) (.*?) \[([^\]]*)\] \"((\S+) (.*) (HTTP/[0-9.]+))\" ([0-9]{3}) ([0-9]+|-)"
    r" \"([^\"]*)\" \"([^\"]*)\"$"
)
APACHE = ("client", "ident", "user", "time", "request", "method", "path", "protocol", "status", "bytes",
          "referer", "agent")  # fmt: skip
ZEEK = {
    "ts": "double", "uid": "string", "orig_h": "string", "orig_p": "bigint", "resp_h": "string",
    "resp_p": "bigint", "proto": "string", "service": "string", "duration": "double", "orig_bytes": "bigint",
    "resp_bytes": "bigint", "conn_state": "string", "local_orig": "boolean", "local_resp": "boolean",
    "missed_bytes": "bigint", "history": "string", "orig_pkts": "bigint", "orig_ip_bytes": "bigint",
    "resp_pkts": "bigint", "resp_ip_bytes": "bigint", "tunnel_parents": "string", "ip_proto": "bigint",
}  # fmt: skip


def apache(lines: DataFrame) -> DataFrame:
    """Parse columns with one call of `regexp_extract` each, as usual."""
    fields: dict[str, Column] = {
        name: F.nullif(F.regexp_extract("value", LINE, number), F.lit("-"))
        for number, name in enumerate(APACHE, 1)
    }
    time = F.to_timestamp(fields.pop("time"), "dd/MMM/yyyy:HH:mm:ss Z").alias("event_time")
    for name in ("status", "bytes"):
        fields[name] = fields[name].cast("bigint")
    return lines.select(time, *(column.alias(name) for name, column in fields.items()))


def zeek(lines: DataFrame) -> DataFrame:
    """Parse columns with `split`; null if the generated log lacks the field."""
    parts = lines.where(~F.col("value").startswith("#")).select(F.split("value", "\t").alias("part"))
    fields = {
        name: F.nullif(F.get("part", F.lit(number)), F.lit("-")).cast(kind)
        for number, (name, kind) in enumerate(ZEEK.items())
    }
    seconds = fields.pop("ts") + F.coalesce(fields["duration"], F.lit(0.0))
    time = F.timestamp_micros(F.round(seconds * 1_000_000).cast("bigint")).alias("event_time")
    return parts.select(time, *(column.alias(name) for name, column in fields.items()))


def main(form: str, files: str, table: str, *options: str) -> None:
    """Read, parse and write."""
    spark = session("peer")
    events = {"apache": apache, "zeek": zeek}[form](spark.read.text(files))
    events = events.withColumn("hour", F.date_trunc("hour", "event_time"))
    if "--shuffle" in options:
        events = events.repartition("hour")
    events.write.format("delta").partitionBy("hour").save(table)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
