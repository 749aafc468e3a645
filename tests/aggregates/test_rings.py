"""Rings of many windows compared with those of each key's stairwise chain."""

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.granule_factories import granules
from tests.support.level_factories import nested_levels
from transom.features.aggregates.algorithm.reference import reports
from transom.features.aggregates.algorithm.reference_summaries import Sums
from transom.features.aggregates.algorithm.rings import aged_mean, sums_of_rings

drawn = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 60), st.none() | st.integers(-9, 9)), max_size=40
)


@given(st.data(), st.sampled_from([1, 2]), drawn, st.lists(st.floats(0.001, 1000), min_size=4, max_size=4))
def test_rings_equal_those_of_the_chain(
    data: st.DataObject,
    base: int,
    events: list[tuple[int, int, int | None]],
    weights: list[float],
) -> None:
    levels = data.draw(nested_levels(base))
    records = sorted(events, key=lambda event: event[:2])
    whole = granules([(key, time, {"v": value}) for key, time, value in records], base)
    for number, level in enumerate(levels):
        result = whole.windows(level, [(0, 100)])
        ranges = [level.range for level in levels[: number + 1]]
        summary = whole.columns["v"]
        amounts = (whole.records, summary.values, summary.total)
        stored = list(sums_of_rings(whole, base, result.key, result.end, ranges, *amounts))
        mean = aged_mean(weights[: number + 1], stored[2], stored[1])
        required = [
            (key, report.end, report.rings)
            for key in range(3)
            for report in reports([(t, Sums.of(v)) for k, t, v in records if k == key], levels, 0, 100)
            if report.level == number and report.window
        ]
        assert list(zip(result.key.tolist(), result.end.tolist(), strict=True)) == [
            row[:2] for row in required
        ]
        for index, (_, _, of_rings) in enumerate(required):
            sums = [(r.records, r.values, r.total) if r else (0, 0, 0) for r in of_rings]
            assert [tuple(part[ring, index] for part in stored) for ring in range(number + 1)] == sums
            values = sum(weight * of for weight, (_, of, _) in zip(weights, sums, strict=False))
            if values:
                total = sum(weight * of for weight, (_, _, of) in zip(weights, sums, strict=False))
                assert mean[index] == pytest.approx(total / values, rel=1e-12, abs=1e-12)
            else:
                assert math.isnan(mean[index])


def test_old_records_count_less() -> None:
    totals, values = np.array([[10], [400]]), np.array([[1], [4]])
    assert aged_mean([1.0, 1.0], totals, values).tolist() == [82.0]
    assert aged_mean([1.0, 0.25], totals, values).tolist() == [55.0]


@given(st.integers(1, 12), st.integers(2, 9), st.randoms(use_true_random=False))
def test_mean_of_a_window_is_equal_alone_and_among_others(rings: int, windows: int, random: Random) -> None:
    """The promise, bit for bit: sums of floats depend on their order."""
    rng = np.random.default_rng(random.randrange(2**32))
    totals, values = rng.integers(-(2**60), 2**60, (rings, windows)), rng.integers(1, 99, (rings, windows))
    weights = rng.random(rings).tolist()
    together = aged_mean(weights, totals, values)
    alone = [aged_mean(weights, totals[:, [i]], values[:, [i]])[0] for i in range(windows)]
    assert together.tolist() == alone
