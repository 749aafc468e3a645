"""Reading and replacing hours of the lake's tables: through Spark, and where rows are few by delta-rs.

Reads are pinned: a `PinnedTables` holds one version of each table, and of hours that a killed run had begun
to replace the version in which they stand; nothing else can be read. Writes replace exactly the hours (and
blocks) that they name, in one Delta commit, and carry the fencing token of the claim that they belong to. One
whose token is not above the last one's writes nothing, and is told so.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial, reduce
from pathlib import Path

import pyarrow as pa
from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    MetadataChangedException,
)
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from transom.core.partitions import PartitionKey
from transom.core.path_pattern import split_scheme
from transom.storage import driver_io as small
from transom.storage.data_files import DataFile
from transom.storage.external_source import ExternalSource, Rows
from transom.storage.tables import ATTEMPTS, RunSuperseded, Table, create, in_hours_sql, in_terms

CONFLICTS = (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    CommitFailedError,
)
"""How Delta refuses a commit that meets another one; they have no name in common."""


def in_hours(hours: Iterable[datetime]) -> Column:
    """A condition that the column `hour` is one of some hours, as few comparisons as there can be."""
    stretches, others = in_terms(hours)
    terms = [
        (F.col("hour") >= F.lit(stretch.start)) & (F.col("hour") < F.lit(stretch.end))
        for stretch in stretches
    ]
    if others:
        terms.append(F.col("hour").isin(others))
    return reduce(Column.__or__, terms) if terms else F.lit(False)


def _as_text(hour: datetime) -> str:
    return hour.strftime("'%Y-%m-%dT%H:%M:%SZ'")


def cast_to_table(rows: DataFrame, table: Table, *more: Column) -> DataFrame:
    """Rows in a table's own columns and types, which is how they are hashed and written.

    A column that is missing is null: a block fills its own columns alone.
    """
    held = set(rows.columns)
    columns = [
        f"CAST({f'`{name}`' if name in held else 'NULL'} AS {kind}) AS `{name}`"
        for name, kind in table.columns.items()
    ]
    return rows.select(*map(F.expr, columns), *more) if more else rows.selectExpr(*columns)


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
        parts: the same rows, as tasks have written them, to be taken as they stand where other blocks have
            nothing in these hours; None where there are none, or too many.
    """

    table: Table
    rows: DataFrame | pa.Table
    targets: Mapping[str | None, Collection[datetime]]
    bytes: int | None = None
    gathered: bool = False
    parts: Sequence[DataFile] | None = None

    @property
    def hours(self) -> set[datetime]:
        """Every hour of which something is replaced."""
        return set().union(*self.targets.values())

    def shared(self, known: Iterable[PartitionKey] | None = None) -> set[datetime]:
        """The hours in which other blocks' rows stay, so that they have to be written again.

        Args:
            known: the nodes of the stage, as the ledger has them since this run's claim. What another run
                claims later has a higher token, and its rows are not there yet, or this write is refused.
                None where nobody has looked: there may be some in every hour.
        """
        if None in self.targets:
            return set()
        if known is None:
            return self.hours
        in_table = (node for node in known if node.table == self.table.name)
        beside = {node.hour for node in in_table if node.hour not in self.targets.get(node.block, ())}
        return beside & self.hours

    def predicate(self, shared: set[datetime]) -> str:
        """What the write replaces, as a Delta predicate.

        An hour that no other block has is named without its blocks: Delta then drops its files, and does not
        look for rows to keep in them.

        Args:
            shared: the hours that others have.
        """
        parts = [in_hours_sql(self.hours - shared, _as_text)] if self.hours - shared else []
        for block, hours in self.targets.items():
            beside = shared.intersection(hours)
            parts += [f"(block = '{block}' AND {in_hours_sql(beside, _as_text)})"] if beside else []
        return " OR ".join(parts)


class Store:
    """The Delta tables of one stream under `root`."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark = spark
        self.root = root
        self._opened: dict[str, DeltaTable] = {}

    def open(self, name: str) -> DeltaTable:
        """A table as it stands; the next call may bring it up to date.

        To open a table takes as long as it has files, and a run looks at each some five times.
        """
        if name in self._opened:
            self._opened[name].update_incremental()
        else:
            self._opened[name] = DeltaTable(f"{self.root}/{name}")
        return self._opened[name]

    def uri(self, table: str) -> str:
        """Where a table is, as an executor has to be told it: its working folder may be another."""
        uri = f"{self.root}/{table}"
        return uri if split_scheme(uri)[0] else str(Path(uri).absolute())

    def create(self, tables: Iterable[Table]) -> None:
        """Creates the tables that are missing."""
        for table in tables:
            self._opened[table.name] = create(self.root, table)

    def pin(
        self,
        tables: Iterable[str],
        previous: Mapping[str, Mapping[datetime, int]] | None = None,
        fillers: Mapping[ExternalSource, Rows] | None = None,
    ) -> "PinnedTables":
        """The present version of each table.

        Args:
            fillers: what reads that which is not the stream's own.
            previous: the version to read the rows of an hour from, by table and hour, where a run has begun
                to replace them.
        """
        present = {name: self.open(name) for name in tables}
        versions = {name: table.version() for name, table in present.items()}
        forms = {name: pa.schema(table.schema().to_arrow()) for name, table in present.items()}
        return PinnedTables(self, versions, previous or {}, fillers or {}, forms)

    def write(
        self,
        write: Write,
        *,
        stage: str,
        token: int,
        run_id: str,
        known: Iterable[PartitionKey] | None = None,
    ) -> None:
        """Replaces the targets of a write.

        Args:
            known: as in `Write.shared`.

        Raises:
            Overtaken: another run of the stage has written the table in the meantime.
        """
        name = write.table.name
        overtaken = RunSuperseded(
            f"{stage}: table {write.table.name} holds a later run's write; run {run_id} wrote nothing to "
            "it, run the interval again"
        )
        rows, shared = write.rows, write.shared(known)
        where = write.predicate(shared)
        try:
            if write.parts is not None and not shared:
                written = _take_parts(self, name, write.parts, write.hours, stage, token, run_id)
            elif self._fits_driver(write, shared):
                if isinstance(rows, DataFrame):
                    rows = small.collect_arrow(rows, write.table.arrow_schema())
                written = _write_arrow(self, name, rows, where, stage, token, run_id)
            else:
                if not isinstance(rows, DataFrame):
                    rows = self.spark.createDataFrame(rows)
                rows = rows if write.gathered else rows.repartition("hour")
                _write_frame(f"{self.root}/{name}", rows, where, stage, token, run_id)
                # Delta skips a write whose token is not above the last one's, and does not say so.
                written = _token(self.open(name), stage) == token
        except CONFLICTS as error:
            raise overtaken from error
        if not written:
            raise overtaken

    def _fits_driver(self, write: Write, shared: Collection[datetime]) -> bool:
        """Whether the driver takes what is written, and what has to be written again with it."""
        if isinstance(write.rows, DataFrame) and (
            write.bytes is None or write.bytes > small.MAX_DRIVER_BYTES
        ):
            return False
        return (
            not shared
            or small.TableReader(self.open(write.table.name)).size(shared) <= small.MAX_DRIVER_BYTES
        )


def _token(table: DeltaTable, stage: str) -> int:
    """The token of a stage's last write."""
    held = table.transaction_version(stage)
    return -1 if held is None else held


def _write_frame(uri: str, rows: DataFrame, predicate: str, stage: str, token: int, run_id: str) -> None:
    writer = (
        rows.write.format("delta")
        .mode("overwrite")
        .option("replaceWhere", predicate)
        .option("txnAppId", stage)
        .option("txnVersion", token)
        .option("userMetadata", run_id)
    )
    for attempt in range(ATTEMPTS):
        try:
            return writer.save(uri)
        except MetadataChangedException:
            # Another run has given the table a column or a property, and taken no row.
            if attempt == ATTEMPTS - 1:
                raise


def _write_arrow(
    store: Store, name: str, rows: pa.Table, predicate: str, stage: str, token: int, run_id: str
) -> bool:
    def act(table: DeltaTable, fence: CommitProperties) -> None:
        # `merge`: the lake keeps columns that the specification has dropped.
        write_deltalake(
            table, rows, mode="overwrite", schema_mode="merge", predicate=predicate, commit_properties=fence
        )

    return _fenced(store, name, act, stage, token, run_id)


def _take_parts(
    store: Store,
    name: str,
    parts: Iterable[DataFile],
    hours: Collection[datetime],
    stage: str,
    token: int,
    run_id: str,
) -> bool:
    def act(table: DeltaTable, fence: CommitProperties) -> None:
        # Partitions are told apart by the hour that they are, not by how a writer has spelt it.
        replaced = [("hour", "in", [_partition(hour) for hour in sorted(hours)])]
        table.create_write_transaction(
            [_added(part) for part in parts],
            "overwrite",
            table.schema(),
            ["hour"],
            replaced,
            commit_properties=fence,
        )

    return _fenced(store, name, act, stage, token, run_id)


def _added(part: DataFile) -> AddAction:
    assert part.hour is not None
    return AddAction(
        path=part.path,
        size=part.bytes,
        partition_values={"hour": _partition(part.hour)},
        modification_time=part.modified,
        data_change=True,
        # Bounds of columns would save a reader little: an hour is found by its partition.
        stats=json.dumps({"numRecords": part.rows}),
    )


def _partition(hour: datetime) -> str:
    """An hour as Delta's log has it, whatever the time zone of a reader's session."""
    return f"{hour:%Y-%m-%dT%H:%M:%S}.000000Z"


def _fenced(
    store: Store,
    name: str,
    act: Callable[[DeltaTable, CommitProperties], None],
    stage: str,
    token: int,
    run_id: str,
) -> bool:
    """A commit by delta-rs; whether it was made: not where the last write's token is not below its own."""
    fence = CommitProperties(
        custom_metadata={"run_id": run_id},
        app_transactions=[Transaction(stage, token)],
        max_commit_retries=0,
    )
    for attempt in range(ATTEMPTS):
        table = store.open(name)
        if _token(table, stage) >= token:
            return False
        try:
            act(table, fence)
            return True
        except CommitFailedError:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


@dataclass(frozen=True)
class PinnedTables:
    """One version of each table that a run reads.

    Attributes:
        partially_written: hours whose rows a run has begun to replace and not published, by table, each with
            the version in which they stand. Only of tables without blocks, which are written hour by hour.
    """

    store: Store
    versions: Mapping[str, int]
    partially_written: Mapping[str, Mapping[datetime, int]] = field(default_factory=dict)
    fillers: Mapping[ExternalSource, Rows] = field(default_factory=dict, compare=False)
    _forms: Mapping[str, pa.Schema] = field(default_factory=dict, compare=False)
    _stored: dict[tuple[str, int], small.TableReader] = field(default_factory=dict, compare=False)
    _loaded: dict[tuple[str, int], DataFrame] = field(default_factory=dict, compare=False)

    def read(self, table: str, hours: Iterable[datetime]) -> DataFrame:
        """The rows of some hours of a table, at the pinned version."""
        by_version: dict[int, set[datetime]] = {self.versions[table]: set()}
        for hour in hours:
            version = self.partially_written.get(table, {}).get(hour, self.versions[table])
            by_version.setdefault(version, set()).add(hour)
        few = small.read_if_small((self._at(table, version), some) for version, some in by_version.items())
        if few is not None:
            # Of no rows Spark takes arrays only where the table has an empty chunk.
            return self.store.spark.createDataFrame(few if few.num_rows else few.schema.empty_table())
        frames = [self._load(table, version).where(in_hours(some)) for version, some in by_version.items()]
        return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames)

    def read_filler(self, filler: ExternalSource, hours: Collection[datetime]) -> DataFrame:
        """The rows of some hours of what is not the stream's own, as it stood then."""
        return self.fillers[filler](self.store.spark, hours)

    def _at(self, table: str, version: int) -> small.TableReader:
        if (table, version) not in self._stored:
            uri = f"{self.store.root}/{table}"
            self._stored[table, version] = small.TableReader(DeltaTable(uri, version=version))
        return self._stored[table, version]

    def _load(self, table: str, version: int) -> DataFrame:
        # Once a table: Delta computes a snapshot for each reader that asks for a version.
        if (table, version) not in self._loaded:
            reader = self.store.spark.read.format("delta").option("versionAsOf", version)
            self._loaded[table, version] = reader.load(f"{self.store.root}/{table}")
        return self._loaded[table, version]

    def current_schema(self, table: Table) -> Table:
        """A table with every column that it has at the pinned version."""
        return table.with_added_columns(self._forms[table.name])

    def stored(self, table: str) -> small.TableReader:
        """A table at the pinned version, for the driver to read."""
        return self._at(table, self.versions[table])

    def read_partially_written(self, table: str, but: Collection[datetime] = ()) -> pa.Table:
        """The rows that stand in hours that a run has begun to replace, read by the driver.

        Args:
            but: hours whose files are not opened.
        """
        hours: dict[int, list[datetime]] = {}
        for hour, version in self.partially_written.get(table, {}).items():
            if hour not in but:
                hours.setdefault(version, []).append(hour)
        found = [self._at(table, version).rows(some) for version, some in hours.items()]
        return pa.concat_tables([self._forms[table].empty_table(), *found], promote_options="default")
