"""Sketches of complete windows: their answers, and which of them can be added."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frequency.test_reference import ITEMS
from tests.frequency.test_tick_matrices import matrix_of
from transom.features.frequency.algorithm.params import Shape
from transom.features.frequency.algorithm.reference import Perfect, cells_of
from transom.features.frequency.algorithm.window_sketch import UnmergeableError, WindowSketch

SHAPE = Shape(3, 5, 1)
COUNTS = st.lists(st.integers(0, 50), min_size=len(ITEMS), max_size=len(ITEMS))


def sketch(counts: list[int], parts: int = 1) -> WindowSketch:
    times = np.array(counts)
    return WindowSketch(
        SHAPE, "perfect", 300 * 10**6, 12, 7, int(times.sum()), parts, matrix_of(SHAPE, ITEMS, times)
    )


@given(one=COUNTS, other=COUNTS, third=COUNTS)
def test_sum_of_sketches_is_the_sketch_of_one_stream(
    one: list[int], other: list[int], third: list[int]
) -> None:
    a, b, c = map(sketch, (one, other, third))
    whole = sketch([sum(count) for count in zip(one, other, third, strict=True)])
    for added in ((a + b) + c, a + (b + c), c + (b + a)):
        assert np.array_equal(added.counts, whole.counts)
        assert added.records == whole.records


@given(counts=COUNTS)
def test_estimates_equal_those_of_the_listing(counts: list[int]) -> None:
    listing = Perfect(SHAPE, 1)
    for item, times in zip(ITEMS, counts, strict=True):
        if times:
            listing.update_sample(item, times)
    listing.update_tick()
    assert sketch(counts).estimates(ITEMS).tolist() == [listing.estimate(item) for item in ITEMS]


@given(counts=COUNTS, parts=st.integers(1, 9))
def test_fractions_of_a_record_are_rounded_as_in_the_listing(counts: list[int], parts: int) -> None:
    of = sketch(counts, parts)
    expected = [
        round(min(Fraction(int(of.counts[cell]), parts) for cell in cells_of(SHAPE, item))) for item in ITEMS
    ]
    assert of.estimates(ITEMS).tolist() == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": Shape(3, 5, 2)}, "sketches of different shape do not add up: Shape(rows=3, columns=5, "),
        ({"tick": 60 * 10**6}, "sketches of different ticks do not add up: 5 minutes and 1 minute"),
        ({"steps": 24}, "sketches of different windows do not add up: 1 hour and 2 hours"),
        ({"step": 8}, "sketches of different ends do not add up: 1970-01-01T00:40:00Z and 1970-01-01T00:45"),
        ({"variant": "simple"}, "sketches of different variant do not add up: perfect and simple"),
    ],
)  # fmt: skip
def test_sketches_that_cannot_be_added_are_refused(change: dict[str, object], message: str) -> None:
    one = sketch([1] * len(ITEMS))
    with pytest.raises(UnmergeableError) as refused:
        _ = one + replace(one, **change)  # type: ignore[arg-type]
    assert str(refused.value).startswith(message)


def test_number_of_records_above_the_limit_is_refused() -> None:
    count = replace(sketch([0] * len(ITEMS)), records=2**61)
    with pytest.raises(OverflowError, match=r"^4611686018427387904 records, in parts of 1 / 1, cannot"):
        _ = count + count


def test_matrix_of_another_shape_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^the matrix must have the shape Shape\(rows=3, columns=5, seed=1\);"
    ):
        replace(sketch([1] * len(ITEMS)), counts=np.zeros((5, 3), dtype=np.int64))


def test_sketch_is_no_number_and_equals_itself_alone() -> None:
    one, other = sketch([1] * len(ITEMS)), sketch([1] * len(ITEMS))
    assert one in [one]
    assert one != other
    assert len({one, other, one}) == 2
    with pytest.raises(TypeError, match="unsupported operand"):
        one + 3
