"""Find the records of one minimal instance whose first and last record are known.

For each place the search takes the earliest record that some step can take. If this leads to no instance, it
takes the earliest record with which the rest can still be matched. Tables tell whether it can; they are
filled from the end of the records: where an element may begin, and how early a begun element can end. They
depend on the matched records only by the values that later steps agree with, so nothing is tried twice. An
instance among `n` records costs `O(v n^2)`, where `v` is the number of ways to bind these values: at most one
if no step agrees with another, and up to `n` for each value that is bound at once.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from transom.core.exact_sums import Bools, Int64s
from transom.features.patterns.algorithm.pattern import EventPattern, Instance, RecordSequence
from transom.features.patterns.algorithm.transitions import MatchState, Transitions, Values


class _Repeats(NamedTuple):
    """The records of a step that takes several, for given bindings.

    Attributes:
        place: of each record, ascending.
        value: the value that no two of them may share.
        previous: the place of the previous record with the same value.
        final: whether the rest can be matched after it.
    """

    place: Int64s
    value: Int64s
    previous: Int64s
    final: Bools


class _Ahead(NamedTuple):
    """The possible next records of steps in any order, for given served steps and bindings.

    Attributes:
        place: of each possible next record, ascending.
        over: the smallest last place of the element, if the next record is taken there or, if nothing forbids
            it, later.
    """

    place: Int64s
    over: Int64s


def smallest(pattern: EventPattern, records: RecordSequence) -> Instance:
    """Return the first instance, by its places, from the first to the last of the records.

    Args:
        records: not longer than an instance may be, in time and in number.

    Raises:
        ValueError: there is none.
    """
    search = _InstanceSearch(pattern, records)
    # Usually the earliest records lead to an instance, and no table is needed.
    instance = search.search(lambda state, place: True) or search.search(search.completes)
    if instance is None:
        raise ValueError("the stretch holds no instance from its first record to its last")
    return instance


class _InstanceSearch:
    def __init__(self, pattern: EventPattern, records: RecordSequence) -> None:
        self.pattern, self.records = pattern, records
        self.moves = Transitions(pattern, records)
        self.size, self.time, self.times = self.moves.size, self.moves.time, self.moves.times
        self.entries_of: dict[tuple[int, Values], Int64s] = {}
        self.repeats_of: dict[tuple[int, Values], _Repeats] = {}
        self.ahead_of: dict[MatchState, _Ahead] = {}

    def search(self, promising: Callable[[MatchState, int], bool]) -> Instance | None:
        """Take places one by one, each the first promising one, with all assignments to steps side by side.
        Return None if they do not end with the last record."""
        ways: dict[MatchState, tuple[int, ...]] = {
            self.moves.fresh(0, (None,) * len(self.pattern.last_use)): ()
        }
        places: list[int] = []
        for _ in range(sum(map(sum, self.times))):
            after: dict[MatchState, tuple[int, ...]] = {}
            for place in range(places[-1] + 1, self.size) if places else range(min(self.size, 1)):
                for previous, steps in ways.items():
                    for step, state in self.moves.assignments(
                        previous, places[-1] if places else None, place
                    ):
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

    # Whether the rest can be matched.

    def completes(self, state: MatchState, place: int) -> bool:
        """Return whether the rest can be matched up to the last record, after a record was taken."""
        return bool(self._over(state, np.array([place]))[0] <= state.limit)

    def _over(self, state: MatchState, places: Int64s) -> Int64s:
        """Return the smallest last place of an element after which the rest can be matched, given the place
        of its last record so far; the number of records if there is none."""
        if self.moves.full(state):
            return np.where(self._followed(state, places), places, self.size)
        if len(state.served) == 1:
            return np.array([self._filled(state, place) for place in places.tolist()])
        ahead = self._ahead(state)
        at = np.searchsorted(ahead.place, places, side="right")
        following, over = (np.append(column, self.size)[at] for column in ahead)
        return np.where(self.moves.clear(self.moves.forbidden(state), places, following), over, self.size)

    def _followed(self, state: MatchState, places: Int64s) -> Bools:
        """Return whether the elements after one can be matched, given the place of its last record."""
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
        forbidden = self.moves.forbidden(self.moves.fresh(number, state.bound))
        return (entry < stop) & self.moves.clear(forbidden, places, entry)

    def _entries(self, number: int, bound: Values) -> Int64s:
        """Return the places at which an element may begin so that the rest can be matched."""
        if (number, bound) not in self.entries_of:
            entries = [np.empty(0, dtype=np.int64)]
            for places, after in self._further(self.moves.fresh(number, bound)):
                entries.append(places[self._over(after, places) <= self.moves.limits(number, places)])
            self.entries_of[number, bound] = np.unique(np.concatenate(entries))
        return self.entries_of[number, bound]

    def _further(self, state: MatchState) -> Iterator[tuple[Int64s, MatchState]]:
        """Yield the states after one more record of an element, with the places that lead to each."""
        for i, step in enumerate(self.pattern.elements[state.number].steps):
            for places in self.moves.agreeing(step, state.bound).values():
                allowed = places[self.moves.bits[places] & self.moves.forbidden(state, i) == 0]
                if state.served[i] < step.times and len(allowed):
                    for group in np.split(allowed, len(allowed) if step.distinct else 1):
                        yield group, self.moves.after(state, i, int(group[0]))

    def _filled(self, state: MatchState, place: int) -> int:
        """Return the smallest place at which a step that took some of its records can take its last; the
        number of records if there is none.

        It is the first possible last record with as many new values before it as the step lacks: if its own
        value is not the newest, the other values are enough without it.
        """
        repeats = self._repeats(state)
        start = int(np.searchsorted(repeats.place, place, side="right"))
        unused = np.ones(len(repeats.place) - start, dtype=bool)
        if state.values_taken:
            unused = ~np.isin(repeats.value[start:], list(state.values_taken))
        new = np.flatnonzero(unused & (repeats.previous[start:] <= place))
        lacking = self.times[state.number][0] - state.served[0]
        if len(new) < lacking:
            return self.size
        unused[: new[lacking - 1]] = False
        last = np.flatnonzero(unused & repeats.final[start:])
        if not len(last):
            return self.size
        over = repeats.place[start + last[:1]]
        clear = self.moves.clear(self.moves.forbidden(state), np.array([place]), over)
        return int(over[0]) if clear[0] else self.size

    def _repeats(self, state: MatchState) -> _Repeats:
        number, bound = state.number, state.bound
        if (number, bound) not in self.repeats_of:
            (step,) = self.pattern.elements[number].steps
            (places,) = self.moves.agreeing(step, bound).values()
            value = np.array(self.moves.value_of[step.name])[places]
            order = np.lexsort([places, value])
            previous = np.full(len(places), -1)
            same = np.flatnonzero(np.diff(value[order]) == 0)
            previous[order[same + 1]] = places[order[same]]
            before_last = state._replace(
                served=(step.times - 1,), values_taken=frozenset(), limit=self.size - 1
            )
            allowed = self.moves.bits[places] & self.moves.forbidden(before_last, 0) == 0
            final = allowed & self._followed(self.moves.after(before_last, 0, int(places[0])), places)
            self.repeats_of[number, bound] = _Repeats(places, value, previous, final)
        return self.repeats_of[number, bound]

    def _ahead(self, state: MatchState) -> _Ahead:
        """Return the `_Ahead` of a state. The table is filled from the end without deep recursion."""
        state = state._replace(limit=self.size - 1)
        if state not in self.ahead_of:
            further: dict[MatchState, list[tuple[Int64s, MatchState]]] = {}
            waiting = [state]
            while waiting:
                current = waiting.pop()
                if not (current in further or current in self.ahead_of or self.moves.full(current)):
                    further[current] = list(self._further(current))
                    waiting += (after for _, after in further[current])
            for current in sorted(further, key=lambda current: -sum(current.served)):
                self.ahead_of[current] = self._soonest(current, further[current])
        return self.ahead_of[state]

    def _soonest(self, state: MatchState, further: Sequence[tuple[Int64s, MatchState]]) -> _Ahead:
        places = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(group for group, _ in further)]))
        over = np.full(len(places), self.size)
        for group, after in further:
            at = np.searchsorted(places, group)
            over[at] = np.minimum(over[at], self._over(after, group))
        # Places after a forbidden record are out of reach: an offset makes them later than all places in
        # reach.
        blocked = ~self.moves.clear(self.moves.forbidden(state), places[:-1] - 1, places[1:])
        offsets = np.cumsum(np.concatenate([np.zeros(min(len(places), 1), dtype=np.int64), blocked]))
        offsets *= self.size + 1
        return _Ahead(places, np.minimum.accumulate((over + offsets)[::-1])[::-1] - offsets)
