"""Persistent items: what comes back all the time, however rarely each time (Lahiri, Tirthapura and
Chandrashekar)."""

from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction
from ipaddress import ip_network
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictBool, StrictInt

from transom.core.durations import Duration, format_duration
from transom.core.intervals import HOUR
from transom.features.items.spec import ItemLiteral
from transom.features.persistence.algorithm.params import PersistenceParams, instances_for
from transom.spec.base import Model, Name, NonEmptyStr, Number
from transom.spec.errors import Issue, find_duplicates

MAX_SLOTS = 20_000
"""Maximum number of slots of a window. Each tuple has a bit for each."""
SEEDS = 2**32


def _network(text: str) -> str:
    try:
        ip_network(text)
    except ValueError as error:
        raise ValueError(f"must be a network such as 192.168.0.0/16; {error}") from None
    return text


class KnownTable(Model):
    """A Delta table of items."""

    path: NonEmptyStr
    """Where it is: a path from the landing folder, an absolute one, or a URI."""
    columns: dict[Name, NonEmptyStr] = Field(default_factory=dict)
    """Which columns of the item an item is known by, and what they are called there; where nothing is said
    all of them, under their own names."""


class IgnoreList(Model):
    """Items that are known, and no news."""

    items: tuple[ItemLiteral, ...] = ()
    """Items: of one column its values, of several a list for each, in the order of the columns."""
    networks: dict[Name, tuple[Annotated[str, AfterValidator(_network)], ...]] = Field(default_factory=dict)
    """By a column of the item: networks, as 192.168.0.0/16, whose addresses are known."""
    table: KnownTable | None = None
    """A Delta table with a row for each known item."""


class Budget(Model):
    """How much may be remembered, from which epsilon follows."""

    tuples: Annotated[StrictInt, Field(ge=1)]
    """Tuples, all instances together: a tuple is an item with a bit for each slot of the window, and about
    a hundred bytes."""
    pairs: Annotated[StrictInt, Field(ge=1)]
    """How many pairs of an item and a slot in which it is seen a window has: what counting exactly would have
    to remember."""


class Persistence(Model):
    """A block of `persistence`: items that are seen in most slots of a window."""

    title: NonEmptyStr | None = None
    """For people: what is the matter, with columns of the item, `since` and `window_end` in braces."""
    severity: Literal["high", "medium", "low"] = "medium"
    """How bad it is."""
    finding: StrictBool = True
    """Whether persistent items are findings."""
    item: Annotated[tuple[str, ...], Field(min_length=1)]
    """The columns that make an item, such as a client, or a pair of source and destination; what a derived
    column says is one, too. A record that lacks one of them has no item."""
    where: NonEmptyStr | None = None
    """Which events are seen at all; the stream's where nothing is said."""
    slot: Duration
    """How long a slot is: it divides an hour, or is whole hours. Slots count from 1970, in UTC."""
    window: Duration
    """How long the window is: a whole number of slots. It is reported when a slot is over, of shorter ones
    every hour."""
    alpha: Number
    """In which share of the window's slots an item is seen that is persistent, from 0 to 1."""
    epsilon: Number | None = None
    """By how much the share of what is reported may be less: below alpha. The larger, the less is
    remembered."""
    budget: Budget | None = None
    """Instead of epsilon: how much may be remembered."""
    delta: Number = 0.05
    """How likely a persistent item may be missed; the smaller, the more instances there are, each of which
    remembers as much."""
    seed: StrictInt = 0
    """Of the first instance's hashes; others have those after it."""
    ignore: IgnoreList = IgnoreList()
    """Items that are not reported."""
    watch: tuple[ItemLiteral, ...] = ()
    """Items that are counted exactly, and told of as long as they are in the window; as those of `ignore`."""

    @property
    def slots(self) -> int:
        """The number of slots of the window."""
        return self.window // self.slot

    @property
    def instances(self) -> int:
        """The number of instances."""
        return instances_for(self.delta)

    @property
    def params(self) -> PersistenceParams:
        """The parameters of the algorithm.

        Raises:
            ValueError: the parameters contradict each other.
        """
        alpha = Fraction(str(self.alpha))
        return PersistenceParams(self.slots, alpha, self.resolved_epsilon, self.instances)

    @property
    def resolved_epsilon(self) -> Fraction:
        """Epsilon as it is written, or the one with which as many tuples as in the budget are expected."""
        if self.budget is None:
            return Fraction(str(self.epsilon))
        return Fraction(2 * self.instances * self.budget.pairs, self.slots * self.budget.tuples)

    @property
    def state_lookback(self) -> timedelta:
        """How far back tuples are read, in whole hours.

        Older ones are neither in the window nor in that of the previous report, which may end a slot earlier.
        """
        previous = self.slot if self.slot > HOUR else timedelta(0)
        return -(-(self.window + previous) // HOUR) * HOUR

    def _rules(self) -> Iterator[Issue]:
        slot, window, budget = self.slot, self.window, self.budget
        if not slot or (HOUR % slot and slot % HOUR):
            yield Issue("slot", f"must divide an hour, or be whole hours; got {format_duration(slot)}")
            return
        if window < slot or window % slot:
            rule = f"must be a whole number of slots of {format_duration(slot)}"
            yield Issue("window", f"{rule}; got {format_duration(window)}")
            return
        if self.slots > MAX_SLOTS:
            yield Issue("window", f"must have at most {MAX_SLOTS} slots; got {self.slots}")
            return
        if (self.epsilon is None) == (budget is None):
            both = "neither" if budget is None else "both"
            yield Issue("epsilon", f"must be said, or a budget instead; got {both}")
            return
        yield from find_duplicates("item", self.item)
        if not 0 < self.delta < 1:
            yield Issue("delta", f"must be above 0 and below 1; got {self.delta:g}")
            return
        if not 0 <= self.seed < SEEDS:
            yield Issue("seed", f"must be from 0 up to 2^32; got {self.seed}")
            return
        try:
            params = self.params
        except ValueError as error:
            field, _, rule = str(error).partition(" ")
            if field == "epsilon" and budget is not None:
                of = f"{budget.tuples} tuples of {budget.pairs} pairs and {self.instances} instances"
                field, rule = "budget", f"gives an epsilon that cannot be, from {of}: it {rule}"
            yield Issue(field, rule)
            return
        if params.min_reported < 1:
            yield Issue("epsilon", "must leave a slot in which an item is seen that is reported")
        if self.seed + self.instances > SEEDS:
            yield Issue("seed", f"must leave {self.instances} below 2^32; got {self.seed}")
