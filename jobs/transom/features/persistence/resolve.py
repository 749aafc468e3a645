"""Blocks of persistence, resolved against the columns of their stream."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transom.core.durations import microseconds
from transom.core.intervals import HOUR
from transom.features.items import validate as item_rules
from transom.features.persistence.algorithm.vectorised import TrackerConfig
from transom.features.persistence.spec import Persistence
from transom.formats.record_format import Field
from transom.spec.stream import Stream
from transom.storage.external_source import ExternalSource
from transom.storage.filesystem import absolute
from transom.storage.tables import SPARK_TYPES


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
        networks: networks whose addresses are not reported, by a column of the item.
        known_table: a table of items that are not reported, if any.
        back: the number of hours back that state is read.
    """

    name: str
    item: Mapping[str, str]
    where: str | None
    tracking: TrackerConfig
    seeds: tuple[int, ...]
    watched: tuple[tuple[Any, ...], ...]
    ignored: tuple[tuple[Any, ...], ...]
    networks: Mapping[str, tuple[str, ...]]
    known_table: ExternalSource | None
    back: int


def persistence_block_of(stream: Stream, name: str) -> PersistenceBlock:
    """Return a block of the stream file, resolved against the columns of the stream."""
    block = stream.blocks(Persistence)[name]
    where, table = stream.where_of(block), block.ignore.table
    known_table = None
    if table is not None:
        sources = table.columns or {column: column for column in block.item}
        fields = tuple(Field(column, (of,), stream.event_types[column]) for column, of in sources.items())
        place = f"persistence.{name}.ignore.table"
        known_table = ExternalSource(place, table.path, absolute(table.path), None, fields)
    return PersistenceBlock(
        name,
        {column: SPARK_TYPES[stream.event_types[column]] for column in block.item},
        where.sql if where else None,
        TrackerConfig(block.params, microseconds(block.slot)),
        tuple(range(block.seed, block.seed + block.instances)),
        tuple(item_rules.listed(block.watch)),
        tuple(item_rules.listed(block.ignore.items)),
        block.ignore.networks,
        known_table,
        block.state_lookback // HOUR,
    )
