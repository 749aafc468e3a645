"""The records of one minimal instance whose first and last record are known.

Place by place the earliest record is taken that some step can take, and where that comes to no end, the
earliest that still lets the rest be matched. What lets the rest be matched is asked of tables that are filled
from the end of the stretch: where an element may begin, and how early one that has begun can be over. They
depend on what has been matched only by the values that later steps have to agree with, so that nothing is
tried twice: an instance among `n` records costs `O(v n^2)`, where these values may be bound in `v` ways; at
most one where no step agrees with another, and up to `n` for each value that is asked for at once.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from transom.core.exact_sums import Bools, Int64s
from transom.features.patterns.algorithm.pattern import EventPattern, Instance, RecordSequence
from transom.features.patterns.algorithm.transitions import MatchState, Transitions, Values


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


def smallest(pattern: EventPattern, stretch: RecordSequence) -> Instance:
    """The instance from the first record of a stretch to its last whose places come first.

    Args:
        stretch: no longer than an instance may be, in time and in records.

    Raises:
        ValueError: there is none.
    """
    search = _InstanceSearch(pattern, stretch)
    # Mostly nothing stands in the way of the earliest records, and no table is needed.
    found = search.search(lambda state, place: True) or search.search(search.completes)
    if found is None:
        raise ValueError("the stretch holds no instance from its first record to its last")
    return found


class _InstanceSearch:
    def __init__(self, pattern: EventPattern, stretch: RecordSequence) -> None:
        self.pattern, self.stretch = pattern, stretch
        self.moves = Transitions(pattern, stretch)
        self.size, self.time, self.times = self.moves.size, self.moves.time, self.moves.times
        self.entries_of: dict[tuple[int, Values], Int64s] = {}
        self.repeats_of: dict[tuple[int, Values], _Repeats] = {}
        self.ahead_of: dict[MatchState, _Ahead] = {}

    def search(self, promising: Callable[[MatchState, int], bool]) -> Instance | None:
        """The places taken one by one, each the first that seems promising, with every way to give them to
        steps side by side; None where they do not end with the last record."""
        ways: dict[MatchState, tuple[int, ...]] = {
            self.moves.fresh(0, (None,) * len(self.pattern.last_use)): ()
        }
        places: list[int] = []
        for _ in range(sum(map(sum, self.times))):
            after: dict[MatchState, tuple[int, ...]] = {}
            for place in range(places[-1] + 1, self.size) if places else range(min(self.size, 1)):
                for before, steps in ways.items():
                    for step, state in self.moves.assignments(before, places[-1] if places else None, place):
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

    # What lets the rest be matched.

    def completes(self, state: MatchState, place: int) -> bool:
        """Whether the rest can be matched up to the last record, after a record has been taken."""
        return bool(self._over(state, np.array([place]))[0] <= state.limit)

    def _over(self, state: MatchState, places: Int64s) -> Int64s:
        """The least last place of an element after which the rest can be matched, given where its last record
        so far is; the number of records where there is none."""
        if self.moves.full(state):
            return np.where(self._followed(state, places), places, self.size)
        if len(state.served) == 1:
            return np.array([self._filled(state, place) for place in places.tolist()])
        ahead = self._ahead(state)
        at = np.searchsorted(ahead.place, places, side="right")
        following, over = (np.append(column, self.size)[at] for column in ahead)
        return np.where(self.moves.clear(self.moves.forbidden(state), places, following), over, self.size)

    def _followed(self, state: MatchState, places: Int64s) -> Bools:
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
        forbidden = self.moves.forbidden(self.moves.fresh(number, state.bound))
        return (entry < behind) & self.moves.clear(forbidden, places, entry)

    def _entries(self, number: int, bound: Values) -> Int64s:
        """The places at which an element may begin, for the rest can be matched from there."""
        if (number, bound) not in self.entries_of:
            entries = [np.empty(0, dtype=np.int64)]
            for places, after in self._further(self.moves.fresh(number, bound)):
                entries.append(places[self._over(after, places) <= self.moves.limits(number, places)])
            self.entries_of[number, bound] = np.unique(np.concatenate(entries))
        return self.entries_of[number, bound]

    def _further(self, state: MatchState) -> Iterator[tuple[Int64s, MatchState]]:
        """The states after one more record of an element, with the places that lead to each."""
        for i, step in enumerate(self.pattern.elements[state.number].steps):
            for places in self.moves.agreeing(step, state.bound).values():
                allowed = places[self.moves.bits[places] & self.moves.forbidden(state, i) == 0]
                if state.served[i] < step.times and len(allowed):
                    for some in np.split(allowed, len(allowed) if step.distinct else 1):
                        yield some, self.moves.after(state, i, int(some[0]))

    def _filled(self, state: MatchState, place: int) -> int:
        """The least place at which a step that has taken some of its records can take its last; the number of
        records where there is none.

        It is the first that may be the last one from where on there have been as many values as it lacks: if
        its own is not the newest, those of the others are enough without it.
        """
        repeats = self._repeats(state)
        behind = int(np.searchsorted(repeats.place, place, side="right"))
        unused = np.ones(len(repeats.place) - behind, dtype=bool)
        if state.values_taken:
            unused = ~np.isin(repeats.value[behind:], list(state.values_taken))
        new = np.flatnonzero(unused & (repeats.before[behind:] <= place))
        lacking = self.times[state.number][0] - state.served[0]
        if len(new) < lacking:
            return self.size
        unused[: new[lacking - 1]] = False
        last = np.flatnonzero(unused & repeats.final[behind:])
        if not len(last):
            return self.size
        over = repeats.place[behind + last[:1]]
        clear = self.moves.clear(self.moves.forbidden(state), np.array([place]), over)
        return int(over[0]) if clear[0] else self.size

    def _repeats(self, state: MatchState) -> _Repeats:
        number, bound = state.number, state.bound
        if (number, bound) not in self.repeats_of:
            (step,) = self.pattern.elements[number].steps
            (places,) = self.moves.agreeing(step, bound).values()
            value = np.array(self.moves.value_of[step.name])[places]
            order = np.lexsort([places, value])
            before = np.full(len(places), -1)
            same = np.flatnonzero(np.diff(value[order]) == 0)
            before[order[same + 1]] = places[order[same]]
            before_last = state._replace(
                served=(step.times - 1,), values_taken=frozenset(), limit=self.size - 1
            )
            allowed = self.moves.bits[places] & self.moves.forbidden(before_last, 0) == 0
            final = allowed & self._followed(self.moves.after(before_last, 0, int(places[0])), places)
            self.repeats_of[number, bound] = _Repeats(places, value, before, final)
        return self.repeats_of[number, bound]

    def _ahead(self, state: MatchState) -> _Ahead:
        """As the class says; filled from the end, for calls do not nest as deep as an element is long."""
        state = state._replace(limit=self.size - 1)
        if state not in self.ahead_of:
            further: dict[MatchState, list[tuple[Int64s, MatchState]]] = {}
            waiting = [state]
            while waiting:
                one = waiting.pop()
                if not (one in further or one in self.ahead_of or self.moves.full(one)):
                    further[one] = list(self._further(one))
                    waiting += (after for _, after in further[one])
            for one in sorted(further, key=lambda one: -sum(one.served)):
                self.ahead_of[one] = self._soonest(one, further[one])
        return self.ahead_of[state]

    def _soonest(self, state: MatchState, further: Sequence[tuple[Int64s, MatchState]]) -> _Ahead:
        places = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(some for some, _ in further)]))
        over = np.full(len(places), self.size)
        for some, after in further:
            at = np.searchsorted(places, some)
            over[at] = np.minimum(over[at], self._over(after, some))
        # Where something forbidden lies before the next place, what is behind it is out of reach: it is made
        # to look later than all that is in reach.
        blocked = ~self.moves.clear(self.moves.forbidden(state), places[:-1] - 1, places[1:])
        apart = np.cumsum(np.concatenate([np.zeros(min(len(places), 1), dtype=np.int64), blocked]))
        apart *= self.size + 1
        return _Ahead(places, np.minimum.accumulate((over + apart)[::-1])[::-1] - apart)
