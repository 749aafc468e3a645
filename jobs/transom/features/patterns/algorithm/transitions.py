"""States of a partly matched instance, and the records that can extend it.

The future of an instance depends on its matched records only by the current element, the number of records of
each of its steps, and the values that later steps agree with.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from transom.core.exact_sums import Bools, Int64s
from transom.features.patterns.algorithm.pattern import NULL, EventPattern, PatternStep, RecordSequence

Values = tuple[int | None, ...]
"""Values of the columns that steps agree in; None if not bound yet, or no longer needed."""
Choices = Mapping[Values, Mapping[Values, Int64s]]
"""The places of the records that a step may take, by their values that agree with earlier steps, and by those
that they give to later ones."""


class MatchState(NamedTuple):
    """The state of a partly matched instance. Equal states have the same future.

    Attributes:
        number: the number of the current element.
        served: the number of records of each of its steps.
        limit: the last possible place of its records.
        values_taken: the values that a step with different values has used.
        bound: values to agree with.
    """

    number: int
    served: tuple[int, ...]
    limit: int
    values_taken: frozenset[int]
    bound: Values


class Transitions:
    """The transitions between states of a pattern's instances, for one sequence of records.

    Args:
        records: not longer than an instance may be, in time and in number.

    Attributes:
        size: the number of records.
        time: the time of each, in microseconds.
        bits: a mask of the conditions that each meets.
        times: the number of records that each step of each element takes.
        value_of: by step, the value of each record that no two records of the step may share; `NULL` for
            none.
    """

    def __init__(self, pattern: EventPattern, records: RecordSequence) -> None:
        self.pattern, self.records, self.size = pattern, records, len(records)
        self.time, self.bits = (np.array(column, dtype=np.int64) for column in (records.time, records.bits))
        self.times = [tuple(step.times for step in element.steps) for element in pattern.elements]
        self.value_of = {step.name: self._values(step) for step in pattern.steps}
        self._choices_of = self._choices()
        self._next_forbidden: dict[int, Int64s] = {}

    def assignments(
        self, state: MatchState, last: int | None, place: int
    ) -> Iterator[tuple[int, MatchState]]:
        """Yield the steps that a record may serve next, by number, and the resulting states.

        Args:
            last: the place of the last record so far; None for the first one.
        """
        if last is not None:
            if self.full(state):
                if state.number + 1 == len(self.times):
                    return
                state = self.fresh(state.number + 1, state.bound)
                min_gap, max_gap = self.pattern.elements[state.number].gap
                gap = self.records.time[place] - self.records.time[last]
                if gap < (min_gap or 0) or (max_gap is not None and gap > max_gap):
                    return
            if not self.clear(self.forbidden(state), np.array([last]), np.array([place]))[0]:
                return
        for i, step in enumerate(self.pattern.elements[state.number].steps):
            if self._may(state, i, place):
                yield self.pattern.number_of[step.name], self.after(state, i, place)

    def agreeing(self, step: PatternStep, bound: Values) -> Mapping[Values, Int64s]:
        """Return the places of the records that a step may take for given bindings, by the values that it
        gives."""
        values = dict(zip(self.pattern.last_use, bound, strict=True))
        agreed = tuple(values[earlier, column] for _, earlier, column in step.agrees)
        given = tuple(values[variable] for variable in self.pattern.given[step.name])
        choices = self._choices_of[step.name].get(agreed, {})
        return choices if None in given else {given: choices[given]} if given in choices else {}

    def fresh(self, number: int, bound: Values) -> MatchState:
        """Return the state in which an element has no record yet."""
        return MatchState(number, (0,) * len(self.times[number]), self.size - 1, frozenset(), bound)

    def full(self, state: MatchState) -> bool:
        """Return whether the element has all its records."""
        return state.served == self.times[state.number]

    def after(self, state: MatchState, i: int, place: int) -> MatchState:
        """Return the state after a step of the element takes a record."""
        step, last_use = self.pattern.elements[state.number].steps[i], self.pattern.last_use
        served = (*state.served[:i], state.served[i] + 1, *state.served[i + 1 :])
        values = dict(zip(last_use, state.bound, strict=True))
        values.update(zip(self.pattern.given[step.name], self._given(step, place), strict=True))
        if served == self.times[state.number]:
            # Later elements depend neither on the element's start nor on its distinct values.
            bound = tuple(values[name] if state.number < last else None for name, last in last_use.items())
            return MatchState(state.number, served, self.size - 1, frozenset(), bound)
        limit = state.limit if any(state.served) else int(self.limits(state.number, np.array([place]))[0])
        used = state.values_taken | {self.value_of[step.name][place]} if step.distinct else state.values_taken
        return MatchState(state.number, served, limit, used, tuple(values.values()))

    def limits(self, number: int, places: Int64s) -> Int64s:
        """Return the last place that an element's records may have that begins at a place."""
        element, limits = self.pattern.elements[number], np.full(len(places), self.size - 1)
        for within in (element.within, *(step.within for step in element.steps)):
            if within is not None:
                ends = np.searchsorted(self.time, self.time[places] + within, side="right")
                limits = np.minimum(limits, ends - 1)
        return limits

    def forbidden(self, state: MatchState, i: int | None = None) -> int:
        """Return the bits of records that may not lie between the last record and the next one. With a step,
        of those that its next record may not be."""
        if not self.pattern.nevers:
            return 0
        steps = self.pattern.elements[state.number].steps
        served = dict(zip((step.name for step in steps), state.served, strict=True))
        bits = 0
        for never in self.pattern.nevers:
            first, last = self.pattern.place_of[never.first], self.pattern.place_of[never.last]
            lacking = self.pattern.steps[self.pattern.number_of[never.last]].times - served.get(never.last, 0)
            has_begun = first < state.number or served.get(never.first, 0) > 0
            is_over = last < state.number or not lacking
            ends = i is not None and never.last == steps[i].name and lacking == 1
            if has_begun and not is_over and not ends:
                bits |= 1 << never.bit
        return bits

    def clear(self, bits: int, last: Int64s, place: Int64s) -> Bools:
        """Return whether no record strictly between two places has one of the bits."""
        if bits not in self._next_forbidden:
            places = np.where(self.bits & bits, np.arange(self.size), self.size)
            self._next_forbidden[bits] = np.append(np.minimum.accumulate(places[::-1])[::-1], self.size)
        clear: Bools = self._next_forbidden[bits][last + 1] >= place
        return clear

    def _choices(self) -> dict[str, Choices]:
        """Return the choices of each step, without records whose given value no later step can agree with."""
        choices_of: dict[str, Choices] = {}
        required: dict[tuple[str, str], set[int | None]] = {}
        for step in reversed(self.pattern.steps):
            choices: dict[Values, dict[Values, list[int]]] = {}
            for place in np.flatnonzero(self.bits >> step.bit & 1).tolist():
                agreed = tuple(self.records.codes[own][place] for own, _, _ in step.agrees)
                given = self._given(step, place)
                askable = map(
                    set.__contains__, (required[name] for name in self.pattern.given[step.name]), given
                )
                if NULL not in agreed and self.value_of[step.name][place] != NULL and all(askable):
                    choices.setdefault(agreed, {}).setdefault(given, []).append(place)
            for at, (_, earlier, column) in enumerate(step.agrees):
                values = {agreed[at] for agreed in choices}
                required[earlier, column] = required.get((earlier, column), values) & values
            choices_of[step.name] = {
                agreed: {given: np.array(places) for given, places in by_given.items()}
                for agreed, by_given in choices.items()
            }
        return choices_of

    def _given(self, step: PatternStep, place: int) -> Values:
        """Return the values that a record gives to later steps."""
        return tuple(self.records.codes[column][place] for _, column in self.pattern.given[step.name])

    def _values(self, step: PatternStep) -> Sequence[int]:
        """Return the value of each record that no two records of a step may share; `NULL` for none."""
        if not step.distinct:
            return range(self.size)
        code_of: dict[tuple[int, ...], int] = {}
        values = zip(*(self.records.codes[column] for column in step.distinct), strict=True)
        return [NULL if NULL in value else code_of.setdefault(value, len(code_of)) for value in values]

    def _may(self, state: MatchState, i: int, place: int) -> bool:
        """Return whether a step of the element may take a record."""
        step = self.pattern.elements[state.number].steps[i]
        given = self._given(step, place)
        return (
            state.served[i] < step.times
            and place <= state.limit
            and not self.bits[place] & self.forbidden(state, i)
            and self.value_of[step.name][place] not in state.values_taken
            and place in self.agreeing(step, state.bound).get(given, ())
        )
