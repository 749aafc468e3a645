"""Minimal instances of a pattern in many windows at once: for each last record, the latest first one.

Let S(p) be the latest first record of an instance that ends with record p. All that a pattern asks of
neighbouring records, gaps, order, values that agree, records that may not come between, binds what has been
matched only by its last record and the values that later steps have to agree with. So the latest first record
is found element by element: of what may come before a record it is the largest in a range of places. An
instance that ends with p is minimal if and only if its first record is S(p) and S(q) < S(p) for every earlier
q.

Every pass is numpy's, over the records of all windows; what a pattern costs is its number of steps (of steps
in any order, the number of ways to have served a part of them) times the records that its steps can take. The
definition is `patterns.minimal_instances`.
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
"""The variable that holds the first record of an element which may not take longer than some time."""


@dataclass(frozen=True)
class RecordWindows:
    """The records of many windows, one window behind the other, each in its total order.

    Attributes:
        window: the number of each record's window, ascending.
        time: in microseconds.
        bits: a mask of what each record meets.
        codes: of the values of each column, `NULL` for none.
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
        """Which records meet what a bit stands for."""
        met: Bools = (self.bits >> bit & 1).astype(bool)
        return met


@dataclass(frozen=True)
class _PartialMatches:
    """What has been matched up to some record: a row for each last record and values to agree with.

    Attributes:
        place: of the last record.
        start: of the first one, the latest that there is; `NO_VALUE` for none.
        bound: values that later records have to agree with, by variable.
    """

    place: Int64s
    start: Int64s
    bound: Mapping[str, Int64s]

    def take(self, rows: npt.NDArray[np.generic]) -> "_PartialMatches":
        """Some of the rows."""
        return _PartialMatches(
            self.place[rows], self.start[rows], {name: codes[rows] for name, codes in self.bound.items()}
        )

    def best(self, names: Mapping[str, object]) -> "_PartialMatches":
        """With these variables alone, and of equal rows the one that starts latest."""
        bound = {name: self.bound[name] for name in sorted(names)}
        kept = replace(self, bound=bound).take(self.start > NO_VALUE)
        columns = [kept.place, *kept.bound.values()]
        kept = kept.take(np.lexsort([-kept.start, *columns]))
        columns = [kept.place, *kept.bound.values()]
        return kept.take(_changes(columns))


def minimal(pattern: EventPattern, windows: RecordWindows) -> tuple[Int64s, Int64s]:
    """The places of the first and of the last record of every minimal instance, by the last one."""
    if not len(windows.time):
        return windows.window, windows.window
    search = _MinimalSearch(pattern, windows)
    matched: _PartialMatches | None = None
    for number, element in enumerate(pattern.elements):
        matched = (
            search.one(number, matched) if len(element.steps) == 1 else search.any_order(number, matched)
        )
    assert matched is not None
    found = matched.best({})
    # What starts in an earlier window starts at an earlier place.
    before = (
        np.concatenate([[NO_VALUE], np.maximum.accumulate(found.start)[:-1]])
        if len(found.start)
        else found.start
    )
    time = windows.time
    kept = (
        (found.start > before)
        & (time[found.place] - time[found.start] <= pattern.max_length)
        & (found.place - found.start < pattern.max_records)
    )
    return found.start[kept], found.place[kept]


class _MinimalSearch:
    def __init__(self, pattern: EventPattern, windows: RecordWindows) -> None:
        self.pattern, self.windows = pattern, windows
        self._place_of = pattern.place_of
        self._before: dict[int, Int64s] = {}

    def _live(self, number: int) -> dict[str, None]:
        """The variables that elements behind one still need."""
        return {
            _variable(step, column): None
            for (step, column), last in self.pattern.last_use.items()
            if self._place_of[step] <= number < last
        }

    def _introduced(self, step: PatternStep) -> dict[str, Int64s]:
        """The variables that a step's records give a value, of all records."""
        return {
            _variable(name, column): self.windows.codes[column]
            for name, column in self.pattern.given[step.name]
        }

    def _agreed(self, step: PatternStep) -> dict[str, Int64s]:
        """The variables that a step's records have to agree with, as each record would have them."""
        return {_variable(other, column): self.windows.codes[own] for own, other, column in step.agrees}

    def _takes(self, step: PatternStep) -> Int64s:
        """The records that a step can take."""
        windows, columns = self.windows, list(step.distinct)
        columns += [own for own, _, _ in step.agrees]
        sound = [windows.codes[column] != NULL for column in columns]
        # What two of its columns agree with, these have to have both.
        sound += [
            windows.codes[own] == self._agreed(step)[_variable(other, column)]
            for own, other, column in step.agrees
        ]
        return np.flatnonzero(reduce(np.logical_and, sound, windows.has(step.bit)))

    def _last_before(self, bit: int) -> Int64s:
        """For each record the last one before it that meets what a bit stands for."""
        if bit not in self._before:
            met = np.where(self.windows.has(bit), np.arange(len(self.windows.time)), NO_VALUE)
            self._before[bit] = np.concatenate([[NO_VALUE], np.maximum.accumulate(met)[:-1]])
        return self._before[bit]

    def _from(
        self, matched: _PartialMatches, places: Int64s, used: Mapping[str, Int64s], low: Int64s, high: Int64s
    ) -> _PartialMatches:
        """Records taken behind what has been matched: a row for each, and for each binding that it agrees
        with.

        Args:
            places: of the records.
            used: the variables that they have to agree with, as each of them has them.
            low, high: what has been matched has its last record at a place of `[low, high)`, and among as
                many records as an instance may span.

        Returns:
            Rows with the bindings of what was matched; `start` is `NO_VALUE` where the range is empty.
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
        first, behind = (np.searchsorted(groups[order], records, side=side) for side in ("left", "right"))
        record, group = expand_ranges(first, behind)
        group = order[group]
        low = np.maximum(low, places - self.pattern.max_records + 1)
        begin = segmented_searchsorted(matched.place, heads[group], ends[group], low[record])
        end = segmented_searchsorted(matched.place, begin, ends[group], high[record])
        return _PartialMatches(
            places[record],
            Maxima(matched.start).of(begin, end),
            {name: codes[heads[group]] for name, codes in matched.bound.items()},
        )

    def _begun(self, number: int, step: PatternStep, matched: _PartialMatches | None) -> _PartialMatches:
        """Records of a step that may come first of its element, with where an instance then starts;
        `NO_VALUE` where none can, for they may still come later of it."""
        places, windows = self._takes(step), self.windows
        if matched is None:
            rows = _PartialMatches(places, places, {})
        else:
            least, most = self.pattern.elements[number].gap
            start, time = windows.start[places], windows.time[places]
            low, high = start, places
            if most is not None:
                low = segmented_searchsorted(windows.time, start, places, time - most)
            if least:
                high = segmented_searchsorted(windows.time, start, places, time - least + 1)
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

    def _active(self, before: int, number: int) -> list[ForbiddenRecord]:
        """What may not lie between an element that has been matched, or an earlier one, and another."""
        place_of = self._place_of
        return [n for n in self.pattern.nevers if place_of[n.first] <= before and number <= place_of[n.last]]

    def _conditions_met(self, nevers: list[ForbiddenRecord], places: Int64s) -> Bools:
        met = [self.windows.has(never.bit)[places] for never in nevers]
        return reduce(np.logical_or, met, np.zeros(len(places), dtype=bool))

    def one(self, number: int, matched: _PartialMatches | None) -> _PartialMatches:
        """An element of one step, matched behind the elements before it."""
        (step,) = self.pattern.elements[number].steps
        rows = self._begun(number, step, matched)
        if step.times > 1:
            rows = self._repeated(number, step, rows)
        return rows.best(self._live(number))

    def _repeated(self, number: int, step: PatternStep, rows: _PartialMatches) -> _PartialMatches:
        """Rows of first records, made into rows of last ones."""
        windows = self.windows
        rows = rows.take(np.lexsort([rows.place, *rows.bound.values(), windows.window[rows.place]]))
        place, start = rows.place, rows.start
        columns = [windows.window[place], *rows.bound.values()]
        here = np.arange(len(place))
        heads = np.maximum.accumulate(np.where(_changes(columns), here, 0))
        low, high = heads, here - step.times + 2
        limits = [limit for limit in (step.within, self.pattern.elements[number].within) if limit is not None]
        if limits:
            low = segmented_searchsorted(windows.time[place], low, here, windows.time[place] - min(limits))
        for never in self._active(number, number):
            low = segmented_searchsorted(place, low, here, self._last_before(never.bit)[place])
        if step.distinct:
            values = _dense([windows.codes[column][place] for column in step.distinct])
            high = _reaching(values, heads, step.times) + 1
            start = MaximaBesides(start, values).of(low, high, values)
        else:
            start = Maxima(start).of(low, high)
        inside = self._active(number, number + 1)
        return replace(rows, start=np.where(self._conditions_met(inside, place), NO_VALUE, start))

    def any_order(self, number: int, matched: _PartialMatches | None) -> _PartialMatches:
        """An element of several steps, matched behind the elements before it."""
        element = self.pattern.elements[number]
        times = [step.times for step in element.steps]
        parts: dict[tuple[int, ...], list[_PartialMatches]] = {}
        for step, served in zip(element.steps, _one_more([0] * len(times), times), strict=True):
            rows = self._begun(number, step, matched)
            if number and element.within is not None:
                rows = replace(rows, bound={**rows.bound, FIRST: rows.place})
            parts.setdefault(served, []).append(rows.take(rows.start > NO_VALUE))
        for served in sorted(product(*(range(n + 1) for n in times)), key=sum):
            if served not in parts or served == tuple(times):
                continue
            done = _concat(parts.pop(served))
            done = done.best(done.bound)
            for i, step in enumerate(element.steps):
                if served[i] < step.times:
                    after = (*served[:i], served[i] + 1, *served[i + 1 :])
                    parts.setdefault(after, []).append(self._one_of(number, step, served, done))
        rows = _concat(parts[tuple(times)])
        if element.within is not None:
            first = rows.bound[FIRST] if number else rows.start
            rows = rows.take(self.windows.time[rows.place] - self.windows.time[first] <= element.within)
        return rows.best(self._live(number))

    def _one_of(
        self, number: int, step: PatternStep, served: tuple[int, ...], done: _PartialMatches
    ) -> _PartialMatches:
        """One more record of a step, behind others of its element."""
        steps = [step.name for step in self.pattern.elements[number].steps]
        so_far = served[steps.index(step.name)]
        places = self._takes(step)
        low, active = self.windows.start[places], []
        for never in self.pattern.nevers:
            first, last = self._place_of[never.first], self._place_of[never.last]
            begun = first < number or (first == number and served[steps.index(never.first)] > 0)
            times = self.pattern.elements[number].steps
            over = last < number or (
                last == number and served[steps.index(never.last)] == times[steps.index(never.last)].times
            )
            if begun and not over:
                low = np.maximum(low, self._last_before(never.bit)[places])
                if never.last != step.name or so_far + 1 < step.times:
                    active.append(never)
        allowed = ~self._conditions_met(active, places)
        places, low = places[allowed], low[allowed]
        used = {name: codes[places] for name, codes in self._agreed(step).items()}
        if so_far:
            used |= {name: codes[places] for name, codes in self._introduced(step).items()}
        rows = self._from(done, places, used, low, places)
        rows = rows if so_far else self._with_introduced(rows, step)
        return rows.take(rows.start > NO_VALUE)


def _variable(step: str, column: str) -> str:
    return f"{step}.{column}"


def _one_more(served: list[int], times: list[int]) -> Iterator[tuple[int, ...]]:
    for i in range(len(times)):
        yield tuple(n + (i == j) for j, n in enumerate(served))


def _changes(columns: list[Int64s]) -> Bools:
    """Which rows are unlike the one before them; the first one is."""
    changed = [np.diff(column) != 0 for column in columns]
    first = np.ones(min(len(columns[0]), 1), dtype=bool)
    return np.concatenate([first, reduce(np.logical_or, changed)])


def _dense(columns: list[Int64s]) -> Int64s:
    """One code for each row of columns, equal where the rows are, in their order."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values = np.unique(column, return_inverse=True)[1].astype(np.int64)
        many = int(values.max(initial=0)) + 1
        code = np.unique(code * many + values, return_inverse=True)[1].astype(np.int64)
    return code


def _common(left: list[Int64s], right: list[Int64s]) -> tuple[Int64s, Int64s]:
    """Codes for the rows of two tables, equal where the rows are."""
    code = _dense([np.concatenate(pair) for pair in zip(left, right, strict=True)])
    return code[: len(left[0])], code[len(left[0]) :]


def _concat(parts: list[_PartialMatches]) -> _PartialMatches:
    return _PartialMatches(
        np.concatenate([part.place for part in parts]),
        np.concatenate([part.start for part in parts]),
        {name: np.concatenate([part.bound[name] for part in parts]) for name in parts[0].bound},
    )


def _reaching(values: Int64s, heads: Int64s, many: int) -> Int64s:
    """For each row the last one from which on to it there are as many different values; `NO_VALUE` where
    there are not.

    Values by the time since they were last seen are a list in which one that is seen moves to the front: the
    m-th place then holds what the place before it held, up to where the value was, and what it held itself
    behind.

    Args:
        values: of rows, group by group.
        heads: the first row of each row's group.
    """
    here = np.arange(len(values))
    order = np.lexsort([here, values, heads])
    same = ~_changes([heads[order], values[order]])
    seen = np.full(len(values), NO_VALUE, dtype=np.int64)
    seen[order[1:]] = np.where(same[1:], order[:-1], NO_VALUE)
    is_head = heads == here
    reaching = here
    for _ in range(many - 1):
        moved = np.where(is_head, NO_VALUE, np.concatenate([[NO_VALUE], reaching[:-1]]))
        changed = is_head | (moved > seen)
        reaching = moved[np.maximum.accumulate(np.where(changed, here, 0))]
    return reaching
