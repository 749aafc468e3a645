"""Checks: Great Expectations over a table of metrics, a row an hour (of ingest: a file).

Spark computes the numbers of every check in the one aggregation that a stage makes anyway; the
expectations then judge that small table, and their unexpected rows name the hours at fault. A suite is
built from the checks of a run and stored nowhere.
"""

import importlib
import os
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from transom.ledger.check import Check, MetricResult

if TYPE_CHECKING:
    from great_expectations.core.batch_definition import BatchDefinition


def preload() -> None:
    """Begins to load Great Expectations, which takes seconds, while Java starts and works."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    threading.Thread(target=importlib.import_module, args=("great_expectations",), daemon=True).start()


@cache
def _metrics() -> "BatchDefinition":
    """Where Great Expectations takes a table of metrics from. Made once: it costs as much as a validation."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    return (
        context.data_sources.add_pandas("metrics")
        .add_dataframe_asset("values")
        .add_batch_definition_whole_dataframe("all")
    )


def evaluate_checks(checks: Sequence[Check], metrics: Sequence[Mapping[str, Any]]) -> list[MetricResult]:
    """Judge every row of a table of metrics by every check.

    A metric that is null was not measured in that row, and its check does not apply there. Great Expectations
    takes as long for an expectation as for a million rows, so each bound of each value is a row, the larger
    beside the smaller, and one expectation judges all of them.

    Raises:
        RuntimeError: an expectation could not be evaluated.
    """
    values = [
        (check, number, float(value))
        for check in checks
        for number, row in enumerate(metrics)
        if (value := row.get(check.metric)) is not None
    ]
    if not values:
        return []
    batches = _metrics()
    import great_expectations as gx
    import pandas as pd

    bounds = [
        pair
        for number, (check, _, observed) in enumerate(values)
        for pair in ((number, observed, check.at_least), (number, check.at_most, observed))
        if None not in pair
    ]
    frame = pd.DataFrame(bounds, columns=["value", "larger", "smaller"])
    frame = frame.astype({"value": "int64", "larger": "float64", "smaller": "float64"})
    suite = gx.ExpectationSuite(
        name="checks",
        expectations=[
            gx.expectations.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A="larger", column_B="smaller", or_equal=True, ignore_row_if="either_value_is_missing"
            )
        ],
    )
    result = batches.get_batch({"dataframe": frame}).validate(
        suite, result_format={"result_format": "COMPLETE", "unexpected_index_column_names": ["value"]}
    )
    failed: set[int] = set()
    for outcome in result.results:
        if outcome.exception_info and outcome.exception_info.get("raised_exception"):
            raise RuntimeError(f"{outcome.expectation_config}: {outcome.exception_info}")
        failed.update(int(bad["value"]) for bad in outcome.result["unexpected_index_list"] or [])
    return [
        MetricResult(check, row, observed, number not in failed)
        for number, (check, row, observed) in enumerate(values)
    ]
