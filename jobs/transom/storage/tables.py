"""The tables of the lake, created from their descriptions.

Each package has the descriptions of its tables in its folder `tables`.

A description lists columns with their types, units and meaning. A column whose name begins with `*` is a
placeholder for columns that the stream declares (`Table.declare`). Tables, and columns added later, are
created only from descriptions.
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
from transom.storage.latest_table import LatestTable, Revision

T = TypeVar("T")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader of descriptions: libyaml's, which is several times faster, where PyYAML is built with it."""
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
    "block:string,table:string,status:string,changed:boolean,start:timestamp,end:timestamp,rows:bigint",
    "path:string,hour:timestamp,start:timestamp,end:timestamp,status:string,replaced:boolean,lines:bigint,"
    "records:bigint,rejected:bigint,late:boolean",
    "finding_id:string,change:string,severity:string,title:string",
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
"""For tables that are partitioned by hour. An earlier version has the rows that a killed run has begun to
replace, until their hour is run again."""
SHORT_LOG = {"delta.logRetentionDuration": "interval 2 days", "delta.checkpointInterval": "20"}
"""For the ledger. Its old versions are not read. Opening a table lists its whole log, and a run adds dozens
of commits. The log must reach back as far as `Ledger.idle_time` reads. Opening reads the commits since the
last checkpoint."""
NO_BOUNDS = {"delta.dataSkippingNumIndexedCols": "0"}
"""For tables whose columns are not searched: bounds of columns would be most of their log."""
ATTEMPTS = 20
"""The maximum number of attempts of a commit that conflicts with others."""
MAX_COMPARED_RANGES = 20
"""The maximum number of intervals of hours that a condition compares one by one."""


class TableMismatch(ValueError):
    """A table in the lake differs from its description."""


@cache
def descriptions() -> Mapping[str, Path]:
    """Return the file with the description of each table of the package, by table."""
    return {path.stem: path for path in Path(__file__).parents[1].glob("**/tables/*.yaml")}


@cache
def meanings(name: str) -> Mapping[str, str]:
    """Return what each column of a table of the package means; none if there is no such table."""
    if name not in descriptions():
        return {}
    columns = yaml.load(descriptions()[name].read_text(), LOADER)["columns"]
    return {column: facts["meaning"] for column, facts in columns.items() if "meaning" in facts}


@dataclass(frozen=True)
class Table:
    """A table's description.

    Attributes:
        name: the name.
        columns: the Spark SQL type of each column, in order.
        partition: the columns that the table is partitioned by.
        excluded_from_digest: the columns that may differ between runs: run ids and modification times.
        state: whether the table is private and its rows may expire, as they can be computed again.
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
        """Return a table by its description, which is read once: a run needs it many times.

        Args:
            name: the name of the table.
            folder: the folder of `<name>.yaml`. Default: that of the package's table.
        """
        path = descriptions()[name] if folder is None else folder / f"{name}.yaml"
        text = yaml.load(path.read_text(), LOADER)
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
        """Return the table with the additional columns of the lake, which earlier specifications declared.

        They are excluded from the digest: old rows keep their values, new rows have nulls.
        """
        # Types are compared, not hashed: equal list types can differ in the name of their element.
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
    """Return the result of a commit, which is retried after conflicts, with `ATTEMPTS` attempts at most."""
    for _ in range(ATTEMPTS - 1):
        with suppress(conflict):
            return commit()
    return commit()


def create(root: str, table: Table, latest: LatestTable | None = None) -> DeltaTable:
    """Open a table; create it if it does not exist, and add missing columns and properties.

    Several runs may do this at the same time.

    Args:
        root: the folder of the table.
        table: the description.
        latest: the table if it is already open; it is updated.

    Raises:
        LakeError: the lake cannot be read or written.
        TableMismatch: a column of the table in the lake has another type.
    """
    uri = f"{root}/{table.name}"
    try:
        # Another run may change the table after it is opened, perhaps in the same way.
        return retry(partial(_create, table, latest or LatestTable(uri)))
    except (DeltaError, OSError) as error:
        raise LakeError(f"lake: {uri} cannot be opened or created: {one_line_message(error)}") from error


def one_line_message(error: Exception) -> str:
    """Return a library's message without colours and without stack frames of its own code."""
    message = re.sub(r"\x1b\[[0-9;]*m|↳", "", str(error))
    lines = takewhile(lambda line: not re.match(r"\s*\d+: ", line), message.splitlines())
    return " ".join(" ".join(lines).split()) or type(error).__name__


def _create(table: Table, latest: LatestTable) -> DeltaTable:
    schema = Schema.from_arrow(table.arrow_schema())
    properties = TABLE_PROPERTIES if "hour" in table.partition else SHORT_LOG
    if table.unsearched:
        properties = properties | NO_BOUNDS
    try:
        existing, _ = latest.read()
    except TableNotFoundError:
        created = DeltaTable.create(
            latest.uri, schema, mode="ignore", partition_by=list(table.partition), configuration=properties
        )
        latest.put(created)
        return created
    types = {field.name: field.type for field in existing.schema().fields}
    missing: list[Field] = []
    for field in schema.fields:
        if field.name not in types:
            missing.append(field)
        elif types[field.name] != field.type:
            raise TableMismatch(
                f"table {latest.uri}: column {field.name} is {types[field.name]} in the lake and "
                f"{field.type} in the specification; give the column another name or the stream another lake"
            )
    if missing:
        existing.alter.add_columns(missing)
    if properties.items() - existing.metadata().configuration.items():
        existing.alter.set_table_properties(properties)
    return existing


def read_rows(table: DeltaTable, where: str = "TRUE") -> list[dict[str, Any]]:
    """Return the rows of a table that meet an SQL condition, read without Spark.

    By delta-rs only: threads of pyarrow's reader of Delta tables call Python, and sometimes abort the process
    when it exits.
    """
    rows: list[dict[str, Any]]
    rows = query(table, f"SELECT * FROM t WHERE {where}").to_pylist(maps_as_pydicts="strict")
    return rows


def query(table: DeltaTable, sql: str, **others: DeltaTable) -> pa.Table:
    """Return the result of an SQL query over a table, named `t`, and others, named by their keywords."""
    return query_batches(table, sql, **others).read_all()


def query_batches(table: DeltaTable, sql: str, **others: DeltaTable) -> pa.RecordBatchReader:
    """Return the result of `query` in batches, for results that do not fit in memory."""
    builder = QueryBuilder()
    for name, source in {**others, "t": table}.items():
        builder = builder.register(name, source)
    return pa.RecordBatchReader.from_stream(builder.execute(sql))


def instant(moment: datetime) -> str:
    """Return a time as a literal of the SQL of `query`."""
    return f"""arrow_cast('{moment.astimezone(UTC).isoformat()}', 'Timestamp(Microsecond, Some("UTC"))')"""


def quote_hour(hour: datetime) -> str:
    """Return an hour as a literal of Delta's predicates."""
    return hour.strftime("'%Y-%m-%dT%H:%M:%SZ'")


def literal(text: str) -> str:
    """Return a text as a literal of the SQL of `query`."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def split_hours(hours: Iterable[datetime]) -> tuple[list[Interval], list[datetime]]:
    """Split hours for a condition: the `MAX_COMPARED_RANGES` longest intervals, and the other hours.

    A query planner takes seconds for hundreds of nested comparisons, but looks up values of a list fast.
    """
    intervals = sorted(merge_hours(hours), key=len, reverse=True)
    others = chain.from_iterable(interval.hours() for interval in intervals[MAX_COMPARED_RANGES:])
    return sorted(intervals[:MAX_COMPARED_RANGES]), sorted(others)


def in_hours_sql(hours: Iterable[datetime], to_literal: Callable[[datetime], str] = instant) -> str:
    """Return the SQL condition that the column `hour` is in `hours`.

    Args:
        hours: the hours.
        to_literal: returns a time as a literal of the SQL dialect.
    """
    intervals, others = split_hours(hours)
    terms = [f"hour >= {to_literal(of.start)} AND hour < {to_literal(of.end)}" for of in intervals]
    if others:
        terms.append(f"hour IN ({', '.join(map(to_literal, others))})")
    return f"({' OR '.join(f'({term})' for term in terms) or 'FALSE'})"


class TableFolder:
    """The tables of a stream in the folder `root`; each is opened once, see `LatestTable`.

    Args:
        root: the folder.
        beside: another object for the same folder; both share their open tables.
    """

    def __init__(self, root: str, beside: "TableFolder | None" = None) -> None:
        self.root = root
        self._opened: dict[str, LatestTable] = {} if beside is None else beside._opened

    def create(self, *tables: Table) -> None:
        """Create tables that do not exist, and add missing columns."""
        for table in tables:
            create(self.root, table, self.latest(table.name))

    def latest(self, name: str) -> LatestTable:
        """Return a table, which need not exist."""
        return self._opened.setdefault(name, LatestTable(f"{self.root}/{name}"))

    def open(self, name: str) -> DeltaTable:
        """Return the latest version of a table; raises as `LatestTable.read`."""
        return self.latest(name).read()[0]

    def revision(self, name: str) -> Revision:
        """Return what identifies the latest version of a table; raises as `LatestTable.read`."""
        return self.latest(name).read()[1]
