"""Great Expectations' verdicts on a table of metrics, and their prediction, equal a comparison by hand."""

from concurrent.futures import ThreadPoolExecutor
from math import inf, isnan, nan

from hypothesis import example, given
from hypothesis import strategies as st

from transom.engine.evaluate_checks import evaluate_checks
from transom.ledger.check import Check, predict_results

BOUNDS = st.none() | st.sampled_from([-1.0, 0.0, 0.3, 1.0, 2.0**53])
VALUES = st.none() | st.sampled_from([-1, 0, 0.1 + 0.2, 0.3, 1, 3, 2**53, 2**62, 1e-320, 1e300, inf, nan])
METRICS = st.lists(st.fixed_dictionaries({"one": VALUES, "other": VALUES}), max_size=4)
CHECKS = st.lists(st.tuples(st.sampled_from(["one", "other", "absent"]), BOUNDS, BOUNDS), max_size=4)


@given(CHECKS, METRICS)
@example([("one", 0.3, 0.3)], [{"one": 0.3}, {"one": 0.1 + 0.2}, {"one": 0.1}])
@example([("one", 0.3, 0.3)], [{"one": nan}, {"one": inf}])
def test_each_value_is_compared_with_both_bounds(
    bounds: list[tuple[str, float | None, float | None]], metrics: list[dict[str, float | None]]
) -> None:
    checks = [
        Check(f"check {number}", metric, at_least=minimum, at_most=limit)
        for number, (metric, minimum, limit) in enumerate(bounds)
    ]
    expected = [
        # NaN is not compared: it counts as no value.
        (
            check.name, row, value,
            isnan(value) or ((minimum is None or value >= minimum) and (limit is None or value <= limit)),
        )
        for check, (metric, minimum, limit) in zip(checks, bounds, strict=True)
        for row, values in enumerate(metrics)
        if (value := values.get(metric)) is not None
    ]  # fmt: skip
    for results in (evaluate_checks(checks, metrics), predict_results(checks, metrics)):
        assert [(one.check.name, one.row, one.observed, one.success) for one in results] == expected


def test_two_threads_evaluate_their_own_metrics() -> None:
    """Stages that run at once share the data source of Great Expectations."""
    checks = [Check("few", "n", at_most=5)]

    def failed(limit: int) -> set[bool]:
        results = (evaluate_checks(checks, [{"n": limit}, {"n": 0}]) for _ in range(20))
        return {result.success for two in results for result in two if result.row == 0}

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(failed, [9, 3])) == [{False}, {True}]
