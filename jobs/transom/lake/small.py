"""Rows that are few enough for the driver: read and written by delta-rs, and not through Spark.

An hour of a quiet log is some hundred rows. Spark's Delta takes half a second for each table that it writes,
and in an application that has just started several for its code alone; delta-rs takes milliseconds.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from transom.intervals import ranges
from transom.lake.tables import instant, query

MOST = 8 * 2**20
"""Bytes that the driver takes at most, as Arrow holds them; of files, as they are stored."""
FIXED = 16
"""Bytes of a value that is no text, generously."""


def bytes_of(rows: DataFrame) -> Column:
    """About how many bytes a row takes as Arrow holds it."""
    texts = [field.name for field in rows.schema if isinstance(field.dataType, StringType)]
    size: Column = F.lit(FIXED * len(rows.columns)).cast("bigint")
    for name in texts:
        size = size + F.coalesce(F.octet_length(f"`{name}`").cast("bigint"), F.lit(0))
    return size


def taken(rows: DataFrame, schema: pa.Schema) -> pa.Table:
    """Rows on the driver, in a table's own types."""
    return rows.toArrow().select(schema.names).cast(schema)


def held(root: str, name: str, hours: Mapping[int, Iterable[datetime]]) -> pa.Table | None:
    """The rows of some hours of a table, None where they may be too many.

    Args:
        hours: by the version that they are read at.
    """
    parts = []
    for version, some in hours.items():
        wanted = set(some)
        if not wanted:
            continue
        table = DeltaTable(f"{root}/{name}", version=version)
        files = pa.table(table.get_add_actions(flatten=True)).select(["size_bytes", "partition.hour"])
        sizes = zip(*(column.to_pylist() for column in files.columns), strict=True)
        if sum(size for size, hour in sizes if hour in wanted) > MOST:
            return None
        parts.append(_rows(table, wanted))
    if any(part is None for part in parts):
        return None
    return pa.concat_tables(parts, promote_options="default") if parts else None


def _rows(table: DeltaTable, hours: Iterable[datetime]) -> pa.Table | None:
    where = " OR ".join(f"hour >= {instant(s.start)} AND hour < {instant(s.end)}" for s in ranges(hours))
    texts = [field.name for field in table.schema().fields if field.type.type == "string"]
    size = " + ".join([f"{FIXED * len(table.schema().fields)}", *map(_length, texts)])
    # Files hold a text that repeats once: what they unpack to is asked before it is taken.
    [total] = query(table, f"SELECT sum({size}) AS bytes FROM t WHERE {where}").to_pylist()
    if (total["bytes"] or 0) > MOST:
        return None
    # What reads the files has types of its own for text.
    return query(table, f"SELECT * FROM t WHERE {where}").cast(pa.schema(table.schema().to_arrow()))


def _length(name: str) -> str:
    return f'coalesce(octet_length("{name}"), 0)'
