"""The tables of the lake, as their descriptions say.

Each package keeps those of its tables in its folder `tables`.

A description lists columns with their types, units and meaning. A column whose name begins with `*` is a
placeholder for columns that the stream declares (`Table.declare`). Tables, and columns added later, come only
from descriptions.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import yaml
from deltalake import DeltaTable, Field, QueryBuilder, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from transom.core.intervals import Interval, merge_hours

T = TypeVar("T")
_PLAIN: dict[str, pa.DataType] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "binary": pa.binary(),
}
_STRUCTS = (
    "id:string,time:timestamp,count:bigint",
    "name:string,value:string",
    "event_time:timestamp,source_id:string,source_line:bigint",
)
ARROW_TYPES: dict[str, pa.DataType] = {
    **_PLAIN,
    **{f"array<{name}>": pa.list_(kind) for name, kind in _PLAIN.items()},
    **{f"map<string,{name}>": pa.map_(pa.string(), _PLAIN[name]) for name in ("bigint", "double")},
    **{
        f"array<struct<{fields}>>": pa.list_(
            pa.struct([(name, _PLAIN[kind]) for name, kind in re.findall(r"(\w+):(\w+)", fields)])
        )
        for fields in _STRUCTS
    },
}
"""The Arrow type of each type of a description."""

SPARK_TYPES = {
    "string": "string", "integer": "bigint", "number": "double",
    "boolean": "boolean", "timestamp": "timestamp",
}  # fmt: skip
"""The Spark SQL type of each type of a declared column."""
TABLE_PROPERTIES = {"delta.enableExpiredLogCleanup": "false"}
"""For tables with a partition by hour: rows that a killed run has begun to replace are in an earlier version
until their hour is run again."""
SHORT_LOG = {"delta.logRetentionDuration": "interval 2 days"}
"""For the ledger: old versions of it are not read, and opening a table lists its whole log, to which a run
adds dozens of commits. The log must reach back as far as `Ledger.idle_time` looks."""
NO_BOUNDS = {"delta.dataSkippingNumIndexedCols": "0"}
"""For tables whose columns are not searched: bounds of columns would be most of the table's log."""
ATTEMPTS = 20
"""Attempts of a commit that conflicts with others."""
MAX_COMPARED_RANGES = 20
"""Maximum of intervals of hours that a condition compares one by one."""


class TableMismatch(ValueError):
    """A table in the lake differs from its description."""


@cache
def descriptions() -> Mapping[str, Path]:
    """Return where each table of the package is described."""
    return {path.stem: path for path in Path(__file__).parents[1].glob("**/tables/*.yaml")}


@dataclass(frozen=True)
class Table:
    """A table's description.

    Attributes:
        columns: the Spark SQL type of each column, in order.
        partition: columns that the table is partitioned by.
        excluded_from_digest: columns that may differ between runs: run ids and modification hints.
        state: whether the table is private and may be dropped, as it can be computed again.
        unsearched: whether the table needs no bounds of columns, as no reader skips data by them.
    """

    name: str
    columns: Mapping[str, str]
    partition: tuple[str, ...]
    excluded_from_digest: frozenset[str]
    state: bool = False
    unsearched: bool = False

    @classmethod
    @cache
    def load(cls, name: str, folder: Path | None = None) -> "Table":
        """Read the description of a table, once: a run needs each of them many times.

        Args:
            folder: where `<name>.yaml` is; None for a table of this package.
        """
        path = descriptions()[name] if folder is None else folder / f"{name}.yaml"
        text = yaml.safe_load(path.read_text())
        columns = text["columns"]
        return cls(
            name,
            {column: facts["type"] for column, facts in columns.items()},
            tuple(text.get("partition", ())),
            frozenset(column for column, facts in columns.items() if facts.get("outside")),
            bool(text.get("state", False)),
            bool(text.get("unsearched", False)),
        )

    def declare(self, **declared: Mapping[str, str]) -> "Table":
        """Return the table with its placeholders replaced; the argument of `*columns` is `columns`.

        Raises:
            TableMismatch: a column is declared twice.
        """
        columns: dict[str, str] = {}
        for name, type_ in self.columns.items():
            for column, kind in declared[name[1:]].items() if name.startswith("*") else [(name, type_)]:
                if columns.setdefault(column, kind) != kind or (name[0] == "*" and column in self.columns):
                    raise TableMismatch(
                        f"table {self.name}: column {column} is declared twice, as {columns[column]} and "
                        f"{kind}"
                    )
        return replace(self, columns=columns)

    def with_added_columns(self, existing: pa.Schema) -> "Table":
        """Return the table with the columns, too, that the lake has of earlier specifications.

        They are excluded from the digest: old rows keep their values, new rows have none.
        """
        # By comparison: equal list types can differ in the name of their element, and so in their hash.
        former = {
            field.name: next(name for name, kind in ARROW_TYPES.items() if kind == field.type)
            for field in existing
            if field.name not in self.columns
        }
        return replace(
            self,
            columns={**self.columns, **former},
            excluded_from_digest=self.excluded_from_digest | former.keys(),
        )

    def digest_columns(self) -> tuple[str, ...]:
        """Return the columns of the digest, in the table's order."""
        return tuple(column for column in self.columns if column not in self.excluded_from_digest)

    def arrow_schema(self) -> pa.Schema:
        """Return the Arrow schema."""
        return pa.schema([(column, ARROW_TYPES[type_]) for column, type_ in self.columns.items()])

    def block_schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows of one block, without the column `block`."""
        return pa.schema([field for field in self.arrow_schema() if field.name != "block"])


class LakeError(OSError):
    """A table of the lake cannot be read, opened or created."""


def retry(commit: Callable[[], T], conflict: type[Exception] = CommitFailedError) -> T:
    """Return the result of a commit; try it again while others conflict, `ATTEMPTS` times at most."""
    for _ in range(ATTEMPTS - 1):
        with suppress(conflict):
            return commit()
    return commit()


def create(root: str, table: Table) -> DeltaTable:
    """Open a table; create it if it does not exist, and add missing columns and properties.

    Several runs may do so at a time.

    Raises:
        LakeError: the lake cannot be read or written.
        TableMismatch: a column of the table in the lake has another type.
    """
    uri = f"{root}/{table.name}"
    try:
        # Another run may change the table after it is opened, perhaps in the same way.
        return retry(partial(_create, uri, table))
    except (DeltaError, OSError) as error:
        raise LakeError(f"lake: {uri} cannot be opened or created: {one_line_message(error)}") from error


def one_line_message(error: Exception) -> str:
    """Return a library's message without colours and without stack frames of its own code."""
    message = re.sub(r"\x1b\[[0-9;]*m|↳", "", str(error))
    lines = takewhile(lambda line: not re.match(r"\s*\d+: ", line), message.splitlines())
    return " ".join(" ".join(lines).split()) or type(error).__name__


def _create(uri: str, table: Table) -> DeltaTable:
    schema = Schema.from_arrow(table.arrow_schema())
    properties = TABLE_PROPERTIES if "hour" in table.partition else SHORT_LOG
    if table.unsearched:
        properties = properties | NO_BOUNDS
    try:
        existing = DeltaTable(uri)
    except TableNotFoundError:
        return DeltaTable.create(
            uri, schema, mode="ignore", partition_by=list(table.partition), configuration=properties
        )
    types = {field.name: field.type for field in existing.schema().fields}
    missing: list[Field] = []
    for field in schema.fields:
        if field.name not in types:
            missing.append(field)
        elif types[field.name] != field.type:
            raise TableMismatch(
                f"table {uri}: column {field.name} is {types[field.name]} in the lake and {field.type} "
                "in the specification; give the column another name or the stream another lake"
            )
    if missing:
        existing.alter.add_columns(missing)
    if properties.items() - existing.metadata().configuration.items():
        existing.alter.set_table_properties(properties)
    return existing


def read_rows(table: DeltaTable, where: str = "TRUE") -> list[dict[str, Any]]:
    """Return the rows of a table that meet an SQL condition, read without Spark.

    By delta-rs alone: threads of pyarrow's reader of Delta tables call Python, and sometimes abort the
    process at its end.
    """
    rows: list[dict[str, Any]]
    rows = query(table, f"SELECT * FROM t WHERE {where}").to_pylist(maps_as_pydicts="strict")
    return rows


def query(table: DeltaTable, sql: str, **others: DeltaTable) -> pa.Table:
    """Return the result of an SQL query over a table, `t`, and over others by their names."""
    builder = QueryBuilder()
    for name, source in {**others, "t": table}.items():
        builder = builder.register(name, source)
    return pa.RecordBatchReader.from_stream(builder.execute(sql)).read_all()


def instant(moment: datetime) -> str:
    """Return a time as a literal of the SQL of `query`."""
    return f"""arrow_cast('{moment.astimezone(UTC).isoformat()}', 'Timestamp(Microsecond, Some("UTC"))')"""


def literal(text: str) -> str:
    """Return a text as a literal of the SQL of `query`."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def split_hours(hours: Iterable[datetime]) -> tuple[list[Interval], list[datetime]]:
    """Split hours for a condition: the `MAX_COMPARED_RANGES` longest intervals, and the other hours.

    A planner takes seconds for hundreds of comparisons, more the deeper they nest; it looks up a list of
    values.
    """
    intervals = sorted(merge_hours(hours), key=len, reverse=True)
    others = chain.from_iterable(interval.hours() for interval in intervals[MAX_COMPARED_RANGES:])
    return sorted(intervals[:MAX_COMPARED_RANGES]), sorted(others)


def in_hours_sql(hours: Iterable[datetime], to_literal: Callable[[datetime], str] = instant) -> str:
    """Return the SQL condition that the column `hour` is in `hours`.

    Args:
        to_literal: writes a time as a literal.
    """
    intervals, others = split_hours(hours)
    terms = [f"hour >= {to_literal(of.start)} AND hour < {to_literal(of.end)}" for of in intervals]
    if others:
        terms.append(f"hour IN ({', '.join(map(to_literal, others))})")
    return f"({' OR '.join(f'({term})' for term in terms) or 'FALSE'})"


class TableFolder:
    """The tables of a stream in the folder `root`, each of which is opened once."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._opened: dict[str, DeltaTable] = {}

    def create(self, *tables: Table) -> None:
        """Create tables that do not exist, and add missing columns."""
        for table in tables:
            self._opened[table.name] = create(self.root, table)

    def open(self, name: str) -> DeltaTable:
        """Return the latest version of a table; the next call may update the same object."""
        # A run opens some dozens of times; an incremental update takes a tenth of reading the whole log.
        if name in self._opened:
            self._opened[name].update_incremental()
        else:
            self._opened[name] = DeltaTable(f"{self.root}/{name}")
        return self._opened[name]
