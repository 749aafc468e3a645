"""The listings of Count-Min sketches, and their guarantees."""

import random
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.features.frequency.algorithm.params import Shape
from transom.features.frequency.algorithm.reference import (
    Cell,
    Perfect,
    Proportional,
    Simple,
    Vanilla,
    WindowedCountMin,
    cells_of,
)

ITEMS = [b"%d" % n for n in range(12)]
STREAM = st.lists(st.sampled_from(ITEMS), max_size=60)
TICKS = st.lists(st.lists(st.sampled_from(ITEMS), max_size=6), max_size=30)
SMALL = Shape(3, 5, 1)


def test_shapes_equal_those_of_the_paper() -> None:
    assert Shape.for_error(0.1, 0.5) == Shape(1, 28)
    assert Shape.for_error(0.01, 0.01, 4) == Shape(7, 272, 4)
    for rows in (1, 2, 4, 8):
        assert Shape.for_error(0.1, 2.0**-rows).rows == rows
    shape = Shape.for_error(0.01, 0.004)
    assert shape.epsilon <= 0.01
    assert shape.delta <= 0.004
    assert shape.cells == 8 * 272
    assert len({cell.row for cell in cells_of(shape, b"x")}) == 8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Shape.for_error(0, 0.1), "epsilon must be above 0 and below 1; got 0"),
        (lambda: Shape.for_error(1, 0.1), "epsilon must be above 0 and below 1; got 1"),
        (lambda: Shape.for_error(0.1, 1.5), "delta must be above 0 and below 1; got 1.5"),
        (lambda: Shape(0, 5), "a matrix has 1 row or more, and 1 to 2^32 columns; got Shape(rows=0"),
        (lambda: Shape(1, 2**33), "a matrix has 1 row or more, and 1 to 2^32 columns"),
        (lambda: Shape(1, 5, -1), "seed must be from 0 up to 2^32; got -1"),
        (lambda: Perfect(SMALL, 5).update_sample(b"x", 0), "an item is seen once or more; got 0"),
        (lambda: Perfect(SMALL, 0), "a window has 1 step or more; got 0"),
    ],
)
def test_impossible_parameters_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        make()  # type: ignore[operator]


def given_records(sketch: WindowedCountMin, stream: Sequence[bytes]) -> WindowedCountMin:
    for item in stream:
        sketch.update(item)
    return sketch


def given_ticks(sketch: WindowedCountMin, ticks: Sequence[Sequence[bytes]]) -> WindowedCountMin:
    for tick in ticks:
        for item in tick:
            sketch.update_sample(item)
        sketch.update_tick()
    return sketch


@given(stream=STREAM, steps=st.integers(1, 20))
def test_perfect_equals_a_sketch_of_the_window_alone(stream: list[bytes], steps: int) -> None:
    sketch, window = given_records(Perfect(SMALL, steps), stream), stream[-steps:]
    alone, truth = given_records(Vanilla(SMALL), window), Counter(window)
    for item in ITEMS:
        assert sketch.estimate(item) == alone.estimate(item) >= truth[item]


@given(stream=STREAM)
def test_vanilla_counts_everything(stream: list[bytes]) -> None:
    sketch, truth = given_records(Vanilla(Shape(4, 1000, 2)), stream), Counter(stream)
    assert {item: sketch.estimate(item) for item in ITEMS} == {item: truth[item] for item in ITEMS}


@given(stream=STREAM, steps=st.integers(1, 20))
def test_simple_counts_since_the_last_restart(stream: list[bytes], steps: int) -> None:
    sketch = given_records(Simple(SMALL, steps), stream)
    since = stream[(len(stream) - 1) // steps * steps :] if stream else []
    alone = given_records(Vanilla(SMALL), since)
    assert [sketch.estimate(item) for item in ITEMS] == [alone.estimate(item) for item in ITEMS]


@given(stream=STREAM, steps=st.integers(1, 20))
def test_proportional_is_perfect_at_the_end_of_each_window(stream: list[bytes], steps: int) -> None:
    whole = stream[: len(stream) // steps * steps]
    sketch, perfect = (
        given_records(Proportional(SMALL, steps), whole),
        given_records(Perfect(SMALL, steps), whole),
    )
    assert [sketch.estimate(item) for item in ITEMS] == [perfect.estimate(item) for item in ITEMS]


def test_proportional_subtracts_an_nth_at_each_step() -> None:
    sketch = Proportional(Shape(1, 1), 4)
    values = []
    for times in (8, 0, 0, 0, 1, 0, 2, 0, 0):
        if times:
            sketch.update_sample(b"x", times)
        sketch.update_tick()
        values.append(float(sketch.value(Cell(0, 0))))
    assert values == [8, 8, 8, 8, 7, 5, 5, 3, 2.25]


@pytest.mark.parametrize("kind", [Perfect, Simple, Proportional])
@given(ticks=TICKS, seed=st.integers(0, 9))
def test_order_within_a_tick_does_not_matter(
    kind: type[WindowedCountMin], ticks: list[list[bytes]], seed: int
) -> None:
    rng = random.Random(seed)
    shuffled = [rng.sample(tick, len(tick)) for tick in ticks]
    one, other = (given_ticks(kind(SMALL, 4), some) for some in (ticks, shuffled))
    assert [one.estimate(item) for item in ITEMS] == [other.estimate(item) for item in ITEMS]


@given(stream=STREAM, steps=st.integers(1, 9))
def test_tick_per_record_is_a_window_of_records(stream: list[bytes], steps: int) -> None:
    for kind in (Perfect, Simple, Proportional):
        one = given_records(kind(SMALL, steps), stream)
        other = given_ticks(kind(SMALL, steps), [[item] for item in stream])
        assert [one.estimate(item) for item in ITEMS] == [other.estimate(item) for item in ITEMS]


@pytest.mark.full
def test_estimates_exceed_the_bound_as_rarely_as_guaranteed() -> None:
    # With one row, or equal rows, one in fifteen does.
    epsilon, delta = 0.1, 0.01
    rng = np.random.default_rng(8)
    stream = [b"%d" % n for n in rng.zipf(1.3, 4000) % 500]
    truth, beyond, items = Counter(stream), 0, 0
    for seed in range(40):
        sketch = given_records(Vanilla(Shape.for_error(epsilon, delta, seed)), stream)
        for item, often in truth.items():
            estimate = sketch.estimate(item)
            assert estimate >= often
            beyond += estimate - often >= epsilon * (len(stream) - often)
            items += 1
    assert beyond / items <= delta
