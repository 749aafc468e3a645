"""Read and replace hours of the lake's tables: by Spark, or by delta-rs if there are few rows.

Reads are pinned. `PinnedTables` has one version of each table, and an earlier version for hours that a killed
run has begun to replace; nothing else can be read. A write replaces exactly the hours (and blocks) that it
names, in one Delta commit. It is refused if a run with a later claim has written the table.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial, reduce
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
from pyspark.sql.types import StructType

from transom.core.partitions import PartitionKey
from transom.core.path_pattern import split_scheme
from transom.storage import driver_io as small
from transom.storage.column_stats import ColumnStats
from transom.storage.data_files import DataFile
from transom.storage.external_source import ExternalSource, Rows
from transom.storage.fencing import Claim, RunSuperseded, last_token
from transom.storage.listed_files import read_listed
from transom.storage.session import frame_of
from transom.storage.session_on_demand import AnySession, SessionOnDemand, session_of
from transom.storage.tables import Table, TableFolder, in_hours_sql, quote_hour, retry
from transom.storage.write import Write

CONFLICTS = (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    CommitFailedError,
)
"""The errors of Delta for a commit that conflicts with another one; they have no common base class."""


def in_hours(hours: Iterable[datetime]) -> Column:
    """Return the condition that the column `hour` is in `hours`."""
    return F.expr(in_hours_sql(hours, lambda hour: f"TIMESTAMP{quote_hour(hour)}"))


def cast_to_table(rows: DataFrame, table: Table, *more: Column) -> DataFrame:
    """Return rows with the columns and types of a table, in which they are hashed and written.

    A missing column is null: a block fills only its own columns.

    Args:
        rows: the rows.
        table: the table.
        more: further columns of `rows` to return.
    """
    existing = set(rows.columns)
    columns = [
        f"CAST({f'`{name}`' if name in existing else 'NULL'} AS {kind}) AS `{name}`"
        for name, kind in table.columns.items()
    ]
    # One call for all columns: each column that Python creates takes a call to the JVM.
    return rows.select(*map(F.expr, columns), *more) if more else rows.selectExpr(*columns)


class Store(TableFolder):
    """The Delta tables of one stream under `root`; `beside` is as of `TableFolder`."""

    def __init__(self, spark: AnySession, root: str, beside: TableFolder | None = None) -> None:
        super().__init__(root, beside)
        self._spark = spark

    @cached_property
    def spark(self) -> SparkSession:
        """The session; it may be created here, so only code that has work reads it."""
        return session_of(self._spark)

    def expect_session(self) -> None:
        """Create the session in the background, if it is on demand and later stages will need it."""
        if isinstance(self._spark, SessionOnDemand):
            self._spark.expect()

    @property
    def session_seconds(self) -> float:
        """Seconds that the run has waited for the creation of the session, if it is on demand."""
        return self._spark.seconds if isinstance(self._spark, SessionOnDemand) else 0.0

    def uri(self, table: str) -> str:
        """Return the URI or absolute path of a table; the working folder of an executor may differ."""
        uri = f"{self.root}/{table}"
        return uri if split_scheme(uri)[0] else str(Path(uri).absolute())

    def pin(
        self,
        tables: Iterable[str],
        previous: Mapping[str, Mapping[datetime, int]] | None = None,
        fillers: Mapping[ExternalSource, Rows] | None = None,
    ) -> "PinnedTables":
        """Pin the current version of each table.

        Args:
            tables: the names of the tables.
            previous: the versions with the rows of hours that a run has begun to replace, by table and hour.
            fillers: the readers of external sources.
        """
        present = {name: self.open(name) for name in tables}
        versions = {name: table.version() for name, table in present.items()}
        schemas = {name: pa.schema(table.schema().to_arrow()) for name, table in present.items()}
        return PinnedTables(self, versions, previous or {}, fillers or {}, schemas)

    def write(self, write: Write, claim: Claim, known: Iterable[PartitionKey] | None = None) -> None:
        """Replace the targets of a write.

        Args:
            write: the write.
            claim: the claim of the run.
            known: as of `Write.shared`.

        Raises:
            RunSuperseded: another run of the stage has written the table since the claim.
        """
        name, shared = write.table.name, write.shared(known)
        superseded = RunSuperseded(
            f"{claim.stage}: table {name} holds a later run's write; run {claim.run_id} wrote nothing to it, "
            "run the interval again"
        )
        predicate = write.predicate(shared)
        data_files = None if shared else write.data_files
        rows = write.rows() if callable(write.rows) and data_files is None else write.rows
        try:
            if data_files is not None:
                written = self._commit(name, claim, _adder(write.table, data_files, write.hours))
            elif self._fits_driver(write, shared):
                if isinstance(rows, DataFrame):
                    schema = write.table.arrow_schema()
                    rows = rows.toArrow().select(schema.names).cast(schema)
                written = self._commit(name, claim, _overwriter(rows, predicate))
            else:
                if not isinstance(rows, DataFrame):
                    rows = frame_of(self.spark, rows)
                rows = rows if write.gathered else rows.repartition("hour")
                _write_frame(self.uri(name), rows, predicate, claim)
                # Delta skips a write whose token is not above that of the last write, and raises nothing.
                written = last_token(self.open(name), claim.stage) == claim.token
        except CONFLICTS as error:
            raise superseded from error
        if not written:
            raise superseded

    def _fits_driver(self, write: Write, shared: Collection[datetime]) -> bool:
        """Return whether the rows to write, and the rows that must be written again, are few enough."""
        limit = small.MAX_DRIVER_BYTES
        on_driver = isinstance(write.rows, pa.Table)
        if not on_driver and (write.bytes is None or write.bytes > limit):
            return False
        return not shared or small.TableReader(self.open(write.table.name)).size(shared) <= limit

    def _commit(self, name: str, claim: Claim, act: Callable[[DeltaTable, CommitProperties], None]) -> bool:
        """Commit by delta-rs; return False if the token is not above that of the last write."""
        fence = CommitProperties(
            custom_metadata={"run_id": claim.run_id},
            app_transactions=[Transaction(claim.stage, claim.token)],
            max_commit_retries=0,
        )

        def commit() -> bool:
            table = self.open(name)
            if last_token(table, claim.stage) >= claim.token:
                return False
            act(table, fence)
            return True

        return retry(commit)


def _write_frame(uri: str, rows: DataFrame, predicate: str, claim: Claim) -> None:
    fence: dict[str, str | int] = {
        "txnAppId": claim.stage,
        "txnVersion": claim.token,
        "userMetadata": claim.run_id,
    }
    writer = rows.write.format("delta").mode("overwrite").options(replaceWhere=predicate, **fence)
    # A conflict of metadata is retried: another run added a column or a property, but no row.
    retry(lambda: writer.save(uri), MetadataChangedException)


def _overwriter(rows: pa.Table, predicate: str) -> Callable[[DeltaTable, CommitProperties], None]:
    # `merge`: the lake keeps columns that the specification has dropped.
    return lambda table, fence: write_deltalake(
        table, rows, mode="overwrite", schema_mode="merge", predicate=predicate, commit_properties=fence
    )


def _adder(
    of: Table, data_files: Sequence[DataFile], hours: Iterable[datetime]
) -> Callable[[DeltaTable, CommitProperties], None]:
    # Partitions are compared as times, not as texts.
    replaced = [("hour", "in", [_partition_value(hour) for hour in sorted(hours)])]
    return lambda table, fence: table.create_write_transaction(
        [_add_action(file, {} if of.unsearched else file.stats) for file in data_files],
        "overwrite",
        table.schema(),
        ["hour"],
        replaced,
        commit_properties=fence,
    )


def _add_action(part: DataFile, stats: ColumnStats) -> AddAction:
    assert part.hour is not None
    return AddAction(
        path=part.path,
        size=part.bytes,
        partition_values={"hour": _partition_value(part.hour)},
        modification_time=part.modified,
        data_change=True,
        stats=json.dumps({"numRecords": part.rows, **stats}),
    )


def _partition_value(hour: datetime) -> str:
    """Return an hour as Delta's log has it, independent of the time zone of a reader's session."""
    return f"{hour:%Y-%m-%dT%H:%M:%S}.000000Z"


@dataclass(frozen=True)
class PinnedTables:
    """One version of each table that a run reads.

    Attributes:
        store: the store of the tables.
        versions: the version of each table.
        partially_written: the hours whose rows a run has begun to replace but not published, by table, with
            the version that has their published rows. Only tables without blocks have such hours.
        fillers: the readers of external sources.
    """

    store: Store
    versions: Mapping[str, int]
    partially_written: Mapping[str, Mapping[datetime, int]] = field(default_factory=dict)
    fillers: Mapping[ExternalSource, Rows] = field(default_factory=dict, compare=False)
    _schemas: Mapping[str, pa.Schema] = field(default_factory=dict, compare=False)
    _readers: dict[tuple[str, int], small.TableReader] = field(default_factory=dict, compare=False)
    _loaded: dict[tuple[str, int], DataFrame] = field(default_factory=dict, compare=False)
    _many: set[str] = field(default_factory=set, compare=False)

    @property
    def are_few(self) -> bool:
        """Whether all rows that were read so far are few, so that they came from the driver."""
        return not self._many

    def read(
        self, table: str, hours: Iterable[datetime], columns: Collection[str] | None = None
    ) -> DataFrame:
        """Return the rows of some hours of a table, at the pinned version.

        Args:
            table: the table.
            hours: the hours.
            columns: the columns that are needed. Few rows have no others, as each is converted twice on its
                way to Spark; Spark itself reads what it needs. Default: all.
        """
        hours = set(hours)
        if not hours and table in self._schemas:
            return frame_of(self.store.spark, self._schemas[table].empty_table())
        parts = ((self._at(table, version), part) for version, part in self._by_version(table, hours))
        rows = small.read_if_small(parts, columns)
        if rows is not None:
            return frame_of(self.store.spark, rows)
        self._many.add(table)
        frames = [self._frame(table, version, part) for version, part in self._by_version(table, hours)]
        return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames)

    def select_small(
        self, table: str, hours: Collection[datetime], columns: Collection[str], where: str
    ) -> pa.Table | None:
        """Return some columns of the rows that meet a condition, on the driver.

        None if these are perhaps too many rows. `where` is as of `TableReader.rows_within`.
        """
        if not hours:
            return self._schemas[table].empty_table().select(sorted(columns))
        parts = ((self._at(table, version), part) for version, part in self._by_version(table, set(hours)))
        return small.read_if_small(parts, columns, where, small.SELECTED)

    def columns(self, table: str) -> Sequence[str]:
        """Return the names of a table's columns."""
        names: Sequence[str] = self._schemas[table].names if table in self._schemas else ()
        return names

    def _by_version(self, table: str, hours: Collection[datetime]) -> list[tuple[int, set[datetime]]]:
        """Return the versions that have the rows of some hours, and the hours of each."""
        by_version: dict[int, set[datetime]] = {self.versions[table]: set()}
        for hour in hours:
            version = self.partially_written.get(table, {}).get(hour, self.versions[table])
            by_version.setdefault(version, set()).add(hour)
        return list(by_version.items())

    def read_filler(self, filler: ExternalSource, hours: Collection[datetime]) -> DataFrame:
        """Return the rows of some hours of an external source, at the pinned version."""
        self._many.add(repr(filler))
        return self.fillers[filler](self.store.spark, hours)

    def _at(self, table: str, version: int) -> small.TableReader:
        if (table, version) not in self._readers:
            # Reading the log takes longer than the rows of an hour.
            latest = self.store.open(table)
            pinned = latest.version() == version
            at = latest if pinned else DeltaTable(f"{self.store.root}/{table}", version=version)
            self._readers[table, version] = small.TableReader(at)
        return self._readers[table, version]

    def _frame(self, table: str, version: int, hours: Collection[datetime]) -> DataFrame:
        """Return the rows of some hours at a version, from the files that delta-rs lists if they are few.

        Spark's Delta needs several jobs to list files.
        """
        reader = self._at(table, version)
        paths = reader.paths(hours)
        schema = StructType.fromJson(json.loads(reader.schema.to_json()))
        listed = read_listed(self.store.spark, self.store.uri(table), schema, paths)
        return self._load(table, version).where(in_hours(hours)) if listed is None else listed

    def _load(self, table: str, version: int) -> DataFrame:
        # Loaded once: Delta computes a snapshot for each reader of a version.
        if (table, version) not in self._loaded:
            reader = self.store.spark.read.format("delta").option("versionAsOf", version)
            self._loaded[table, version] = reader.load(self.store.uri(table))
        return self._loaded[table, version]

    def current_schema(self, table: Table) -> Table:
        """Return a table with every column that it has at the pinned version."""
        return table.with_added_columns(self._schemas[table.name])

    def stored(self, table: str) -> small.TableReader:
        """Return a reader, on the driver, of a table at the pinned version."""
        return self._at(table, self.versions[table])

    def read_partially_written(self, table: str, excluded: Collection[datetime] = ()) -> pa.Table:
        """Return, on the driver, the published rows of hours that a run has begun to replace.

        Args:
            table: the name of the table.
            excluded: the hours whose files are not opened.
        """
        hours: dict[int, list[datetime]] = {}
        for hour, version in self.partially_written.get(table, {}).items():
            if hour not in excluded:
                hours.setdefault(version, []).append(hour)
        parts = [self._at(table, version).rows(part) for version, part in hours.items()]
        return pa.concat_tables([self._schemas[table].empty_table(), *parts], promote_options="default")
