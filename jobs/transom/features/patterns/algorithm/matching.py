"""Find the minimal instances of a pattern in many windows at once: the latest first record of each last one.

Let S(p) be the latest first record of an instance that ends with record p. The conditions of a pattern on
neighbouring records are gaps, order, values that agree, and forbidden records between. They depend on the
matched records only by the last one and by the values that later steps agree with. So S is computed element
by element, as a maximum over a range of places of the previous element. An instance that ends with p is
minimal if and only if its first record is S(p) and

    S(q) < S(p) for every q < p

Each pass is vectorised over the records of all windows. With n records and s steps the cost is `O(s * n *
log(n))` if no values agree. For steps in any order, s is the product of their `times + 1`; with `distinct`, a
step counts `times` times.

>>> from transom.features.patterns.algorithm.pattern import Element
>>> a, b = PatternStep("a", bit=0), PatternStep("b", bit=1)
>>> pattern = EventPattern((Element((a,)), Element((b,))), (), max_length=10, max_records=3)
>>> minimal(pattern, RecordWindows(np.zeros(4, int), np.arange(4), np.array([1, 1, 2, 2]), {}))
(array([1]), array([2]))
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import product

import numpy as np
import numpy.typing as npt

from transom.arrays.range_queries import (
    NO_VALUE,
    expand_ranges,
    extreme,
    maxima_of_others,
    segmented_searchsorted,
)
from transom.core.exact_sums import Bools, Int64s
from transom.features.patterns.algorithm.pattern import NULL, EventPattern, PatternStep

FIRST = ("", "")
"""The variable for the first record of an element with a limit of time."""
Bindings = Mapping[tuple[str, str], Int64s]
"""The values that records must agree with, by variable: a step and a column of it."""


@dataclass(frozen=True)
class RecordWindows:
    """The records of many windows, window after window, each in its total order.

    Attributes:
        window: the number of each record's window, ascending.
        time: the time of each record, in microseconds.
        bits: the mask of the conditions that each record meets.
        codes: the codes of each column's values, `NULL` for none.
    """

    window: Int64s
    time: Int64s
    bits: Int64s
    codes: Mapping[str, Int64s]

    @cached_property
    def start(self) -> Int64s:
        """The place of the first record of each record's window."""
        return np.searchsorted(self.window, self.window).astype(np.int64)

    def meets(self, mask: int) -> Bools:
        """Return which records meet one of the conditions of a mask."""
        met: Bools = (self.bits & mask) != 0
        return met


@dataclass(frozen=True)
class _PartialMatches:
    """Partial matches: a row for each last record and each combination of values to agree with.

    Attributes:
        place: the place of the last record.
        start: the latest possible place of the first record; `NO_VALUE` without one.
        bound: the values that later records must agree with.
    """

    place: Int64s
    start: Int64s
    bound: Bindings

    def take(self, rows: npt.NDArray[np.generic]) -> "_PartialMatches":
        """Return some of the rows."""
        return _PartialMatches(
            self.place[rows], self.start[rows], {name: codes[rows] for name, codes in self.bound.items()}
        )

    def best(self, names: Iterable[tuple[str, str]]) -> "_PartialMatches":
        """Return the rows with these variables only; among equal rows, only the one that starts latest."""
        bound = {name: self.bound[name] for name in sorted(names)}
        rows = replace(self, bound=bound).take(self.start > NO_VALUE)
        rows = rows.take(np.lexsort([-rows.start, rows.place, *rows.bound.values()]))
        return rows.take(_changes([rows.place, *rows.bound.values()]))


def minimal(pattern: EventPattern, windows: RecordWindows) -> tuple[Int64s, Int64s]:
    """Return the places of the first and the last record of each minimal instance, ordered by the last."""
    if not len(windows.time):
        return windows.window, windows.window
    search = _MinimalSearch(pattern, windows)
    matched: _PartialMatches | None = None
    for number, element in enumerate(pattern.elements):
        extend = search.single_step if len(element.steps) == 1 else search.any_order
        matched = extend(number, matched)
    assert matched is not None
    matches = matched.best(())
    first, last, time = matches.start, matches.place, windows.time
    # Matches of earlier windows start at earlier places.
    latest_earlier = np.concatenate([[NO_VALUE], np.maximum.accumulate(first)])[: len(first)]
    near = (time[last] - time[first] <= pattern.max_length) & (last - first < pattern.max_records)
    selected = near & (first > latest_earlier)
    return first[selected], last[selected]


class _MinimalSearch:
    def __init__(self, pattern: EventPattern, windows: RecordWindows) -> None:
        self.pattern, self.windows = pattern, windows
        self._previous: dict[int, Int64s] = {}

    def _live(self, number: int) -> list[tuple[str, str]]:
        """Return the variables that elements after this one need."""
        place_of = self.pattern.place_of
        return [used for used, last in self.pattern.last_use.items() if place_of[used[0]] <= number < last]

    def _introduced(self, step: PatternStep, places: Int64s) -> dict[tuple[str, str], Int64s]:
        """Return the variables that a step binds, with their values in some records."""
        return {used: self.windows.codes[used[1]][places] for used in self.pattern.binds[step.name]}

    def _agreed(self, step: PatternStep, places: Int64s) -> dict[tuple[str, str], Int64s]:
        """Return the variables that a step's records must agree with, with their values in some records."""
        codes = self.windows.codes
        return {(earlier, column): codes[own][places] for own, earlier, column in step.agrees}

    def _takes(self, step: PatternStep) -> Int64s:
        """Return the records that a step can take."""
        codes, own = self.windows.codes, dict[tuple[str, ...], str]()
        conditions = [self.windows.meets(1 << step.bit)]
        conditions += [codes[column] != NULL for column in step.distinct]
        for column, *variable in step.agrees:
            # If two of its columns agree with the same variable, they must be equal.
            first = own.setdefault(tuple(variable), column)
            conditions += [codes[column] != NULL, codes[column] == codes[first]]
        return np.flatnonzero(reduce(np.logical_and, conditions))

    def _last_before(self, mask: int) -> Int64s:
        """Return for each record the last one before it that meets a condition of a mask, or `NO_VALUE`."""
        if mask not in self._previous:
            places = np.where(self.windows.meets(mask), np.arange(len(self.windows.time)), NO_VALUE)
            self._previous[mask] = np.concatenate([[NO_VALUE], np.maximum.accumulate(places)[:-1]])
        return self._previous[mask]

    def _from(
        self, matched: _PartialMatches, places: Int64s, used: Bindings, low: Int64s, high: Int64s
    ) -> _PartialMatches:
        """Extend partial matches by records: a row for each record and each binding that it agrees with.

        Args:
            matched: the partial matches.
            places: the places of the records.
            used: the variables that they must agree with, with the value of each record.
            low: for each record the first possible place of the partial match's last record; `max_records`
                limits it further.
            high: the place after the last possible one.

        Returns:
            Rows with the bindings of the partial matches; `start` is `NO_VALUE` if the range is empty.
        """
        window = self.windows.window
        matched = self._sorted(matched)
        heads = np.flatnonzero(_changes([window[matched.place], *matched.bound.values()]))
        ends = np.append(heads[1:], len(matched.place))
        of_heads = [window[matched.place[heads]], *(matched.bound[name][heads] for name in used)]
        of_records = [window[places], *used.values()]
        codes = _dense([np.concatenate(pair) for pair in zip(of_heads, of_records, strict=True)])
        groups, records = np.split(codes, [len(heads)])
        order = np.argsort(groups, kind="stable")
        record, group = expand_ranges(
            *(np.searchsorted(groups[order], records, side=side) for side in ("left", "right"))
        )
        group = order[group]
        low = np.maximum(low, places - self.pattern.max_records + 1)
        begin = segmented_searchsorted(matched.place, heads[group], ends[group], low[record])
        end = segmented_searchsorted(matched.place, begin, ends[group], high[record])
        return _PartialMatches(
            places[record],
            extreme(matched.start, begin, end, np.maximum),
            {name: codes[heads[group]] for name, codes in matched.bound.items()},
        )

    def _sorted(self, rows: _PartialMatches) -> _PartialMatches:
        """Sort by window, bindings and place."""
        return rows.take(np.lexsort([rows.place, *rows.bound.values(), self.windows.window[rows.place]]))

    def _first_records(self, number: int, i: int, matched: _PartialMatches | None) -> _PartialMatches:
        """Return the records of a step as first records of its element, with the start of the instance, or
        `NO_VALUE` if they can only be later ones."""
        element, windows = self.pattern.elements[number], self.windows
        step, none = element.steps[i], (0,) * len(element.steps)
        places = self._takes(step)
        if matched is None:
            rows = _PartialMatches(places, places, {})
        else:
            min_gap, max_gap = element.gap
            start, time = windows.start[places], windows.time[places]
            low, high = start, places
            if max_gap is not None:
                low = segmented_searchsorted(windows.time, start, places, time - max_gap)
            if min_gap:
                high = segmented_searchsorted(windows.time, start, places, time - min_gap + 1)
            low = np.maximum(low, self._last_before(self.pattern.forbidden(number, none))[places])
            rows = self._from(matched, places, self._agreed(step, places), low, high)
        inside = windows.meets(self.pattern.forbidden(number, none, i))[rows.place]
        return self._bind(replace(rows, start=np.where(inside, NO_VALUE, rows.start)), step)

    def _bind(self, rows: _PartialMatches, step: PatternStep) -> _PartialMatches:
        return replace(rows, bound={**rows.bound, **self._introduced(step, rows.place)})

    def single_step(self, number: int, matched: _PartialMatches | None) -> _PartialMatches:
        """Match an element of one step after the elements before it."""
        (step,) = self.pattern.elements[number].steps
        rows = self._first_records(number, 0, matched)
        if step.times > 1:
            rows = self._repeated(number, step, rows)
        return rows.best(self._live(number))

    def _repeated(self, number: int, step: PatternStep, rows: _PartialMatches) -> _PartialMatches:
        """Return the rows of last records of a repeated step, from the rows of first ones."""
        windows, rows = self.windows, self._sorted(rows)
        place, start = rows.place, rows.start
        index = np.arange(len(place))
        changes = _changes([windows.window[place], *rows.bound.values()])
        heads = np.maximum.accumulate(np.where(changes, index, 0))
        low, high = heads, index - step.times + 2
        within = self.pattern.elements[number].within
        if within is not None:
            low = segmented_searchsorted(windows.time[place], low, index, windows.time[place] - within)
        between = self.pattern.forbidden(number, (1,))
        if between:
            low = segmented_searchsorted(place, low, index, self._last_before(between)[place])
        if step.distinct:
            values = _dense([windows.codes[column][place] for column in step.distinct])
            high = _reaching(values, heads, step.times) + 1
            start = maxima_of_others(start, values, low, high, values)
        else:
            start = extreme(start, low, high, np.maximum)
        inside = windows.meets(self.pattern.forbidden(number, (step.times - 1,), 0))[place]
        return replace(rows, start=np.where(inside, NO_VALUE, start))

    def any_order(self, number: int, matched: _PartialMatches | None) -> _PartialMatches:
        """Match an element of several steps after the elements before it."""
        element = self.pattern.elements[number]
        times = tuple(step.times for step in element.steps)
        parts: dict[tuple[int, ...], list[_PartialMatches]] = {}
        for i in range(len(times)):
            rows = self._first_records(number, i, matched)
            if number and element.within is not None:
                rows = replace(rows, bound={**rows.bound, FIRST: rows.place})
            served = _incremented((0,) * len(times), i)
            parts.setdefault(served, []).append(rows)
        for served in sorted(product(*(range(n + 1) for n in times)), key=sum):
            if served not in parts or served == times:
                continue
            partial = _concat(parts.pop(served))
            partial = partial.best(partial.bound)
            for i in range(len(times)):
                if served[i] < times[i]:
                    rows = self._next_record(number, i, served, partial)
                    parts.setdefault(_incremented(served, i), []).append(rows)
        rows = _concat(parts[times])
        if element.within is not None:
            first = rows.bound[FIRST] if number else rows.start
            rows = rows.take(self.windows.time[rows.place] - self.windows.time[first] <= element.within)
        return rows.best(self._live(number))

    def _next_record(
        self, number: int, i: int, served: tuple[int, ...], partial: _PartialMatches
    ) -> _PartialMatches:
        """Match one more record of a step after others of its element."""
        step, windows = self.pattern.elements[number].steps[i], self.windows
        places = self._takes(step)
        places = places[~windows.meets(self.pattern.forbidden(number, served, i))[places]]
        between = self.pattern.forbidden(number, served)
        low = np.maximum(windows.start[places], self._last_before(between)[places])
        used = self._agreed(step, places)
        if served[i]:
            used |= self._introduced(step, places)
        rows = self._from(partial, places, used, low, places)
        return rows if served[i] else self._bind(rows, step)


def _incremented(served: tuple[int, ...], i: int) -> tuple[int, ...]:
    return (*served[:i], served[i] + 1, *served[i + 1 :])


def _changes(columns: list[Int64s]) -> Bools:
    """Return which rows differ from the previous one; the first one does."""
    changed = reduce(np.logical_or, [np.diff(column) != 0 for column in columns])
    changes: Bools = np.append(True, changed)[: len(columns[0])]
    return changes


def _dense(columns: list[Int64s]) -> Int64s:
    """Return one code for each row of columns: equal rows have equal codes, in the order of rows."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values = np.unique(column, return_inverse=True)[1].astype(np.int64)
        size = int(values.max(initial=0)) + 1
        code = np.unique(code * size + values, return_inverse=True)[1].astype(np.int64)
    return code


def _concat(parts: list[_PartialMatches]) -> _PartialMatches:
    return _PartialMatches(
        np.concatenate([part.place for part in parts]),
        np.concatenate([part.start for part in parts]),
        {name: np.concatenate([part.bound[name] for part in parts]) for name in parts[0].bound},
    )


def _reaching(values: Int64s, heads: Int64s, count: int) -> Int64s:
    """Return for each row the last row since which there are `count` different values, or `NO_VALUE`.

    Think of a list of values, most recent first. The value of a row moves to the front. So each place up to
    the old place of the value gets the entry of the place before it, and later places keep theirs.

    Args:
        values: the value of each row, group by group.
        heads: the first row of each row's group.
        count: the number of values, at least 1.
    """
    index = np.arange(len(values))
    order = np.lexsort([index, values, heads])
    same = ~_changes([heads[order], values[order]])
    previous = np.full(len(values), NO_VALUE, dtype=np.int64)
    previous[order[1:]] = np.where(same[1:], order[:-1], NO_VALUE)
    is_head, reaching = heads == index, index
    for _ in range(count - 1):
        moved = np.where(is_head, NO_VALUE, np.concatenate([[NO_VALUE], reaching[:-1]]))
        changed = is_head | (moved > previous)
        reaching = moved[np.maximum.accumulate(np.where(changed, index, 0))]
    return reaching
