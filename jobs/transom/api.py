"""What stands in a lake, for notebooks and pages: `read(lake, stream)` is the one door.

web = read("lake", "schemas/streams/web.yaml")
web.table("aggregates", start, end).to_pandas()
web.horizon({"client": "10.0.0.1"}, until, "90 minutes")
frequency("lake", "schemas/streams/web.yaml", "pages", "/index.html", until)
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from numbers import Integral, Real
from os import PathLike, fspath
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from transom.app.freshness import lineage_of, reason
from transom.app.run_stage import root_of
from transom.core.durations import parse_duration
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR, Interval, hour_of, micros, number_of
from transom.core.partitions import PartitionKey
from transom.engine.hours import quoted
from transom.features.aggregates.horizon import Figures, Horizon
from transom.features.aggregates.resolve import block_of
from transom.features.aggregates.spec import Aggregation
from transom.features.frequency.algorithm.window_sketch import WindowSketch
from transom.features.frequency.queries import Answer, frequency_of, sketch_of
from transom.features.frequency.resolve import FrequencyBlock, frequency_block_of
from transom.features.frequency.spec import Frequency
from transom.features.items import validate as item_rules
from transom.features.registry import FEATURES, INGEST_OUTLETS
from transom.findings import store as findings
from transom.findings.from_ledger import Finding
from transom.formats.record_format import FieldType
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.errors import did_you_mean
from transom.storage.store import Store
from transom.storage.tables import ATTEMPTS, in_hours_sql, instant, query
from transom.stream import Stream, load

RESULTS = (*INGEST_OUTLETS, *(table for feature in FEATURES for table in feature.outlets), "findings")
"""The tables that carry a promise of form; those of state are private."""

ITEM_PYTHON_TYPES: dict[FieldType, type] = {**item_rules.TYPES, "timestamp": datetime}
"""Types of the values of an item that is asked for."""
T = TypeVar("T")


class StaleDataError(LookupError):
    """What is asked for is not there, or is out of date; the message says which hour, and why."""


class UnknownKey(LookupError):
    """A key of which no hour that stands has a record; the message says which, and of which block."""


def read(lake: str | PathLike[str], stream: str | PathLike[str] | Stream) -> "Results":
    """Opens what a lake holds of a stream.

    Args:
        lake: the folder or address that holds the tables of streams.
        stream: the stream's file.

    Raises:
        SpecificationError: the file says something that cannot be.
    """
    declared = stream if isinstance(stream, Stream) else load(fspath(stream))
    return Results(root_of(fspath(lake), declared), declared)


@dataclass(frozen=True)
class Results:
    """What a lake holds of a stream.

    Attributes:
        root: the folder of the stream's tables.
    """

    root: str
    stream: Stream

    def table(self, name: str, start: datetime | None = None, end: datetime | None = None) -> pa.Table:
        """The rows of a table as they stand, of the hours in `[start, end)`.

        Which hours are fresh `transom status` says.

        Raises:
            KeyError: it is no table of results.
            NotFresh: no run has made it.
        """
        if name not in RESULTS:
            raise KeyError(f"no table of results {name!r}{did_you_mean(name, RESULTS)}")
        bounds = ((">=", start), ("<", end))
        terms = [f"hour {sign} {instant(_with_zone(moment))}" for sign, moment in bounds if moment]
        return self._rows(name, terms)

    def findings(self, interval: Interval | None = None) -> list[Finding]:
        """What a person is told, the worst first.

        Args:
            interval: only what overlaps it, and what belongs to no hour; None is everything.
        """
        return findings.findings(self.root, interval)

    def horizon(
        self, key: Mapping[str, Any], until: datetime, h: timedelta | str, block: str | None = None
    ) -> dict[str, Any] | None:
        """The figures of one key over `[until - h, until)`, without Spark.

        They are those that a level of range `h` would report at `until`: equal to a recomputation from the
        events (Patroumpas and Sellis, continuous reports). Both ends lie on granules of the block, multiples
        of the greatest common divisor of its slides and an hour, and on units of its lines.

        Args:
            key: a value for each column of the block's key; None is null.
            until: the end, outside; with a zone.
            h: how far back, as "90 minutes" or a timedelta.
            block: of `aggregates`; need not be named where there is one.

        Returns:
            The columns of `aggregates` but level and hour; `complete` is False where an hour is incomplete.
            None where the key has no record in the window, and has one in another hour.

        Raises:
            ValueError: an end lies inside a granule; the key has other columns, or a value of another type
                than its column; no such block.
            UnknownKey: no hour of the block has a record of the key.
            NotFresh: granules of an hour are not there, or are out of date, or nobody has asked for the hour
                in which it ends. Hours before that one which nobody has asked for count as empty.
        """
        window = self._window(until, h, block)
        if key.keys() != window.block.key.keys():
            known = ", ".join(window.block.key) or "none"
            raise ValueError(f"key: must have a value for each of its columns ({known}); got {dict(key)}")
        for name, value in key.items():
            _require_type(name, value, self.stream.event_types[name])
        of_key = [f"block = {_literal(window.block.name)}"]
        of_key += [
            f"{_name(column)} IS NULL" if value is None else f"{_name(column)} = {_literal(value)}"
            for column, value in key.items()
        ]
        terms = [*of_key, in_hours_sql(window.hours)]
        rows, incomplete = self._of_granules(window, lambda: self._rows("granules", terms, window.columns))
        made = Figures(window, incomplete)(rows.to_batches())
        found: list[dict[str, Any]] = pa.Table.from_batches(made, window.schema).to_pylist()
        if found:
            return found[0]
        if key and not self._rows("granules", of_key, ["hour"]).num_rows:
            said = ", ".join(f"{column} {value!r}" for column, value in key.items())
            raise UnknownKey(f"key: no hour of block {window.block.name} has a record of {said}")
        return None

    def horizons(
        self, spark: SparkSession, until: datetime, h: timedelta | str, block: str | None = None
    ) -> DataFrame:
        """The same of every key that has a record, by Spark.

        Raises:
            ValueError, NotFresh: as `horizon`.
        """
        window = self._window(until, h, block)
        # The version is pinned: rows may be asked for when a run has replaced them.
        pins, incomplete = self._of_granules(window, lambda: Store(spark, self.root).pin(["granules"]))
        rows = pins.read("granules", window.hours).where(F.col("block") == window.block.name)
        rows = rows.select(*quoted(window.columns))
        by_key = rows.repartition(*quoted(window.block.key)) if window.block.key else rows.repartition(1)
        return by_key.mapInArrow(Figures(window, incomplete), from_arrow_schema(window.schema))

    def frequency(self, sketch: str, item: Any, at: datetime) -> Answer:
        """How often an item was seen in the window that ends at a time, without Spark.

        Any item may be asked for, whether or not some hour has kept it: `estimate` is that of its sketch,
        within what is known of it besides (Rivetti, Busnel and Mostefaoui, listings 2.1 to 3.4).

        Args:
            sketch: a block of `frequency`.
            item: a value for each of its columns, a tuple or a list in their order; of one column the value
                itself.
            at: the end of the window, outside; the end of an hour, with a zone.

        Raises:
            ValueError: no such block, an item of other columns or types, one so long that it is passed over,
                or a time that is no hour's end.
            NotFresh: an hour of the window is not there, or is out of date, or nobody has asked for the last
                one. Hours before that one which nobody has asked for count as empty.
        """
        block, last = self._sketched(sketch, at)
        values = _values(item, block, self.stream)
        is_item = [
            f"{_name(name)} = {_literal(value)}" for name, value in zip(block.item, values, strict=True)
        ]
        return frequency_of(block, values, *self._of_sketch(block, last, is_item), number_of(last))

    def sketch(self, sketch: str, at: datetime) -> WindowSketch:
        """What the sketch of a block holds at a time: others of the same shape, hashes, window and end may be
        added to it, as those of another stream or lake (section 3.5), and any item be asked for.

        Args:
            sketch, at: as of `frequency`.

        Raises:
            ValueError, NotFresh: as `frequency`.
        """
        block, last = self._sketched(sketch, at)
        return sketch_of(block, *self._of_sketch(block, last, ["FALSE"]), number_of(last))

    def _sketched(self, sketch: str, at: datetime) -> tuple[FrequencyBlock, datetime]:
        """A block, and the hour with which the window ends."""
        if sketch not in self.stream.blocks(Frequency):
            known = self.stream.blocks(Frequency)
            raise ValueError(f"sketch: frequency has no block {sketch!r}{did_you_mean(sketch, known)}")
        end = _with_zone(at)
        if end != hour_of(end):
            raise ValueError(f"at: must be the end of an hour; got {at.isoformat()}")
        return frequency_block_of(self.stream, sketch), end - HOUR

    def _of_sketch(
        self, block: FrequencyBlock, last: datetime, is_item: Sequence[str]
    ) -> tuple[pa.Table, pa.Table | None]:
        """The rows of the hours of a window, of items that meet every one of some conditions; and what cells
        hold."""
        hours = [last - back * HOUR for back in range(block.back, -1, -1)]
        nodes = [PartitionKey("frequency", block.name, "tick_matrices", hour) for hour in hours]
        held = [PartitionKey("frequency", block.name, "cells", last)] if block.chained else []
        of_block = f"block = {_literal(block.name)}"
        wanted = f"(\"row\" IN ('hour', 'rest') OR (\"row\" = 'item' AND {' AND '.join(is_item)}))"

        def take() -> tuple[pa.Table, pa.Table | None]:
            rows = self._rows("tick_matrices", [of_block, in_hours_sql(hours), wanted])
            left = self._rows("cells", [of_block, in_hours_sql([last])]) if held else None
            return rows, left

        found, _ = self._read_consistently([*nodes, *held], take)
        return found

    def _rows(self, name: str, terms: Iterable[str], columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of a table that meet every one of some conditions; of all columns, or of some."""
        try:
            stored = DeltaTable(f"{self.root}/{name}")
        except TableNotFoundError:
            raise StaleDataError(
                f"no run of {self.stream.name} has made a table {name}: {self.root}"
            ) from None
        schema = pa.schema(stored.schema().to_arrow())
        if columns is not None:
            schema = pa.schema([schema.field(column) for column in columns])
        where = " AND ".join(terms) or "TRUE"
        found = query(stored, f"SELECT {', '.join(map(_name, schema.names))} FROM t WHERE {where}")
        # What reads the files has types of its own for text.
        return found.cast(schema).combine_chunks()

    def _window(self, until: datetime, h: timedelta | str, block: str | None) -> Horizon:
        blocks = list(self.stream.blocks(Aggregation))
        if block is None and len(blocks) != 1:
            raise ValueError(f"block: must be one of aggregates': {', '.join(blocks) or 'it has none'}")
        name = block or blocks[0]
        if name not in blocks:
            raise ValueError(f"block: aggregates has no block {name!r}{did_you_mean(name, blocks)}")
        back = parse_duration(h) if isinstance(h, str) else h
        return Horizon.of(block_of(self.stream, name), _with_zone(until), back)

    def _of_granules(self, window: Horizon, take: Callable[[], T]) -> tuple[T, Int64s]:
        """The same as `_read_consistently` of the granules of a window."""
        nodes = [PartitionKey("aggregates", window.block.name, "granules", hour) for hour in window.hours]
        return self._read_consistently(nodes, take)

    def _read_consistently(self, nodes: Sequence[PartitionKey], take: Callable[[], T]) -> tuple[T, Int64s]:
        """What is taken of nodes that stand, and stood when it had been taken; the last one is due.

        Returns:
            And which of their hours are incomplete, in microseconds.
        """
        if not DeltaTable.is_deltatable(f"{self.root}/hours"):
            raise StaleDataError(f"no run of {self.stream.name} is in this lake: {self.root}")
        ledger = Ledger(self.root)
        book = ledger.snapshot()
        for _ in range(ATTEMPTS):
            self._require_fresh(book, nodes)
            taken, before = take(), [book.get(node) for node in nodes]
            book = ledger.snapshot()
            if before == [book.get(node) for node in nodes]:
                incomplete = [node.hour for node in nodes if node in book and not book[node].complete]
                return taken, np.array([micros(hour) for hour in incomplete], dtype=np.int64)
        raise StaleDataError(f"{nodes[0]} and later hours were replaced {ATTEMPTS} times meanwhile")

    def _require_fresh(self, book: LedgerSnapshot, nodes: Sequence[PartitionKey]) -> None:
        last = nodes[-1].hour
        if last not in book.required_hours:
            raise StaleDataError(f"nobody has asked for {last:%Y-%m-%dT%H:%M}, in which the window ends")
        lineage = lineage_of(self.stream, book)
        for node in nodes:
            # An hour before it that nobody asked for counts as empty, as in every table.
            if node.hour not in book.required_hours:
                continue
            entry = book.get(node)
            if entry is None:
                raise StaleDataError(f"{node.table} of {node} have not been computed")
            if entry.status != "published":
                raise StaleDataError(
                    f"{node.table} of {node} are {entry.status}{f': {entry.cause}' if entry.cause else ''}"
                )
            root = lineage.root(node)
            if root is not None:
                upstream = "" if root == node else f", as {reason(root, book)}"
                raise StaleDataError(
                    f"{node.table} of {node} are out of date{upstream}; `transom explain` says why"
                )


def frequency(
    lake: str | PathLike[str],
    stream: str | PathLike[str] | Stream,
    sketch: str,
    item: Any,
    at: datetime,
) -> Answer:
    """How often an item was seen in the window of a sketch that ends at an hour: see `Results.frequency`."""
    return read(lake, stream).frequency(sketch, item, at)


def _values(item: Any, block: FrequencyBlock, stream: Stream) -> tuple[Any, ...]:
    """An item as a value for each of its columns.

    Raises:
        ValueError: it is none.
    """
    values = tuple(item) if isinstance(item, tuple | list) else (item,)
    if len(values) != len(block.item):
        raise ValueError(f"item: must have a value for each of {', '.join(block.item)}; got {item!r}")
    for name, value in zip(block.item, values, strict=True):
        kind = stream.event_types[name]
        if type(value) is not ITEM_PYTHON_TYPES[kind]:
            raise ValueError(f"item: must be {item_rules.with_article(kind)} for {name}; got {value!r}")
        for rule in item_rules.why_invalid(name, value):
            raise ValueError(f"item: {rule}")
    for rule in item_rules.why_skipped(values):
        raise ValueError(f"item: {rule}")
    return values


def _with_zone(moment: datetime) -> datetime:
    if not isinstance(moment, datetime):
        raise ValueError(f"must be a datetime; got {moment!r}")
    if moment.utcoffset() is None:
        raise ValueError(f"must be a time with a zone; got {moment.isoformat()}")
    return moment.astimezone(UTC)


def _require_type(name: str, value: Any, kind: FieldType) -> None:
    """Check that a value of a key is of its column's type; None, which is null, is of every type.

    Raises:
        ValueError: it is not; SQL would compare it all the same, as '443' with 443.
    """
    fits: dict[FieldType, bool] = {
        "string": isinstance(value, str),
        "integer": isinstance(value, Integral) and not isinstance(value, bool | np.bool_),
        "number": isinstance(value, Real) and not isinstance(value, bool | np.bool_),
        "boolean": isinstance(value, bool | np.bool_),
        "timestamp": isinstance(value, datetime),
    }
    if value is not None and not fits[kind]:
        raise ValueError(f"key: must be {item_rules.with_article(kind)} for {name}; got {value!r}")


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _literal(value: Any) -> str:
    """A value as an SQL condition writes it."""
    if isinstance(value, datetime):
        return instant(_with_zone(value))
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).upper()
    if isinstance(value, Real):
        number = int(value) if isinstance(value, Integral) else float(value)
        if not math.isfinite(number):
            raise ValueError(f"key: a number must be finite; got {value}")
        return repr(number)
    return "'" + str(value).replace("'", "''") + "'"
