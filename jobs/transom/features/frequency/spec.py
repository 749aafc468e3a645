"""How often items are seen in a sliding window, by Count-Min sketches (Rivetti, Busnel and Mostefaoui)."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt

from transom.core.durations import Duration, format_duration
from transom.core.intervals import HOUR
from transom.features.frequency.algorithm.params import SEEDS, WIDEST, Shape
from transom.features.items.spec import ItemLiteral
from transom.spec.base import Hour, Model, NonEmptyStr, Number
from transom.spec.errors import Issue, find_duplicates

Variant = Literal["perfect", "simple", "proportional", "splitter", "vanilla"]
NEVER_BELOW = ("perfect", "vanilla")
"""Variants without an estimate that is too small."""
CHAINED = ("splitter", "vanilla")
"""Variants in which an hour is computed from the previous one."""
MIN_SHARE = 1e-6
"""Smallest value of `tau` and `min_share`."""
CAPACITY_FACTOR = 10
"""The number of items that each hour keeps, as a multiple of `top`."""


class Frequency(Model):
    """A block of `frequency`: how often items are seen in the last hours."""

    title: NonEmptyStr | None = None
    """For people: what is the matter, with columns of the item, `since` and `window_end` in braces."""
    severity: Literal["high", "medium", "low"] = "low"
    """How bad it is."""
    finding: StrictBool = True
    """Whether heavy items are findings."""
    item: Annotated[tuple[str, ...], Field(min_length=1)]
    """The columns that make an item, such as a path, or a pair of source and destination. A record that lacks
    one of them has no item."""
    where: NonEmptyStr | None = None
    """Which events are counted at all; the stream's where nothing is said."""
    window: Duration
    """How long the window is, which is reported every hour: whole hours."""
    tick: Duration
    """How long a tick is, at whose ends the window moves: it divides an hour. Ticks count from 1970, in
    UTC."""
    epsilon: Number
    """By which share of the window's records an estimate may be too large, above 0 and below 1. A matrix has
    e / epsilon columns, rounded up."""
    delta: Number
    """How likely it is larger still, above 0 and below 1. A matrix has log2(1 / delta) rows, rounded up."""
    variant: Variant = "perfect"
    """How records that leave the window are forgotten: perfect, which keeps the ticks of the window; those of
    the paper that keep less, simple, proportional and splitter; or never, vanilla."""
    start: Hour | None = None
    """The first hour, UTC, that counts; all where nothing is said. Splitter and vanilla depend on it."""
    tau: Number = 0.05
    """Of splitter: with how many of M / columns records a sub-cell is looked at, from 0.000001 to 1."""
    mu: Number = 1.5
    """Of splitter: by which factor rates may differ that are taken for one, 1 or more."""
    seed: StrictInt = 0
    """Of the hashes."""
    top: Annotated[StrictInt, Field(ge=1, le=10_000)] = 20
    """How many items are told of, the most frequent first."""
    min_share: Number = 0.05
    """With which share of the window's records, by its estimate, an item is heavy, and a finding, whatever
    its rank; from 0.000001 to 1."""
    watch: tuple[ItemLiteral, ...] = ()
    """Items that are counted exactly, and told of whenever the window has them, whatever their rank: of one
    column its values, of several a list for each, in the order of the columns. Not of vanilla."""
    memory: Annotated[StrictInt, Field(ge=1, le=8192)] = 1024
    """How much memory, in MiB, the matrices and the items may take that a run looks at together."""

    @property
    def steps(self) -> int:
        """The number of ticks of the window, N."""
        return self.window // self.tick

    @property
    def shape(self) -> Shape:
        """The shape of a matrix."""
        return Shape.for_error(self.epsilon, self.delta, self.seed)

    @property
    def exact_tau(self) -> Fraction:
        """`tau` as it is written."""
        return Fraction(str(self.tau))

    @property
    def exact_mu(self) -> Fraction:
        """`mu` as it is written."""
        return Fraction(str(self.mu))

    @property
    def hours(self) -> int:
        """The number of hours of the window."""
        return self.window // HOUR

    @property
    def back(self) -> int:
        """The number of hours before an hour that its window is computed from."""
        return (2 * self.hours if self.variant == "proportional" else self.hours) - 1

    @property
    def capacity(self) -> int:
        """The number of items that each hour keeps: enough for all with a share of `min_share` in the
        hour."""
        return max(CAPACITY_FACTOR * self.top, math.ceil(1 / Fraction(str(self.min_share))))

    @property
    def never_below(self) -> bool:
        """Whether no estimate is too small."""
        return self.variant in NEVER_BELOW

    def _rules(self) -> Iterator[Issue]:
        tick, window = self.tick, self.window
        if not tick or HOUR % tick:
            yield Issue("tick", f"must divide an hour; got {format_duration(tick)}")
            return
        if window < tick or window % tick:
            rule = f"must be a whole number of ticks of {format_duration(tick)}"
            yield Issue("window", f"{rule}; got {format_duration(window)}")
            return
        if window % HOUR:
            yield Issue("window", f"must be whole hours, as it is reported by; got {format_duration(window)}")
            return
        yield from find_duplicates("item", self.item)
        for field, value in (("epsilon", self.epsilon), ("delta", self.delta)):
            if not 0 < value < 1:
                yield Issue(field, f"must be above 0 and below 1; got {value:g}")
                return
        if math.e / self.epsilon > WIDEST:
            yield Issue("epsilon", f"gives a matrix of more than 2^32 columns; got {self.epsilon:g}")
        for field, value in (("tau", self.tau), ("min_share", self.min_share)):
            if not MIN_SHARE <= value <= 1:
                yield Issue(field, f"must be from {MIN_SHARE:f} to 1; got {value:g}")
        if self.mu < 1:
            yield Issue("mu", f"must be 1 or more, or every rate is another one; got {self.mu:g}")
        for field, variants, rule in (
            ("tau", ("splitter",), "is of the variant splitter"),
            ("mu", ("splitter",), "is of the variant splitter"),
            ("start", CHAINED, "is of the variants splitter and vanilla"),
        ):
            if field in self.model_fields_set and self.variant not in variants:
                yield Issue(field, f"{rule} alone; got variant {self.variant}")
        if self.watch and self.variant == "vanilla":
            yield Issue("watch", "is of the variants that have windows, which vanilla has not")
        if not 0 <= self.seed < SEEDS:
            yield Issue("seed", f"must be from 0 up to 2^32; got {self.seed}")
