"""The blocks of persistence of a stream, resolved against its columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from transom.core.durations import microseconds
from transom.core.intervals import HOUR, number_of
from transom.features.items import validate as item_rules
from transom.features.persistence.algorithm.vectorised import TrackerConfig
from transom.features.persistence.spec import Persistence, state_lookback
from transom.formats.record_format import Field
from transom.spec.stream import Stream
from transom.storage.external_source import ExternalSource
from transom.storage.filesystem import absolute
from transom.storage.tables import SPARK_TYPES


@dataclass(frozen=True)
class PersistenceBlock:
    """One block of persistence of a stream, with everything that its columns are derived from.

    Attributes:
        item: the columns of an item, with their Spark types.
        where: which events are seen, as Spark SQL.
        seeds: of the hash of each instance.
        watched: items that are counted exactly.
        ignored: items that are not reported.
        networks: addresses that are not, by a column of the item.
        known_table: a table of items that are not.
        back: how many hours back state is read.
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

    def reports(self, hour: datetime) -> bool:
        """Whether a window is reported in an hour."""
        return self.tracking.reports(number_of(hour))


def persistence_block_of(stream: Stream, name: str) -> PersistenceBlock:
    """A block of the stream file, resolved against its columns."""
    said = stream.blocks(Persistence)[name]
    where = stream.where_of(said)
    return PersistenceBlock(
        name,
        {column: SPARK_TYPES[stream.event_types[column]] for column in said.item},
        where.sql if where else None,
        TrackerConfig(said.params, microseconds(said.slot)),
        tuple(range(said.seed, said.seed + said.instances)),
        tuple(item_rules.listed(said.watch)),
        tuple(item_rules.listed(said.ignore.items)),
        said.ignore.networks,
        _known_table(stream, name),
        state_lookback(said) // HOUR,
    )


def _known_table(stream: Stream, name: str) -> ExternalSource | None:
    """The table of items that are not reported, if there is one."""
    said = stream.blocks(Persistence)[name]
    known = said.ignore.table
    if known is None:
        return None
    named = known.columns or {column: column for column in said.item}
    columns = tuple(Field(column, (name,), stream.event_types[column]) for column, name in named.items())
    return ExternalSource(f"persistence.{name}.ignore.table", known.path, absolute(known.path), None, columns)
