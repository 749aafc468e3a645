"""Windows from the matrices of ticks equal those of the listings."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frequency.test_reference import ITEMS
from tests.frequency.test_splitter import TICKS
from transom.core.exact_sums import Int64s
from transom.features.frequency.algorithm.params import Shape
from transom.features.frequency.algorithm.reference import (
    Cell,
    Perfect,
    Proportional,
    Simple,
    WindowedCountMin,
)
from transom.features.frequency.algorithm.row_hashes import columns_of
from transom.features.frequency.algorithm.tick_matrices import matrices_of, shares

SHAPE = Shape(2, 5, 9)
LISTINGS: Mapping[str, type[WindowedCountMin]] = {
    "perfect": Perfect, "simple": Simple, "proportional": Proportional
}  # fmt: skip


def matrix_of(shape: Shape, items: Sequence[bytes], times: Int64s) -> Int64s:
    columns = columns_of(items, shape)
    return matrices_of(shape, columns, times, np.zeros_like(times), 1)[0]


def matrices(ticks: Sequence[Mapping[bytes, int]]) -> np.ndarray:
    return np.stack(
        [matrix_of(SHAPE, list(tick), np.array([*tick.values()], dtype=np.int64)) for tick in ticks]
    )


@pytest.mark.parametrize("variant", LISTINGS)
@given(ticks=TICKS.filter(bool), steps=st.integers(1, 12), first=st.integers(0, 30))
def test_windows_equal_those_of_the_listings(
    variant: str, ticks: list[dict[bytes, int]], steps: int, first: int
) -> None:
    listing, of_ticks = LISTINGS[variant](SHAPE, steps, first - 1), matrices(ticks)
    for now, tick in enumerate(ticks, first):
        for item, times in tick.items():
            listing.update_sample(item, times)
        listing.update_tick()
        stored = np.zeros((SHAPE.rows, SHAPE.columns), dtype=np.int64)
        for begin, last, parts in shares(variant, steps, now):
            assert now - begin < (2 * steps - 1 if variant == "proportional" else steps)
            some = of_ticks[max(0, begin - first) : max(0, last - first + 1)]
            stored += parts * some.sum(axis=0)
        for row in range(SHAPE.rows):
            for column in range(SHAPE.columns):
                assert Fraction(int(stored[row, column]), steps) == listing.value(Cell(row, column))


@given(ticks=TICKS.filter(bool), nodes=st.integers(1, 4), seed=st.integers(0, 99))
def test_matrices_add_up_for_any_division_of_records(
    ticks: list[dict[bytes, int]], nodes: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    whole = matrices(ticks)
    parts = [[dict[bytes, int]() for _ in ticks] for _ in range(nodes)]
    for number, tick in enumerate(ticks):
        for item, times in tick.items():
            for node, some in enumerate(rng.multinomial(times, np.full(nodes, 1 / nodes)).tolist()):
                parts[node][number][item] = some
    assert np.array_equal(sum(map(matrices, parts)), whole)


def test_every_record_is_counted_once_in_each_row() -> None:
    tick, times = np.array([0, 2, 2, 0]), np.array([3, 1, 10**7, 4])
    columns = np.array([[0, 1, 1, 0], [2, 2, 4, 0]])
    result = matrices_of(SHAPE, columns, times, tick, 3)
    assert result[0].tolist() == [[7, 0, 0, 0, 0], [4, 0, 3, 0, 0]]
    assert result.sum(axis=2).tolist() == [[7, 7], [0, 0], [10**7 + 1, 10**7 + 1]]


def test_number_of_records_above_the_limit_is_refused() -> None:
    with pytest.raises(OverflowError, match=r"^2 counts of up to 2305843009213693952 records"):
        matrix_of(SHAPE, ITEMS[:2], np.array([2**61, 1]))
