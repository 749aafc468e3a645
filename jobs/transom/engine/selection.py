"""Rows for a view: the published hours of an interval, of a pinned version of each table. No Spark."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from transom.core.intervals import Interval
from transom.core.partitions import READABLE
from transom.engine.reader import sql_literal, sql_name
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.tables import Table, in_hours_sql, literal, query

MAX_READ = 100_000
"""The maximum number of rows that a view reads of a table, if a query has no other limit."""


@dataclass(frozen=True)
class Selection:
    """The rows of a view.

    Each table is opened once. So all queries of a view read the same version, also while a run writes.

    Attributes:
        root: the stream's folder in the lake.
        stream: the stream.
        snapshot: the ledger.
        interval: the hours.
        key: the text of each column of a key; empty for all keys.
        declared: the tables as the stream file declares them, by name.
    """

    root: str
    stream: Stream
    snapshot: LedgerSnapshot
    interval: Interval
    key: Mapping[str, str] = field(default_factory=dict)
    declared: Mapping[str, Table] = field(default_factory=dict)
    _tables: dict[str, DeltaTable | None] = field(default_factory=dict, compare=False, repr=False)

    def equals(self, columns: Iterable[str], row: Mapping[str, Any]) -> str:
        """Return the SQL condition that columns have the values of a row."""
        terms = [
            f"{sql_name(name)} IS NULL"
            if row[name] is None
            else f"{sql_name(name)} = {sql_literal(row[name])}"
            for name in columns
        ]
        return f"({' AND '.join(terms) or 'TRUE'})"

    def has_key(self, columns: Iterable[str]) -> bool:
        """Return whether rows with these key columns may be about the selected key."""
        return self.key.keys() <= set(columns)

    def hours(self, stage: str, block: str, table: str) -> list[datetime]:
        """Return the hours of the interval in which a block's table has published rows."""
        states = self.snapshot.series(stage, block, table)
        hours = self.snapshot.hours_of(stage, block, table)
        return [hour for hour in hours if hour in self.interval and states[hour].status in READABLE]

    def rows(
        self,
        stage: str,
        block: str,
        table: str,
        *,
        where: str = "TRUE",
        order: str = "hour",
        each: str | None = None,
        best: str = "hour DESC",
        keep: str = "TRUE",
        limit: int = MAX_READ,
    ) -> tuple[list[dict[str, Any]], int]:
        """Return rows of a block's table, and how many there are without the limit.

        Args:
            stage: the stage.
            block: the block.
            table: the table; none if it does not exist.
            where: a further SQL condition.
            order: the SQL order of the rows.
            each: if given, only one row for each value of these SQL expressions.
            best: which one: the first in this SQL order.
            keep: a SQL condition on these rows; it does not change which ones they are.
            limit: the maximum number of rows.
        """
        conditions = f"block = {literal(block)} AND ({where})"
        hours = self.hours(stage, block, table)
        return self.select(table, hours, conditions, order, each, best, keep, limit)

    def select(
        self,
        table: str,
        hours: Sequence[datetime],
        where: str = "TRUE",
        order: str = "hour",
        each: str | None = None,
        best: str = "hour DESC",
        keep: str = "TRUE",
        limit: int = MAX_READ,
    ) -> tuple[list[dict[str, Any]], int]:
        """Return rows of some hours of a table; the other arguments are as in `rows`.

        Columns that only the stream file has are null: no run has computed them yet.
        """
        stored = self._open(table)
        if stored is None or not hours:
            return [], 0
        names = {column.name for column in stored.schema().fields}
        if not self.key.keys() <= names:
            return [], 0
        declared = self.declared[table].columns if table in self.declared else ()
        added = "".join(f", NULL AS {sql_name(name)}" for name in declared if name not in names)
        of_key = [
            f"CAST({sql_name(column)} AS VARCHAR) = {literal(text)}" for column, text in self.key.items()
        ]
        source = f"(SELECT *{added} FROM t)" if added else "t"
        rows = f"SELECT * FROM {source} WHERE {' AND '.join([in_hours_sql(hours), f'({where})', *of_key])}"
        if each is not None:
            place = f"row_number() OVER (PARTITION BY {each} ORDER BY {best})"
            placed = f"SELECT *, {place} AS __place FROM ({rows})"
            rows = f"SELECT * FROM ({placed}) WHERE __place = 1 AND ({keep})"
        sql = f"SELECT *, count(*) OVER () AS __total FROM ({rows}) ORDER BY {order} LIMIT {limit}"
        found: list[dict[str, Any]] = query(stored, sql).to_pylist()
        return found, found[0]["__total"] if found else 0

    def ask(self, table: str, sql: str) -> list[dict[str, Any]]:
        """Return the rows of an SQL query over a table `t`; none if the table does not exist."""
        stored = self._open(table)
        rows: list[dict[str, Any]] = [] if stored is None else query(stored, sql).to_pylist()
        return rows

    def _open(self, table: str) -> DeltaTable | None:
        if table not in self._tables:
            try:
                self._tables[table] = DeltaTable(f"{self.root}/{table}")
            except TableNotFoundError:
                self._tables[table] = None
        return self._tables[table]
