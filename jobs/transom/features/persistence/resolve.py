"""Blocks of persistence, resolved against the columns of their stream."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from transom.core.durations import microseconds
from transom.core.intervals import HOUR
from transom.features.items import validate as item_rules
from transom.features.persistence.algorithm.vectorised import TrackerConfig
from transom.features.persistence.spec import KnownTable, Persistence
from transom.formats.record_format import Field
from transom.spec.stream import Stream
from transom.storage.external_source import ExternalSource
from transom.storage.filesystem import absolute
from transom.storage.tables import SPARK_TYPES


@dataclass(frozen=True)
class KnownItems:
    """Items that are not reported.

    Attributes:
        until: the end of the reports that lack them; None if there is none.
        items: the items, each with a value for every column.
        networks: networks whose addresses are not reported, by a column of the item.
        table: a table of such items, if any.
    """

    until: datetime | None
    items: tuple[tuple[Any, ...], ...]
    networks: Mapping[str, tuple[str, ...]]
    table: ExternalSource | None


@dataclass(frozen=True)
class PersistenceBlock:
    """A block of persistence, with types and units.

    Attributes:
        name: the name of the block.
        item: the columns of an item, with their Spark types.
        where: a condition on the events that count, as Spark SQL; None for all events.
        tracking: the parameters of the algorithm.
        seeds: the seed of the hash of each instance.
        watched: items that are counted exactly.
        ignored: items that are not reported.
        period: the number of hours from one report to the next.
        back: the number of hours back that state is read.
    """

    name: str
    item: Mapping[str, str]
    where: str | None
    tracking: TrackerConfig
    seeds: tuple[int, ...]
    watched: tuple[tuple[Any, ...], ...]
    ignored: tuple[KnownItems, ...]
    period: int
    back: int


def persistence_block_of(stream: Stream, name: str) -> PersistenceBlock:
    """Return a block of the stream file, resolved against the columns of the stream."""
    block = stream.blocks(Persistence)[name]
    where = stream.where_of(block)
    return PersistenceBlock(
        name,
        {column: SPARK_TYPES[stream.event_types[column]] for column in block.item},
        where.sql if where else None,
        TrackerConfig(block.params, microseconds(block.slot)),
        tuple(range(block.seed, block.seed + block.instances)),
        tuple(item_rules.listed(block.watch)),
        tuple(
            KnownItems(
                known.until,
                tuple(item_rules.listed(known.items)),
                known.networks,
                _known_table(stream, block, f"persistence.{name}.{place}.table", known.table),
            )
            for place, known in block.ignore_lists()
        ),
        block.report_period // HOUR,
        block.state_lookback // HOUR,
    )


def _known_table(
    stream: Stream, block: Persistence, place: str, table: KnownTable | None
) -> ExternalSource | None:
    if table is None:
        return None
    sources = table.columns or {column: column for column in block.item}
    fields = tuple(Field(column, (of,), stream.event_types[column]) for column, of in sources.items())
    return ExternalSource(place, table.path, absolute(table.path), None, fields)
