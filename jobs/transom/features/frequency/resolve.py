"""The blocks of frequency of a stream, resolved against its columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from transom.core.durations import microseconds
from transom.core.intervals import micros
from transom.features.frequency.algorithm.reference import Shape
from transom.features.frequency.spec import CHAINED, Frequency
from transom.features.items import validate as item_rules
from transom.spec.stream import Stream
from transom.storage.tables import SPARK_TYPES

EVER = 24 * 366 * 100
"""Hours that vanilla looks back for the cells of an earlier one."""


@dataclass(frozen=True)
class FrequencyBlock:
    """One block of frequency of a stream, with everything that its columns are derived from.

    Attributes:
        item: the columns of an item, with their Spark types.
        where: which events are counted, as Spark SQL.
        tick: its length in microseconds, which divides an hour.
        steps: ticks of the window, N.
        hours: of the window.
        back: how many hours before one its window may be made of.
        start: the first hour that counts, in microseconds since 1970; None is any.
        watched: items that are counted exactly.
        kept: how many items of each hour are kept to be ranked.
        min_share: with which share of the records an item is heavy.
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
    kept: int
    min_share: Fraction

    @property
    def chained(self) -> bool:
        """Whether an hour is computed from the one before it."""
        return self.variant in CHAINED

    @property
    def cells_back(self) -> int:
        """How many hours back the cells of an hour count; those of hours before the window hold nothing."""
        return EVER if self.variant == "vanilla" else self.hours

    @property
    def ticks(self) -> int:
        """How many ticks an hour has."""
        return self.steps // self.hours


def frequency_block_of(stream: Stream, name: str) -> FrequencyBlock:
    """A block of the stream file, resolved against its columns."""
    said = stream.blocks(Frequency)[name]
    where = stream.where_of(said)
    return FrequencyBlock(
        name=name,
        item={column: SPARK_TYPES[stream.event_types[column]] for column in said.item},
        where=where.sql if where else None,
        shape=said.shape,
        variant=said.variant,
        tick=microseconds(said.tick),
        steps=said.steps,
        hours=said.hours,
        back=said.back,
        start=None if said.start is None else micros(said.start),
        tau=said.exact_tau,
        mu=said.exact_mu,
        watched=tuple(item_rules.listed(said.watch)),
        top=said.top,
        kept=said.kept,
        min_share=Fraction(str(said.min_share)),
    )
