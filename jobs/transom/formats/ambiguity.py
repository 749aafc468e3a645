r"""How many ways there are to read a text by a pattern: what an engine that tries again has to go through.

A pattern is an automaton with a place for each letter or class of letters; a way to read a text is a walk.
There are more ways with each letter of some text, twice as many or so, where a place can be left and come
back to by two walks over one text (`(a|a)*`, `(\w+\s?)*`): such a pattern takes for ever. And there are as
many as a power of the text's length where places that go round, such as `.*`, follow each other and can go
on by one text (`.*.*=`): the power is the number of such steps (Weber and Seidl, On the degree of ambiguity
of finite automata, 1991).
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import product
from operator import and_, itemgetter

Ends = Mapping[int, int]
"""Places, and the ways to get there: one, or two for several."""
Walks = tuple[int, ...]
"""The places of some walks over one text."""
SEVERAL = 2
MOST_STEPS = 300_000
"""How many steps of walks beside each other are looked at; a second."""


class TooTangled(ValueError):
    """There are too many walks to look at."""


@dataclass
class Automaton:
    """A pattern's places.

    Attributes:
        letters: what each place takes, a bit a letter.
        follows: the places behind each, with the ways to get there.
        begins: where in the pattern each stands.
    """

    letters: list[int] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    follows: list[dict[int, int]] = field(default_factory=list)
    _steps: int = 0

    def letter(self, takes: int, begin: int) -> "Part":
        """One letter of some."""
        self.letters.append(takes)
        self.begins.append(begin)
        self.follows.append({})
        here = {len(self.letters) - 1: 1}
        return Part(here, here, 0)

    def joined(self, one: "Part", other: "Part") -> "Part":
        """One part, then the other."""
        self._link(one.last, other.first)
        return Part(
            _added(one.first, other.first, one.empty),
            _added(other.last, one.last, other.empty),
            min(one.empty * other.empty, SEVERAL),
        )

    def either(self, parts: Iterable["Part"]) -> "Part":
        """One of some parts."""
        whole = Part({}, {}, 0)
        for part in parts:
            empty = min(whole.empty + part.empty, SEVERAL)
            whole = Part(_added(whole.first, part.first), _added(whole.last, part.last), empty)
        return whole

    def again(self, part: "Part") -> "Part":
        """A part once or more often; no engine takes a turn of nothing."""
        self._link(part.last, part.first)
        return part

    def _link(self, last: Ends, first: Ends) -> None:
        for (place, ways), (following, more) in product(last.items(), first.items()):
            self._count()
            known = self.follows[place].get(following, 0)
            self.follows[place][following] = min(known + ways * more, SEVERAL)

    def _count(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise TooTangled

    def doubles(self) -> bool:
        """Whether a place can be left and come back to by two walks over one text."""
        for loop in self.loops():
            if any(ways > 1 for place in loop for end, ways in self.follows[place].items() if end in loop):
                return True
            # Walks from one place to one place that part on the way lie in one component of their pairs.
            pairs = [(place, place) for place in sorted(loop)]
            for component in components(pairs, partial(self._beside, within=(loop, loop))):
                if len({one == other for one, other in component}) > 1:
                    return True
        return False

    def loops(self) -> list[frozenset[int]]:
        """Places that can be come back to, those of one round together; behind those that it leads to."""
        every = [(place,) for place in range(len(self.letters))]
        found = components(every, lambda walk: ((end,) for end in self.follows[walk[0]]))
        return [
            frozenset(place for (place,) in component)
            for component in found
            if len(component) > 1 or component[0][0] in self.follows[component[0][0]]
        ]

    def chain(self, done: Container[int]) -> tuple[int, int | None]:
        """How many steps between loops there are at most, one after the other, each of which a text that goes
        round both of its loops leads over as well.

        Args:
            done: places at which all has been read, so that nothing is tried again.

        Returns:
            The number, and a place of the last loop.
        """
        loops = self.loops()
        longest: list[tuple[int, int | None]] = []
        for loop in loops:
            best: tuple[int, int | None] = 0, None
            reached = self._reached(loop)
            for later, (steps, last) in zip(loops, longest, strict=False):
                if later & reached:
                    ended = any(place in done for place in later)
                    shared = not ended and self._shares(loop, later)
                    last = min(later) if last is None else last
                    best = max(best, (steps + shared, last), key=itemgetter(0))
            longest.append(best)
        return max(longest, key=itemgetter(0), default=(0, None))

    def _reached(self, loop: Iterable[int]) -> set[int]:
        found, left = set(loop), list(loop)
        while left:
            new = self.follows[left.pop()].keys() - found
            found |= new
            left += new
        return found

    def _shares(self, loop: frozenset[int], later: frozenset[int]) -> bool:
        """Whether one text leads round a loop, from it to a later one, and round that."""
        for one, other in product(loop, later):
            start: Walks = (one, one, other)
            if not self.letters[one] & self.letters[other]:
                continue
            found, left = {start}, [start]
            while left:
                for places in self._beside(left.pop(), (loop, None, later)):
                    if places not in found:
                        found.add(places)
                        left.append(places)
            if (one, other, other) in found:
                return True
        return False

    def _beside(self, walks: Walks, within: Sequence[frozenset[int] | None]) -> Iterator[Walks]:
        """Where walks can go by one letter, all of them."""
        ends = (
            [end for end in self.follows[place] if inside is None or end in inside]
            for place, inside in zip(walks, within, strict=True)
        )
        for places in product(*ends):
            self._count()
            if reduce(and_, (self.letters[place] for place in places)):
                yield places


@dataclass(frozen=True)
class Part:
    """A part of a pattern in an automaton.

    Attributes:
        first, last: the places at which it may begin and end.
        empty: in how many ways it takes nothing: none, one, or two for several.
    """

    first: Ends
    last: Ends
    empty: int

    def maybe(self) -> "Part":
        """This part or nothing."""
        return replace(self, empty=min(self.empty + 1, SEVERAL))


NOTHING = Part({}, {}, 1)


def _added(one: Ends, other: Ends, times: int = 1) -> Ends:
    if not times:
        return one
    return {
        place: min(one.get(place, 0) + other.get(place, 0) * times, SEVERAL) for place in {**one, **other}
    }


def components(starts: Sequence[Walks], onward: Callable[[Walks], Iterable[Walks]]) -> list[list[Walks]]:
    """Nodes that can reach each other, a set behind those that it leads to: Tarjan's, without recursion."""
    number: dict[Walks, int] = {}
    low: dict[Walks, int] = {}
    stack: list[Walks] = []
    open_: set[Walks] = set()
    found = []
    for start in starts:
        if start in number:
            continue
        work = [(start, iter(onward(start)))]
        number[start] = low[start] = len(number)
        stack.append(start)
        open_.add(start)
        while work:
            node, ends = work[-1]
            following = next(ends, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    component: list[Walks] = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                    open_.difference_update(component)
                    found.append(component)
            elif following not in number:
                number[following] = low[following] = len(number)
                stack.append(following)
                open_.add(following)
                work.append((following, iter(onward(following))))
            elif following in open_:
                low[node] = min(low[node], number[following])
    return found
