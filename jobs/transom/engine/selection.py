"""Rows for a view: the published hours of an interval, of a pinned version of each table. No Spark."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from transom.charts.section import MAX_ROWS, Cells, DataTable
from transom.core.intervals import Interval, parse_time
from transom.core.terminal import counted
from transom.engine.reader import sql_literal, sql_name
from transom.formats.record_format import FieldType
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.open_tables import OpenTables, PinnedTable
from transom.storage.tables import Table, in_hours_sql, literal
from transom.storage.tables import meanings as described

Row = dict[str, Any]
MAX_READ = 100_000
"""The maximum number of rows that a view reads of a table, for a chart or a download."""
AT_ONCE = 20_000
"""The number of rows below which a chart and its table have the same rows."""
MAX_RANKED = 500_000
"""The maximum number of rows among which a query finds the best of each entity: all are in memory."""
TOTAL = "__total"
"""The column with the number of all rows of a query."""
STATUSES = {
    "published": "published",
    "incomplete": "incomplete",
    "writing": "being written",
    "quarantined": "quarantined",
    "blocked": "blocked",
    "damaged": "damaged",
    "missing": "not computed",
}
"""The states of hours, as `Selection.coverage` names them."""


@dataclass(frozen=True)
class Selection:
    """The rows of a view.

    Each table is pinned once. So all queries of a view read the same version, also while a run writes.

    Attributes:
        tables: the tables of the stream.
        stream: the stream.
        snapshot: the ledger.
        interval: the hours.
        key: the text of each column of a key; empty for all keys.
        page: the page of each table, from 1.
        declared: the tables as the stream file declares them, by name.
        stale: the stale hours of each stage, if they are known.
        order: one of `Section.orders`; empty for the usual order.
    """

    tables: OpenTables
    stream: Stream
    snapshot: LedgerSnapshot
    interval: Interval
    key: Mapping[str, str] = field(default_factory=dict)
    page: int = 1
    declared: Mapping[str, Table] = field(default_factory=dict)
    stale: Mapping[str, Collection[datetime]] = field(default_factory=dict)
    order: str = ""
    _pinned: dict[str, PinnedTable | None] = field(default_factory=dict, compare=False, repr=False)

    def equals(self, columns: Iterable[str], row: Mapping[str, Any]) -> str:
        """Return the SQL condition that columns have the values of a row."""
        return f"({' AND '.join(_equals(name, row[name]) for name in columns) or 'TRUE'})"

    def hours(self, stage: str, block: str, table: str) -> list[datetime]:
        """Return the hours of the interval in which a block's table has published rows."""
        return [*self.snapshot.readable_hours(stage, block, table).within(self.interval)]

    def coverage(self, stage: str, block: str, tables: Iterable[str]) -> str:
        """Return a sentence on how many of the requested hours of the interval the rows of a block are.

        Args:
            stage: the stage.
            block: the block.
            tables: its tables; the one with the fewest published hours counts.
        """
        names = self.snapshot.names
        known = [key for table in tables if (key := (stage, block, table)) in names] or [(stage, block, "")]
        states = [self.snapshot.count_statuses(key, self.interval) for key in known]
        counts = min(states, key=lambda of: of.get("published", 0))
        total, published = sum(counts.values()), counts.get("published", 0)
        stale = sum(hour in self.interval for hour in self.stale.get(stage, ()))
        requested = counted(total, "requested hour")
        more = f" {stale} of them are stale." if stale else ""
        if not total:
            return "No hour of this interval is requested."
        if total == published:
            return f"{f'All {requested} are' if total > 1 else f'The {requested} is'} published.{more}"
        others = (f"{counts[name]} {text}" for name, text in STATUSES.items() if name in counts)
        return f"Of {requested}: {', '.join(others)}.{more}"

    def query(self, stage: str, block: str, table: str, columns: Iterable[str], **options: Any) -> "Query":
        """Return a query of the published rows of a block's table; `options` are attributes of `Query`."""
        return Query(self, table, block, self.hours(stage, block, table), tuple(columns), **options)

    def each(self, table: str, sql: str) -> Iterator[Row]:
        """Yield the rows of an SQL query over a table `t`; none if the table does not exist."""
        stored = self.pinned(table)
        for batch in () if stored is None else stored.batches(sql):
            yield from batch.to_pylist()

    def ask(self, table: str, sql: str) -> list[Row]:
        """Return the rows of an SQL query over a table `t`; none if the table does not exist."""
        return [*self.each(table, sql)]

    def pinned(self, table: str) -> PinnedTable | None:
        """Return the version of a table that this selection reads; None if the table does not exist."""
        if table not in self._pinned:
            self._pinned[table] = self.tables.pin(table)
        return self._pinned[table]

    def is_selected(self) -> str:
        """Return the SQL condition that a row has the selected key."""
        types = self.stream.event_types if self.key else {}
        return " AND ".join(_has_text(name, types[name], text) for name, text in self.key.items()) or "TRUE"


@dataclass(frozen=True)
class Query:
    """A query of published rows.

    A column that only the stream file has is null: no run has computed it yet.

    Attributes:
        selection: the interval, the key and the pinned tables.
        table: the table; a query of one that does not exist has no rows.
        block: the block, for tables with blocks.
        hours: the hours.
        columns: the columns to return.
        where: a further SQL condition.
        order: the SQL order of the rows.
        each: if given, only one row for each value of these SQL expressions.
        best: which one: the first in this SQL order.
        keep: a SQL condition on these rows; it does not change which ones they are.
        cut: the maximum number of characters of a text, which the query itself cuts; None cuts none.
    """

    selection: Selection
    table: str
    block: str
    hours: Sequence[datetime]
    columns: tuple[str, ...]
    where: str = "TRUE"
    order: str = "hour"
    each: str | None = None
    best: str = "hour DESC"
    keep: str = "TRUE"
    cut: int | None = None

    def rows(self, limit: int, offset: int = 0) -> list[Row]:
        """Return the rows from a place on, in their order."""
        return [row for batch in self._batches(limit, offset) for row in batch]

    def page(self, limit: int = MAX_ROWS) -> tuple[list[Row], int]:
        """Return the rows of the selection's page of a table, and the number of all rows."""
        offset = (self.selection.page - 1) * limit
        # Ranked rows are in memory, and ranking them again for their number takes as long as the first time.
        ranked = self.each is not None
        rows = [row for batch in self._batches(limit, offset, counted=ranked) for row in batch]
        totals = [row.pop(TOTAL) for row in rows] if ranked else []
        if totals:
            return rows, totals[0]
        return rows, len(rows) if offset == 0 and len(rows) < limit else self.count()

    def all_and_page(self, drawn: Iterable[str]) -> tuple[list[Row], list[Row], int]:
        """Return the first `MAX_READ` rows for a chart, a page of a table, and the number of all rows.

        Args:
            drawn: the columns that the chart needs, if there are too many rows for all columns.
        """
        # Opening the files of a year takes longer than reading them, so they are read once.
        rows, first = self.rows(AT_ONCE), (self.selection.page - 1) * MAX_ROWS
        if len(rows) < AT_ONCE:
            return rows, rows[first : first + MAX_ROWS], len(rows)
        return replace(self, columns=tuple(drawn)).rows(MAX_READ), *self.page()

    def stream(self) -> Iterator[Row]:
        """Yield the first `MAX_READ` rows, a part at a time."""
        return (row for batch in self._batches(MAX_READ, 0) for row in batch)

    def ask(self, sql: str) -> list[Row]:
        """Return the rows of an SQL query over all rows of this query, a table `r`."""
        source = self._source()
        return [] if source is None else source[0].rows(f"WITH r AS ({source[1]}) {sql}")

    def count(self) -> int:
        """Return the number of rows."""
        return sum(row["total"] for row in self.ask("SELECT count(*) AS total FROM r"))

    def drawn(self, rows: Sequence[Row], total: int) -> str:
        """Return which rows of a page a chart has; empty if it has all of them."""
        first = 1 + (self.selection.page - 1) * MAX_ROWS
        if not rows or len(rows) == total:
            return ""
        return f"; the chart has {f'{first:,} to ' if len(rows) > 1 else ''}{first + len(rows) - 1:,} of them"

    def data_table(
        self,
        page: Sequence[Row],
        total: int,
        cells: Callable[[Row], Cells] | None = None,
        columns: Iterable[str] | None = None,
        meanings: Mapping[str, str] | None = None,
    ) -> DataTable:
        """Return the table of a page, which can be downloaded as a whole.

        Args:
            page: the rows of the page.
            total: the number of all rows.
            cells: returns the values of a row. Default: those of its columns.
            columns: the names of the values. Default: those of the columns.
            meanings: what some columns mean. Default: as in the description of the table.
        """
        of = cells or (lambda row: tuple(row.values()))
        first = 1 + (self.selection.page - 1) * MAX_ROWS
        return DataTable.of(
            columns or self.columns,
            map(of, page),
            total,
            first,
            download=lambda: map(of, self.stream()),
            meanings={**described(self.table), **(meanings or {})},
        )

    @property
    def hours_read(self) -> Sequence[datetime]:
        """The hours that are read: the latest ones, if all of them have too many rows to be ranked."""
        if self.each is None:
            return self.hours
        rows, total = self.selection.tables.rows_by_hour(self.table), 0
        for place in range(len(self.hours) - 1, -1, -1):
            total += rows.get(self.hours[place], 0)
            if total > MAX_RANKED and place < len(self.hours) - 1:
                return self.hours[place + 1 :]
        return self.hours

    @property
    def limit_note(self) -> str:
        """A sentence on the hours that are not read; empty if all are."""
        read = self.hours_read
        if len(read) == len(self.hours):
            return ""
        why = f"as there are more than {MAX_RANKED:,} rows"
        return f" Only the last {counted(len(read), 'hour')} are read, {why}."

    def _batches(self, limit: int, offset: int, counted: bool = False) -> Iterator[list[Row]]:
        source = self._source()
        if source is not None:
            stored, rows = source
            names = [self._cut(name, stored.columns.get(name)) for name in self.columns]
            names += [f"count(*) OVER () AS {TOTAL}"] if counted else []
            page = f"ORDER BY {self.order} LIMIT {limit} OFFSET {offset}"
            sql = f"SELECT {', '.join(names)} FROM ({rows}) {page}"
            yield from (batch.to_pylist() for batch in stored.batches(sql))

    def _cut(self, column: str, kind: str | None) -> str:
        name = sql_name(column)
        return name if self.cut is None or kind != "string" else f"substr({name}, 1, {self.cut}) AS {name}"

    def _source(self) -> tuple[PinnedTable, str] | None:
        """Return the table, and the SQL of all rows in any order; None if there are none."""
        selection, hours = self.selection, self.hours_read
        stored = selection.pinned(self.table) if hours else None
        if stored is None or not selection.key.keys() <= stored.columns.keys():
            return None
        declared = selection.declared[self.table].columns if self.table in selection.declared else ()
        added = "".join(f", NULL AS {sql_name(name)}" for name in declared if name not in stored.columns)
        of_block = f"block = {literal(self.block)}" if "block" in stored.columns else "TRUE"
        conditions = [in_hours_sql(hours), of_block, f"({self.where})", selection.is_selected()]
        source = f"(SELECT *{added} FROM t)" if added else "t"
        rows = f"SELECT * FROM {source} WHERE {' AND '.join(conditions)}"
        if self.each is not None:
            place = f"row_number() OVER (PARTITION BY {self.each} ORDER BY {self.best})"
            placed = f"SELECT *, {place} AS __place FROM ({rows})"
            rows = f"SELECT * FROM ({placed}) WHERE __place = 1 AND ({self.keep})"
        return stored, rows


def value_of(kind: FieldType, text: str) -> Any:
    """Return the value of a column that has a text in findings and addresses.

    Args:
        kind: the type of the column.
        text: the text, as `findings.text.as_text` writes it.

    Raises:
        ValueError: it is the text of no such value.
    """
    match kind:
        case "integer":
            number = int(text)
            if not -(2**63) <= number < 2**63:
                raise ValueError(f"must be an integer of 64 bits; got {text}")
            return number
        case "number":
            return float(text)
        case "boolean":
            return {"true": True, "false": False}[text]
        case "timestamp":
            return parse_time(text)
    return text


def _has_text(column: str, kind: FieldType, text: str) -> str:
    """Return the SQL condition that a column has a text; a value may be compared with bounds of files."""
    terms = [f"{sql_name(column)} IS NULL"] if text == "null" else []
    try:
        terms.append(_equals(column, value_of(kind, text)))
    except (ValueError, LookupError, OverflowError):
        terms.append("FALSE")
    return f"({' OR '.join(terms)})"


def _equals(column: str, value: Any) -> str:
    if value is None:
        return f"{sql_name(column)} IS NULL"
    if isinstance(value, float) and not math.isfinite(value):
        number = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        return f"{sql_name(column)} = CAST('{number}' AS DOUBLE)"
    return f"{sql_name(column)} = {sql_literal(value)}"
