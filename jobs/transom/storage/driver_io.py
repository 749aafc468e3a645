"""Rows that are few enough for the driver: read and written by delta-rs, and not through Spark.

An hour of a quiet log is some hundred rows. Spark's Delta takes half a second for each table that it writes,
and in an application that has just started several for its code alone; delta-rs takes milliseconds.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Field
from deltalake.schema import ArrayType as ArrayField

from transom.storage.data_files import hours_of
from transom.storage.tables import in_hours_sql, query

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MAX_DRIVER_BYTES = 8 * 2**20
"""Bytes that the driver takes at most, as Arrow holds them; of files, as they are stored."""
FIXED = 16
"""Bytes of a value that is no text, generously."""


def bytes_of(rows: "DataFrame") -> "Column":
    """About how many bytes a row takes as Arrow holds it."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, StringType

    sizes = [f"CAST({FIXED * len(rows.columns)} AS bigint)"]
    for field in rows.schema:
        if isinstance(field.dataType, StringType):
            sizes.append(f"coalesce(CAST(octet_length(`{field.name}`) AS bigint), 0)")
        elif isinstance(field.dataType, ArrayType):
            sizes.append(f"{FIXED} * coalesce(CAST(array_size(`{field.name}`) AS bigint), 0)")
    return F.expr(" + ".join(sizes))


def collect_arrow(rows: "DataFrame", schema: pa.Schema) -> pa.Table:
    """Rows on the driver, in a table's own types."""
    return rows.toArrow().select(schema.names).cast(schema)


class TableReader:
    """A table as it stood at one version, which nobody brings up to date."""

    def __init__(self, table: DeltaTable) -> None:
        self.table = table

    @cached_property
    def _files(self) -> pa.Table:
        files = pa.table(self.table.get_add_actions(flatten=True))
        return files.select(["size_bytes", "partition.hour", "path"])

    @property
    def sources(self) -> Mapping[int, str]:
        """The data files of each hour, counted from the epoch, as one text."""
        files: dict[int, str] = {}
        _, of_hours, paths = self._files.columns
        for hour, path in sorted(zip(hours_of(of_hours).tolist(), paths.to_pylist(), strict=True)):
            files[hour] = f"{files[hour]}\n{path}" if hour in files else path
        return files

    def size(self, hours: Collection[datetime]) -> int:
        """The bytes of the files that hold the rows of some hours."""
        sizes, of_hours, _ = self._files.columns
        wanted = pc.is_in(of_hours, pa.array(hours, of_hours.type))
        return pc.sum(sizes.filter(wanted)).as_py() or 0

    def unpacked(self, hours: Collection[datetime]) -> int:
        """About how many bytes the rows of some hours take: files hold a text that repeats once."""
        fields = self.table.schema().fields
        size = " + ".join([f"{FIXED * len(fields)}", *filter(None, map(_length, fields))])
        [total] = self._ask(f"sum({size}) AS bytes", hours).to_pylist()
        return total["bytes"] or 0

    def rows(self, hours: Collection[datetime]) -> pa.Table:
        """The rows of some hours."""
        # What reads the files has types of its own for text.
        return self._ask("*", hours).cast(pa.schema(self.table.schema().to_arrow()))

    def _ask(self, what: str, hours: Collection[datetime]) -> pa.Table:
        return query(self.table, f"SELECT {what} FROM t WHERE {in_hours_sql(hours)}")


def read_if_small(parts: Iterable[tuple[TableReader, Collection[datetime]]]) -> pa.Table | None:
    """The rows of some hours of a table, None where they may be too many.

    Args:
        parts: the hours, with the version that they are read at.
    """
    parts = [(stored, hours) for stored, hours in parts if hours]
    # The files' sizes are known; what they unpack to is asked before it is taken.
    if not parts or any(
        sum(size(stored, hours) for stored, hours in parts) > MAX_DRIVER_BYTES
        for size in (TableReader.size, TableReader.unpacked)
    ):
        return None
    return pa.concat_tables(
        (stored.rows(hours) for stored, hours in parts), promote_options="default"
    ).combine_chunks()


def _length(field: Field) -> str | None:
    """What a column takes beside what is fixed."""
    if isinstance(field.type, ArrayField):
        return f'{FIXED} * coalesce(cardinality("{field.name}"), 0)'
    return f'coalesce(octet_length("{field.name}"), 0)' if field.type.type == "string" else None
