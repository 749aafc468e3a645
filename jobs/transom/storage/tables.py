"""The tables of the lake, as their descriptions say.

Each package keeps those of its tables in its folder `tables`.

A description lists columns with their types, units and meaning. A column whose name begins with `*`
stands for columns that the stream declares (`Table.declare`). Tables are created, and given new
columns, from their description alone; what a description does not say is refused.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from deltalake import DeltaTable, Field, QueryBuilder, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from transom.core.intervals import Interval, merge_hours

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
    {"id": "string", "time": "timestamp", "count": "bigint"},
    {"name": "string", "value": "string"},
    {"event_time": "timestamp", "source_id": "string", "source_line": "bigint"},
)
ARROW_TYPES: dict[str, pa.DataType] = {
    **_PLAIN,
    **{f"array<{name}>": pa.list_(kind) for name, kind in _PLAIN.items()},
    **{f"map<string,{name}>": pa.map_(pa.string(), _PLAIN[name]) for name in ("bigint", "double")},
    **{
        f"array<struct<{','.join(f'{name}:{kind}' for name, kind in fields.items())}>>": pa.list_(
            pa.struct([(name, _PLAIN[kind]) for name, kind in fields.items()])
        )
        for fields in _STRUCTS
    },
}
"""How Arrow holds each type of a description."""

SPARK_TYPES = {
    "string": "string",
    "integer": "bigint",
    "number": "double",
    "boolean": "boolean",
    "timestamp": "timestamp",
}
"""The type of a column that a stream declares."""


TABLE_PROPERTIES = {"delta.enableExpiredLogCleanup": "false"}
"""Of tables of rows by hour: rows that a killed run has begun to replace stand in an earlier version, until
their hour is run again."""
SHORT = {"delta.logRetentionDuration": "interval 2 days"}
"""Of the ledger: nobody reads it as it was, and each look at a table lists its whole log, to which a run adds
dozens of commits. It has to reach back as far as `Ledger.idle_time` is asked for."""
NO_BOUNDS = {"delta.dataSkippingNumIndexedCols": "0"}
"""Of tables of which nobody searches a column: bounds of each of them would be most of the table's log."""
ATTEMPTS = 20
"""How often a commit that has met another one is tried again."""
MAX_COMPARED_RANGES = 20
"""Stretches of hours up to which a condition has a comparison for each."""


class TableMismatch(ValueError):
    """A table in the lake has another form than its description."""


@cache
def descriptions() -> Mapping[str, Path]:
    """Return where each table of the package is described."""
    return {path.stem: path for path in Path(__file__).parents[1].glob("**/tables/*.yaml")}


@cache
def _description(path: Path) -> Mapping[str, Any]:
    """Return a description as YAML has it. Cached, as a run needs each of them many times."""
    text: Mapping[str, Any] = yaml.safe_load(path.read_text())
    return text


@dataclass(frozen=True)
class Table:
    """A table's description.

    Attributes:
        columns: the Spark SQL type of each column, in order.
        partition: columns that the table is partitioned by.
        excluded_from_digest: columns that the promise leaves out: run ids and modification hints.
        state: whether it is private and may be dropped, as it can be made again.
        unsearched: whether nobody looks for rows by the bounds of their columns.
    """

    name: str
    columns: Mapping[str, str]
    partition: tuple[str, ...]
    excluded_from_digest: frozenset[str]
    state: bool = False
    unsearched: bool = False

    @classmethod
    def load(cls, name: str, folder: Path | None = None) -> "Table":
        """Read the description of a table.

        Args:
            folder: where `<name>.yaml` is; None for a table of this package.
        """
        text = _description(descriptions()[name] if folder is None else folder / f"{name}.yaml")
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
        """This table with its placeholders (`*columns` is given as `columns=`) filled in."""
        columns: dict[str, str] = {}
        for name, type_ in self.columns.items():
            for column, kind in declared[name[1:]].items() if name.startswith("*") else [(name, type_)]:
                if columns.setdefault(column, kind) != kind or (name[0] == "*" and column in self.columns):
                    raise TableMismatch(
                        f"table {self.name}: column {column} is declared twice, as {columns[column]} and "
                        f"{kind}"
                    )
        return replace(self, columns=columns)

    def with_added_columns(self, held: pa.Schema) -> "Table":
        """This table with the columns as well that the lake has of earlier specifications. They are outside
        the promise: rows that stay keep what they hold there, new rows hold nothing."""
        former = {field.name: _type_text(field.type) for field in held if field.name not in self.columns}
        return replace(
            self,
            columns={**self.columns, **former},
            excluded_from_digest=self.excluded_from_digest | former.keys(),
        )

    def digest_columns(self) -> tuple[str, ...]:
        """The columns inside the promise, in order."""
        return tuple(column for column in self.columns if column not in self.excluded_from_digest)

    def arrow_schema(self) -> pa.Schema:
        """The schema as Arrow sees it."""
        return pa.schema([(column, ARROW_TYPES[type_]) for column, type_ in self.columns.items()])

    def block_schema(self) -> pa.Schema:
        """The schema of a block's rows, which do not say whose they are."""
        return pa.schema([field for field in self.arrow_schema() if field.name != "block"])


def _type_text(kind: pa.DataType) -> str:
    # By comparison: lists of one type are equal whatever their elements are called, and are hashed by that.
    return next(name for name, known in ARROW_TYPES.items() if known == kind)


class LakeError(OSError):
    """A table of the lake cannot be opened or created."""


def create(root: str, table: Table) -> DeltaTable:
    """Creates a table where there is none, and gives it columns and properties that it lacks.

    Several runs may do so at a time.

    Returns:
        The table, opened.

    Raises:
        LakeError: the lake cannot be read or written.
        TableMismatch: a column stands in the lake with another type.
    """
    uri = f"{root}/{table.name}"
    try:
        for _ in range(ATTEMPTS):
            try:
                return _create(uri, table)
            except CommitFailedError as error:
                # Another run has changed the table since it was opened: perhaps to what it lacks.
                met = error
        raise met
    except (DeltaError, OSError) as error:
        raise LakeError(f"lake: {uri} cannot be opened or created: {one_line_message(error)}") from error


def one_line_message(error: Exception) -> str:
    """What a library says of an error, without colours and without the frames of its own code."""
    said = re.sub(r"\x1b\[[0-9;]*m|↳", "", str(error))
    told = takewhile(lambda line: not re.match(r"\s*\d+: ", line), said.splitlines())
    return " ".join(" ".join(told).split()) or type(error).__name__


def _create(uri: str, table: Table) -> DeltaTable:
    wanted = Schema.from_arrow(table.arrow_schema())
    properties = (TABLE_PROPERTIES if "hour" in table.partition else SHORT) | (
        NO_BOUNDS if table.unsearched else {}
    )
    try:
        existing = DeltaTable(uri)
    except TableNotFoundError:
        return DeltaTable.create(
            uri, wanted, mode="ignore", partition_by=list(table.partition), configuration=properties
        )
    held: dict[str, Field] = {field.name: field for field in existing.schema().fields}
    missing = []
    for field in wanted.fields:
        if field.name not in held:
            missing.append(field)
        elif held[field.name].type != field.type:
            raise TableMismatch(
                f"table {uri}: column {field.name} is {held[field.name].type} in the lake and {field.type} "
                "in the specification; give the column another name or the stream another lake"
            )
    if missing:
        existing.alter.add_columns(missing)
    if properties.items() - existing.metadata().configuration.items():
        existing.alter.set_table_properties(properties)
    return existing


def read_rows(table: DeltaTable, where: str = "TRUE") -> list[dict[str, Any]]:
    """The rows of a table that meet an SQL condition, read without Spark.

    By delta-rs alone: pyarrow's reader of Delta tables calls Python from threads of its own, and now
    and then one of them aborts the process as it ends.
    """
    read: list[dict[str, Any]] = query(table, f"SELECT * FROM t WHERE {where}").to_pylist(
        maps_as_pydicts="strict"
    )
    return read


def query(table: DeltaTable, sql: str, **others: DeltaTable) -> pa.Table:
    """What an SQL query gives over a table, `t`, and over others by their names."""
    builder = QueryBuilder()
    for name, of in {**others, "t": table}.items():
        builder = builder.register(name, of)
    return pa.RecordBatchReader.from_stream(builder.execute(sql)).read_all()


def instant(moment: datetime) -> str:
    """A time as a condition of `read_rows` writes it."""
    return f"""arrow_cast('{moment.astimezone(UTC).isoformat()}', 'Timestamp(Microsecond, Some("UTC"))')"""


def literal(text: str) -> str:
    """A text as a condition of `read_rows` writes it."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def in_terms(hours: Iterable[datetime]) -> tuple[list[Interval], list[datetime]]:
    """Hours as a condition says them: as a few stretches, and one by one where they are scattered.

    What plans a condition of hundreds of comparisons takes seconds, and longer the deeper they nest; a
    list of values it looks up.
    """
    found = sorted(merge_hours(hours), key=len, reverse=True)
    return sorted(found[:MAX_COMPARED_RANGES]), sorted(
        hour for stretch in found[MAX_COMPARED_RANGES:] for hour in stretch.hours()
    )


def in_hours_sql(hours: Iterable[datetime], spelled: Callable[[datetime], str] = instant) -> str:
    """An SQL condition that the column `hour` is one of some hours.

    Args:
        spelled: how a time is written.
    """
    stretches, others = in_terms(hours)
    terms = [f"hour >= {spelled(s.start)} AND hour < {spelled(s.end)}" for s in stretches]
    if others:
        terms.append(f"hour IN ({', '.join(map(spelled, others))})")
    return f"({' OR '.join(f'({term})' for term in terms) or 'FALSE'})"


class RunSuperseded(RuntimeError):
    """Another run has claimed hours of this one since; nothing of this run is called fresh."""
