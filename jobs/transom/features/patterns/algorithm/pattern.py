"""Patterns of records: what an instance is, and which ones are minimal. Plainly, for one stretch of records.

A pattern is a sequence of elements: a step, or several in any order. An instance gives each time of each step
a record of its own, so that every record of an element comes before every record of the next, and all that
the pattern asks of them holds.

All instances are exponentially many. Reported are the *minimal* ones: of all instances none lies in the
stretch from its first record to its last but those of the very same stretch, and of these it is the one whose
places come first, as sequences are compared. So which are reported depends on the records of their stretch
alone, and neither windows nor cuts change it (`transom.features.patterns.algorithm.reference`).

Records are rows of a table of codes: whether a step can take one is a bit, and values are codes that are
equal where the values are; `NULL` equals nothing. `transom.features.patterns.algorithm.matching` finds the
stretches of many windows at once; `smallest` then names the records of one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

NULL = -1
"""The code of no value."""


@dataclass(frozen=True)
class PatternStep:
    """One step.

    Attributes:
        name: of the step.
        bit: of the mask of a record that it can take.
        times: how many records it takes.
        distinct: columns in which these differ from each other, as tuples.
        within: how long it takes at most from the first of them to the last, in microseconds; None is any
            time.
        agrees: (own column, name of an earlier step, column of that): all records of both have one value
            there.
    """

    name: str
    bit: int
    times: int = 1
    distinct: tuple[str, ...] = ()
    within: int | None = None
    agrees: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Element:
    """Steps in any order; mostly one.

    Attributes:
        within: how long all of it takes at most, in microseconds; None is any time.
        gap: the least and the most time since the last record of the element before, in microseconds; None is
            no bound.
    """

    steps: tuple[PatternStep, ...]
    within: int | None = None
    gap: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True)
class ForbiddenRecord:
    """No record with a bit lies strictly between the first record of a step and the last of another."""

    bit: int
    first: str
    last: str


@dataclass(frozen=True)
class EventPattern:
    """A pattern.

    Attributes:
        max_length: how long an instance takes at most, in microseconds.
        max_records: how many records it spans at most, those in between counted.
    """

    elements: tuple[Element, ...]
    nevers: tuple[ForbiddenRecord, ...]
    max_length: int
    max_records: int

    @cached_property
    def steps(self) -> tuple[PatternStep, ...]:
        """All steps, in the order of the file."""
        return tuple(step for element in self.elements for step in element.steps)

    @cached_property
    def place_of(self) -> Mapping[str, int]:
        """The place of each step's element."""
        return {step.name: i for i, element in enumerate(self.elements) for step in element.steps}

    @cached_property
    def number_of(self) -> Mapping[str, int]:
        """The number of each step, in the order of the file."""
        return {step.name: number for number, step in enumerate(self.steps)}

    @cached_property
    def last_use(self) -> Mapping[tuple[str, str], int]:
        """The columns of steps that later ones agree with, each with the place of the last element that
        does."""
        last_use: dict[tuple[str, str], int] = {}
        for step in self.steps:
            for _, other, column in step.agrees:
                last_use[other, column] = self.place_of[step.name]
        return last_use

    @cached_property
    def given(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Of each step, those of its columns that later ones agree with."""
        return {step.name: [used for used in self.last_use if used[0] == step.name] for step in self.steps}

    @property
    def opening(self) -> int:
        """The bits of the steps that an instance may begin with."""
        return sum(1 << step.bit for step in self.elements[0].steps)

    @property
    def closing(self) -> int:
        """The bits of the steps that an instance may end with."""
        return sum(1 << step.bit for step in self.elements[-1].steps)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose values it compares."""
        named = {column for step in self.steps for column in step.distinct}
        named |= {column for step in self.steps for own, _, other in step.agrees for column in (own, other)}
        return tuple(sorted(named))


@dataclass(frozen=True)
class RecordSequence:
    """Records of one key, in their total order.

    Attributes:
        time: in microseconds.
        bits: a mask of what each record meets.
        codes: of the values of each column.
    """

    time: Sequence[int]
    bits: Sequence[int]
    codes: Mapping[str, Sequence[int]]

    def __len__(self) -> int:
        return len(self.time)

    def part(self, first: int, last: int) -> "RecordSequence":
        """From one record to another, both inside."""
        taken = slice(first, last + 1)
        return RecordSequence(
            self.time[taken], self.bits[taken], {n: c[taken] for n, c in self.codes.items()}
        )


@dataclass(frozen=True)
class Instance:
    """Which record serves which step: places, ascending, and the name of the step of each."""

    places: tuple[int, ...]
    steps: tuple[str, ...]

    def of(self, step: str) -> list[int]:
        """The places of a step's records."""
        return [place for place, name in zip(self.places, self.steps, strict=True) if name == step]


def holds(pattern: EventPattern, stretch: RecordSequence, instance: Instance) -> bool:
    """Whether records are an instance: the definition."""
    places, time = instance.places, stretch.time
    of = {step.name: instance.of(step.name) for step in pattern.steps}
    if any(len(of[step.name]) != step.times for step in pattern.steps):
        return False
    if (
        time[places[-1]] - time[places[0]] > pattern.max_length
        or places[-1] - places[0] >= pattern.max_records
    ):
        return False
    elements = [sorted(p for step in element.steps for p in of[step.name]) for element in pattern.elements]
    for element, taken in zip(pattern.elements, elements, strict=True):
        if element.within is not None and time[taken[-1]] - time[taken[0]] > element.within:
            return False
    for (before, taken), element in zip(pairwise(elements), pattern.elements[1:], strict=True):
        least, most = element.gap
        gap = time[taken[0]] - time[before[-1]]
        if before[-1] >= taken[0] or gap < (least or 0) or (most is not None and gap > most):
            return False
    return all(_serves(step, stretch, of) for step in pattern.steps) and not any(
        stretch.bits[place] >> never.bit & 1
        for never in pattern.nevers
        for place in range(of[never.first][0] + 1, of[never.last][-1])
    )


def _serves(step: PatternStep, stretch: RecordSequence, of: Mapping[str, Sequence[int]]) -> bool:
    taken = of[step.name]
    if not all(stretch.bits[place] >> step.bit & 1 for place in taken):
        return False
    if step.within is not None and stretch.time[taken[-1]] - stretch.time[taken[0]] > step.within:
        return False
    if step.distinct:
        values = [tuple(stretch.codes[column][place] for column in step.distinct) for place in taken]
        if len(set(values)) < len(values) or any(NULL in value for value in values):
            return False
    for own, other, column in step.agrees:
        agreed = {stretch.codes[own][place] for place in taken}
        agreed |= {stretch.codes[column][place] for place in of[other]}
        if len(agreed) > 1 or NULL in agreed:
            return False
    return True


def instances(pattern: EventPattern, stretch: RecordSequence) -> Iterator[Instance]:
    """Every instance, by trying all; their number is exponential."""
    slots = [step.name for step in pattern.steps for _ in range(step.times)]
    for places in combinations(range(len(stretch)), len(slots)):
        for steps in sorted(_orders(tuple(slots), pattern)):
            instance = Instance(places, tuple(pattern.steps[number].name for number in steps))
            if holds(pattern, stretch, instance):
                yield instance


def _orders(slots: Sequence[str], pattern: EventPattern) -> set[tuple[int, ...]]:
    """In which orders the records of the steps may come, by the numbers of the steps."""
    number = {step.name: i for i, step in enumerate(pattern.steps)}
    orders: set[tuple[int, ...]] = {()}
    for _ in slots:
        orders = {
            (*order, number[step.name])
            for order in orders
            for step in pattern.steps
            if order.count(number[step.name]) < step.times
        }
    return orders


def minimal_instances(pattern: EventPattern, stretch: RecordSequence) -> list[Instance]:
    """The minimal instances, by their last record: the definition, by trying all."""
    first_of: dict[tuple[int, int], Instance] = {}
    for instance in instances(pattern, stretch):
        # Places come ascending, and steps in the order of the file for each.
        first_of.setdefault((instance.places[0], instance.places[-1]), instance)
    stretches = list(first_of)
    return [
        first_of[a, b]
        for a, b in sorted(stretches, key=lambda s: s[1])
        if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in stretches)
    ]
