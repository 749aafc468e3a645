"""How far an instance has been matched, and which records can take it further.

What has been matched matters to what follows by little: which element is being served, how far each of its
steps has come, and the values that later steps have to agree with.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from transom.core.exact_sums import Bools, Int64s
from transom.features.patterns.algorithm.pattern import NULL, EventPattern, PatternStep, RecordSequence

Values = tuple[int | None, ...]
"""Of columns that steps agree in; None where there is none yet, or none any more."""
Choices = Mapping[Values, Mapping[Values, Int64s]]
"""The places of the records that a step may take, by the values in which they agree with earlier steps, and
by those that they give to later ones."""


class MatchState(NamedTuple):
    """What has been matched, as far as it binds what follows: what is equal has the same future.

    Attributes:
        number: of the element that is being served.
        served: how many records each of its steps has.
        limit: the last place that its records may have.
        values_taken: the values of a step that asks for different ones.
        bound: values to agree with.
    """

    number: int
    served: tuple[int, ...]
    limit: int
    values_taken: frozenset[int]
    bound: Values


class Transitions:
    """Of the instances of a pattern in a stretch, from its first record on.

    Args:
        stretch: no longer than an instance may be, in time and in records.

    Attributes:
        size: how many records there are.
        time: of each, in microseconds.
        bits: of each, what it meets.
        times: how many records each step of each element takes.
        value_of: by step, of each record what no two records of the step may share; `NULL` where it lacks it.
    """

    def __init__(self, pattern: EventPattern, stretch: RecordSequence) -> None:
        self.pattern, self.stretch, self.size = pattern, stretch, len(stretch)
        self.time, self.bits = (np.array(column, dtype=np.int64) for column in (stretch.time, stretch.bits))
        self.times = [tuple(step.times for step in element.steps) for element in pattern.elements]
        self.value_of = {step.name: self._values(step) for step in pattern.steps}
        self._choices_of = self._choices()
        self._met_from: dict[int, Int64s] = {}

    def assignments(
        self, state: MatchState, last: int | None, place: int
    ) -> Iterator[tuple[int, MatchState]]:
        """Yield the steps that a record may serve next, by their numbers, and the states that this leads to.

        Args:
            last: the place of the last record so far; None for the first one.
        """
        if last is not None:
            if self.full(state):
                if state.number + 1 == len(self.times):
                    return
                state = self.fresh(state.number + 1, state.bound)
                least, most = self.pattern.elements[state.number].gap
                gap = self.stretch.time[place] - self.stretch.time[last]
                if gap < (least or 0) or (most is not None and gap > most):
                    return
            if not self.clear(self.forbidden(state), np.array([last]), np.array([place]))[0]:
                return
        for i, step in enumerate(self.pattern.elements[state.number].steps):
            if self._may(state, i, place):
                yield self.pattern.number_of[step.name], self.after(state, i, place)

    def agreeing(self, step: PatternStep, bound: Values) -> Mapping[Values, Int64s]:
        """Return the places of the records that a step may take given what is bound, by what it gives."""
        values = dict(zip(self.pattern.last_use, bound, strict=True))
        agreed = tuple(values[other, column] for _, other, column in step.agrees)
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
        """Return the state after a step of the element has taken a record."""
        step, last_use = self.pattern.elements[state.number].steps[i], self.pattern.last_use
        served = (*state.served[:i], state.served[i] + 1, *state.served[i + 1 :])
        values = dict(zip(last_use, state.bound, strict=True))
        values.update(zip(self.pattern.given[step.name], self._given(step, place), strict=True))
        if served == self.times[state.number]:
            # Neither when the element began nor which values it has is anything to those behind it.
            bound = tuple(values[name] if state.number < last else None for name, last in last_use.items())
            return MatchState(state.number, served, self.size - 1, frozenset(), bound)
        limit = state.limit if any(state.served) else int(self.limits(state.number, np.array([place]))[0])
        taken = (
            state.values_taken | {self.value_of[step.name][place]} if step.distinct else state.values_taken
        )
        return MatchState(state.number, served, limit, taken, tuple(values.values()))

    def limits(self, number: int, places: Int64s) -> Int64s:
        """Return the last place that an element's records may have that begins at a place."""
        element, limits = self.pattern.elements[number], np.full(len(places), self.size - 1)
        for within in (element.within, *(step.within for step in element.steps)):
            if within is not None:
                ends = np.searchsorted(self.time, self.time[places] + within, side="right")
                limits = np.minimum(limits, ends - 1)
        return limits

    def forbidden(self, state: MatchState, i: int | None = None) -> int:
        """Return the bits of what may not lie between the last record and the next one; of what the next one,
        of a step, may not be itself."""
        if not self.pattern.nevers:
            return 0
        steps = self.pattern.elements[state.number].steps
        served = dict(zip((step.name for step in steps), state.served, strict=True))
        bits = 0
        for never in self.pattern.nevers:
            first, last = self.pattern.place_of[never.first], self.pattern.place_of[never.last]
            lacking = self.pattern.steps[self.pattern.number_of[never.last]].times - served.get(never.last, 0)
            begun = first < state.number or served.get(never.first, 0) > 0
            over = last < state.number or not lacking
            ends = i is not None and never.last == steps[i].name and lacking == 1
            if begun and not over and not ends:
                bits |= 1 << never.bit
        return bits

    def clear(self, bits: int, last: Int64s, place: Int64s) -> Bools:
        """Return whether no record strictly between two places has one of some bits."""
        if bits not in self._met_from:
            met = np.where(self.bits & bits, np.arange(self.size), self.size)
            self._met_from[bits] = np.append(np.minimum.accumulate(met[::-1])[::-1], self.size)
        clear: Bools = self._met_from[bits][last + 1] >= place
        return clear

    def _choices(self) -> dict[str, Choices]:
        """Of each step; without records that give a value which no later step could agree with."""
        choices_of: dict[str, Choices] = {}
        asked: dict[tuple[str, str], set[int | None]] = {}
        for step in reversed(self.pattern.steps):
            choices: dict[Values, dict[Values, list[int]]] = {}
            for place in np.flatnonzero(self.bits >> step.bit & 1).tolist():
                agreed = tuple(self.stretch.codes[own][place] for own, _, _ in step.agrees)
                given = self._given(step, place)
                askable = map(
                    set.__contains__, (asked[name] for name in self.pattern.given[step.name]), given
                )
                if NULL not in agreed and self.value_of[step.name][place] != NULL and all(askable):
                    choices.setdefault(agreed, {}).setdefault(given, []).append(place)
            for at, (_, other, column) in enumerate(step.agrees):
                values = {agreed[at] for agreed in choices}
                asked[other, column] = asked.get((other, column), values) & values
            choices_of[step.name] = {
                agreed: {given: np.array(places) for given, places in some.items()}
                for agreed, some in choices.items()
            }
        return choices_of

    def _given(self, step: PatternStep, place: int) -> Values:
        """The values that a record gives to later steps."""
        return tuple(self.stretch.codes[column][place] for _, column in self.pattern.given[step.name])

    def _values(self, step: PatternStep) -> Sequence[int]:
        """What no two records of a step may share; `NULL` where one lacks it."""
        if not step.distinct:
            return range(self.size)
        code_of: dict[tuple[int, ...], int] = {}
        values = zip(*(self.stretch.codes[column] for column in step.distinct), strict=True)
        return [NULL if NULL in value else code_of.setdefault(value, len(code_of)) for value in values]

    def _may(self, state: MatchState, i: int, place: int) -> bool:
        """Whether a step of the element may take a record."""
        step = self.pattern.elements[state.number].steps[i]
        given = self._given(step, place)
        return (
            state.served[i] < step.times
            and place <= state.limit
            and not self.bits[place] & self.forbidden(state, i)
            and self.value_of[step.name][place] not in state.values_taken
            and place in self.agreeing(step, state.bound).get(given, ())
        )
