"""Spark's frames over data files that delta-rs lists, as Spark's Delta needs several jobs to list files."""

import re
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

MOST_LISTED_FILES = 1024
"""The maximum number of files that Spark is given by their paths."""
MOST_MAPPED_FILES = 64
"""The same if their names do not end with their hour: Spark looks each row's file up in a list."""
FILE_NAME = re.compile(r"[\w.-]+")
"""Names of data files that SQL can quote as they are."""


def literal_path(path: str) -> str:
    """Return a path as Spark's readers take it: they parse globs."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def hour_of_file(name: str) -> str:
    """Return the hour of a file that `DataFileWriter` has written, as Spark SQL.

    A regular expression for each row takes as long as to read it.

    Args:
        name: the name of the file, as Spark SQL.
    """
    number = f"CAST(substring_index(substring_index({name}, '-', -1), '.', 1) AS bigint)"
    return f"timestamp_seconds({number} * 3600)"


def read_listed(
    spark: SparkSession, uri: str, schema: StructType, paths: Mapping[str, int]
) -> DataFrame | None:
    """Return the rows of data files; None if there are none, too many, or some with other names.

    Args:
        spark: the session.
        uri: the URI or absolute path of the table.
        schema: the schema of the table.
        paths: the hour since the epoch of each file, by path in the table.
    """
    hour_of = {path.rpartition("/")[2]: hour for path, hour in paths.items()}
    is_plain = len(hour_of) == len(paths) and all(map(FILE_NAME.fullmatch, hour_of))
    is_named = all(name.endswith(f"-{hour}.parquet") for name, hour in hour_of.items())
    if not is_plain or not 0 < len(paths) <= (MOST_LISTED_FILES if is_named else MOST_MAPPED_FILES):
        return None
    columns = StructType([field for field in schema if field.name != "hour"])
    rows = spark.read.schema(columns).parquet(*(literal_path(f"{uri}/{path}") for path in paths))
    name = "_metadata.file_name"
    if is_named:
        hour = hour_of_file(name)
    else:
        hours = ", ".join(f"'{name}', {hour}" for name, hour in hour_of.items())
        hour = f"timestamp_seconds(map({hours})[{name}] * 3600)"
    return rows.selectExpr(*(f"{hour} AS hour" if name == "hour" else f"`{name}`" for name in schema.names))
