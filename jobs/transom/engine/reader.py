"""Read fresh published rows for the queries of features, without Spark.

The rows of several tables and hours are consistent: their ledger rows are equal before and after reading.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from transom.core.exact_sums import Int64s
from transom.core.intervals import format_hour, micros
from transom.core.partitions import PartitionKey
from transom.engine.gate_text import format_root
from transom.ledger.freshness import Freshness
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.tables import ATTEMPTS, instant, query

T = TypeVar("T")


class StaleDataError(LookupError):
    """The rows do not exist or are not fresh. The message has the hour and the reason."""


class UnknownKey(LookupError):
    """No published hour has a record of a key. The message has the key and the block."""


@dataclass(frozen=True)
class Reader(ABC):
    """A reader of the tables of a stream.

    Attributes:
        root: the stream's folder in the lake.
        stream: the stream.
    """

    root: str
    stream: Stream

    @abstractmethod
    def freshness(self, snapshot: LedgerSnapshot) -> Freshness:
        """Return the freshness of the stream's partitions."""

    def ledger_snapshot(self) -> LedgerSnapshot:
        """Return the latest state of the ledger.

        Raises:
            StaleDataError: no run of the stream is in the lake.
        """
        if not DeltaTable.is_deltatable(f"{self.root}/ledger"):
            raise StaleDataError(f"no run of {self.stream.name} is in this lake: {self.root}")
        # Opened each time: a notebook may outlive a lake, and another one have the same versions.
        return Ledger(self.root, create=False).snapshot()

    def rows(self, table: str, terms: Iterable[str], columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of a table that meet all given SQL conditions.

        Args:
            table: the name of the table.
            terms: the conditions.
            columns: the columns to return. Default: all.

        Raises:
            StaleDataError: the table does not exist.
        """
        try:
            stored = DeltaTable(f"{self.root}/{table}")
        except TableNotFoundError:
            name = self.stream.name
            raise StaleDataError(f"no run of {name} has created a table {table}: {self.root}") from None
        schema = pa.schema(stored.schema().to_arrow())
        if columns is not None:
            schema = pa.schema([schema.field(column) for column in columns])
        where = " AND ".join(terms) or "TRUE"
        rows = query(stored, f"SELECT {', '.join(map(sql_name, schema.names))} FROM t WHERE {where}")
        # DataFusion returns text as string views.
        return rows.cast(schema).combine_chunks()

    def read_fresh(self, partitions: Sequence[PartitionKey], read: Callable[[], T]) -> tuple[T, Int64s]:
        """Return the result of a function that reads partitions, which are fresh before and after the call.

        Args:
            partitions: the partitions, ordered by hour; the last hour must be a requested one.
            read: reads their rows.

        Returns:
            The result, and the incomplete hours in microseconds since the epoch.

        Raises:
            StaleDataError: a partition is not published and fresh.
        """
        snapshot = self.ledger_snapshot()
        for _ in range(ATTEMPTS):
            self._require_fresh(snapshot, partitions)
            result, states = read(), [snapshot.get(partition) for partition in partitions]
            snapshot = self.ledger_snapshot()
            if states == [snapshot.get(partition) for partition in partitions]:
                hours = zip(partitions, states, strict=True)
                incomplete = [micros(key.hour) for key, state in hours if state and not state.complete]
                return result, np.array(incomplete, dtype=np.int64)
        raise StaleDataError(f"{partitions[0]} and later hours were replaced {ATTEMPTS} times meanwhile")

    def _require_fresh(self, snapshot: LedgerSnapshot, partitions: Sequence[PartitionKey]) -> None:
        last, required = partitions[-1].hour, snapshot.required_hours
        if last not in required:
            raise StaleDataError(f"no run has requested {format_hour(last)}, in which the window ends")
        freshness = self.freshness(snapshot)
        for partition in partitions:
            # Other hours count as empty, as in every table.
            if partition.hour in required and not freshness.is_readable(partition):
                state, root = snapshot.get(partition), freshness.root(partition)
                rows = f"{partition.table} of {partition}"
                if state is None:
                    raise StaleDataError(f"{rows} have not been computed")
                if state.status != "published":
                    reason = f": {state.reason}" if state.reason else ""
                    raise StaleDataError(f"{rows} are {state.status}{reason}")
                upstream = "" if root in (None, partition) else f", as {format_root(root, snapshot)}"
                raise StaleDataError(f"{rows} are out of date{upstream}; `transom explain` shows why")


def in_utc(moment: datetime) -> datetime:
    """Return a time in UTC.

    Raises:
        ValueError: the value is no datetime, or has no zone.
    """
    if not isinstance(moment, datetime):
        raise ValueError(f"must be a datetime; got {moment!r}")
    if moment.utcoffset() is None:
        raise ValueError(f"must be a time with a zone; got {moment.isoformat()}")
    return moment.astimezone(UTC)


def sql_name(column: str) -> str:
    """Return a quoted column name."""
    return '"' + column.replace('"', '""') + '"'


def sql_literal(value: Any) -> str:
    """Return a value as an SQL literal.

    Raises:
        ValueError: the value is a number that is not finite.
    """
    if isinstance(value, datetime):
        return instant(in_utc(value))
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).upper()
    if isinstance(value, Real):
        number = int(value) if isinstance(value, Integral) else float(value)
        if not math.isfinite(number):
            raise ValueError(f"key: a number must be finite; got {value}")
        return repr(number)
    return "'" + str(value).replace("'", "''") + "'"
