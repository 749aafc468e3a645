"""External tables of a stage: any Delta tables, and the events of other streams.

A `LedgerSnapshot` shows an external table as hours of one more table. Their state comes from the table's log
(the files that overlap an hour) or from the ledger of the other stream. So an hour is stale if the external
rows of that hour change, not if others change. A table has every hour from that of its first row to that of
its last row.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from transom.core.intervals import HOUR, hour_of, merge_hours
from transom.core.partitions import BITS, PartitionState
from transom.ledger.freshness import EVENTS
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.errors import did_you_mean
from transom.storage.external_source import TIME, ExternalSource, Rows
from transom.storage.latest_table import LatestTable, Revision
from transom.storage.tables import SPARK_TYPES, LakeError, one_line_message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Hours = Mapping[datetime, PartitionState]
TYPES: Mapping[str, tuple[Callable[[Any], bool], ...]] = {
    "string": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    "integer": (pa.types.is_integer,),
    "number": (pa.types.is_floating, pa.types.is_decimal, pa.types.is_integer),
    "boolean": (pa.types.is_boolean,),
    "timestamp": (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,),
}
"""The column types of a table that match a declared type."""


class NeverRun(LakeError):
    """A stage reads the events of a stream that has never run in the lake."""


class ExternalSources:
    """The external tables of a stage, at their latest version.

    Args:
        root: the folder of the stage's own stream.
        declared: the external tables.
    """

    def __init__(self, root: str, declared: Iterable[ExternalSource]) -> None:
        lake = root.rstrip("/").rpartition("/")[0]
        self._observers: dict[ExternalSource, _Table | _Stream] = {
            source: _Stream(source, f"{lake}/{source.name}") if source.table is None else _Table(source)
            for source in declared
        }

    def beside(self, snapshot: LedgerSnapshot) -> LedgerSnapshot:
        """Return a snapshot with the hours of the external tables.

        Raises:
            LakeError: a table or stream does not exist, cannot be read, or has no such column.
        """
        required = snapshot.required_hours
        hours = {source.series: table.hours(required) for source, table in self._observers.items()}
        return snapshot.with_external(hours)

    def revisions(self) -> tuple[Revision, ...]:
        """Return the latest version of each table, and of the ledger of each stream; raise as `beside`."""
        return tuple(table.revision() for table in self._observers.values())

    def pinned(self) -> Mapping[ExternalSource, Rows]:
        """Return a reader of each table, at the version of the last `beside`; of a stream, at the latest."""
        return {source: table.pinned() for source, table in self._observers.items()}


class _Table:
    """A Delta table, known by its log only.

    If it has no time column, every required hour is computed from all its rows.
    """

    def __init__(self, source: ExternalSource) -> None:
        self._source = source
        self._uri = source.table or ""
        self._table = LatestTable(self._uri)
        self._revision: Revision | None = None
        self._hours: Hours = {}
        self._whole = PartitionState("published", "")

    def hours(self, required: Collection[datetime]) -> Hours:
        with _errors_in_words(self._source, self._uri):
            table, revision = self._table.read()
            if self._revision != revision:
                _require_columns(self._source, table)
                if self._source.time is None:
                    self._whole = PartitionState("published", "", digest=_digest_of_files(table))
                else:
                    self._hours = _hours_of_files(self._source, table)
                self._revision = revision
        return dict.fromkeys(required, self._whole) if self._source.time is None else self._hours

    def revision(self) -> Revision:
        with _errors_in_words(self._source, self._uri):
            return self._table.read()[1]

    def pinned(self) -> Rows:
        assert self._revision is not None, "hours() comes first"
        uri, version, source = self._uri, self._revision.version, self._source

        def rows(spark: "SparkSession", hours: Collection[datetime]) -> "DataFrame":
            table = spark.read.format("delta").option("versionAsOf", version).load(uri)
            return _declared(table if source.time is None else table.where(_in(source.time, hours)), source)

        return rows


class _Stream:
    """Another stream of the lake, known by its ledger."""

    def __init__(self, source: ExternalSource, root: str) -> None:
        self._source, self._root = source, root
        self._ledger: Ledger | None = None

    def hours(self, required: Collection[datetime]) -> Hours:
        with _errors_in_words(self._source, self._root):
            other = self._opened().snapshot([EVENTS[0]])
        return {hour: state for hour, state in other.series(*EVENTS).items() if hour in other.required_hours}

    def revision(self) -> Revision:
        with _errors_in_words(self._source, self._root):
            return self._opened().revision("ledger")

    def _opened(self) -> Ledger:
        source, root = self._source, self._root
        if self._ledger is None:
            if not DeltaTable.is_deltatable(f"{root}/events"):
                raise NeverRun(
                    f"{source.place}: it waits for the stream {source.name}, of which no run "
                    "is in this lake: run its ingest, then fill again. Stages before fill do not wait"
                )
            _require_columns(source, DeltaTable(f"{root}/events"))
            self._ledger = Ledger(root, create=False)
        return self._ledger

    def pinned(self) -> Rows:
        from transom.storage.store import PinnedTables, Store

        root, source = self._root, self._source
        version = DeltaTable(f"{root}/events").version()

        def rows(spark: "SparkSession", hours: Collection[datetime]) -> "DataFrame":
            pins = PinnedTables(Store(spark, root), {"events": version})
            return _declared(pins.read("events", hours), source)

        return rows


@contextmanager
def _errors_in_words(source: ExternalSource, uri: str) -> Iterator[None]:
    """Turn errors of libraries into one line with the place in the stream file.

    Raises:
        LakeError: instead of them.
    """
    try:
        yield
    except LakeError:
        raise
    except (DeltaError, pa.ArrowException, OSError) as error:
        raise LakeError(f"{source.place}: {uri} cannot be read: {one_line_message(error)}") from error


def _require_columns(source: ExternalSource, table: DeltaTable) -> None:
    """Check that a table has the declared columns.

    Raises:
        LakeError: a column does not exist, has another type, or has another name in the files.
    """
    mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mapping != "none":
        raise LakeError(
            f"{source.place}: {source.name} has its columns under other names in its files "
            f"(delta.columnMapping.mode is {mapping}), which is not read"
        )
    types = {column.name: column.type for column in pa.schema(table.schema().to_arrow())}
    declared = {} if source.time is None else {f"{source.place}.time": (source.time, "timestamp")}
    declared |= {f"{source.place}.columns.{c.name}": (c.paths[0], c.type) for c in source.columns}
    for place, (column, kind) in declared.items():
        if column not in types:
            raise LakeError(f"{place}: {source.name} has no column {column!r}{did_you_mean(column, types)}")
        if not any(matches(types[column]) for matches in TYPES[kind]):
            raise LakeError(
                f"{place}: {column} must be {_a(kind)}; in {source.name} it is {_a(str(types[column]))}"
                + (", which has no zone" if pa.types.is_timestamp(types[column]) else "")
            )


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _digest_of_files(table: DeltaTable) -> str:
    deleted = _deleted_rows(table)
    paths = sorted(pa.table(table.get_add_actions()).column("path").to_pylist())
    text = repr([(path, deleted.get(path.rpartition("/")[2])) for path in paths])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _hours_of_files(source: ExternalSource, table: DeltaTable) -> Hours:
    """Return the hours of a table. The digest of an hour is the sum of the hashes of overlapping files."""
    changes: dict[datetime, int] = {}
    deleted = _deleted_rows(table)
    for file in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        nulls = file.get(f"null_count.{source.time}")
        if file["num_records"] is not None and file["num_records"] in (0, nulls):
            continue
        first, last = (file.get(f"{end}.{source.time}") for end in ("min", "max"))
        if first is None or last is None:
            rule = (
                "the log of the table must have the first and last time of each file, which Delta keeps of a"
            )
            raise LakeError(
                f"{source.place}.time: {rule} table's first 32 columns; it does not of {source.time} in "
                f"{file['path']}"
            )
        text = f"{file['path']} {deleted.get(file['path'].rpartition('/')[2], '')}"
        number = int.from_bytes(hashlib.sha256(text.encode()).digest()[: BITS // 8])
        start, stop = hour_of(first.astimezone(UTC)), hour_of(last.astimezone(UTC)) + HOUR
        changes[start] = changes.get(start, 0) + number
        changes[stop] = changes.get(stop, 0) - number
    hours: dict[datetime, PartitionState] = {}
    total = 0
    for start, stop in pairwise(sorted(changes)):
        total = (total + changes[start]) % 2**BITS
        state = PartitionState("published", "", digest=f"{total:032x}")
        hours |= {start + n * HOUR: state for n in range((stop - start) // HOUR)}
    return hours


def _deleted_rows(table: DeltaTable) -> Mapping[str, str]:
    """Return a hash of the deleted rows by file, if the table has deletion vectors."""
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    return {
        row["filepath"].rpartition("/")[2]: hashlib.sha256(bytes(row["selection_vector"])).hexdigest()
        for row in pa.table(table.deletion_vectors()).to_pylist()
    }


def _in(time: str, hours: Iterable[datetime]) -> Any:
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    moment = F.col(f"`{time}`")
    intervals = [
        (moment >= F.lit(interval.start)) & (moment < F.lit(interval.end)) for interval in merge_hours(hours)
    ]
    return reduce(Column.__or__, intervals, F.lit(False))


def _declared(rows: "DataFrame", source: ExternalSource) -> "DataFrame":
    """Return the declared columns under their declared names, and the time as `TIME`."""
    from pyspark.sql import functions as F

    columns = [F.col(f"`{c.paths[0]}`").cast(SPARK_TYPES[c.type]).alias(c.name) for c in source.columns]
    time = [] if source.time is None else [F.col(f"`{source.time}`").alias(TIME)]
    return rows.select(*time, *columns)
