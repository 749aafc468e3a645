"""Persistent items: items that appear in most slots of a window (Lahiri, Tirthapura and Chandrashekar)."""

from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction
from ipaddress import ip_network
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictBool, StrictInt, TypeAdapter, WrapValidator

from transom.core.durations import Duration, format_duration
from transom.core.intervals import HOUR
from transom.features.items.spec import ItemLiteral, window_issue
from transom.features.persistence.algorithm.params import PersistenceParams, instances_for
from transom.spec.base import Model, Name, NonEmptyStr, Number
from transom.spec.endings import Ending
from transom.spec.errors import Issue, find_duplicates

MAX_SLOTS = 20_000
"""Maximum number of slots of a window. Each tuple has a bit for each."""
SEEDS = 2**32
"""The number of seeds."""


def _network(text: str) -> str:
    try:
        ip_network(text)
    except ValueError as error:
        raise ValueError(f"must be a network such as 192.168.0.0/16; {error}") from None
    return text


class KnownTable(Model):
    """A Delta table of known items. If it changes, all hours are stale."""

    path: NonEmptyStr
    """Its location: a path relative to the landing folder, an absolute path, or a URI."""
    columns: dict[Name, NonEmptyStr] = Field(default_factory=dict)
    """Columns of the item that are compared, with the names of the table's columns. Default: all, under
    their own names."""


class IgnoreList(Ending):
    """Known items, which are not reported. They use memory as other items do.

    With `until`, the reports up to it lack them, and later ones do not.
    """

    items: tuple[ItemLiteral, ...] = ()
    """Items: values of the column, or lists with a value for each column."""
    networks: dict[Name, tuple[Annotated[str, AfterValidator(_network)], ...]] = Field(default_factory=dict)
    """Networks such as 192.168.0.0/16, by a column of the item with addresses."""
    table: KnownTable | None = None
    """A Delta table with a row for each known item."""


_LISTS = TypeAdapter(tuple[IgnoreList, ...])


def _one_or_several(value: Any, _: Any) -> IgnoreList | tuple[IgnoreList, ...]:
    # A union would report each error twice, once for each form.
    return _LISTS.validate_python(value) if isinstance(value, list) else IgnoreList.model_validate(value)


IgnoreLists = Annotated[
    IgnoreList | tuple[IgnoreList, ...],
    WrapValidator(_one_or_several, json_schema_input_type=IgnoreList | list[IgnoreList]),
]


class Budget(Model):
    """A number of tuples, from which epsilon follows: `2 * instances * pairs / (slots * tuples)`."""

    tuples: Annotated[StrictInt, Field(ge=1)]
    """The expected number of tuples of all instances together. A tuple is an item with a bit for each slot of
    the window, and about a hundred bytes. More tuples give a smaller epsilon."""
    pairs: Annotated[StrictInt, Field(ge=1)]
    """The number of pairs in a window of an item and a slot that has it, which exact counting would
    store."""


class Persistence(Model):
    """A block of `persistence`: items that appear in most slots of a window."""

    title: NonEmptyStr | None = None
    """The title of a finding. It may name columns of the item, `since` and `window_end` in braces."""
    severity: Literal["high", "medium", "low"] = "medium"
    """The severity of the findings."""
    finding: StrictBool = True
    """Whether persistent items are findings."""
    item: Annotated[tuple[str, ...], Field(min_length=1)]
    """The columns of an item, also derived ones, such as a client, or a source and a target; at most 4,096
    bytes together. A record that lacks one of them has no item."""
    where: NonEmptyStr | None = None
    """A condition on the events that count. Default: the stream's `where`."""
    slot: Duration
    """The length of a slot: it divides an hour, or is whole hours. Slots count from 1970, in UTC. A longer
    slot has fewer pairs of an item and a slot, and is coarser."""
    window: Duration
    """The length of the window: whole slots, at most 20,000. It is reported every hour, or with slots of
    several hours at the end of each slot. A longer window has more pairs, and items are reported later."""
    alpha: Number
    """The share of the window's slots in which a persistent item appears: above 0, at most 1."""
    epsilon: Number | None = None
    """The tolerance of that share, below `alpha` and at least 2 / slots of the window. Items with a share
    below `alpha - epsilon` are never reported. A larger value stores fewer tuples, and reports more items
    between the two."""
    budget: Budget | None = None
    """The number of tuples, instead of `epsilon`."""
    delta: Number = 0.05
    """The probability that a persistent item is missed, above 0 and below 1. The sketch has
    max(1, ceil(ln(1 / delta) / 2)) instances: a smaller value needs more memory."""
    seed: StrictInt = 0
    """The seed of the first instance's hashes, from 0; the other instances have the next ones, below
    2^32."""
    ignore: IgnoreLists = ()
    """Items that are not reported: one list, or several with an end of their own."""
    watch: tuple[ItemLiteral, ...] = ()
    """Items that are counted exactly, and reported as long as they are in the window; in the form of
    `ignore.items`. Each has a tuple for each slot."""

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
        """Epsilon as in the stream file, or the one with which the budget's number of tuples is expected."""
        if self.budget is None:
            return Fraction(str(self.epsilon))
        return Fraction(2 * self.instances * self.budget.pairs, self.slots * self.budget.tuples)

    @property
    def report_period(self) -> timedelta:
        """The time from one report to the next."""
        return max(self.slot, HOUR)

    def ignore_lists(self) -> Iterator[tuple[str, IgnoreList]]:
        """Yield each list of `ignore` with its path."""
        if isinstance(self.ignore, IgnoreList):
            yield "ignore", self.ignore
        else:
            yield from ((f"ignore[{index}]", one) for index, one in enumerate(self.ignore))

    @property
    def state_lookback(self) -> timedelta:
        """Return the range in which tuples are read, in whole hours.

        Older ones are neither in the window nor in that of the previous report, which may end a slot earlier.
        """
        previous = self.slot if self.slot > HOUR else timedelta(0)
        return -(-(self.window + previous) // HOUR) * HOUR

    def _rules(self) -> Iterator[Issue]:
        slot, window, budget = self.slot, self.window, self.budget
        if not slot or (HOUR % slot and slot % HOUR):
            yield Issue("slot", f"must divide an hour, or be whole hours; got {format_duration(slot)}")
            return
        if issue := window_issue(window, slot, "slots"):
            yield issue
            return
        if self.slots > MAX_SLOTS:
            yield Issue("window", f"must have at most {MAX_SLOTS} slots; got {self.slots}")
            return
        if (self.epsilon is None) == (budget is None):
            both = "neither" if budget is None else "both"
            yield Issue("epsilon", f"must be set, or a budget instead; got {both}")
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
