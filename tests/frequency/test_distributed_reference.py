"""The error of a coordinator, and its cost."""

import re
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frequency.test_reference import ITEMS
from tests.frequency.test_splitter import MU, TAU
from transom.features.frequency.algorithm.distributed_reference import DistributedCountMin
from transom.features.frequency.algorithm.params import Shape
from transom.features.frequency.algorithm.reference import (
    Perfect,
    Proportional,
    Simple,
    WindowedCountMin,
    cells_of,
)
from transom.features.frequency.algorithm.splitter_reference import Splitter

SHAPE = Shape(2, 6, 2)
RECORD = st.tuples(st.integers(0, 2), st.sampled_from(ITEMS))
RECORDS, TICKS = st.lists(RECORD, max_size=150), st.lists(st.lists(RECORD, max_size=12), max_size=30)
KINDS: tuple[type[WindowedCountMin], ...] = (Perfect, Simple, Proportional, Splitter)


@pytest.mark.parametrize("kind", KINDS)
@given(records=RECORDS, every=st.integers(1, 9))
def test_coordinator_lacks_at_most_its_bound(
    kind: Callable[..., WindowedCountMin], records: list[tuple[int, bytes]], every: int
) -> None:
    nodes = [kind(SHAPE, 20) for _ in range(3)]
    together = DistributedCountMin(nodes, every)
    for node, item in records:
        together.update(node, item)
    if kind is not Simple:
        # A matrix that restarts loses more than its bound.
        assert together.lacking() <= 3 * (every + 0.5)
    assert together.sent == sum(sum(n == node for n, _ in records) // every for node in range(3))
    # A count of a window of 20 has at most five digits.
    assert together.sent * SHAPE.cells <= together.bits <= together.sent * SHAPE.cells * 5
    if every == 1:
        for item in ITEMS:
            of_nodes = [sum(Fraction(node.value(cell)) for node in nodes) for cell in cells_of(SHAPE, item)]
            assert together.estimate(item) == pytest.approx(min(of_nodes), abs=1.5)


def test_cost_in_bits_is_the_number_of_sent_digits() -> None:
    together = DistributedCountMin([Perfect(Shape(1, 2), 9), Perfect(Shape(1, 2), 9)], 3)
    for number in range(12):
        together.update(number % 2, ITEMS[0])
    # Each node has sent 3 and 0 of its two cells, then 6 and 0.
    assert (together.sent, together.bits) == (4, 2 * (2 + 1) + 2 * (3 + 1))


@given(ticks=TICKS, steps=st.integers(1, 20), tau=TAU, mu=MU)
def test_sum_of_splitter_nodes_equals_one_node_within_bounds(
    ticks: list[list[tuple[int, bytes]]], steps: int, tau: Fraction, mu: Fraction
) -> None:
    nodes, one = (
        [Splitter(SHAPE, steps, tau=tau, mu=mu) for _ in range(3)],
        Splitter(SHAPE, steps, -1, tau, mu),
    )
    truth = Perfect(SHAPE, steps)
    for tick in ticks:
        for node, item in tick:
            for sketch in (nodes[node], one, truth):
                sketch.update_sample(item)
        for sketch in (*nodes, one, truth):
            sketch.update_tick()
    for cell in {cell for item in ITEMS for cell in cells_of(SHAPE, item)}:
        bounds = [node.bounds_of(cell) for node in nodes]
        low, high = (sum(some, Fraction(0)) for some in zip(*bounds, strict=True))
        of_one = one.bounds_of(cell)
        assert low <= truth.value(cell) <= high
        assert of_one[0] <= truth.value(cell) <= of_one[1]
        off = abs(sum(node.value(cell) for node in nodes) - one.value(cell))
        assert off <= high - low + of_one[1] - of_one[0]


@pytest.mark.parametrize(
    ("nodes", "every", "message"),
    [
        ([], 1, "got 0 of 0 kinds, and 1"),
        ([Perfect(SHAPE, 5), Perfect(SHAPE, 6)], 1, "got 2 of 2 kinds, and 1"),
        ([Perfect(SHAPE, 5), Simple(SHAPE, 5)], 1, "got 2 of 2 kinds, and 1"),
        ([Perfect(SHAPE, 5)], 0, "got 1 of 1 kinds, and 0"),
    ],
)
def test_nodes_have_equal_hashes(nodes: list[WindowedCountMin], every: int, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        DistributedCountMin(nodes, every)
