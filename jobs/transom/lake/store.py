"""Reading and replacing hours of the lake's tables: through Spark, and where rows are few by delta-rs.

Reads are pinned: a `Pins` holds one version of each table, and of hours that a killed run had begun to
replace the version in which they stand; nothing else can be read. Writes replace exactly the hours (and
blocks) that they name, in one Delta commit, and carry the fencing token of the claim that they belong to. One
whose token is not above the last one's writes nothing, and is told so.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
)
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from transom.intervals import ranges
from transom.lake import small
from transom.lake.book import Book, Node
from transom.lake.ledger import ATTEMPTS, Overtaken
from transom.lake.tables import Table, create, read_rows

CONFLICTS = (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    CommitFailedError,
)
"""How Delta refuses a commit that meets another one; they have no name in common."""


def in_hours(hours: Iterable[datetime], column: str = "hour") -> Column:
    """A condition that holds in some hours, as few comparisons as their stretches allow."""
    condition = F.lit(False)
    for stretch in ranges(hours):
        condition = condition | (
            (F.col(column) >= F.lit(stretch.start)) & (F.col(column) < F.lit(stretch.end))
        )
    return condition


def _sql_hours(hours: Iterable[datetime]) -> str:
    form = "'%Y-%m-%dT%H:%M:%SZ'"
    parts = [f"(hour >= {s.start.strftime(form)} AND hour < {s.end.strftime(form)})" for s in ranges(hours)]
    return "(" + " OR ".join(parts) + ")"


def conformed(rows: DataFrame, table: Table, *more: Column) -> DataFrame:
    """Rows in a table's own columns and types, which is how they are hashed and written.

    A column that is missing is null: a block fills its own columns alone.
    """
    held = set(rows.columns)
    columns = [
        (F.col(f"`{name}`") if name in held else F.lit(None)).cast(kind).alias(name)
        for name, kind in table.columns.items()
    ]
    return rows.select(*columns, *more)


@dataclass(frozen=True)
class Write:
    """Rows that replace some hours of a table.

    Attributes:
        rows: what is to stand in `targets`, nothing outside of them, in the table's types; columns that are
            missing become null. An Arrow table where they are few and the driver has them anyway.
        targets: the hours to replace, by block; a table without blocks has the one key None.
        bytes: about how many the rows take; None where nobody knows.
        gathered: whether the rows of an hour lie in few partitions already, so that no shuffle has to bring
            them together.
    """

    table: Table
    rows: DataFrame | pa.Table
    targets: Mapping[str | None, Collection[datetime]]
    bytes: int | None = None
    gathered: bool = False

    def predicate(self, known: Iterable[Node] | None = None) -> str:
        """What the write replaces, as a Delta predicate.

        An hour that no other block has is named without its blocks: Delta then drops its files, and does not
        look for rows to keep in them.

        Args:
            known: the nodes of the stage, as the ledger has them since this run's claim. What another run
                claims later has a higher token, and its rows are not there yet, or this write is refused.
                None where nobody has looked.
        """
        hours = set().union(*self.targets.values())
        if None in self.targets:
            return _sql_hours(hours)
        shared = hours
        if known is not None:
            in_table = (node for node in known if node.table == self.table.name)
            shared = {node.hour for node in in_table if node.hour not in self.targets.get(node.block, ())}
        parts = [_sql_hours(hours - shared)] if hours - shared else []
        for block, some in self.targets.items():
            beside = shared.intersection(some)
            parts += [f"(block = '{block}' AND {_sql_hours(beside)})"] if beside else []
        return " OR ".join(parts)


class Store:
    """The Delta tables of one stream under `root`."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark = spark
        self.root = root

    def create(self, tables: Iterable[Table]) -> None:
        """Creates the tables that are missing."""
        for table in tables:
            create(self.root, table)

    def pin(self, tables: Iterable[str], book: Book | None = None) -> "Pins":
        """The present version of each table.

        Args:
            book: where it says that a run has begun to replace the rows of an hour, the rows are read
                from the version in which they stand.
        """
        torn: dict[str, dict[datetime, int]] = {}
        for node, entry in (book or {}).items():
            if entry.stood_at is not None:
                torn.setdefault(node.table, {})[node.hour] = entry.stood_at
        return Pins(self, {name: DeltaTable(f"{self.root}/{name}").version() for name in tables}, torn)

    def write(
        self, write: Write, *, stage: str, token: int, run_id: str, known: Iterable[Node] | None = None
    ) -> None:
        """Replaces the targets of a write.

        Args:
            known: as in `Write.predicate`.

        Raises:
            Overtaken: another run of the stage has written the table in the meantime.
        """
        uri = f"{self.root}/{write.table.name}"
        predicate = write.predicate(known)
        overtaken = Overtaken(
            f"{stage}: table {write.table.name} holds a later run's write; run {run_id} wrote nothing to "
            "it, run the interval again"
        )
        try:
            if isinstance(write.rows, pa.Table):
                _write_arrow(uri, write.rows, predicate, stage, token, run_id)
            elif write.bytes is not None and write.bytes <= small.MOST:
                rows = small.taken(write.rows, write.table.arrow_schema())
                _write_arrow(uri, rows, predicate, stage, token, run_id)
            else:
                rows = write.rows if write.gathered else write.rows.repartition("hour")
                _write_frame(uri, rows, predicate, stage, token, run_id)
        except CONFLICTS as error:
            raise overtaken from error
        # Delta skips a write whose token is not above the last one's, and does not say so.
        if _token(DeltaTable(uri), stage) != token:
            raise overtaken


def _token(table: DeltaTable, stage: str) -> int:
    """The token of a stage's last write."""
    held = table.transaction_version(stage)
    return -1 if held is None else held


def _write_frame(uri: str, rows: DataFrame, predicate: str, stage: str, token: int, run_id: str) -> None:
    (
        rows.write.format("delta")
        .mode("overwrite")
        .option("replaceWhere", predicate)
        .option("txnAppId", stage)
        .option("txnVersion", token)
        .option("userMetadata", run_id)
        .save(uri)
    )


def _write_arrow(uri: str, rows: pa.Table, predicate: str, stage: str, token: int, run_id: str) -> None:
    fence = CommitProperties(
        custom_metadata={"run_id": run_id},
        app_transactions=[Transaction(stage, token)],
        max_commit_retries=0,
    )
    for attempt in range(ATTEMPTS):
        table = DeltaTable(uri)
        if _token(table, stage) >= token:
            return
        try:
            # `merge`: the lake keeps columns that the specification has dropped.
            write_deltalake(
                table,
                rows,
                mode="overwrite",
                schema_mode="merge",
                predicate=predicate,
                commit_properties=fence,
            )
            return
        except CommitFailedError:
            if attempt == ATTEMPTS - 1:
                raise


@dataclass(frozen=True)
class Pins:
    """One version of each table that a run reads.

    Attributes:
        torn: hours whose rows a run has begun to replace and not published, by table, each with the
            version in which they stand. Only of tables without blocks, which are written hour by hour.
    """

    store: Store
    versions: Mapping[str, int]
    torn: Mapping[str, Mapping[datetime, int]] = field(default_factory=dict)
    _loaded: dict[tuple[str, int], DataFrame] = field(default_factory=dict, compare=False)

    def read(self, table: str, hours: Iterable[datetime]) -> DataFrame:
        """The rows of some hours of a table, at the pinned version."""
        by_version: dict[int, list[datetime]] = {self.versions[table]: []}
        for hour in hours:
            version = self.torn.get(table, {}).get(hour, self.versions[table])
            by_version.setdefault(version, []).append(hour)
        few = small.held(self.store.root, table, by_version)
        if few is not None:
            return self.store.spark.createDataFrame(few)
        frames = [self._load(table, version).where(in_hours(some)) for version, some in by_version.items()]
        return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames)

    def _load(self, table: str, version: int) -> DataFrame:
        # Once a table: Delta computes a snapshot for each reader that asks for a version.
        if (table, version) not in self._loaded:
            reader = self.store.spark.read.format("delta").option("versionAsOf", version)
            self._loaded[table, version] = reader.load(f"{self.store.root}/{table}")
        return self._loaded[table, version]

    def form(self, table: Table) -> Table:
        """A table with every column that it has at the pinned version."""
        held = DeltaTable(f"{self.store.root}/{table.name}", version=self.versions[table.name])
        return table.widened(pa.schema(held.schema().to_arrow()))

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a small table at the pinned version, read by the driver."""
        torn = self.torn.get(table, {})
        found = []
        for version in {self.versions[table], *torn.values()}:
            rows = read_rows(DeltaTable(f"{self.store.root}/{table}", version=version))
            found += [row for row in rows if torn.get(row["hour"], self.versions[table]) == version]
        return found
