"""What a stage reads that is not its stream's: a Delta table of anybody's, or the events of another stream.

A `LedgerSnapshot` is told of it as of hours of one more table: by the files of the table that reach into an
hour, as its log has them, or by the other stream's ledger. So an hour that is made of some is out of date
when they change there, and is not when the table changes elsewhere. A table holds every hour from that of its
first row to that of its last one."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from transom.core.intervals import HOUR, hour_of, merge_hours
from transom.core.partitions import BITS, PartitionState
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.errors import did_you_mean
from transom.storage.external_source import TIME, ExternalSource, Rows
from transom.storage.tables import SPARK_TYPES, LakeError, one_line_message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENTS = ("ingest", "events", "events")


class NeverRun(LakeError):
    """A stream that fills frames has never run in the lake."""


Hours = Mapping[datetime, PartitionState]


@dataclass
class ExternalSources:
    """What a stage reads from outside, as it stands.

    Args:
        root: where the tables of the stage's own stream are.
    """

    root: str
    declared: tuple[ExternalSource, ...]
    _observers: dict[ExternalSource, "_Table | _TimelessTable | _Stream"] = field(default_factory=dict)

    def beside(self, book: LedgerSnapshot) -> LedgerSnapshot:
        """A book that has their hours, too.

        Raises:
            LakeError: a table or stream is not there, cannot be read, or has no such column.
        """
        return book.with_external(
            {filler.series: self._look(filler).hours(book.required_hours) for filler in self.declared}
        )

    def pinned(self) -> Mapping[ExternalSource, Rows]:
        """What reads each of them as it stands now, or as it stood when its hours were last asked for."""
        return {filler: self._look(filler).pinned() for filler in self.declared}

    def _look(self, filler: ExternalSource) -> "_Table | _TimelessTable | _Stream":
        if filler not in self._observers:
            beside = f"{self.root.rstrip('/').rpartition('/')[0]}/{filler.name}"
            if filler.table is None:
                self._observers[filler] = _Stream(filler, beside)
            else:
                self._observers[filler] = _TimelessTable(filler) if filler.time is None else _Table(filler)
        return self._observers[filler]


class _Table:
    """A Delta table of which its log alone is known."""

    def __init__(self, filler: ExternalSource) -> None:
        self._filler = filler
        self._uri = filler.table or ""
        self._table: DeltaTable | None = None
        self._version = -1
        self._hours: Hours = {}

    def hours(self, due: Collection[datetime]) -> Hours:
        with _reading(self._filler, self._uri):
            if self._table is None:
                self._table = DeltaTable(self._uri)
            else:
                self._table.update_incremental()
            if self._version != self._table.version():
                _require(self._filler, self._table)
                self._observe(self._table)
                self._version = self._table.version()
        return self._hours

    def _observe(self, table: DeltaTable) -> None:
        self._hours = _of_files(self._filler, table)

    def pinned(self) -> Rows:
        uri, version, filler = self._uri, self._version, self._filler

        def rows(spark: "SparkSession", hours: Collection[datetime]) -> "DataFrame":
            table = spark.read.format("delta").option("versionAsOf", version).load(uri)
            return _declared(
                table if filler.time is None else table.where(_inside(filler.time, hours)), filler
            )

        return rows


class _TimelessTable(_Table):
    """A Delta table whose rows are of all time: every hour that is due is made of all of them."""

    _entry = PartitionState("published", "")

    def hours(self, due: Collection[datetime]) -> Hours:
        super().hours(due)
        return dict.fromkeys(due, self._entry)

    def _observe(self, table: DeltaTable) -> None:
        deleted = _deleted(table)
        files = sorted(pa.table(table.get_add_actions()).column("path").to_pylist())
        said = repr([(file, deleted.get(file.rpartition("/")[2])) for file in files])
        self._entry = PartitionState("published", "", digest=hashlib.sha256(said.encode()).hexdigest()[:32])


class _Stream:
    """Another stream of the lake, whose ledger tells what stands."""

    def __init__(self, filler: ExternalSource, root: str) -> None:
        self._filler, self._root = filler, root
        self._ledger: Ledger | None = None

    def hours(self, due: Collection[datetime]) -> Hours:
        filler, root = self._filler, self._root
        with _reading(filler, root):
            if self._ledger is None:
                if not DeltaTable.is_deltatable(f"{root}/events"):
                    raise NeverRun(
                        f"{filler.place}: it waits for the stream {filler.name}, of which no run "
                        "is in this lake: run its ingest, then fill again. Stages before fill do not wait"
                    )
                _require(filler, DeltaTable(f"{root}/events"))
                self._ledger = Ledger(root)
            book = self._ledger.snapshot([EVENTS[0]])
        return {hour: entry for hour, entry in book.series(*EVENTS).items() if hour in book.required_hours}

    def pinned(self) -> Rows:
        from transom.storage.store import PinnedTables, Store

        root, filler = self._root, self._filler
        version = DeltaTable(f"{root}/events").version()

        def rows(spark: "SparkSession", hours: Collection[datetime]) -> "DataFrame":
            pins = PinnedTables(Store(spark, root), {"events": version})
            return _declared(pins.read("events", hours), filler)

        return rows


@contextmanager
def _reading(filler: ExternalSource, uri: str) -> Iterator[None]:
    """Says in one line what cannot be read, and where the stream's file names it.

    Raises:
        LakeError: instead of what a library raises.
    """
    try:
        yield
    except LakeError:
        raise
    except (DeltaError, pa.ArrowException, OSError) as error:
        raise LakeError(f"{filler.place}: {uri} cannot be read: {one_line_message(error)}") from error


TYPES: Mapping[str, tuple[Callable[[Any], bool], ...]] = {
    "string": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    "integer": (pa.types.is_integer,),
    "number": (pa.types.is_floating, pa.types.is_decimal, pa.types.is_integer),
    "boolean": (pa.types.is_boolean,),
    "timestamp": (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,),
}
"""Which types of a table's columns are what is declared."""


def _require(filler: ExternalSource, table: DeltaTable) -> None:
    """Looks for what is declared.

    Raises:
        LakeError: there is no such column, or it has another type; or columns have other names in the files.
    """
    mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mapping != "none":
        raise LakeError(
            f"{filler.place}: {filler.name} has its columns under other names in its files "
            f"(delta.columnMapping.mode is {mapping}), which is not read"
        )
    held = {column.name: column.type for column in pa.schema(table.schema().to_arrow())}
    wanted = {} if filler.time is None else {f"{filler.place}.time": (filler.time, "timestamp")}
    wanted |= {f"{filler.place}.columns.{c.name}": (c.paths[0], c.type) for c in filler.columns}
    for place, (column, kind) in wanted.items():
        if column not in held:
            raise LakeError(f"{place}: {filler.name} has no column {column!r}{did_you_mean(column, held)}")
        if not any(fits(held[column]) for fits in TYPES[kind]):
            raise LakeError(
                f"{place}: {column} must be {_a(kind)}; in {filler.name} it is {_a(str(held[column]))}"
                + (", which says no zone" if pa.types.is_timestamp(held[column]) else "")
            )


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _of_files(filler: ExternalSource, table: DeltaTable) -> Hours:
    """What each hour is made of, as the sum of a hash for each file that reaches into it."""
    files = pa.table(table.get_add_actions(flatten=True))
    changes: dict[datetime, int] = {}
    deleted = _deleted(table)
    for file in files.to_pylist():
        if file["num_records"] is not None and file["num_records"] in (
            0,
            file.get(f"null_count.{filler.time}"),
        ):
            continue
        first, last = (file.get(f"{end}.{filler.time}") for end in ("min", "max"))
        if first is None or last is None:
            rule = "the log of the table must say between which times each file lies, which Delta keeps of a"
            raise LakeError(
                f"{filler.place}.time: {rule} table's first 32 columns; it does not of {filler.time} in "
                f"{file['path']}"
            )
        said = f"{file['path']} {deleted.get(file['path'].rpartition('/')[2], '')}"
        number = int.from_bytes(hashlib.sha256(said.encode()).digest()[: BITS // 8])
        behind = hour_of(last.astimezone(UTC)) + HOUR
        begin = hour_of(first.astimezone(UTC))
        changes[begin] = changes.get(begin, 0) + number
        changes[behind] = changes.get(behind, 0) - number
    hours: dict[datetime, PartitionState] = {}
    held, bounds = 0, sorted(changes)
    for start, end in pairwise(bounds):
        held = (held + changes[start]) % 2**BITS
        entry = PartitionState("published", "", digest=f"{held:032x}")
        hours |= {start + n * HOUR: entry for n in range((end - start) // HOUR)}
    return hours


def _deleted(table: DeltaTable) -> Mapping[str, str]:
    """A hash of which rows of a file are deleted, where the table notes that beside its files."""
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    rows = pa.table(table.deletion_vectors()).to_pylist()
    return {
        row["filepath"].rpartition("/")[2]: hashlib.sha256(bytes(row["selection_vector"])).hexdigest()
        for row in rows
    }


def _inside(time: str, hours: Iterable[datetime]) -> Any:
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    moment = F.col(f"`{time}`")
    stretches = [(moment >= F.lit(s.start)) & (moment < F.lit(s.end)) for s in merge_hours(hours)]
    return reduce(Column.__or__, stretches, F.lit(False))


def _declared(rows: "DataFrame", filler: ExternalSource) -> "DataFrame":
    """Rows with the declared columns under their names there, and the time as that of events."""
    from pyspark.sql import functions as F

    columns = [F.col(f"`{c.paths[0]}`").cast(SPARK_TYPES[c.type]).alias(c.name) for c in filler.columns]
    time = [] if filler.time is None else [F.col(f"`{filler.time}`").alias(TIME)]
    return rows.select(*time, *columns)
