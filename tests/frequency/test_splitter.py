"""Splitter: its listing, the lazy form, and the form for all cells at once."""

import random
import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frequency.test_reference import ITEMS, given_records, given_ticks
from tests.support.examples import rare_case
from transom.features.frequency.algorithm.params import UNIT, Shape
from transom.features.frequency.algorithm.reference import Cell, Perfect, cells_of
from transom.features.frequency.algorithm.splitter import FIELDS, SplitterCells, SubCells, bounds, values
from transom.features.frequency.algorithm.splitter_reference import (
    FixedPointSplitter,
    Splitter,
    SplitterListing,
    SubCell,
    error,
)
from transom.features.frequency.check_metrics import SUB_CELLS, WINDOW, excess_sub_cells

SHAPE = Shape(2, 4, 3)
CELLS = [Cell(row, column) for row in range(SHAPE.rows) for column in range(SHAPE.columns)]
STREAM = st.lists(st.sampled_from(ITEMS), max_size=120)
COUNTS = st.dictionaries(st.sampled_from(ITEMS), st.integers(1, 60), max_size=4)
TICKS = st.lists(COUNTS, max_size=40)
TAU = st.sampled_from([Fraction(1, 20), Fraction(1, 4), Fraction(1)])
MU = st.sampled_from([Fraction(9, 10), Fraction(3, 2), Fraction(5, 2)])


def test_error_is_the_larger_rate_over_the_smaller() -> None:
    before, last = SubCell(Fraction(10), 0, 3, 10), SubCell(Fraction(4), 5, 5, 4)
    # 10 in the five steps until the other began, 4 in its one step.
    assert error(before, last) == 2
    assert error(SubCell(Fraction(40), 0, 3, 10), last) == 2


@pytest.mark.parametrize(
    ("tau", "mu", "message"),
    [
        (Fraction(0), Fraction(1), "tau must be above 0 and at most 1; got 0"),
        (Fraction(11, 10), Fraction(1), "tau must be above 0 and at most 1; got 1.1"),
        (Fraction(1), Fraction(0), "mu must be above 0; got 0"),
    ],
)
def test_impossible_parameters_are_refused(tau: Fraction, mu: Fraction, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Splitter(SHAPE, 5, tau=tau, mu=mu)


def test_steady_cell_has_one_sub_cell_and_a_change_splits_it() -> None:
    sketch = SplitterListing(Shape(1, 1), 100, tau=Fraction(1, 10))
    for tick in range(100):
        sketch.update_sample(b"x", 4 if tick < 50 else 40)
        sketch.update_tick()
    ((_, queue),) = sketch.queues()
    steady = [sub for sub in queue if sub.last_step < 50]
    assert sum(sub.counter for sub in steady[:2]) > 150
    assert len(queue) < 12
    assert sketch.estimate(b"x") == 50 * 4 + 50 * 40


def everything(sketch: SplitterListing) -> dict[Cell, list[SubCell]]:
    return dict(sorted(sketch.queues()))


@given(stream=STREAM, steps=st.integers(1, 40), tau=TAU, mu=MU)
def test_lazy_form_equals_the_listing_for_records(
    stream: list[bytes], steps: int, tau: Fraction, mu: Fraction
) -> None:
    listed, lazy = SplitterListing(SHAPE, steps, tau=tau, mu=mu), Splitter(SHAPE, steps, tau=tau, mu=mu)
    for item in stream:
        listed.update(item)
        lazy.update(item)
    assert everything(listed) == everything(lazy)


def take(sketch: SplitterListing, ticks: Sequence[dict[bytes, int]]) -> SplitterListing:
    for tick in ticks:
        for item, times in tick.items():
            sketch.update_sample(item, times)
        sketch.update_tick()
    return sketch


@given(ticks=TICKS, steps=st.integers(1, 25), tau=TAU, mu=MU)
def test_lazy_form_equals_the_listing_for_ticks(
    ticks: list[dict[bytes, int]], steps: int, tau: Fraction, mu: Fraction
) -> None:
    listed = take(SplitterListing(SHAPE, steps, tau=tau, mu=mu), ticks)
    lazy = take(Splitter(SHAPE, steps, tau=tau, mu=mu), ticks)
    assert [lazy.estimate(item) for item in ITEMS] == [listed.estimate(item) for item in ITEMS]
    assert everything(listed) == everything(lazy)


@given(ticks=TICKS, steps=st.integers(1, 25), tau=TAU, mu=MU)
def test_count_of_the_window_is_between_the_bounds(
    ticks: list[dict[bytes, int]], steps: int, tau: Fraction, mu: Fraction
) -> None:
    sketch, perfect = take(Splitter(SHAPE, steps, tau=tau, mu=mu), ticks), Perfect(SHAPE, steps)
    for tick in ticks:
        for item, times in tick.items():
            perfect.update_sample(item, times)
        perfect.update_tick()
    truth = sum((Counter(tick) for tick in ticks[-steps:]), Counter[bytes]())
    for item in ITEMS:
        low, high = sketch.bounds(item)
        assert low <= perfect.estimate(item) <= high
        assert low <= sketch.estimate(item) <= high
        assert truth[item] <= high


@given(ticks=TICKS, steps=st.integers(1, 25), seed=st.integers(0, 5))
def test_order_within_a_tick_does_not_matter(ticks: list[dict[bytes, int]], steps: int, seed: int) -> None:
    rng = random.Random(seed)
    of_records = [list(Counter(tick).elements()) for tick in ticks]
    shuffled = [rng.sample(tick, len(tick)) for tick in of_records]
    one, other = (given_ticks(Splitter(SHAPE, steps), some) for some in (of_records, shuffled))
    assert [one.estimate(item) for item in ITEMS] == [other.estimate(item) for item in ITEMS]
    bulk = take(Splitter(SHAPE, steps), ticks)
    assert [one.estimate(item) for item in ITEMS] == [bulk.estimate(item) for item in ITEMS]


def at_once(
    ticks: Sequence[dict[bytes, int]], steps: int, tau: Fraction, mu: Fraction, cuts: Sequence[int] = ()
) -> tuple[SplitterCells, int]:
    """Return all cells, saved and restored after some of the ticks."""
    cells = SplitterCells(SubCells.none(SHAPE.cells), SHAPE.columns, steps, tau, mu)
    for now, tick in enumerate(ticks):
        observed = np.zeros((SHAPE.rows, SHAPE.columns), dtype=np.int64)
        for item, times in tick.items():
            for cell in cells_of(SHAPE, item):
                observed[cell] += times
        window = ticks[max(0, now - steps + 1) : now + 1]
        cells.advance(now, observed.reshape(-1), sum(sum(one.values()) for one in window))
        if now in cuts:
            cells = SplitterCells(cells.sub_cells(now), SHAPE.columns, steps, tau, mu)
    return cells, len(ticks) - 1


@rare_case(3)
@given(ticks=TICKS, steps=st.integers(1, 25), tau=TAU, mu=MU, cuts=st.sets(st.integers(0, 39), max_size=4))
def test_all_cells_at_once_equal_each_cell_to_the_last_bit(
    ticks: list[dict[bytes, int]], steps: int, tau: Fraction, mu: Fraction, cuts: set[int]
) -> None:
    lazy = take(FixedPointSplitter(SHAPE, steps, tau=tau, mu=mu), ticks)
    cells, now = at_once(ticks, steps, tau, mu, sorted(cuts))
    stored = cells.sub_cells(now)
    result = values(stored, now, steps).reshape(SHAPE.rows, SHAPE.columns)
    records = sum(sum(tick.values()) for tick in ticks[max(0, now - steps + 1) :])
    low, high = (some.reshape(SHAPE.rows, SHAPE.columns) for some in bounds(stored, now, steps, records))
    # Read last, as the lazy form writes down its result.
    assert {cell: lazy.bounds_of(cell) for cell in CELLS} == {cell: (low[cell], high[cell]) for cell in CELLS}
    assert {cell: lazy.value(cell) for cell in CELLS} == {
        cell: Fraction(int(result[cell]), UNIT) for cell in CELLS
    }


def test_fixed_point_is_near_the_exact_value() -> None:
    rng = np.random.default_rng(4)
    ticks = [
        {ITEMS[i]: int(n) for i, n in enumerate(rng.poisson(3 + 9 * (t // 40 % 2), 12)) if n}
        for t in range(300)
    ]
    exact = take(Splitter(SHAPE, 60), ticks)
    cells, now = at_once(ticks, 60, exact.tau, exact.mu)
    stored = cells.sub_cells(now)
    result = values(stored, now, 60) / UNIT
    assert result == pytest.approx([float(exact.value(cell)) for cell in CELLS], abs=1e-6)


def test_cells_have_room_for_more_sub_cells_at_any_start() -> None:
    """Few at first, of which some have left the window; then a sub-cell for every tick."""
    rng = np.random.default_rng(6)
    ticks = [{ITEMS[i]: 9 for i in range(12)} if t % 5 == 0 else {} for t in range(60)]
    ticks += [{ITEMS[int(i)]: int(rng.integers(1, 900)) for i in rng.integers(0, 12, 5)} for _ in range(60)]
    tau, mu = Fraction(1, 200), Fraction(9, 10)
    lazy = take(FixedPointSplitter(SHAPE, 25, tau=tau, mu=mu), ticks)
    cells, now = at_once(ticks, 25, tau, mu)
    stored = cells.sub_cells(now)
    assert stored.lengths.max() > 8
    assert [lazy.value(cell) * UNIT for cell in CELLS] == values(stored, now, 25).tolist()


def test_bounds_of_a_steady_cell_are_at_most_all_records() -> None:
    ticks = [{ITEMS[0]: 10}] * 60
    lazy = take(FixedPointSplitter(SHAPE, 6), ticks)
    cells, now = at_once(ticks, 6, lazy.tau, Fraction(lazy.mu))
    _, high = bounds(cells.sub_cells(now), now, 6, 60)
    assert lazy.bounds(ITEMS[0])[1] == high.max() == 60


@pytest.mark.full
def test_memory_depends_on_the_number_of_sub_cells_alone() -> None:
    cells, limit = SplitterCells(SubCells.none(500), 500, 200, Fraction(1, 2000), Fraction(3, 2)), 0
    for now in range(600):
        observed = np.ones(500, dtype=np.int64)
        observed[7] = 400 if now % 2 else 100
        cells.advance(now, observed, 200 * (499 + 250))
        limit = max(limit, int(cells.sub_cells(now).lengths.sum()))
    assert cells.sub_cells(600).lengths.max() > 100
    stored = [field for field in vars(cells).values() if isinstance(field, np.ndarray)]
    stored += vars(cells)["_fields"].values()
    assert sum(field.size for field in stored) < 10 * 3 * limit


@given(
    growth=st.floats(1, 3),
    seed=st.integers(0, 99),
    # A smaller tau allows no more than so few ticks can have.
    tau=st.sampled_from([Fraction(1, 2), Fraction(1)]),
    mu=MU,
)
def test_growing_stream_has_at_most_the_sub_cells_of_its_gate(
    growth: float, seed: int, tau: Fraction, mu: Fraction
) -> None:
    rng = np.random.default_rng(seed)
    ticks = [
        {ITEMS[int(i)]: 1 + int(rng.integers(0, 1 + growth ** min(t, 12))) for i in rng.integers(0, 12, 4)}
        for t in range(40)
    ]
    cells, now = at_once(ticks, 15, tau, mu)
    records = sum(sum(tick.values()) for tick in ticks[-15:])
    row = {"block": "x", SUB_CELLS: int(cells.sub_cells(now).lengths.sum()), WINDOW: records}
    block = SimpleNamespace(shape=SHAPE, tau=tau)
    assert excess_sub_cells({"x": block})(row) == 0  # type: ignore[dict-item]
    assert excess_sub_cells({"x": block})({**row, SUB_CELLS: 10 * row[SUB_CELLS] + 5000}) > 0  # type: ignore[dict-item]


def test_cells_that_are_not_read_have_the_same_result() -> None:
    ticks = [{ITEMS[0]: 5}] * 10 + [{}] * 4 + [{ITEMS[1]: 2}]
    looked, now = at_once(ticks, 8, Fraction(1, 20), Fraction(3, 2), range(len(ticks)))
    not_looked, _ = at_once(ticks, 8, Fraction(1, 20), Fraction(3, 2))
    one, other = looked.sub_cells(now), not_looked.sub_cells(now)
    for field in ("lengths", *FIELDS):
        assert getattr(one, field).tolist() == getattr(other, field).tolist()


def test_window_of_too_many_records_is_refused() -> None:
    cells = SplitterCells(SubCells.none(2), 2, 5)
    cells.advance(0, np.array([2**36, 0]), 2**37 - 1)
    with pytest.raises(OverflowError, match=r"^a window has less than 2\^37 records; got 137438953472$"):
        cells.advance(1, np.array([1, 0]), 2**37)


@given(stream=STREAM, steps=st.integers(4, 40), tau=TAU, mu=MU)
def test_number_of_sub_cells_is_within_its_bound(
    stream: list[bytes], steps: int, tau: Fraction, mu: Fraction
) -> None:
    sketch = given_records(Splitter(SHAPE, steps, tau=tau, mu=mu), stream)
    assert isinstance(sketch, Splitter)
    # In addition to those with the minimum number of records, the oldest and the newest of a cell.
    closed = sum(max(0, len(queue) - 2) for _, queue in sketch.queues())
    assert closed <= SHAPE.rows * SHAPE.columns / tau
