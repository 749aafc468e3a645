"""Means of whole steps are the nearest doubles."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transom.core import rounding


@given(
    st.integers(-(2**53), 2**53),
    st.integers(1, 2**40),
    st.sampled_from(["1", "0.001", "0.01", "0.5", "0.0625"]),
)
@example(165483, 10, "0.001")
def test_mean_is_the_nearest_double(total: int, values: int, resolution: str) -> None:
    step = rounding.ratio(resolution)
    result = rounding.mean(np.array([total]), np.array([values]), step)[0]
    assert result == float(Fraction(total, values) * Fraction(*step))


def test_mean_of_coarse_steps_and_of_no_steps_is_exact() -> None:
    result = rounding.mean(np.array([7, 0]), np.array([2, 0]), rounding.ratio("20"))
    assert result[0] == 70.0
    assert np.isnan(result[1])


@given(st.integers(-(2**62), 2**62), st.integers(1, 2**62))
def test_mean_of_large_sums_is_near(total: int, values: int) -> None:
    result = rounding.mean(np.array([total]), np.array([values]), (1, 1000))[0]
    assert result == pytest.approx(float(Fraction(total, values * 1000)), rel=1e-15)
