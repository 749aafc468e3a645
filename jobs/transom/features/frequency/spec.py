"""Frequent items of a sliding window, by Count-Min sketches (Rivetti, Busnel and Mostefaoui)."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt

from transom.core.durations import Duration, format_duration
from transom.core.intervals import HOUR
from transom.features.frequency.algorithm.params import SEEDS, WIDEST, Shape
from transom.features.items.spec import ItemLiteral, window_issue
from transom.spec.base import Hour, Model, NonEmptyStr, Number
from transom.spec.errors import Issue, find_duplicates

Variant = Literal["perfect", "simple", "proportional", "splitter", "vanilla"]
NEVER_BELOW = ("perfect", "vanilla")
"""Variants whose estimate is never too small."""
CHAINED = ("splitter", "vanilla")
"""Variants in which an hour is computed from the previous one."""
MIN_SHARE = 1e-6
"""Smallest value of `tau` and `min_share`."""
CAPACITY_FACTOR = 10
"""The minimum number of items that each hour keeps, as a multiple of `top`."""


class Frequency(Model):
    """A block of `frequency`: the most frequent items of the last hours, by a Count-Min sketch."""

    title: NonEmptyStr | None = None
    """The title of a finding. It may name columns of the item, `since` and `window_end` in braces."""
    severity: Literal["high", "medium", "low"] = "low"
    """The severity of the findings."""
    finding: StrictBool = True
    """Whether heavy items are findings."""
    item: Annotated[tuple[str, ...], Field(min_length=1)]
    """The columns of an item, such as a path, or a source and a target; at most 4,096 bytes together. A
    record that lacks one of them has no item."""
    where: NonEmptyStr | None = None
    """A condition on the events that count. Default: the stream's `where`."""
    window: Duration
    """The length of the window, in whole hours. It is reported every hour. A longer window reads more
    hours."""
    tick: Duration
    """The length of a tick, the step of the window; it divides an hour. Ticks count from 1970, in UTC. A
    longer tick needs fewer matrices; the window of `splitter` moves in coarser steps."""
    epsilon: Number
    """The error as a share of the window's records, above 0 and below 1. A matrix has ceil(e / epsilon)
    columns: a larger value needs less memory."""
    delta: Number
    """The probability of a larger error, above 0 and below 1. A matrix has ceil(log2(1 / delta)) rows: a
    larger value needs less memory."""
    variant: Variant = "perfect"
    """How records that leave the window are forgotten: `perfect` keeps the ticks of the window; `simple`,
    `proportional` and `splitter` are the paper's, and approximate; `vanilla` never forgets."""
    start: Hour | None = None
    """With `splitter` and `vanilla`: the first hour that counts, in UTC. Default: the first requested
    hour."""
    tau: Number = 0.05
    """With `splitter`, from 0.000001 to 1: a sub-cell is compared when it has tau * M / columns of the
    window's M records. A larger value needs less memory, and the error is larger."""
    mu: Number = 1.5
    """With `splitter`, 1 or more: rates that differ by at most this factor count as equal. A larger value
    needs less memory, and the error is larger."""
    seed: StrictInt = 0
    """The seed of the hashes, from 0 to 2^32 - 1."""
    top: Annotated[StrictInt, Field(ge=1, le=10_000)] = 20
    """How many items are reported, the most frequent first. Each hour keeps at least ten times as many."""
    min_share: Number = 0.05
    """The share of the window's records, by the estimate, from which an item is heavy: reported at any rank,
    and a finding. From 0.000001 to 1; a smaller share keeps more items."""
    watch: tuple[ItemLiteral, ...] = ()
    """Items that are counted exactly, and reported at any rank in every window that has them: values of the
    column, or lists with a value for each column. Not with `vanilla`."""
    memory: Annotated[StrictInt, Field(ge=1, le=8192)] = 1024
    """The maximum memory, in MiB, of the matrices and items that a run needs at once. More allows larger
    matrices and longer chunks."""

    @property
    def steps(self) -> int:
        """The number of ticks of the window, `N`."""
        return self.window // self.tick

    @property
    def shape(self) -> Shape:
        """The shape of a matrix."""
        return Shape.for_error(self.epsilon, self.delta, self.seed)

    @property
    def exact_tau(self) -> Fraction:
        """`tau` as in the stream file, without the rounding of a float."""
        return Fraction(str(self.tau))

    @property
    def exact_mu(self) -> Fraction:
        """`mu` as in the stream file, without the rounding of a float."""
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
        """The number of items that each hour keeps: all that have a share of `min_share` in it fit."""
        return max(CAPACITY_FACTOR * self.top, math.ceil(1 / Fraction(str(self.min_share))))

    @property
    def never_below(self) -> bool:
        """Whether an estimate is never too small."""
        return self.variant in NEVER_BELOW

    def _rules(self) -> Iterator[Issue]:
        tick, window = self.tick, self.window
        if not tick or HOUR % tick:
            yield Issue("tick", f"must divide an hour; got {format_duration(tick)}")
            return
        if issue := window_issue(window, tick, "ticks"):
            yield issue
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
