"""The column of each row in which an item is counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.features.frequency.algorithm.params import Shape
from transom.features.frequency.algorithm.row_hashes import PRIME, _line, columns, columns_of, multipliers


@given(
    items=st.lists(st.binary(max_size=20), max_size=30),
    count=st.integers(1, 2**32),
    seed=st.integers(0, 2**32 - 1),
)
def test_many_items_have_the_hashes_of_each(items: list[bytes], count: int, seed: int) -> None:
    result = columns_of(items, Shape(5, count, seed))
    assert result.T.tolist() == [list(columns(item, Shape(5, count, seed))) for item in items]


@given(
    x=st.lists(st.integers(0, PRIME - 1), min_size=1, max_size=20),
    a=st.integers(1, PRIME - 1),
    b=st.integers(0, PRIME - 1),
)
def test_linear_hashes_are_exact_to_the_last_bit(x: list[int], a: int, b: int) -> None:
    for some in (x, [0, PRIME - 1, 2**32, 2**60]):
        assert _line(np.array(some, dtype=np.uint64), a, b).tolist() == [
            (a * one + b) % PRIME for one in some
        ]
    assert _line(np.array([PRIME - 1], dtype=np.uint64), PRIME - 1, PRIME - 1).tolist() == [0]


def test_hashes_have_fixed_values() -> None:
    assert columns(b"/index.html", Shape(4, 272, 0)) == (252, 191, 219, 25)
    assert columns(b"", Shape(2, 28, 7)) == (4, 11)
    assert multipliers(2, 3)[0] != multipliers(2, 3)[1] != multipliers(2, 4)[1]


def test_two_items_collide_as_rarely_as_in_a_universal_family() -> None:
    count, rows = 28, 4000
    result = columns_of([b"one", b"other", b"third"], Shape(rows, count, 5))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        encountered = np.count_nonzero(result[:, one] == result[:, other])
        assert encountered == pytest.approx(rows / count, abs=4 * (rows / count) ** 0.5)
    counts = np.bincount(result[:, 0], minlength=count)
    assert counts.min() > 0.6 * rows / count
