"""The between-join of many keys at once, compared with a nested loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import rare_case
from transom.arrays.sorted_index import SortedIndex, sort_by_key_and_time
from transom.features.fills.algorithm.reference import nested_loop
from transom.features.fills.algorithm.vectorised import Between

TIME = st.one_of(st.integers(0, 30), st.integers(0, 10**15))
INTERVALS = st.lists(
    st.tuples(st.integers(0, 3), TIME, st.integers(0, 40)).map(lambda i: (i[0], i[1], i[1] + i[2])),
    max_size=12,
)
ROWS = st.lists(
    st.tuples(st.one_of(st.integers(0, 3), st.just(10**6)), TIME, st.integers(-9, 9)), max_size=25
)


@rare_case(10)
@given(intervals=INTERVALS, rows=ROWS)
def test_aggregates_of_intervals_equal_those_of_a_nested_loop(
    intervals: list[tuple[int, int, int]], rows: list[tuple[int, int, int]]
) -> None:
    rows = sorted(rows)
    key, time, value = (np.array([row[place] for row in rows], dtype=np.int64) for place in range(3))
    columns = (np.array([one[place] for one in intervals], dtype=np.int64) for place in range(3))
    between = Between.of(SortedIndex(key, time), *columns)
    expected = list(nested_loop(intervals, [(row[0], row[1]) for row in rows]))
    assert sorted(zip(*(numbers.tolist() for numbers in between.pairs()), strict=True)) == sorted(expected)
    of = [[rows[place][2] for number, place in expected if number == one] for one in range(len(intervals))]
    assert between.count().tolist() == [len(values) for values in of]
    assert between.sums(value).tolist() == [sum(values) for values in of]
    assert between.extremes(value, np.maximum, -99).tolist() == [max(values, default=-99) for values in of]
    assert between.extremes(value, np.minimum, 99).tolist() == [min(values, default=99) for values in of]


@given(rows=st.lists(st.tuples(st.one_of(st.integers(0, 3), st.just(10**6)), TIME), max_size=25))
def test_moments_are_sorted_by_key_and_time(rows: list[tuple[int, int]]) -> None:
    key, time = (np.array([row[place] for row in rows], dtype=np.int64) for place in range(2))
    order, of_key, of_time = sort_by_key_and_time(key, time)
    assert list(zip(of_key.tolist(), of_time.tolist(), strict=True)) == sorted(rows)
    assert [rows[place] for place in order.tolist()] == sorted(rows)


def test_possibly_inexact_sum_is_refused() -> None:
    key, time = np.zeros(3, dtype=np.int64), np.arange(3)
    between = Between.of(SortedIndex(key, time), key[:1], time[:1], time[2:])
    assert between.sums(np.array([2**61 - 1, 0, 9])).tolist() == [2**61 - 1]
    with pytest.raises(
        OverflowError, match=r"below 2\^62 steps .* got 2 values of up to -?2305843009213693952 steps"
    ):
        between.sums(np.array([2**61, 1, 9]))
