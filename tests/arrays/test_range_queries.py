"""Searches in many ranges at once equal those in each range."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transom.arrays.range_queries import (
    NO_VALUE,
    expand_ranges,
    extreme,
    maxima_of_others,
    segmented_searchsorted,
)

VALUES = st.lists(st.tuples(st.integers(NO_VALUE, 6), st.integers(0, 2)), min_size=1, max_size=20)
RANGES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 3)), min_size=1)


def columns(rows: list[tuple[int, ...]]) -> list[np.ndarray]:
    return [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]


@given(values=VALUES, ranges=RANGES)
def test_range_maxima_equal_those_of_each_range(
    values: list[tuple[int, int]], ranges: list[tuple[int, int, int]]
) -> None:
    cut = [(min(low, len(values)), min(high, len(values)), owner) for low, high, owner in ranges]
    every, owners = columns(values)
    low, high, besides = columns(cut)
    assert extreme(every, low, high, np.maximum).tolist() == [
        max([NO_VALUE, *(value for value, _ in values[a:b])]) for a, b, _ in cut
    ]
    assert maxima_of_others(every, owners, low, high, besides).tolist() == [
        max([NO_VALUE, *(value for value, owner in values[a:b] if owner != but)]) for a, b, but in cut
    ]


@given(values=st.lists(st.integers(0, 9), min_size=1), ranges=RANGES)
def test_searched_and_expanded_ranges_equal_those_of_each(
    values: list[int], ranges: list[tuple[int, int, int]]
) -> None:
    values = sorted(values)
    cut = [(min(a, b, len(values)), min(max(a, b), len(values)), bound) for a, b, bound in ranges]
    low, high, bound = columns(cut)
    assert segmented_searchsorted(np.array(values), low, high, bound).tolist() == [
        next((i for i in range(a, b) if values[i] >= minimum), b) for a, b, minimum in cut
    ]
    of, places = expand_ranges(low, high)
    assert [*zip(of.tolist(), places.tolist(), strict=True)] == [
        (number, place) for number, (a, b, _) in enumerate(cut) for place in range(a, b)
    ]
