"""Blocks of frequency, resolved against the columns of their stream."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from transom.core.durations import microseconds
from transom.core.intervals import HOUR_LENGTH, micros
from transom.features.frequency.algorithm.params import Shape
from transom.features.frequency.spec import CHAINED, Frequency
from transom.features.items import validate as item_rules
from transom.spec.stream import Stream
from transom.storage.tables import SPARK_TYPES

EVER = 24 * 366 * 100
"""Hours back that vanilla reads cells."""


@dataclass(frozen=True)
class FrequencyBlock:
    """A block of frequency, with types and units.

    Attributes:
        name: the name of the block.
        item: the columns of an item, with their Spark types.
        where: a condition on the events that count, as Spark SQL; None for all events.
        shape: the shape of a matrix.
        variant: as in `spec.Frequency`.
        tick: the length of a tick, in microseconds; it divides an hour.
        steps: the number of ticks of the window.
        hours: the number of hours of the window.
        back: the number of hours before an hour that its window is computed from.
        start: the first hour that counts, in microseconds since 1970; None for any.
        tau: as in `spec.Frequency`.
        mu: as in `spec.Frequency`.
        watched: items that are counted exactly.
        top: as in `spec.Frequency`.
        capacity: the number of items that each hour keeps.
        min_share: the minimum share of the records of a heavy item.
    """

    name: str
    item: Mapping[str, str]
    where: str | None
    shape: Shape
    variant: str
    tick: int
    steps: int
    hours: int
    back: int
    start: int | None
    tau: Fraction
    mu: Fraction
    watched: tuple[tuple[Any, ...], ...]
    top: int
    capacity: int
    min_share: Fraction

    @property
    def chained(self) -> bool:
        """Whether an hour is computed from the previous one."""
        return self.variant in CHAINED

    @property
    def cells_back(self) -> int:
        """The number of hours back that cells are read. Cells from before a window have no record in it."""
        return EVER if self.variant == "vanilla" else self.hours

    @property
    def ticks(self) -> int:
        """The number of ticks of an hour."""
        return self.steps // self.hours

    @property
    def first_hour(self) -> int:
        """The number of the first hour that counts, since 1970."""
        return (self.start or 0) // HOUR_LENGTH


def frequency_block_of(stream: Stream, name: str) -> FrequencyBlock:
    """Return a block of the stream file, resolved against the columns of the stream."""
    block = stream.blocks(Frequency)[name]
    where = stream.where_of(block)
    return FrequencyBlock(
        name=name,
        item={column: SPARK_TYPES[stream.event_types[column]] for column in block.item},
        where=where.sql if where else None,
        shape=block.shape,
        variant=block.variant,
        tick=microseconds(block.tick),
        steps=block.steps,
        hours=block.hours,
        back=block.back,
        start=None if block.start is None else micros(block.start),
        tau=block.exact_tau,
        mu=block.exact_mu,
        watched=tuple(item_rules.listed(block.watch)),
        top=block.top,
        capacity=block.capacity,
        min_share=Fraction(str(block.min_share)),
    )
