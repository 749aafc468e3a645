"""The records of one minimal instance whose first and last record are known.

Place by place the earliest record is taken that some step can take, and where that comes to no end, the
earliest that still lets the rest be matched. What lets the rest be matched is asked of tables that are filled
from the end of the stretch: where an element may begin, and how early one that has begun can be over. They
depend on what has been matched only by the values that later steps have to agree with, so that nothing is
tried twice: an instance among `n` records costs `O(v n^2)`, where these values may be bound in `v` ways; at
most one where no step agrees with another, and up to `n` for each value that is asked for at once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from transom.algorithms.batches import Bools
from transom.algorithms.exact import Int64s
from transom.algorithms.patterns import NULL, Instance, Pattern, Step, Stretch

Values = tuple[int | None, ...]
"""Of columns that steps agree in; None where there is none yet, or none any more."""
Choices = Mapping[Values, Mapping[Values, Int64s]]
"""The places of the records that a step may take, by the values in which they agree with earlier steps, and
by those that they give to later ones."""


class _State(NamedTuple):
    """What has been matched, as far as it binds what follows: equal states have equal futures.

    Attributes:
        number: of the element that is being served.
        served: how many records each of its steps has.
        limit: the last place that its records may have.
        taken: the values of a step that asks for different ones.
        bound: values to agree with.
    """

    number: int
    served: tuple[int, ...]
    limit: int
    taken: frozenset[int]
    bound: Values


class _Repeats(NamedTuple):
    """The records of a step that takes several, given what is bound.

    Attributes:
        place: of each, ascending.
        value: that no two of them may share.
        before: the place of the one before it with the same value.
        final: whether all that comes behind it can be matched.
    """

    place: Int64s
    value: Int64s
    before: Int64s
    final: Bools


class _Ahead(NamedTuple):
    """What comes next of steps in any order, given which have been served and what is bound.

    Attributes:
        place: of each record that can be taken next, ascending.
        over: the least last place of the element, if the next one is taken there or, where nothing forbids
            it, later.
    """

    place: Int64s
    over: Int64s


def smallest(pattern: Pattern, stretch: Stretch) -> Instance:
    """The instance from the first record of a stretch to its last whose places come first.

    Args:
        stretch: no longer than an instance may be, in time and in records.

    Raises:
        ValueError: there is none.
    """
    search = _Search(pattern, stretch)
    # Mostly nothing stands in the way of the earliest records, and no table is needed.
    found = search.found(lambda state, place: True) or search.found(search.completes)
    if found is None:
        raise ValueError("the stretch holds no instance from its first record to its last")
    return found


class _Search:
    def __init__(self, pattern: Pattern, stretch: Stretch) -> None:
        self.pattern, self.stretch, self.size = pattern, stretch, len(stretch)
        self.time, self.bits = (np.array(column, dtype=np.int64) for column in (stretch.time, stretch.bits))
        self.times = [tuple(step.times for step in element.steps) for element in pattern.elements]
        self.value_of = {step.name: self._values(step) for step in pattern.steps}
        self.choices_of = self._choices()
        self.met_from: dict[int, Int64s] = {}
        self.entries_of: dict[tuple[int, Values], Int64s] = {}
        self.repeats_of: dict[tuple[int, Values], _Repeats] = {}
        self.ahead_of: dict[_State, _Ahead] = {}

    def found(self, promising: Callable[[_State, int], bool]) -> Instance | None:
        """The places taken one by one, each the first that seems promising, with every way to give them to
        steps side by side; None where they do not end with the last record."""
        ways: dict[_State, tuple[int, ...]] = {self._fresh(0, (None,) * len(self.pattern.last_use)): ()}
        places: list[int] = []
        for _ in range(sum(map(sum, self.times))):
            after: dict[_State, tuple[int, ...]] = {}
            for place in range(places[-1] + 1, self.size) if places else range(min(self.size, 1)):
                for before, steps in ways.items():
                    for step, state in self._served(before, places[-1] if places else None, place):
                        if promising(state, place):
                            after[state] = min(after.get(state, (*steps, step)), (*steps, step))
                if after:
                    places.append(place)
                    break
            ways = after
        if not ways or places[-1] < self.size - 1:
            return None
        names = [self.pattern.steps[number].name for number in min(ways.values())]
        return Instance(tuple(places), tuple(names))

    def _served(self, state: _State, last: int | None, place: int) -> Iterator[tuple[int, _State]]:
        """The steps that a record may serve next, by their numbers."""
        if last is not None:
            if self._full(state):
                if state.number + 1 == len(self.times):
                    return
                state = self._fresh(state.number + 1, state.bound)
                least, most = self.pattern.elements[state.number].gap
                gap = self.stretch.time[place] - self.stretch.time[last]
                if gap < (least or 0) or (most is not None and gap > most):
                    return
            if not self._clear(self._forbidden(state), np.array([last]), np.array([place]))[0]:
                return
        for i, step in enumerate(self.pattern.elements[state.number].steps):
            if self._may(state, i, place):
                yield self.pattern.number_of[step.name], self._after(state, i, place)

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

    def _given(self, step: Step, place: int) -> Values:
        """The values that a record gives to later steps."""
        return tuple(self.stretch.codes[column][place] for _, column in self.pattern.given[step.name])

    def _values(self, step: Step) -> Sequence[int]:
        """What no two records of a step may share; `NULL` where one lacks it."""
        if not step.distinct:
            return range(self.size)
        code_of: dict[tuple[int, ...], int] = {}
        values = zip(*(self.stretch.codes[column] for column in step.distinct), strict=True)
        return [NULL if NULL in value else code_of.setdefault(value, len(code_of)) for value in values]

    def _agreeing(self, step: Step, bound: Values) -> Mapping[Values, Int64s]:
        """The places of the records that a step may take given what is bound, by the values that it gives."""
        values = dict(zip(self.pattern.last_use, bound, strict=True))
        agreed = tuple(values[other, column] for _, other, column in step.agrees)
        given = tuple(values[variable] for variable in self.pattern.given[step.name])
        choices = self.choices_of[step.name].get(agreed, {})
        return choices if None in given else {given: choices[given]} if given in choices else {}

    def _fresh(self, number: int, bound: Values) -> _State:
        return _State(number, (0,) * len(self.times[number]), self.size - 1, frozenset(), bound)

    def _full(self, state: _State) -> bool:
        return state.served == self.times[state.number]

    def _may(self, state: _State, i: int, place: int) -> bool:
        """Whether a step of the element may take a record."""
        step = self.pattern.elements[state.number].steps[i]
        given = self._given(step, place)
        return (
            state.served[i] < step.times
            and place <= state.limit
            and not self.bits[place] & self._forbidden(state, i)
            and self.value_of[step.name][place] not in state.taken
            and place in self._agreeing(step, state.bound).get(given, ())
        )

    def _after(self, state: _State, i: int, place: int) -> _State:
        """The state after a step of the element has taken a record."""
        step, last_use = self.pattern.elements[state.number].steps[i], self.pattern.last_use
        served = (*state.served[:i], state.served[i] + 1, *state.served[i + 1 :])
        values = dict(zip(last_use, state.bound, strict=True))
        values.update(zip(self.pattern.given[step.name], self._given(step, place), strict=True))
        if served == self.times[state.number]:
            # Neither when the element began nor which values it has is anything to those behind it.
            bound = tuple(values[name] if state.number < last else None for name, last in last_use.items())
            return _State(state.number, served, self.size - 1, frozenset(), bound)
        limit = state.limit if any(state.served) else int(self._limits(state.number, np.array([place]))[0])
        taken = state.taken | {self.value_of[step.name][place]} if step.distinct else state.taken
        return _State(state.number, served, limit, taken, tuple(values.values()))

    def _limits(self, number: int, places: Int64s) -> Int64s:
        """The last place that an element's records may have that begins at a place."""
        element, limits = self.pattern.elements[number], np.full(len(places), self.size - 1)
        for within in (element.within, *(step.within for step in element.steps)):
            if within is not None:
                ends = np.searchsorted(self.time, self.time[places] + within, side="right")
                limits = np.minimum(limits, ends - 1)
        return limits

    def _forbidden(self, state: _State, i: int | None = None) -> int:
        """The bits of what may not lie between the last record and the next one; of what the next one, of a
        step, may not be itself."""
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

    def _clear(self, bits: int, last: Int64s, place: Int64s) -> Bools:
        """Whether no record strictly between two places has one of some bits."""
        if bits not in self.met_from:
            met = np.where(self.bits & bits, np.arange(self.size), self.size)
            self.met_from[bits] = np.append(np.minimum.accumulate(met[::-1])[::-1], self.size)
        clear: Bools = self.met_from[bits][last + 1] >= place
        return clear

    # What lets the rest be matched.

    def completes(self, state: _State, place: int) -> bool:
        """Whether the rest can be matched up to the last record, after a record has been taken."""
        return bool(self._over(state, np.array([place]))[0] <= state.limit)

    def _over(self, state: _State, places: Int64s) -> Int64s:
        """The least last place of an element after which the rest can be matched, given where its last record
        so far is; the number of records where there is none."""
        if self._full(state):
            return np.where(self._followed(state, places), places, self.size)
        if len(state.served) == 1:
            return np.array([self._filled(state, place) for place in places.tolist()])
        ahead = self._ahead(state)
        at = np.searchsorted(ahead.place, places, side="right")
        following, over = (np.append(column, self.size)[at] for column in ahead)
        return np.where(self._clear(self._forbidden(state), places, following), over, self.size)

    def _followed(self, state: _State, places: Int64s) -> Bools:
        """Whether the elements behind one can be matched, given where its last record is."""
        number = state.number + 1
        if number == len(self.times):
            ends: Bools = places == self.size - 1
            return ends
        least, most = self.pattern.elements[number].gap
        first = np.searchsorted(self.time, self.time[places] + (least or 0))
        latest = self.time[-1] if most is None else self.time[places] + most
        behind = np.searchsorted(self.time, latest, side="right")
        entries = self._entries(number, state.bound)
        entry = np.append(entries, self.size)[np.searchsorted(entries, np.maximum(first, places + 1))]
        forbidden = self._forbidden(self._fresh(number, state.bound))
        return (entry < behind) & self._clear(forbidden, places, entry)

    def _entries(self, number: int, bound: Values) -> Int64s:
        """The places at which an element may begin, for the rest can be matched from there."""
        if (number, bound) not in self.entries_of:
            entries = [np.empty(0, dtype=np.int64)]
            for places, after in self._further(self._fresh(number, bound)):
                entries.append(places[self._over(after, places) <= self._limits(number, places)])
            self.entries_of[number, bound] = np.unique(np.concatenate(entries))
        return self.entries_of[number, bound]

    def _further(self, state: _State) -> Iterator[tuple[Int64s, _State]]:
        """The states after one more record of an element, with the places that lead to each."""
        for i, step in enumerate(self.pattern.elements[state.number].steps):
            for places in self._agreeing(step, state.bound).values():
                allowed = places[self.bits[places] & self._forbidden(state, i) == 0]
                if state.served[i] < step.times and len(allowed):
                    for some in np.split(allowed, len(allowed) if step.distinct else 1):
                        yield some, self._after(state, i, int(some[0]))

    def _filled(self, state: _State, place: int) -> int:
        """The least place at which a step that has taken some of its records can take its last; the number of
        records where there is none.

        It is the first that may be the last one from where on there have been as many values as it lacks: if
        its own is not the newest, those of the others are enough without it.
        """
        repeats = self._repeats(state)
        behind = int(np.searchsorted(repeats.place, place, side="right"))
        unused = np.ones(len(repeats.place) - behind, dtype=bool)
        if state.taken:
            unused = ~np.isin(repeats.value[behind:], list(state.taken))
        new = np.flatnonzero(unused & (repeats.before[behind:] <= place))
        lacking = self.times[state.number][0] - state.served[0]
        if len(new) < lacking:
            return self.size
        unused[: new[lacking - 1]] = False
        last = np.flatnonzero(unused & repeats.final[behind:])
        if not len(last):
            return self.size
        over = repeats.place[behind + last[:1]]
        return int(over[0]) if self._clear(self._forbidden(state), np.array([place]), over)[0] else self.size

    def _repeats(self, state: _State) -> _Repeats:
        number, bound = state.number, state.bound
        if (number, bound) not in self.repeats_of:
            (step,) = self.pattern.elements[number].steps
            (places,) = self._agreeing(step, bound).values()
            value = np.array(self.value_of[step.name])[places]
            order = np.lexsort([places, value])
            before = np.full(len(places), -1)
            same = np.flatnonzero(np.diff(value[order]) == 0)
            before[order[same + 1]] = places[order[same]]
            before_last = state._replace(served=(step.times - 1,), taken=frozenset(), limit=self.size - 1)
            allowed = self.bits[places] & self._forbidden(before_last, 0) == 0
            final = allowed & self._followed(self._after(before_last, 0, int(places[0])), places)
            self.repeats_of[number, bound] = _Repeats(places, value, before, final)
        return self.repeats_of[number, bound]

    def _ahead(self, state: _State) -> _Ahead:
        """As the class says; filled from the end, for calls do not nest as deep as an element is long."""
        state = state._replace(limit=self.size - 1)
        if state not in self.ahead_of:
            further: dict[_State, list[tuple[Int64s, _State]]] = {}
            waiting = [state]
            while waiting:
                one = waiting.pop()
                if not (one in further or one in self.ahead_of or self._full(one)):
                    further[one] = list(self._further(one))
                    waiting += (after for _, after in further[one])
            for one in sorted(further, key=lambda one: -sum(one.served)):
                self.ahead_of[one] = self._soonest(one, further[one])
        return self.ahead_of[state]

    def _soonest(self, state: _State, further: Sequence[tuple[Int64s, _State]]) -> _Ahead:
        places = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(some for some, _ in further)]))
        over = np.full(len(places), self.size)
        for some, after in further:
            at = np.searchsorted(places, some)
            over[at] = np.minimum(over[at], self._over(after, some))
        # Where something forbidden lies before the next place, what is behind it is out of reach: it is made
        # to look later than all that is in reach.
        blocked = ~self._clear(self._forbidden(state), places[:-1] - 1, places[1:])
        apart = np.cumsum(np.concatenate([np.zeros(min(len(places), 1), dtype=np.int64), blocked]))
        apart *= self.size + 1
        return _Ahead(places, np.minimum.accumulate((over + apart)[::-1])[::-1] - apart)
