"""Patterns of records: the definitions of an instance and of a minimal one, for one sequence of records.

A pattern is a sequence of elements; an element is a step, or several steps in any order. An instance assigns
its own record to each repetition of each step, so that every record of an element comes before every record
of the next, and all conditions of the pattern hold.

The number of instances is exponential. Only *minimal* ones are reported: no instance lies in a shorter range
inside the range from its first record to its last, and of the instances of the same range its places come
first, compared as sequences. So the reported instances depend on the records of their range alone, and
neither windows nor cuts change them (`transom.features.patterns.algorithm.reference`).

Records are rows of codes: a bit tells whether a step can take a record, and equal values have equal codes;
`NULL` equals nothing. `transom.features.patterns.algorithm.matching` finds the ranges in many windows at
once; `smallest` then finds the records of one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

NULL = -1
"""The code for no value."""


@dataclass(frozen=True)
class PatternStep:
    """One step.

    Attributes:
        name: of the step.
        bit: the bit in the mask of a record that it can take.
        times: the number of records that it takes.
        distinct: columns in which these differ from each other, as tuples.
        within: the longest time from the first of them to the last, in microseconds; None is any time.
        agrees: (own column, name of an earlier step, its column): all records of both have the same value
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
    """Steps in any order; usually one.

    Attributes:
        within: the longest time of all its records, in microseconds; None is any time.
        gap: the minimum and the maximum time since the last record of the previous element, in microseconds;
            None is no bound.
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
        max_length: the longest duration of an instance, in microseconds.
        max_records: the largest number of records that an instance spans, including those in between.
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
        """The columns of steps that later steps agree with, each with the place of the last such element."""
        last_use: dict[tuple[str, str], int] = {}
        for step in self.steps:
            for _, earlier, column in step.agrees:
                last_use[earlier, column] = self.place_of[step.name]
        return last_use

    @cached_property
    def given(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """The columns of each step that later steps agree with."""
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
        """The columns whose values the pattern compares."""
        named = {column for step in self.steps for column in step.distinct}
        named |= {column for step in self.steps for own, _, agreed in step.agrees for column in (own, agreed)}
        return tuple(sorted(named))


@dataclass(frozen=True)
class RecordSequence:
    """Records of one key, in their total order.

    Attributes:
        time: in microseconds.
        bits: a mask of the conditions that each record meets.
        codes: the codes of the values of each column.
    """

    time: Sequence[int]
    bits: Sequence[int]
    codes: Mapping[str, Sequence[int]]

    def __len__(self) -> int:
        return len(self.time)

    def part(self, first: int, last: int) -> "RecordSequence":
        """Return the records from one to another, both inclusive."""
        span = slice(first, last + 1)
        return RecordSequence(self.time[span], self.bits[span], {n: c[span] for n, c in self.codes.items()})


@dataclass(frozen=True)
class Instance:
    """An assignment of records to steps: places, ascending, and the name of the step of each."""

    places: tuple[int, ...]
    steps: tuple[str, ...]

    def of(self, step: str) -> list[int]:
        """Return the places of a step's records."""
        return [place for place, name in zip(self.places, self.steps, strict=True) if name == step]


def holds(pattern: EventPattern, records: RecordSequence, instance: Instance) -> bool:
    """Return whether records are an instance: the definition."""
    places, time = instance.places, records.time
    places_of = {step.name: instance.of(step.name) for step in pattern.steps}
    if any(len(places_of[step.name]) != step.times for step in pattern.steps):
        return False
    if (
        time[places[-1]] - time[places[0]] > pattern.max_length
        or places[-1] - places[0] >= pattern.max_records
    ):
        return False
    elements = [
        sorted(p for step in element.steps for p in places_of[step.name]) for element in pattern.elements
    ]
    for element, served in zip(pattern.elements, elements, strict=True):
        if element.within is not None and time[served[-1]] - time[served[0]] > element.within:
            return False
    for (previous, served), element in zip(pairwise(elements), pattern.elements[1:], strict=True):
        min_gap, max_gap = element.gap
        gap = time[served[0]] - time[previous[-1]]
        if previous[-1] >= served[0] or gap < (min_gap or 0) or (max_gap is not None and gap > max_gap):
            return False
    return all(_serves(step, records, places_of) for step in pattern.steps) and not any(
        records.bits[place] >> never.bit & 1
        for never in pattern.nevers
        for place in range(places_of[never.first][0] + 1, places_of[never.last][-1])
    )


def _serves(step: PatternStep, records: RecordSequence, places_of: Mapping[str, Sequence[int]]) -> bool:
    places = places_of[step.name]
    if not all(records.bits[place] >> step.bit & 1 for place in places):
        return False
    if step.within is not None and records.time[places[-1]] - records.time[places[0]] > step.within:
        return False
    if step.distinct:
        values = [tuple(records.codes[column][place] for column in step.distinct) for place in places]
        if len(set(values)) < len(values) or any(NULL in value for value in values):
            return False
    for own, earlier, column in step.agrees:
        agreed = {records.codes[own][place] for place in places}
        agreed |= {records.codes[column][place] for place in places_of[earlier]}
        if len(agreed) > 1 or NULL in agreed:
            return False
    return True


def instances(pattern: EventPattern, records: RecordSequence) -> Iterator[Instance]:
    """Yield every instance by trying all; their number is exponential."""
    slots = [step.name for step in pattern.steps for _ in range(step.times)]
    for places in combinations(range(len(records)), len(slots)):
        for steps in sorted(_orders(tuple(slots), pattern)):
            instance = Instance(places, tuple(pattern.steps[number].name for number in steps))
            if holds(pattern, records, instance):
                yield instance


def _orders(slots: Sequence[str], pattern: EventPattern) -> set[tuple[int, ...]]:
    """Return the possible orders of the steps' records, by the numbers of the steps."""
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


def minimal_instances(pattern: EventPattern, records: RecordSequence) -> list[Instance]:
    """Return the minimal instances, by their last record: the definition, by trying all."""
    first_of: dict[tuple[int, int], Instance] = {}
    for instance in instances(pattern, records):
        # Places are ascending, and the steps of each in the order of the file.
        first_of.setdefault((instance.places[0], instance.places[-1]), instance)
    spans = list(first_of)
    return [
        first_of[a, b]
        for a, b in sorted(spans, key=lambda s: s[1])
        if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in spans)
    ]
