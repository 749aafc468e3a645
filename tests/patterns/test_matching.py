"""Instances of many windows at once equal those of the definition."""

from collections.abc import Mapping
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.examples import rare_case
from tests.support.instances import instances, minimal_instances
from transom.arrays.range_queries import NO_VALUE
from transom.features.patterns.algorithm import instance_search as finding
from transom.features.patterns.algorithm.instance_search import smallest
from transom.features.patterns.algorithm.matching import RecordWindows, _MinimalSearch, _reaching, minimal
from transom.features.patterns.algorithm.pattern import (
    Element,
    EventPattern,
    ForbiddenRecord,
    Instance,
    PatternStep,
    RecordSequence,
)

SMALL = st.sampled_from([None, None, None, 0, 1, 2, 4, 8])


@st.composite
def patterns(draw: st.DrawFn) -> EventPattern:
    elements: list[Element] = []
    bit, slots = 0, 0
    known: list[str] = []
    for number in range(draw(st.sampled_from([1, 2, 2, 3]))):
        count = draw(st.sampled_from([1, 1, 1, 2, 3]))
        steps = []
        for _ in range(count):
            times = draw(st.integers(1, 3 if count == 1 else 2))
            if slots + times > 5:
                break
            slots += times
            agrees = ()
            if known and draw(st.booleans()):
                agrees = tuple(
                    (draw(st.sampled_from("ab")), draw(st.sampled_from(known)), draw(st.sampled_from("ab")))
                    for _ in range(draw(st.sampled_from([1, 1, 1, 2])))
                )
            one = count == 1
            distinct = draw(st.sampled_from([(), ("a",), ("a", "b")])) if one and times > 1 else ()
            # Steps of a pattern may match the same records.
            steps.append(PatternStep(f"s{bit}", draw(st.integers(0, 2)), times, distinct, agrees))
            bit += 1
        if not steps:
            break
        gap = (draw(st.sampled_from([None, None, 0, 1, 2])), draw(SMALL)) if number else (None, None)
        elements.append(Element(tuple(steps), draw(SMALL), gap))
        known += [step.name for step in steps]
    places = {step.name: i for i, element in enumerate(elements) for step in element.steps}
    pairs = [(a, b) for a in places for b in places if a == b or places[a] < places[b]]
    nevers = tuple(
        ForbiddenRecord(draw(st.sampled_from([1, 3, 3, 3])), *draw(st.sampled_from(pairs)))
        for _ in range(draw(st.integers(0, 2)))
    )
    return EventPattern(
        tuple(elements), nevers, draw(st.sampled_from([20, 20, 9, 4])), draw(st.sampled_from([9, 9, slots]))
    )


Row = tuple[int, int, int, int]
"""Time since the previous record, bits, and values of two columns."""
CODES = st.sampled_from([1, 1, 1, 0, 0, 2, -1])
BITS = st.sampled_from([7, 7, 7, 7, 1, 2, 3, 4, 5, 6, 8, 15])
NOISE = st.tuples(st.integers(0, 2), BITS, CODES, CODES)


@st.composite
def planted(draw: st.DrawFn, pattern: EventPattern) -> list[Row]:
    """Draw a near instance, at the bounds of validity, with other records between."""
    rows: list[Row] = []
    for element in pattern.elements:
        selected = draw(st.permutations([step for step in element.steps for _ in range(step.times)]))
        separate = [bound for bound in element.gap if bound is not None]
        for number, step in enumerate(selected):
            near = separate if separate and not number else [0, 1, 2]
            bits = 1 << step.bit | draw(st.sampled_from([0, 0, 0, 2, 7, 8]))
            code = draw(st.integers(-1, 2) if step.distinct else st.sampled_from([1, 1, 1, 1, 1, 0]))
            rows.append((draw(st.sampled_from(near)), bits, code, draw(st.sampled_from([1, 1, 1, 1, 0]))))
    for _ in range(draw(st.integers(0, max(0, 8 - len(rows))))):
        time, bits, *codes = draw(NOISE)
        rows.insert(draw(st.integers(0, len(rows))), (draw(st.sampled_from([0, time])), bits, *codes))
    return rows


@st.composite
def cases(draw: st.DrawFn) -> tuple[EventPattern, list[list[Row]]]:
    pattern = draw(patterns())
    rows = st.one_of(planted(pattern), planted(pattern), st.lists(NOISE, min_size=1, max_size=8))
    return pattern, draw(st.lists(rows, min_size=1, max_size=3))


def to_sequence(rows: list[Row]) -> RecordSequence:
    time = np.cumsum([row[0] for row in rows]).tolist()
    codes: Mapping[str, list[int]] = {"a": [row[2] for row in rows], "b": [row[3] for row in rows]}
    return RecordSequence(time, [row[1] for row in rows], codes)


def joined(periods: list[RecordSequence]) -> RecordWindows:
    def all_of(columns: list[object]) -> np.ndarray:
        return np.array([value for column in columns for value in column], dtype=np.int64)

    return RecordWindows(
        np.repeat(np.arange(len(periods)), [len(one) for one in periods]).astype(np.int64),
        all_of([one.time for one in periods]),
        all_of([one.bits for one in periods]),
        {name: all_of([one.codes[name] for one in periods]) for name in "ab"},
    )


A, B, C = (PatternStep(name, bit) for bit, name in enumerate("abc"))
APART = EventPattern((Element((A,)), Element((B,), None, (2, 3))), (), 20, 9)
"""Both bounds of a gap are allowed."""
BESIDES = EventPattern(
    (
        Element((A,)),
        Element((PatternStep("b", 1, 2, ("a",)),), None, (None, 1)),
        Element((C,), None, (None, 1)),
    ),
    (),
    20,
    9,
)
"""The b after a may have the value of the last b, which is not the one from which it must differ."""
TWICE = EventPattern(
    (Element((A, PatternStep("b", 1, 2))), Element((PatternStep("c", 2, 1, agrees=(("a", "b", "a"),)),))),
    (),
    20,
    9,
)
"""Two in any order that must agree with each other, since a later one agrees with both."""

UNLIKE = EventPattern((Element((PatternStep("a", 0, 2, ("a", "b")),)),), (), 20, 9)
"""Two that differ, of which one has no value."""


def chain(
    *steps: PatternStep, nevers: tuple[ForbiddenRecord, ...] = (), most: int | None = None
) -> EventPattern:
    """Return steps in sequence, with gaps of at most so long."""
    gaps = [(None, None), *((None, most) for _ in steps[1:])]
    elements = tuple(Element((step,), None, gap) for step, gap in zip(steps, gaps, strict=True))
    return EventPattern(elements, nevers, 20, 9)


BB = PatternStep("b", 1, 2)


@rare_case(5)
@example(
    case=(chain(A, BB, nevers=(ForbiddenRecord(3, "a", "b"),)), [[(0, 1, 0, 0), (1, 10, 0, 0), (1, 2, 0, 0)]])
)
@example(
    case=(
        chain(A, B, C, nevers=(ForbiddenRecord(3, "a", "c"),)),
        [[(0, 1, 0, 0), (1, 10, 0, 0), (1, 4, 0, 0)]],
    )
)
@example(
    case=(
        chain(A, BB, nevers=(ForbiddenRecord(3, "b", "b"),)),
        [[(0, 1, 0, 0), (1, 8, 0, 0), (1, 2, 0, 0), (1, 2, 0, 0)]],
    )
)
@example(case=(chain(A, B, nevers=(ForbiddenRecord(3, "a", "b"),), most=1), [[(0, 1, 0, 0), (3, 2, 0, 0)]]))
@example(case=(chain(A, PatternStep("b", 1, agrees=(("a", "a", "a"),))), [[(0, 1, -1, 0), (1, 2, -1, 0)]]))
@example(case=(UNLIKE, [[(0, 1, 1, 1), (1, 1, -1, 2)]]))
@example(case=(APART, [[(0, 1, 0, 0), (later, 2, 0, 0)] for later in range(1, 5)]))
@example(case=(BESIDES, [[(0, 1, 0, 0), (1, 2, 1, 0), (1, 2, 2, 0), (1, 2, 1, 0), (1, 4, 0, 0)]]))
@example(case=(TWICE, [[(0, 1, 0, 0), (1, 2, 1, 0), (1, 2, 2, 0), (1, 4, 1, 0)]]))
@given(case=cases())
def test_minimal_instances_equal_those_of_the_definition(case: tuple[EventPattern, list[list[Row]]]) -> None:
    pattern, rows = case
    periods = [to_sequence(some) for some in rows]
    firsts, lasts = minimal(pattern, joined(periods))
    expected, before = [], 0
    for one in periods:
        expected += [
            (before + instance.places[0], before + instance.places[-1])
            for instance in minimal_instances(pattern, one)
        ]
        before += len(one)
    assert [*zip(firsts.tolist(), lasts.tolist(), strict=True)] == expected


@example(case=(UNLIKE, [[(0, 1, 1, 1), (1, 1, 2, -1), (1, 1, 1, 2)]]))
@given(case=cases())
def test_smallest_instance_of_a_slice_equals_that_of_the_definition(
    case: tuple[EventPattern, list[list[Row]]],
) -> None:
    pattern, rows = case
    whole = to_sequence(rows[0])
    smallest_of: dict[tuple[int, int], Instance] = {}
    for instance in instances(pattern, whole):
        smallest_of.setdefault((instance.places[0], instance.places[-1]), instance)
    for first, last in combinations_with_replacement(range(len(whole)), 2):
        if (first, last) in smallest_of:
            part = whole.part(first, last)
            search = finding._InstanceSearch(pattern, part)
            for result in smallest(pattern, part), search.search(search.completes):
                assert result is not None
                places = tuple(first + place for place in result.places)
                assert Instance(places, result.steps) == smallest_of[first, last]
        elif (
            whole.time[last] - whole.time[first] <= pattern.max_length and last - first < pattern.max_records
        ):
            with pytest.raises(ValueError, match="no instance from the first to the last"):
                smallest(pattern, whole.part(first, last))


def test_values_are_stored_only_while_a_later_step_needs_them() -> None:
    # Otherwise the partial matches would grow with the number of values.
    steps = (PatternStep("a", 0), PatternStep("b", 1, agrees=(("a", "a", "a"),)), PatternStep("c", 2))
    pattern = EventPattern(tuple(Element((step,)) for step in steps), (), 100, 100)
    rows = [(1, bits, value, 0) for bits in (1, 2, 4) for value in range(5)]
    search = _MinimalSearch(pattern, joined([to_sequence(rows)]))
    first = search.single_step(0, None)
    second = search.single_step(1, first)
    assert [sorted(matched.bound) for matched in (first, second, search.single_step(2, second))] == [
        [("a", "a")],
        [],
        [],
    ]


@given(
    rows=st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=14),
    count=st.integers(1, 4),
)
def test_last_row_with_enough_values_after_it_is_found(rows: list[tuple[bool, int]], count: int) -> None:
    here = np.arange(len(rows))
    heads = np.maximum.accumulate(np.where([begins for begins, _ in rows], here, 0))
    values = np.array([value for _, value in rows])
    assert _reaching(values, heads, count).tolist() == [
        max([NO_VALUE, *(r for r in range(heads[i], i + 1) if len({*values[r : i + 1].tolist()}) >= count)])
        for i in range(len(rows))
    ]


def test_value_present_early_and_late_is_saved_for_the_last_record() -> None:
    """Using it at once leaves none for the end, which has more paths than can be tried."""
    scan = Element((PatternStep("scan", 0, 20, ("a",)),))
    pattern = EventPattern((scan, Element((PatternStep("long", 1),), gap=(None, 50))), (), 1000, 200)
    values = [0, 1, 2, 3, *(4 + n * 7 % 50 for n in range(86)), *[2] * 10]
    time = [*range(100), 140]
    whole = RecordSequence(time, [1] * 100 + [2], {"a": [*values, 0]})
    result = smallest(pattern, whole)
    firsts = [place for place in range(90) if values[place] != 2 and values[place] not in values[:place]]
    assert result.places == (*firsts[:19], 90, 100)


def test_possible_next_steps_are_computed_once_for_all_paths() -> None:
    """Three steps three times each in any order. Any record may match any of them, and few are near the end:
    more paths than can be tried, and a table for each partial assignment.
    """
    busy = Element(tuple(PatternStep(f"s{bit}", bit, 3) for bit in range(3)), within=395)
    pattern = EventPattern(
        (Element((A,)), busy, Element((PatternStep("end", 3),), gap=(None, 2))), (), 1000, 400
    )
    whole = RecordSequence(range(400), [7] * 399 + [8], {})
    search = finding._InstanceSearch(pattern, whole)
    result = search.search(search.completes)
    assert result == smallest(pattern, whole)
    assert result is not None
    assert result.places == (0, *range(2, 10), 397, 399)
    assert len(search._ahead_of) < 4**3
