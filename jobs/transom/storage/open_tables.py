"""Tables that are opened once for many readers, each of whom reads one version. No Spark."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.schema import PrimitiveType

from transom.storage.tables import LakeError, one_line_message


class PinnedTable:
    """One version of a table: commits of runs do not change its rows.

    Args:
        table: the table, which may be updated later.

    Attributes:
        columns: the types of the columns, such as `string`; `None` for lists and structs.
    """

    def __init__(self, table: DeltaTable) -> None:
        self.columns: Mapping[str, str | None] = {
            field.name: field.type.type if isinstance(field.type, PrimitiveType) else None
            for field in table.schema().fields
        }
        self._uri = table.table_uri
        # A builder keeps the version that the table has now.
        self._builder = QueryBuilder().register("t", table)

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """Yield the result of an SQL query over the table `t`, a part of the rows at a time.

        Raises:
            LakeError: the table cannot be read.
        """
        try:
            yield from pa.RecordBatchReader.from_stream(self._builder.execute(sql))
        except (DeltaError, pa.ArrowException, OSError) as error:
            raise LakeError(f"lake: {self._uri} cannot be read: {one_line_message(error)}") from error

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of an SQL query over the table `t`; raise as `batches`."""
        return [row for batch in self.batches(sql) for row in batch.to_pylist()]


class OpenTables:
    """The tables of a stream; several threads may use them.

    Args:
        root: the stream's folder in the lake.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._open: dict[str, DeltaTable] = {}
        self._rows: dict[str, tuple[int, Mapping[datetime, int]]] = {}

    def pin(self, name: str) -> PinnedTable | None:
        """Return the latest version of a table; None if it does not exist.

        Raises:
            LakeError: the lake cannot be read.
        """
        with self._lock:
            table = self._latest(name)
            return None if table is None else PinnedTable(table)

    def rows_by_hour(self, name: str) -> Mapping[datetime, int]:
        """Return the number of rows of each hour of a table, from its log; empty if it does not exist."""
        with self._lock:
            table = self._latest(name)
            if table is None:
                return {}
            if self._rows.get(name, (-1,))[0] != table.version():
                files = pa.table(table.get_add_actions(flatten=True))
                counts = Counter[datetime]()
                for hour, rows in zip(files["partition.hour"].to_pylist(), files["num_records"], strict=True):
                    counts[hour] += rows.as_py() or 0
                self._rows[name] = table.version(), counts
            return self._rows[name][1]

    def _latest(self, name: str) -> DeltaTable | None:
        try:
            if name in self._open:
                # An update takes a tenth of the time of reading the whole log.
                self._open[name].update_incremental()
            else:
                self._open[name] = DeltaTable(f"{self.root}/{name}")
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            self._open.pop(name, None)
            raise LakeError(f"lake: {self.root}/{name} cannot be read: {one_line_message(error)}") from error
        return self._open[name]
