"""Find the minimal instances of a pattern in many windows at once: for each last record, the latest first
one.

Let S(p) be the latest first record of an instance that ends with record p. The conditions of a pattern on
neighbouring records (gaps, order, values that agree, forbidden records between) depend on the matched records
only by the last one and by the values that later steps agree with. So the latest first record is found
element by element: it is the maximum over a range of places of the previous element. An instance that ends
with p is minimal if and only if its first record is S(p) and S(q) < S(p) for every earlier q.

Every pass is vectorised over the records of all windows. The cost of a pattern is its number of steps (for
steps in any order, the number of ways to serve a part of them) times the records that its steps can take. The
definition is `pattern.minimal_instances`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import product

import numpy as np
import numpy.typing as npt

from transom.arrays.range_queries import (
    NO_VALUE,
    Maxima,
    MaximaBesides,
    expand_ranges,
    segmented_searchsorted,
)
from transom.core.exact_sums import Int64s
from transom.features.patterns.algorithm.pattern import NULL, EventPattern, ForbiddenRecord, PatternStep

Bools = npt.NDArray[np.bool_]
FIRST = ""
"""The variable for the first record of an element with a limit of time."""


@dataclass(frozen=True)
class RecordWindows:
    """The records of many windows, window after window, each in its total order.

    Attributes:
        window: the number of each record's window, ascending.
        time: in microseconds.
        bits: a mask of the conditions that each record meets.
        codes: the codes of the values of each column, `NULL` for none.
    """

    window: Int64s
    time: Int64s
    bits: Int64s
    codes: Mapping[str, Int64s]

    @cached_property
    def start(self) -> Int64s:
        """The place of the first record of each record's window."""
        return np.searchsorted(self.window, self.window).astype(np.int64)

    def has(self, bit: int) -> Bools:
        """Return which records meet the condition of a bit."""
        mask: Bools = (self.bits >> bit & 1).astype(bool)
        return mask


@dataclass(frozen=True)
class _PartialMatches:
    """Partial matches: a row for each last record and values to agree with.

    Attributes:
        place: the place of the last record.
        start: the place of the first record, the latest possible one; `NO_VALUE` for none.
        bound: the values that later records must agree with, by variable.
    """

    place: Int64s
    start: Int64s
    bound: Mapping[str, Int64s]

    def take(self, rows: npt.NDArray[np.generic]) -> "_PartialMatches":
        """Return some of the rows."""
        return _PartialMatches(
            self.place[rows], self.start[rows], {name: codes[rows] for name, codes in self.bound.items()}
        )

    def best(self, names: Mapping[str, object]) -> "_PartialMatches":
        """Return the rows with these variables only, and of equal rows the one that starts latest."""
        bound = {name: self.bound[name] for name in sorted(names)}
        rows = replace(self, bound=bound).take(self.start > NO_VALUE)
        columns = [rows.place, *rows.bound.values()]
        rows = rows.take(np.lexsort([-rows.start, *columns]))
        columns = [rows.place, *rows.bound.values()]
        return rows.take(_changes(columns))


def minimal(pattern: EventPattern, windows: RecordWindows) -> tuple[Int64s, Int64s]:
    """Return the places of the first and of the last record of every minimal instance, by the last one."""
    if not len(windows.time):
        return windows.window, windows.window
    search = _MinimalSearch(pattern, windows)
    matched: _PartialMatches | None = None
    for number, element in enumerate(pattern.elements):
        matched = (
            search.single_step(number, matched)
            if len(element.steps) == 1
            else search.any_order(number, matched)
        )
    assert matched is not None
    matches = matched.best({})
    # Matches of earlier windows start at earlier places.
    latest_earlier = (
        np.concatenate([[NO_VALUE], np.maximum.accumulate(matches.start)[:-1]])
        if len(matches.start)
        else matches.start
    )
    time = windows.time
    selected = (
        (matches.start > latest_earlier)
        & (time[matches.place] - time[matches.start] <= pattern.max_length)
        & (matches.place - matches.start < pattern.max_records)
    )
    return matches.start[selected], matches.place[selected]


class _MinimalSearch:
    def __init__(self, pattern: EventPattern, windows: RecordWindows) -> None:
        self.pattern, self.windows = pattern, windows
        self._place_of = pattern.place_of
        self._previous: dict[int, Int64s] = {}

    def _live(self, number: int) -> dict[str, None]:
        """Return the variables that elements after this one need."""
        return {
            _variable(step, column): None
            for (step, column), last in self.pattern.last_use.items()
            if self._place_of[step] <= number < last
        }

    def _introduced(self, step: PatternStep) -> dict[str, Int64s]:
        """Return the variables that a step binds, with the value of every record."""
        return {
            _variable(name, column): self.windows.codes[column]
            for name, column in self.pattern.given[step.name]
        }

    def _agreed(self, step: PatternStep) -> dict[str, Int64s]:
        """Return the variables that a step's records must agree with, with the value of each record."""
        return {_variable(earlier, column): self.windows.codes[own] for own, earlier, column in step.agrees}

    def _takes(self, step: PatternStep) -> Int64s:
        """Return the records that a step can take."""
        windows, columns = self.windows, list(step.distinct)
        columns += [own for own, _, _ in step.agrees]
        conditions = [windows.codes[column] != NULL for column in columns]
        # If two of its columns agree with the same variable, they must be equal.
        conditions += [
            windows.codes[own] == self._agreed(step)[_variable(earlier, column)]
            for own, earlier, column in step.agrees
        ]
        return np.flatnonzero(reduce(np.logical_and, conditions, windows.has(step.bit)))

    def _last_before(self, bit: int) -> Int64s:
        """Return for each record the last one before it that meets the condition of a bit."""
        if bit not in self._previous:
            places = np.where(self.windows.has(bit), np.arange(len(self.windows.time)), NO_VALUE)
            self._previous[bit] = np.concatenate([[NO_VALUE], np.maximum.accumulate(places)[:-1]])
        return self._previous[bit]

    def _from(
        self, matched: _PartialMatches, places: Int64s, used: Mapping[str, Int64s], low: Int64s, high: Int64s
    ) -> _PartialMatches:
        """Extend partial matches by records: a row for each record and each binding that it agrees with.

        Args:
            places: the places of the records.
            used: the variables that they must agree with, with the value of each record.
            low, high: the last record of the partial match lies in `[low, high)`, and within the number of
                records that an instance may span.

        Returns:
            Rows with the bindings of the partial matches; `start` is `NO_VALUE` if the range is empty.
        """
        window = self.windows.window
        bound = matched.bound
        matched = matched.take(np.lexsort([matched.place, *bound.values(), window[matched.place]]))
        heads = np.flatnonzero(_changes([window[matched.place], *matched.bound.values()]))
        ends = np.append(heads[1:], len(matched.place))
        of_heads = [window[matched.place[heads]], *(matched.bound[name][heads] for name in used)]
        of_records = [window[places], *(used[name] for name in used)]
        groups, records = _common(of_heads, of_records)
        order = np.argsort(groups, kind="stable")
        first, stop = (np.searchsorted(groups[order], records, side=side) for side in ("left", "right"))
        record, group = expand_ranges(first, stop)
        group = order[group]
        low = np.maximum(low, places - self.pattern.max_records + 1)
        begin = segmented_searchsorted(matched.place, heads[group], ends[group], low[record])
        end = segmented_searchsorted(matched.place, begin, ends[group], high[record])
        return _PartialMatches(
            places[record],
            Maxima(matched.start).of(begin, end),
            {name: codes[heads[group]] for name, codes in matched.bound.items()},
        )

    def _first_records(
        self, number: int, step: PatternStep, matched: _PartialMatches | None
    ) -> _PartialMatches:
        """Return the records of a step as first ones of its element, with the start of the instance;
        `NO_VALUE` for those that can only be later ones."""
        places, windows = self._takes(step), self.windows
        if matched is None:
            rows = _PartialMatches(places, places, {})
        else:
            min_gap, max_gap = self.pattern.elements[number].gap
            start, time = windows.start[places], windows.time[places]
            low, high = start, places
            if max_gap is not None:
                low = segmented_searchsorted(windows.time, start, places, time - max_gap)
            if min_gap:
                high = segmented_searchsorted(windows.time, start, places, time - min_gap + 1)
            for never in self._active(number - 1, number):
                low = np.maximum(low, self._last_before(never.bit)[places])
            used = {name: codes[places] for name, codes in self._agreed(step).items()}
            rows = self._from(matched, places, used, low, high)
        inside = [
            never
            for never in self._active(number - 1, number)
            if not (never.last == step.name and step.times == 1)
        ]
        rows = replace(rows, start=np.where(self._conditions_met(inside, rows.place), NO_VALUE, rows.start))
        return self._with_introduced(rows, step)

    def _with_introduced(self, rows: _PartialMatches, step: PatternStep) -> _PartialMatches:
        introduced = {name: codes[rows.place] for name, codes in self._introduced(step).items()}
        return replace(rows, bound={**rows.bound, **introduced})

    def _active(self, matched: int, number: int) -> list[ForbiddenRecord]:
        """Return the forbidden records between an element that was matched, or an earlier one, and
        another."""
        place_of = self._place_of
        return [n for n in self.pattern.nevers if place_of[n.first] <= matched and number <= place_of[n.last]]

    def _conditions_met(self, nevers: list[ForbiddenRecord], places: Int64s) -> Bools:
        flags = [self.windows.has(never.bit)[places] for never in nevers]
        return reduce(np.logical_or, flags, np.zeros(len(places), dtype=bool))

    def single_step(self, number: int, matched: _PartialMatches | None) -> _PartialMatches:
        """Match an element of one step after the elements before it."""
        (step,) = self.pattern.elements[number].steps
        rows = self._first_records(number, step, matched)
        if step.times > 1:
            rows = self._repeated(number, step, rows)
        return rows.best(self._live(number))

    def _repeated(self, number: int, step: PatternStep, rows: _PartialMatches) -> _PartialMatches:
        """Return the rows of last records of a repeated step, from the rows of first ones."""
        windows = self.windows
        rows = rows.take(np.lexsort([rows.place, *rows.bound.values(), windows.window[rows.place]]))
        place, start = rows.place, rows.start
        columns = [windows.window[place], *rows.bound.values()]
        index = np.arange(len(place))
        heads = np.maximum.accumulate(np.where(_changes(columns), index, 0))
        low, high = heads, index - step.times + 2
        limits = [limit for limit in (step.within, self.pattern.elements[number].within) if limit is not None]
        if limits:
            low = segmented_searchsorted(windows.time[place], low, index, windows.time[place] - min(limits))
        for never in self._active(number, number):
            low = segmented_searchsorted(place, low, index, self._last_before(never.bit)[place])
        if step.distinct:
            values = _dense([windows.codes[column][place] for column in step.distinct])
            high = _reaching(values, heads, step.times) + 1
            start = MaximaBesides(start, values).of(low, high, values)
        else:
            start = Maxima(start).of(low, high)
        inside = self._active(number, number + 1)
        return replace(rows, start=np.where(self._conditions_met(inside, place), NO_VALUE, start))

    def any_order(self, number: int, matched: _PartialMatches | None) -> _PartialMatches:
        """Match an element of several steps after the elements before it."""
        element = self.pattern.elements[number]
        times = [step.times for step in element.steps]
        parts: dict[tuple[int, ...], list[_PartialMatches]] = {}
        for step, served in zip(element.steps, _incremented([0] * len(times), times), strict=True):
            rows = self._first_records(number, step, matched)
            if number and element.within is not None:
                rows = replace(rows, bound={**rows.bound, FIRST: rows.place})
            parts.setdefault(served, []).append(rows.take(rows.start > NO_VALUE))
        for served in sorted(product(*(range(n + 1) for n in times)), key=sum):
            if served not in parts or served == tuple(times):
                continue
            partial = _concat(parts.pop(served))
            partial = partial.best(partial.bound)
            for i, step in enumerate(element.steps):
                if served[i] < step.times:
                    after = (*served[:i], served[i] + 1, *served[i + 1 :])
                    parts.setdefault(after, []).append(self._next_record(number, step, served, partial))
        rows = _concat(parts[tuple(times)])
        if element.within is not None:
            first = rows.bound[FIRST] if number else rows.start
            rows = rows.take(self.windows.time[rows.place] - self.windows.time[first] <= element.within)
        return rows.best(self._live(number))

    def _next_record(
        self, number: int, step: PatternStep, served: tuple[int, ...], partial: _PartialMatches
    ) -> _PartialMatches:
        """Match one more record of a step after others of its element."""
        steps = [step.name for step in self.pattern.elements[number].steps]
        so_far = served[steps.index(step.name)]
        places = self._takes(step)
        low, active = self.windows.start[places], []
        for never in self.pattern.nevers:
            first, last = self._place_of[never.first], self._place_of[never.last]
            has_begun = first < number or (first == number and served[steps.index(never.first)] > 0)
            times = self.pattern.elements[number].steps
            is_over = last < number or (
                last == number and served[steps.index(never.last)] == times[steps.index(never.last)].times
            )
            if has_begun and not is_over:
                low = np.maximum(low, self._last_before(never.bit)[places])
                if never.last != step.name or so_far + 1 < step.times:
                    active.append(never)
        allowed = ~self._conditions_met(active, places)
        places, low = places[allowed], low[allowed]
        used = {name: codes[places] for name, codes in self._agreed(step).items()}
        if so_far:
            used |= {name: codes[places] for name, codes in self._introduced(step).items()}
        rows = self._from(partial, places, used, low, places)
        rows = rows if so_far else self._with_introduced(rows, step)
        return rows.take(rows.start > NO_VALUE)


def _variable(step: str, column: str) -> str:
    return f"{step}.{column}"


def _incremented(served: list[int], times: list[int]) -> Iterator[tuple[int, ...]]:
    for i in range(len(times)):
        yield tuple(n + (i == j) for j, n in enumerate(served))


def _changes(columns: list[Int64s]) -> Bools:
    """Return which rows differ from the previous one; the first one does."""
    changed = [np.diff(column) != 0 for column in columns]
    first = np.ones(min(len(columns[0]), 1), dtype=bool)
    return np.concatenate([first, reduce(np.logical_or, changed)])


def _dense(columns: list[Int64s]) -> Int64s:
    """Return one code for each row of columns: equal rows have equal codes, in the order of rows."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values = np.unique(column, return_inverse=True)[1].astype(np.int64)
        size = int(values.max(initial=0)) + 1
        code = np.unique(code * size + values, return_inverse=True)[1].astype(np.int64)
    return code


def _common(left: list[Int64s], right: list[Int64s]) -> tuple[Int64s, Int64s]:
    """Return codes for the rows of two tables: equal rows have equal codes."""
    code = _dense([np.concatenate(pair) for pair in zip(left, right, strict=True)])
    return code[: len(left[0])], code[len(left[0]) :]


def _concat(parts: list[_PartialMatches]) -> _PartialMatches:
    return _PartialMatches(
        np.concatenate([part.place for part in parts]),
        np.concatenate([part.start for part in parts]),
        {name: np.concatenate([part.bound[name] for part in parts]) for name in parts[0].bound},
    )


def _reaching(values: Int64s, heads: Int64s, count: int) -> Int64s:
    """Return for each row the last row since which there are `count` different values; `NO_VALUE` if there is
    none.

    Keep values in a list, most recent first. The value of a row moves to the front: the m-th place then gets
    the entry of the place before it, up to the old place of the value, and later places keep theirs.

    Args:
        values: the values of rows, group by group.
        heads: the first row of each row's group.
    """
    index = np.arange(len(values))
    order = np.lexsort([index, values, heads])
    same = ~_changes([heads[order], values[order]])
    previous = np.full(len(values), NO_VALUE, dtype=np.int64)
    previous[order[1:]] = np.where(same[1:], order[:-1], NO_VALUE)
    is_head = heads == index
    reaching = index
    for _ in range(count - 1):
        moved = np.where(is_head, NO_VALUE, np.concatenate([[NO_VALUE], reaching[:-1]]))
        changed = is_head | (moved > previous)
        reaching = moved[np.maximum.accumulate(np.where(changed, index, 0))]
    return reaching
