"""Instances of many windows at once are those of the definition."""

from collections.abc import Mapping

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from transom.algorithms.instances import smallest
from transom.algorithms.matching import Windows, minimal
from transom.algorithms.patterns import Element, Never, Pattern, Step, Stretch, minimal_instances

SMALL = st.sampled_from([None, None, None, 0, 1, 2, 4, 8])


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    elements: list[Element] = []
    bit, slots = 0, 0
    known: list[str] = []
    for number in range(draw(st.sampled_from([1, 2, 2, 3]))):
        many = draw(st.sampled_from([1, 1, 1, 2, 3]))
        steps = []
        for _ in range(many):
            times = draw(st.integers(1, 3 if many == 1 else 2))
            if slots + times > 5:
                break
            slots += times
            agrees = ()
            if known and draw(st.booleans()):
                agrees = tuple(
                    (draw(st.sampled_from("ab")), draw(st.sampled_from(known)), draw(st.sampled_from("ab")))
                    for _ in range(draw(st.sampled_from([1, 1, 1, 2])))
                )
            one = many == 1
            distinct = draw(st.sampled_from([(), ("a",), ("a", "b")])) if one and times > 1 else ()
            within = draw(SMALL) if one else None
            # Steps of a pattern may take the same records.
            steps.append(Step(f"s{bit}", draw(st.integers(0, 2)), times, distinct, within, agrees))
            bit += 1
        if not steps:
            break
        gap = (draw(st.sampled_from([None, None, 0, 1, 2])), draw(SMALL)) if number else (None, None)
        elements.append(Element(tuple(steps), draw(SMALL), gap))
        known += [step.name for step in steps]
    places = {step.name: i for i, element in enumerate(elements) for step in element.steps}
    pairs = [(a, b) for a in places for b in places if a == b or places[a] < places[b]]
    nevers = tuple(
        Never(draw(st.sampled_from([1, 3, 3, 3])), *draw(st.sampled_from(pairs)))
        for _ in range(draw(st.integers(0, 2)))
    )
    return Pattern(
        tuple(elements), nevers, draw(st.sampled_from([20, 20, 9, 4])), draw(st.sampled_from([9, 9, slots]))
    )


CODES = st.sampled_from([1, 1, 1, 0, 0, 2, -1])
BITS = st.sampled_from([7, 7, 7, 7, 1, 2, 3, 4, 5, 6, 8, 15])
STRETCHES = st.lists(st.tuples(st.integers(0, 2), BITS, CODES, CODES), min_size=3, max_size=8)


def stretch(rows: list[tuple[int, int, int, int]]) -> Stretch:
    time = np.cumsum([row[0] for row in rows]).tolist()
    codes: Mapping[str, list[int]] = {"a": [row[2] for row in rows], "b": [row[3] for row in rows]}
    return Stretch(time, [row[1] for row in rows], codes)


def joined(stretches: list[Stretch]) -> Windows:
    def all_of(columns: list[object]) -> np.ndarray:
        return np.array([value for column in columns for value in column], dtype=np.int64)

    return Windows(
        np.repeat(np.arange(len(stretches)), [len(one) for one in stretches]).astype(np.int64),
        all_of([one.time for one in stretches]),
        all_of([one.bits for one in stretches]),
        {name: all_of([one.codes[name] for one in stretches]) for name in "ab"},
    )


@settings(max_examples=600, deadline=None)
@given(pattern=patterns(), rows=st.lists(STRETCHES, min_size=1, max_size=3))
def test_minimal_instances_are_those_of_the_definition(
    pattern: Pattern, rows: list[list[tuple[int, int, int, int]]]
) -> None:
    stretches = [stretch(some) for some in rows]
    firsts, lasts = minimal(pattern, joined(stretches))
    found = [*zip(firsts.tolist(), lasts.tolist(), strict=True)]
    expected, before = [], 0
    for one in stretches:
        for instance in minimal_instances(pattern, one):
            a, b = instance.places[0], instance.places[-1]
            expected.append((before + a, before + b))
            taken = smallest(pattern, one.part(a, b))
            assert (tuple(a + place for place in taken.places), taken.steps) == (
                instance.places,
                instance.steps,
            )
        before += len(one)
    assert found == expected
