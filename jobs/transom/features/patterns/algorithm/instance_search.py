"""Find the records of one minimal instance whose first and last record are known.

For each place, the search takes the earliest record that some step can take. If this leads to no instance, it
takes the earliest record after which the rest can still be matched. Tables, filled from the end of the
records, answer whether it can: where an element may begin, and how early a begun element can end.

The future of an instance depends on its matched records only by the current element, the number of records of
each of its steps, and the values that later steps agree with. So the search tries nothing twice. An instance
among n records costs `O(v * n**2)`, where v is the number of ways to bind these values: 1 if no step agrees
with another, and up to n for each value that is bound at once.

>>> from transom.features.patterns.algorithm.pattern import Element
>>> a, b = PatternStep("a", bit=0, times=2), PatternStep("b", bit=1)
>>> pattern = EventPattern((Element((a,)), Element((b,))), (), max_length=10, max_records=9)
>>> smallest(pattern, RecordSequence([0, 1, 2, 3], [1, 1, 1, 2], {})).places
(0, 1, 3)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from transom.core.exact_sums import Bools, Int64s
from transom.features.patterns.algorithm.pattern import (
    NULL,
    EventPattern,
    Instance,
    PatternStep,
    RecordSequence,
)

Values = tuple[int | None, ...]
"""Values of the columns that later steps agree with; None if not bound yet, or no longer needed."""
Choices = Mapping[Values, Mapping[Values, Int64s]]
"""The places of the records that a step may take, by the values that agree with earlier steps, then by the
values that they bind for later ones."""


class MatchState(NamedTuple):
    """The state of a partly matched instance. Equal states have the same future.

    Attributes:
        number: the number of the current element.
        served: the number of records of each of its steps.
        limit: the last possible place of its records.
        values_taken: the values that a step with `distinct` has used.
        bound: the values that later records must agree with.
    """

    number: int
    served: tuple[int, ...]
    limit: int
    values_taken: frozenset[int]
    bound: Values


def smallest(pattern: EventPattern, records: RecordSequence) -> Instance:
    """Return the first instance, by its places, from the first to the last of the records.

    Args:
        records: at most as long as an instance may be, in time and in number.

    Raises:
        ValueError: there is no instance from the first to the last of the records.
    """
    search = _InstanceSearch(pattern, records)
    # Usually the earliest records lead to an instance, and no table is needed.
    instance = search.search(lambda state, place: True) or search.search(search.completes)
    if instance is None:
        raise ValueError("the records hold no instance from the first to the last")
    return instance


class _InstanceSearch:
    """The states of a pattern's instances, and the transitions between them, for one sequence of records.

    Attributes:
        size: the number of records.
        time: the time of each record, in microseconds.
        bits: the mask of the conditions that each record meets.
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
        self._entries_of: dict[tuple[int, Values], Int64s] = {}
        self._repeats_of: dict[tuple[int, Values], tuple[Int64s, Int64s, Int64s, Bools]] = {}
        self._ahead_of: dict[MatchState, tuple[Int64s, Int64s]] = {}

    def search(self, promising: Callable[[MatchState, int], bool]) -> Instance | None:
        """Take places one by one, each the first promising one, with all assignments to steps in parallel.

        Return None if they do not end with the last record.
        """
        start = self._fresh(0, (None,) * len(self.pattern.last_use))
        ways: dict[MatchState, tuple[int, ...]] = {start: ()}
        places: list[int] = []
        for _ in range(sum(map(sum, self.times))):
            after: dict[MatchState, tuple[int, ...]] = {}
            last = places[-1] if places else None
            for place in range(1) if last is None else range(last + 1, self.size):
                for previous, steps in ways.items():
                    for step, state in self._assignments(previous, last, place):
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

    def completes(self, state: MatchState, place: int) -> bool:
        """Return whether the rest can be matched up to the last record, after a step took a record."""
        return bool(self._over(state, np.array([place]))[0] <= state.limit)

    def _over(self, state: MatchState, places: Int64s) -> Int64s:
        """Return the smallest last place of an element after which the rest can be matched, given the place
        of its last record so far; `size` if there is none."""
        if state.served == self.times[state.number]:
            return np.where(self._followed(state, places), places, self.size)
        if len(state.served) == 1:
            return np.array([self._filled(state, place) for place in places.tolist()])
        ahead = self._ahead(state)
        at = np.searchsorted(ahead[0], places, side="right")
        following, over = (np.append(column, self.size)[at] for column in ahead)
        return np.where(self._clear(state, places, following), over, self.size)

    def _followed(self, state: MatchState, places: Int64s) -> Bools:
        """Return whether all later elements can be matched, given the place of an element's last record."""
        number = state.number + 1
        if number == len(self.times):
            ends: Bools = places == self.size - 1
            return ends
        min_gap, max_gap = self.pattern.elements[number].gap
        first = np.searchsorted(self.time, self.time[places] + (min_gap or 0))
        latest = self.time[-1] if max_gap is None else self.time[places] + max_gap
        stop = np.searchsorted(self.time, latest, side="right")
        entries = self._entries(number, state.bound)
        entry = np.append(entries, self.size)[np.searchsorted(entries, np.maximum(first, places + 1))]
        return (entry < stop) & self._clear(self._fresh(number, state.bound), places, entry)

    def _entries(self, number: int, bound: Values) -> Int64s:
        """Return the places at which an element may begin so that the rest can be matched."""
        if (number, bound) not in self._entries_of:
            entries = [np.empty(0, dtype=np.int64)]
            for places, after in self._further(self._fresh(number, bound)):
                entries.append(places[self._over(after, places) <= self._limits(number, places)])
            self._entries_of[number, bound] = np.unique(np.concatenate(entries))
        return self._entries_of[number, bound]

    def _further(self, state: MatchState) -> Iterator[tuple[Int64s, MatchState]]:
        """Yield the states after one more record of an element, with the places that lead to each."""
        for i, step in enumerate(self.pattern.elements[state.number].steps):
            forbidden = self.pattern.forbidden(state.number, state.served, i)
            for places in self._agreeing(step, state.bound).values():
                allowed = places[self.bits[places] & forbidden == 0]
                if state.served[i] < step.times and len(allowed):
                    for group in np.split(allowed, len(allowed) if step.distinct else 1):
                        yield group, self._after(state, i, int(group[0]))

    def _filled(self, state: MatchState, place: int) -> int:
        """Return the smallest place at which a step that took some of its records can take its last one;
        `size` if there is none.

        It is the first possible last record up to which there are as many new values as the step lacks. If
        its own value occurred before, the other values are enough.
        """
        step_places, value, previous, final = self._repeats(state)
        start = int(np.searchsorted(step_places, place, side="right"))
        unused = np.ones(len(step_places) - start, dtype=bool)
        if state.values_taken:
            unused = ~np.isin(value[start:], list(state.values_taken))
        new = np.flatnonzero(unused & (previous[start:] <= place))
        lacking = self.times[state.number][0] - state.served[0]
        if len(new) < lacking:
            return self.size
        unused[: new[lacking - 1]] = False
        for over in step_places[start:][unused & final[start:]][:1]:
            if self._clear(state, np.array([place]), np.array([over]))[0]:
                return int(over)
        return self.size

    def _repeats(self, state: MatchState) -> tuple[Int64s, Int64s, Int64s, Bools]:
        """Return four columns of the records that a step with several may take.

        They are the place, the value that no two of them may share, the place of the previous record with
        this value, and whether the rest can be matched after the record.
        """
        number, bound = state.number, state.bound
        if (number, bound) not in self._repeats_of:
            (step,) = self.pattern.elements[number].steps
            (places,) = self._agreeing(step, bound).values()
            value = np.array(self.value_of[step.name])[places]
            order, previous = np.lexsort([places, value]), np.full(len(places), -1)
            same = np.flatnonzero(np.diff(value[order]) == 0)
            previous[order[same + 1]] = places[order[same]]
            before_last = self._fresh(number, bound)._replace(served=(step.times - 1,))
            allowed = self.bits[places] & self.pattern.forbidden(number, before_last.served, 0) == 0
            final = allowed & self._followed(self._after(before_last, 0, int(places[0])), places)
            self._repeats_of[number, bound] = places, value, previous, final
        return self._repeats_of[number, bound]

    def _ahead(self, state: MatchState) -> tuple[Int64s, Int64s]:
        """Return the places of the possible next records of steps in any order, and for each the smallest
        last place of the element if the next record is there or, if nothing forbids it, later.

        An explicit stack avoids deep recursion.
        """
        state = state._replace(limit=self.size - 1)
        if state not in self._ahead_of:
            further: dict[MatchState, list[tuple[Int64s, MatchState]]] = {}
            waiting = [state]
            while waiting:
                current = waiting.pop()
                known = current in further or current in self._ahead_of
                if not known and current.served != self.times[current.number]:
                    further[current] = list(self._further(current))
                    waiting += (after for _, after in further[current])
            for current in sorted(further, key=lambda current: -sum(current.served)):
                self._ahead_of[current] = self._soonest(current, further[current])
        return self._ahead_of[state]

    def _soonest(
        self, state: MatchState, further: Sequence[tuple[Int64s, MatchState]]
    ) -> tuple[Int64s, Int64s]:
        places = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(group for group, _ in further)]))
        over = np.full(len(places), self.size)
        for group, after in further:
            at = np.searchsorted(places, group)
            over[at] = np.minimum(over[at], self._over(after, group))
        # Places after a forbidden record are out of reach: an offset makes them later than those in reach.
        blocked = ~self._clear(state, places[:-1] - 1, places[1:])
        offsets = np.append(0, np.cumsum(blocked))[: len(places)] * (self.size + 1)
        return places, np.minimum.accumulate((over + offsets)[::-1])[::-1] - offsets

    def _assignments(
        self, state: MatchState, last: int | None, place: int
    ) -> Iterator[tuple[int, MatchState]]:
        """Yield the steps that a record may serve next, by number, and the resulting states.

        Args:
            state: the state so far.
            last: the place of the last record so far; None for the first one.
            place: the place of the record.
        """
        if last is not None:
            if state.served == self.times[state.number]:
                if state.number + 1 == len(self.times):
                    return
                state = self._fresh(state.number + 1, state.bound)
                min_gap, max_gap = self.pattern.elements[state.number].gap
                gap = self.records.time[place] - self.records.time[last]
                if gap < (min_gap or 0) or (max_gap is not None and gap > max_gap):
                    return
            if not self._clear(state, np.array([last]), np.array([place]))[0]:
                return
        for i, step in enumerate(self.pattern.elements[state.number].steps):
            if (
                state.served[i] < step.times
                and place <= state.limit
                and not self.bits[place] & self.pattern.forbidden(state.number, state.served, i)
                and self.value_of[step.name][place] not in state.values_taken
                and place in self._agreeing(step, state.bound).get(self._bindings(step, place), ())
            ):
                yield self.pattern.number_of[step.name], self._after(state, i, place)

    def _agreeing(self, step: PatternStep, bound: Values) -> Mapping[Values, Int64s]:
        """Return the places of the records that a step may take with some bindings, by the values that they
        bind."""
        values = dict(zip(self.pattern.last_use, bound, strict=True))
        agreed = tuple(values[earlier, column] for _, earlier, column in step.agrees)
        binds = tuple(values[variable] for variable in self.pattern.binds[step.name])
        choices = self._choices_of[step.name].get(agreed, {})
        return choices if None in binds else {binds: choices[binds]} if binds in choices else {}

    def _fresh(self, number: int, bound: Values) -> MatchState:
        """Return the state in which an element has no record yet."""
        return MatchState(number, (0,) * len(self.times[number]), self.size - 1, frozenset(), bound)

    def _after(self, state: MatchState, i: int, place: int) -> MatchState:
        """Return the state after a step of the element takes a record."""
        step, last_use = self.pattern.elements[state.number].steps[i], self.pattern.last_use
        served = (*state.served[:i], state.served[i] + 1, *state.served[i + 1 :])
        values = dict(zip(last_use, state.bound, strict=True))
        values.update(zip(self.pattern.binds[step.name], self._bindings(step, place), strict=True))
        if served == self.times[state.number]:
            # Later elements depend neither on the element's start nor on its distinct values.
            bound = tuple(values[name] if state.number < last else None for name, last in last_use.items())
            return MatchState(state.number, served, self.size - 1, frozenset(), bound)
        limit = state.limit if any(state.served) else int(self._limits(state.number, np.array([place]))[0])
        used = state.values_taken | {self.value_of[step.name][place]} if step.distinct else state.values_taken
        return MatchState(state.number, served, limit, used, tuple(values.values()))

    def _limits(self, number: int, places: Int64s) -> Int64s:
        """Return the last place that records of an element may have, for each place where it begins."""
        within = self.pattern.elements[number].within
        if within is None:
            return np.full(len(places), self.size - 1)
        return np.searchsorted(self.time, self.time[places] + within, side="right") - 1

    def _clear(self, state: MatchState, last: Int64s, place: Int64s) -> Bools:
        """Return whether no forbidden record comes between the last record so far and the next one."""
        bits = self.pattern.forbidden(state.number, state.served)
        if bits not in self._next_forbidden:
            places = np.where(self.bits & bits, np.arange(self.size), self.size)
            self._next_forbidden[bits] = np.append(np.minimum.accumulate(places[::-1])[::-1], self.size)
        clear: Bools = self._next_forbidden[bits][last + 1] >= place
        return clear

    def _choices(self) -> dict[str, Choices]:
        """Return the choices of each step, without records with a value that no later step can agree with."""
        choices_of: dict[str, Choices] = {}
        required: dict[tuple[str, str], set[int | None]] = {}
        for step in reversed(self.pattern.steps):
            choices: dict[Values, dict[Values, list[int]]] = {}
            for place in np.flatnonzero(self.bits >> step.bit & 1).tolist():
                agreed = tuple(self.records.codes[own][place] for own, _, _ in step.agrees)
                binds = self._bindings(step, place)
                names = self.pattern.binds[step.name]
                useful = all(value in required[name] for name, value in zip(names, binds, strict=True))
                if NULL not in agreed and self.value_of[step.name][place] != NULL and useful:
                    choices.setdefault(agreed, {}).setdefault(binds, []).append(place)
            for at, (_, earlier, column) in enumerate(step.agrees):
                values = {agreed[at] for agreed in choices}
                required[earlier, column] = required.get((earlier, column), values) & values
            choices_of[step.name] = {
                agreed: {binds: np.array(places) for binds, places in by_bindings.items()}
                for agreed, by_bindings in choices.items()
            }
        return choices_of

    def _bindings(self, step: PatternStep, place: int) -> Values:
        """Return the values of a record that later steps agree with."""
        return tuple(self.records.codes[column][place] for _, column in self.pattern.binds[step.name])

    def _values(self, step: PatternStep) -> Sequence[int]:
        """Return the value of each record that no two records of a step may share; `NULL` for none."""
        if not step.distinct:
            return range(self.size)
        code_of: dict[tuple[int, ...], int] = {}
        values = zip(*(self.records.codes[column] for column in step.distinct), strict=True)
        return [NULL if NULL in value else code_of.setdefault(value, len(code_of)) for value in values]
