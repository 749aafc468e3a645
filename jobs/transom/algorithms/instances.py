"""The records of one minimal instance whose first and last record are known.

The earliest record is taken that still lets the rest be matched, whichever step it serves; what has led
nowhere is not tried again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from transom.algorithms.patterns import NULL, Instance, Pattern, Step, Stretch


@dataclass(frozen=True)
class _State:
    """What has been matched, as far as it binds what follows: equal states have equal futures.

    Attributes:
        element: the place of the element that is being served.
        served: how many records each of its steps has.
        last: the place of the last record.
        begun: when the element began, and each of its steps, where that limits what follows.
        values: of each of its steps that asks for different ones, those that it has so far.
        bound: values to agree with, by step and column.
    """

    element: int
    served: tuple[int, ...]
    last: int
    begun: tuple[int | None, ...]
    values: tuple[frozenset[tuple[int, ...]], ...]
    bound: frozenset[tuple[str, str, int]]


def smallest(pattern: Pattern, stretch: Stretch) -> Instance:
    """The instance from the first record of a stretch to its last whose places come first.

    Raises:
        ValueError: there is none.
    """
    return _Search(pattern, stretch).found()


class _Search:
    def __init__(self, pattern: Pattern, stretch: Stretch) -> None:
        self.pattern, self.stretch = pattern, stretch
        self.referred = {(other, column) for step in pattern.steps for _, other, column in step.agrees}
        self.total = sum(step.times for step in pattern.steps)
        self.known: dict[_State, bool] = {}

    def found(self) -> Instance:
        """As `smallest`: place by place, with every way to give these places to steps side by side."""
        ways: dict[_State | None, tuple[int, ...]] = {None: ()}
        places: list[int] = []
        for _ in range(self.total):
            after: dict[_State | None, tuple[int, ...]] = {}
            first = places[-1] + 1 if places else 0
            for place in range(first, len(self.stretch) if places else 1):
                for before, steps in ways.items():
                    for step, state in self._taken(before, place):
                        if self._ends(state):
                            after[state] = min(after.get(state, (*steps, step)), (*steps, step))
                if after:
                    places.append(place)
                    break
            ways = after
        if not ways or len(places) < self.total:
            raise ValueError("the stretch holds no instance from its first record to its last")
        named = [self.pattern.steps[number].name for number in min(ways.values())]
        return Instance(tuple(places), tuple(named))

    def _ends(self, state: _State) -> bool:
        """Whether what has been matched can be completed with the last record."""
        path, ways = [state], [self._further(state)]
        while ways:
            at = path[-1]
            if at not in self.known and self._complete(at):
                self.known[at] = at.last == len(self.stretch) - 1
            if self.known.get(at):
                self.known.update(dict.fromkeys(path, True))
                return True
            following = None if at in self.known else next(ways[-1], None)
            if following is None:
                self.known[at] = False
                path.pop()
                ways.pop()
            else:
                path.append(following)
                ways.append(self._further(following))
        return False

    def _complete(self, state: _State) -> bool:
        elements = self.pattern.elements
        times = tuple(step.times for step in elements[-1].steps)
        return state.element == len(elements) - 1 and state.served == times

    def _further(self, state: _State) -> Iterator[_State]:
        steps = self.pattern.elements[state.element].steps
        if steps[0].distinct and state.served[0] < steps[0].times:
            yield from self._filled(state, steps[0])
            return
        for place in range(state.last + 1, len(self.stretch)):
            for _, after in self._taken(state, place):
                yield after

    def _filled(self, state: _State, step: Step) -> Iterator[_State]:
        """The states after a step of different values has taken all its records.

        Which values the others of them have does not matter to what comes, only that there are enough: to go
        through them one by one would take ever longer with their number.
        """
        lacking = step.times - state.served[0] - 1
        before_last = replace(state, served=(step.times - 1,))
        seen: set[tuple[int, ...]] = set()
        for place in range(state.last + 1, len(self.stretch)):
            value = tuple(self.stretch.codes[column][place] for column in step.distinct)
            fits = NULL not in value and value not in state.values[0]
            if (
                not (fits and self.stretch.bits[place] >> step.bit & 1)
                or self._bound(state, step, place) is None
            ):
                continue
            if len(seen - {value}) >= lacking:
                filled = self._after(before_last, state.element, before_last.served, 0, step, place, False)
                if filled is not None:
                    yield filled
            seen.add(value)

    def _taken(self, state: _State | None, place: int) -> Iterator[tuple[int, _State]]:
        """The steps that a record may serve next, by their numbers."""
        pattern = self.pattern
        number = 0 if state is None else state.element
        served = tuple(0 for _ in pattern.elements[number].steps) if state is None else state.served
        full = served == tuple(step.times for step in pattern.elements[number].steps)
        if full:
            number += 1
            served = tuple(0 for _ in pattern.elements[number].steps)
        fresh = state is None or full
        if state is not None and fresh and not self._gap_holds(number, state.last, place):
            return
        for i, step in enumerate(pattern.elements[number].steps):
            if served[i] == step.times or not self.stretch.bits[place] >> step.bit & 1:
                continue
            after = self._after(state, number, served, i, step, place, fresh)
            if after is not None:
                yield pattern.steps.index(step), after

    def _gap_holds(self, number: int, last: int, place: int) -> bool:
        least, most = self.pattern.elements[number].gap
        gap = self.stretch.time[place] - self.stretch.time[last]
        return gap >= (least or 0) and (most is None or gap <= most)

    def _after(
        self,
        state: _State | None,
        number: int,
        served: tuple[int, ...],
        i: int,
        step: Step,
        place: int,
        fresh: bool,
    ) -> _State | None:
        """The state after a step has taken a record; None where it may not."""
        element, time = self.pattern.elements[number], self.stretch.time
        none = (None,) * (len(element.steps) + 1)
        begun = list(none if fresh or state is None else state.begun)
        for at, within in ((0, element.within), (i + 1, step.within)):
            if begun[at] is None:
                begun[at] = None if within is None else place
            elif within is not None and time[place] - time[begun[at] or 0] > within:
                return None
        values = list((frozenset(),) * len(element.steps) if fresh or state is None else state.values)
        if step.distinct:
            value = tuple(self.stretch.codes[column][place] for column in step.distinct)
            if NULL in value or value in values[i]:
                return None
            values[i] |= {value}
        bound = self._bound(state, step, place)
        if bound is None or (state is not None and self._crossed(state, number, served, i, place)):
            return None
        after = (*served[:i], served[i] + 1, *served[i + 1 :])
        if after == tuple(other.times for other in element.steps):
            # To the elements behind it, when it began and which values it has is nothing.
            begun, values = list(none), [frozenset()] * len(element.steps)
        return _State(number, after, place, tuple(begun), tuple(values), bound)

    def _bound(self, state: _State | None, step: Step, place: int) -> frozenset[tuple[str, str, int]] | None:
        bound = {(s, c): v for s, c, v in (state.bound if state else ())}
        codes = self.stretch.codes
        for own, other, column in step.agrees:
            if codes[own][place] == NULL or codes[own][place] != bound[other, column]:
                return None
        for name, column in self.referred:
            if name == step.name:
                value = codes[column][place]
                if bound.setdefault((name, column), value) != value:
                    return None
        return frozenset((s, c, v) for (s, c), v in bound.items())

    def _crossed(self, state: _State, number: int, served: tuple[int, ...], i: int, place: int) -> bool:
        """Whether something lies between that may not."""
        pattern, bits = self.pattern, self.stretch.bits
        steps = pattern.elements[number].steps
        for never in pattern.nevers:
            first, last = pattern.place_of[never.first], pattern.place_of[never.last]
            names = [step.name for step in steps]
            begun = first < number or (first == number and served[names.index(never.first)] > 0)
            over = last < number
            if last == number:
                at = names.index(never.last)
                over = served[at] == steps[at].times
            if not begun or over:
                continue
            if any(bits[between] >> never.bit & 1 for between in range(state.last + 1, place)):
                return True
            ends = never.last == steps[i].name and served[i] + 1 == steps[i].times
            if not ends and bits[place] >> never.bit & 1:
                return True
        return False
