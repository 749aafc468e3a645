"""Patterns of records, their instances and the minimal ones, for one sequence of records.

A pattern is a sequence of elements; an element is a step, or several steps in any order. An instance assigns
its own record to each repetition of each step. All records of an element come before all records of the next,
and the instance meets all conditions of the pattern.

The number of instances is exponential. Only *minimal* ones are reported. The range of one, from its first to
its last record, contains no shorter range of another. Among the instances of the same range, its places are
the first in the order of sequences. So a reported instance depends on the records of its range alone, and
neither windows nor cuts change it (`reference`).

Records are rows of codes: a bit is set if a step can take a record, and equal values have equal codes; `NULL`
equals nothing. `matching.minimal` finds the ranges in many windows at once. `instance_search.smallest` then
finds the records of one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

NULL = -1
"""The code for no value."""


@dataclass(frozen=True)
class PatternStep:
    """One step.

    Attributes:
        name: the name of the step.
        bit: the bit in the mask of a record that it can take.
        times: the number of records that it takes, at least 1.
        distinct: columns; as tuples, their values differ between any two of these records.
        agrees: (own column, name of an earlier step, its column): all records of both have the same value
            there.
    """

    name: str
    bit: int
    times: int = 1
    distinct: tuple[str, ...] = ()
    agrees: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Element:
    """Steps in any order; usually one.

    Attributes:
        within: the maximal time from its first to its last record, in microseconds; None is no bound.
        gap: the minimal and the maximal time since the last record of the previous element, in microseconds;
            None is no bound.
    """

    steps: tuple[PatternStep, ...]
    within: int | None = None
    gap: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True)
class ForbiddenRecord:
    """A record that must not occur strictly between the first record of a step and the last of another.

    Attributes:
        bit: the bit in the mask of such a record.
        first: the name of the one step.
        last: the name of the other, or of the same step.
    """

    bit: int
    first: str
    last: str


@dataclass(frozen=True)
class EventPattern:
    """A pattern.

    Attributes:
        elements: the elements, in order; at least one.
        nevers: the forbidden records.
        max_length: the maximal duration of an instance, in microseconds.
        max_records: the maximal number of records that an instance spans, including those between its own.
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
        """The number of each step's element, by name."""
        return {step.name: place for place, element in enumerate(self.elements) for step in element.steps}

    @cached_property
    def number_of(self) -> Mapping[str, int]:
        """The number of each step in the order of the file, by name."""
        return {step.name: number for number, step in enumerate(self.steps)}

    @cached_property
    def last_use(self) -> Mapping[tuple[str, str], int]:
        """The columns of steps that later steps agree with, each with the number of the last such element."""
        return {
            (earlier, column): self.place_of[step.name]
            for step in self.steps
            for _, earlier, column in step.agrees
        }

    @cached_property
    def binds(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """The columns of each step that later steps agree with."""
        return {step.name: [used for used in self.last_use if used[0] == step.name] for step in self.steps}

    def forbidden(self, number: int, served: Sequence[int], i: int | None = None) -> int:
        """Return the bits that records between the last matched record and the next one must not have.

        Args:
            number: the number of the current element.
            served: the number of records that each of its steps has.
            i: if not None, return the bits that the next record itself must not have if step i of the element
                takes it.
        """
        if not self.nevers:
            return 0
        steps, bits = self.elements[number].steps, 0
        count = {step.name: records for step, records in zip(steps, served, strict=True)}
        for never in self.nevers:
            lacking = self.steps[self.number_of[never.last]].times - count.get(never.last, 0)
            has_begun = self.place_of[never.first] < number or count.get(never.first, 0) > 0
            is_over = self.place_of[never.last] < number or not lacking
            ends = i is not None and never.last == steps[i].name and lacking == 1
            if has_begun and not is_over and not ends:
                bits |= 1 << never.bit
        return bits

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
        compared = (
            (*step.distinct, *(column for own, _, agreed in step.agrees for column in (own, agreed)))
            for step in self.steps
        )
        return tuple(sorted(set().union(*compared)))


@dataclass(frozen=True)
class RecordSequence:
    """Records of one key, in their total order.

    Attributes:
        time: the time of each record, in microseconds.
        bits: the mask of the conditions that each record meets.
        codes: the codes of each column's values.
    """

    time: Sequence[int]
    bits: Sequence[int]
    codes: Mapping[str, Sequence[int]]

    def __len__(self) -> int:
        return len(self.time)

    def part(self, first: int, last: int) -> "RecordSequence":
        """Return the records from place `first` to place `last`, both inclusive."""
        span = slice(first, last + 1)
        return RecordSequence(self.time[span], self.bits[span], {n: c[span] for n, c in self.codes.items()})


@dataclass(frozen=True)
class Instance:
    """An assignment of records to steps.

    Attributes:
        places: the places of the records, ascending.
        steps: the name of the step of each.
    """

    places: tuple[int, ...]
    steps: tuple[str, ...]

    def of(self, step: str) -> list[int]:
        """Return the places of a step's records."""
        return [place for place, name in zip(self.places, self.steps, strict=True) if name == step]
