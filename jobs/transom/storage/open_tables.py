"""Tables that are opened once for many readers, each of whom reads one version. No Spark."""

import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.schema import PrimitiveType

from transom.storage.latest_table import Revision
from transom.storage.tables import LakeError, TableFolder, one_line_message

MAX_PARTITIONS = 32
"""The maximum number of files that a query reads at once: Python counts the machine's cores, even in a
container that has few of them."""
_SETTINGS = {
    # A query of many hours reads thousands of small files: reading the index of pages of each takes as long
    # as all else, and saves a seventh of the time in files of 300,000 rows.
    "parquet.enable_page_index": "false",
    # No table has these filters.
    "parquet.bloom_filter_on_read": "false",
    # While some files are opened, others are decoded.
    "target_partitions": str(min(4 * (os.cpu_count() or 1), MAX_PARTITIONS)),
}
"""Settings of DataFusion's execution of queries."""


class PinnedTable:
    """One version of a table: commits of runs do not change its rows.

    Args:
        table: the table, which may be updated later.
        revision: what identifies the version.

    Attributes:
        revision: the same.
        columns: the types of the columns, such as `string`; `None` for lists and structs.
    """

    def __init__(self, table: DeltaTable, revision: Revision) -> None:
        self.revision = revision
        self.columns: Mapping[str, str | None] = {
            field.name: field.type.type if isinstance(field.type, PrimitiveType) else None
            for field in table.schema().fields
        }
        self._uri = table.table_uri
        # A builder keeps the version that the table has now.
        self._builder = QueryBuilder().register("t", table)
        for name, value in _SETTINGS.items():
            self._builder.execute(f"SET datafusion.execution.{name} = {value}").read_all()

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """Yield the result of an SQL query over the table `t`, a part of the rows at a time.

        Raises:
            LakeError: the table cannot be read.
        """
        with self._errors():
            yield from pa.RecordBatchReader.from_stream(self._builder.execute(sql))

    def read(self, sql: str) -> pa.Table:
        """Return the result of an SQL query over the table `t`; raise as `batches`."""
        with self._errors():
            return pa.RecordBatchReader.from_stream(self._builder.execute(sql)).read_all()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of an SQL query over the table `t`; raise as `batches`."""
        return [row for batch in self.batches(sql) for row in batch.to_pylist()]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (DeltaError, pa.ArrowException, OSError) as error:
            raise LakeError(f"lake: {self._uri} cannot be read: {one_line_message(error)}") from error


class OpenTables:
    """The tables of a stream; several threads may use them.

    Args:
        root: the stream's folder in the lake.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._tables = TableFolder(root)
        self._rows: dict[str, tuple[Revision, Mapping[datetime, int]]] = {}

    def pin(self, name: str) -> PinnedTable | None:
        """Return the latest version of a table; None if it does not exist.

        Raises:
            LakeError: the lake cannot be read.
        """
        with self._lock:
            latest = self._latest(name)
            return None if latest is None else PinnedTable(*latest)

    def rows_by_hour(self, name: str) -> Mapping[datetime, int]:
        """Return the number of rows of each hour of a table, from its log; empty if it does not exist."""
        with self._lock:
            latest = self._latest(name)
            if latest is None:
                return {}
            table, revision = latest
            if name not in self._rows or self._rows[name][0] != revision:
                files = pa.table(table.get_add_actions(flatten=True))
                counts = Counter[datetime]()
                for hour, rows in zip(files["partition.hour"].to_pylist(), files["num_records"], strict=True):
                    counts[hour] += rows.as_py() or 0
                self._rows[name] = revision, counts
            return self._rows[name][1]

    def _latest(self, name: str) -> tuple[DeltaTable, Revision] | None:
        try:
            return self._tables.latest(name).read()
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            raise LakeError(f"lake: {self.root}/{name} cannot be read: {one_line_message(error)}") from error
