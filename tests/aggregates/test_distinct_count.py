"""Distinct values: a sample is a function of the set, and windows of many keys count as each set does."""

from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transom.features.aggregates.algorithm.distinct_count import (
    BITS,
    AdaptiveSamples,
    _depths,
)
from transom.features.aggregates.algorithm.reference_summaries import AdaptiveSample, depth_of

hashes_of = st.one_of(st.integers(1, 40), st.integers(1, 2**63 - 1), st.integers(2**61, 2**61 + 9))


def column(figures: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(figures, dtype=np.int64)


@given(
    st.lists(st.lists(hashes_of, max_size=9), max_size=6),
    st.integers(1, 6),
    st.randoms(use_true_random=False),
)
def test_sample_is_a_function_of_the_set_alone(parts: list[list[int]], size: int, rng: Random) -> None:
    whole = AdaptiveSample.of([value for part in parts for value in part], size)
    rng.shuffle(parts)
    merged = AdaptiveSample.of([], size)
    for part in parts:
        merged = AdaptiveSample.of(part, size) + merged
    assert merged == whole
    every = {value for part in parts for value in part}
    depth = next(d for d in range(BITS + 2) if sum(depth_of(value) >= d for value in every) <= size)
    assert (whole.depth, whole.count) == (depth, sum(depth_of(value) >= depth for value in every))


@given(st.lists(hashes_of, max_size=20))
@example([1, 2, 2**62, 2**63 - 1, 2**53 - 1, 2**54 - 1, 2**60 - 1, 2**60])
def test_depths_of_many_hashes_equal_those_of_each(values: list[int]) -> None:
    assert _depths(column(values)).tolist() == [depth_of(value) for value in values]


@given(
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 3),
    st.dictionaries(st.tuples(st.integers(0, 2), st.integers(-3, 12)), st.sets(hashes_of, max_size=9)),
)
def test_windows_count_as_the_set_of_their_values(
    size: int, length: int, slide: int, sets: dict[tuple[int, int], set[int]]
) -> None:
    granules = sorted(sets.items())
    stored = [AdaptiveSample.of(values, size).hashes for _, values in granules]
    samples = AdaptiveSamples(
        column([key for (key, _), _ in granules]),
        column([start for (_, start), _ in granules]),
        np.concatenate([[0], np.cumsum([len(some) for some in stored])]).astype(np.int64),
        column([value for some in stored for value in some]),
        size,
    )
    windows = [(key, end) for key in range(3) for end in range(-4, 20, slide)]
    keys, ends = column([key for key, _ in windows]), column([end for _, end in windows])
    estimates, errors = samples.windows(keys, ends, length)
    for index, (key, end) in enumerate(windows):
        inside = [values for (k, start), values in granules if k == key and end - length <= start < end]
        whole = AdaptiveSample.of(set().union(*inside), size)
        estimate = whole.count << whole.depth
        assert estimates[index] == estimate
        share = 2.0**whole.depth
        assert errors[index] == pytest.approx((estimate * (share - 1)) ** 0.5)


@pytest.mark.full
def test_error_of_a_large_set_is_about_its_standard_error() -> None:
    """200 sets of 20,000 values: the observed errors match the stated standard error."""
    rng = np.random.default_rng(7)
    observed = []
    for _ in range(200):
        sample = AdaptiveSample.of(rng.integers(0, 2**63, 20_000, dtype=np.int64).tolist())
        estimate = sample.count << sample.depth
        assert sample.depth > 0
        observed.append((estimate - 20_000) / (estimate * (2**sample.depth - 1)) ** 0.5)
    assert abs(np.mean(observed)) < 0.3
    assert 0.8 < np.std(observed) < 1.2


def test_set_within_capacity_is_counted_exactly() -> None:
    sample = AdaptiveSample.of(range(1024))
    assert (sample.count << sample.depth, sample.depth) == (1024, 0)
    assert AdaptiveSample.of(range(1025)).depth > 0
