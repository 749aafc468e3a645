"""Read small amounts of rows on the driver, by delta-rs instead of Spark.

An hour of a quiet log has a few hundred rows. Spark's Delta takes half a second to write a table, and several
seconds to load its code in a new application. delta-rs takes milliseconds.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Field, QueryBuilder
from deltalake.schema import ArrayType as ArrayField

from transom.core.exact_sums import Int64s
from transom.storage.data_files import hours_of
from transom.storage.tables import in_hours_sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MAX_DRIVER_BYTES = 8 * 2**20
"""The maximum bytes on the driver: of rows in Arrow's memory, and of files, of the lake and of the landing
folder."""
FIXED = 16
"""An upper estimate of the bytes of a value that is not text."""
SELECTED = 4
"""How many times `MAX_DRIVER_BYTES` a selection of a block may have, as tasks take it without a copy."""
SIZE = "__bytes"
"""The column with the approximate bytes of a row."""


def bytes_of(rows: "DataFrame") -> "Column":
    """Return the approximate bytes of a row in Arrow's memory."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, StringType

    sizes = [f"CAST({FIXED * len(rows.columns)} AS bigint)"]
    for field in rows.schema:
        if isinstance(field.dataType, StringType):
            sizes.append(f"coalesce(CAST(octet_length(`{field.name}`) AS bigint), 0)")
        elif isinstance(field.dataType, ArrayType):
            sizes.append(f"{FIXED} * coalesce(CAST(array_size(`{field.name}`) AS bigint), 0)")
    return F.expr(" + ".join(sizes))


def row_bytes(rows: pa.RecordBatch, columns: int) -> Int64s:
    """Return what `bytes_of` returns, for each Arrow row.

    Args:
        rows: the rows.
        columns: the number of columns of the table; those that `rows` lacks are null.
    """
    sizes = np.full(rows.num_rows, FIXED * columns, dtype=np.int64)
    for values in rows.columns:
        if pa.types.is_string(values.type):
            sizes += pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
        elif pa.types.is_list(values.type):
            sizes += FIXED * pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    return sizes


class TableReader:
    """A table at one version.

    Args:
        table: the table at this version; it may be updated later.

    Attributes:
        schema: its schema.
    """

    def __init__(self, table: DeltaTable) -> None:
        self.schema = table.schema()
        files = pa.table(table.get_add_actions(flatten=True))
        self._files = files.select(["size_bytes", "partition.hour", "path"])
        # A builder keeps the version that the table has now.
        self._builder = QueryBuilder().register("t", table)

    @property
    def sources(self) -> Mapping[int, str]:
        """The paths of each hour's data files, joined by line ends, by hour since the epoch."""
        files: dict[int, str] = {}
        _, of_hours, paths = self._files.columns
        for hour, path in sorted(zip(hours_of(of_hours).tolist(), paths.to_pylist(), strict=True)):
            files[hour] = f"{files[hour]}\n{path}" if hour in files else path
        return files

    def paths(self, hours: Collection[datetime]) -> dict[str, int]:
        """Return the hour since the epoch of each data file with rows of some hours, by path in the table."""
        _, of_hours, paths = self._files.columns
        selected = pc.is_in(of_hours, pa.array(hours, of_hours.type))
        # The log has paths as parts of a URI.
        found = map(unquote, paths.filter(selected).to_pylist())
        return dict(zip(found, hours_of(of_hours.filter(selected)).tolist(), strict=True))

    def size(self, hours: Collection[datetime]) -> int:
        """Return the bytes of the files with the rows of some hours."""
        sizes, of_hours, _ = self._files.columns
        selected = pc.is_in(of_hours, pa.array(hours, of_hours.type))
        return pc.sum(sizes.filter(selected)).as_py() or 0

    def rows(self, hours: Collection[datetime]) -> pa.Table:
        """Return the rows of some hours."""
        return self._in_own_types(self._query(f"SELECT * FROM t WHERE {in_hours_sql(hours)}").read_all())

    def rows_within(
        self,
        hours: Collection[datetime],
        most: int,
        columns: Collection[str] | None = None,
        where: str = "TRUE",
    ) -> tuple[pa.Table, int] | None:
        """Return the rows of some hours, with their approximate bytes in memory; None if these exceed `most`.

        Files are smaller than rows, as they store a repeated text once. So rows are counted as they are read.

        Args:
            hours: the hours.
            most: the maximum number of bytes.
            columns: the columns to read. Default: all.
            where: a further condition, as SQL.
        """
        fields = [of for of in self.schema.fields if columns is None or of.name in columns]
        size = " + ".join([f"{FIXED * len(fields)}", *filter(None, map(_length, fields))])
        names = ", ".join(f'"{field.name}"' for field in fields)
        condition = f"{in_hours_sql(hours)} AND ({where})"
        rows = self._query(f"SELECT {names}, {size} AS {SIZE} FROM t WHERE {condition}")
        batches, total = [], 0
        for batch in rows:
            total += pc.sum(batch[SIZE]).as_py() or 0
            if total > most:
                return None
            batches.append(batch)
        return self._in_own_types(pa.Table.from_batches(batches, rows.schema).drop_columns([SIZE])), total

    def _query(self, sql: str) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_stream(self._builder.execute(sql))

    def _in_own_types(self, rows: pa.Table) -> pa.Table:
        # DataFusion returns text as string views.
        schema = pa.schema(self.schema.to_arrow())
        return rows.cast(pa.schema([schema.field(name) for name in rows.column_names]))


def read_if_small(
    parts: Iterable[tuple[TableReader, Collection[datetime]]],
    columns: Collection[str] | None = None,
    where: str = "TRUE",
    times: int = 1,
) -> pa.Table | None:
    """Return the rows of some hours of a table; None if there are no hours or perhaps too many rows.

    Args:
        parts: a reader at a version, with the hours to read at this version.
        columns: as of `TableReader.rows_within`.
        where: as of `TableReader.rows_within`.
        times: how many times `MAX_DRIVER_BYTES` they may have.
    """
    parts = [(reader, hours) for reader, hours in parts if hours]
    # First by the sizes of the files, which the log has.
    if not parts or sum(reader.size(hours) for reader, hours in parts) > MAX_DRIVER_BYTES:
        return None
    tables, most = [], times * MAX_DRIVER_BYTES
    for reader, hours in parts:
        if (result := reader.rows_within(hours, most, columns, where)) is None:
            return None
        tables.append(result[0])
        most -= result[1]
    return pa.concat_tables(tables, promote_options="default").combine_chunks()


def _length(field: Field) -> str | None:
    """Return the bytes of a column beyond its fixed part, as SQL; None if there are none."""
    if isinstance(field.type, ArrayField):
        return f'{FIXED} * coalesce(cardinality("{field.name}"), 0)'
    return f'coalesce(octet_length("{field.name}"), 0)' if field.type.type == "string" else None
