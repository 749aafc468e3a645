"""Evaluate checks by Great Expectations over a table of metrics: a row for each hour (in ingest, each file).

Spark computes all metrics in the aggregation that a stage needs for its digests. The expectations evaluate
this small table, and their unexpected rows identify the failed hours. The suite is built for each run and not
stored.
"""

import importlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from transom.core.locations import spark_server
from transom.ledger.check import Check, MetricResult

if TYPE_CHECKING:
    from great_expectations.core.batch_definition import BatchDefinition


UNUSED = ("altair", "scipy.stats")
"""Modules for plots and distributions, which Great Expectations imports first and no check here uses."""
CONNECT = "pyspark.sql.connect"
OPTIONAL = ("sqlalchemy", "pyspark.ml", CONNECT)
"""Modules without which Great Expectations works: they are for data in databases and in Spark. `CONNECT` is
not hidden from a session of a server, which may import it at the same time."""
_LOCK = threading.RLock()
"""Great Expectations evaluates for one thread at a time: validations share the batch of their data source."""


class _Deferred(ModuleType):
    """A stand-in for a module, which is imported when something of it is used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


@contextmanager
def _without_extras() -> Iterator[None]:
    """Within the context, imports defer the modules in `UNUSED` and fail for those in `OPTIONAL`."""
    extras: dict[str, ModuleType | None] = {name: _Deferred(name) for name in UNUSED}
    extras |= dict.fromkeys(name for name in OPTIONAL if spark_server() is None or name != CONNECT)
    extras = {name: module for name, module in extras.items() if name not in sys.modules}
    # Python's way to make an import fail: None instead of a module.
    sys.modules.update(extras)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name, module in extras.items():
            if name in sys.modules and sys.modules[name] is module:
                del sys.modules[name]


def _great_expectations() -> Any:
    """Import Great Expectations, without the half of its imports that no check here needs."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    with _LOCK, _without_extras():
        return importlib.import_module("great_expectations")


def preload() -> None:
    """Start to import Great Expectations, which takes seconds, in a thread while Spark starts."""
    threading.Thread(target=_great_expectations, daemon=True).start()


@cache
def _metrics() -> "BatchDefinition":
    """Return the source of tables of metrics; cached, as it costs as much as a validation."""
    gx = _great_expectations()
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    return (
        context.data_sources.add_pandas("metrics")
        .add_dataframe_asset("values")
        .add_batch_definition_whole_dataframe("all")
    )


def evaluate_checks(checks: Sequence[Check], metrics: Sequence[Mapping[str, Any]]) -> list[MetricResult]:
    """Evaluate every check for every row of a table of metrics.

    A check does not apply to a row in which its metric is null. One expectation costs as much as a million
    rows. So there is one expectation over a row for each bound of each value: a larger and a smaller number.

    Args:
        checks: the checks.
        metrics: the metrics of each row, by name.

    Raises:
        RuntimeError: the expectation could not be evaluated.
    """
    values = [
        (check, number, float(value))
        for check in checks
        for number, row in enumerate(metrics)
        if (value := row.get(check.metric)) is not None
    ]
    if not values:
        return []
    with _LOCK:
        batches, gx = _metrics(), _great_expectations()
    import pandas as pd

    bounds = [
        bound
        for number, (check, _, observed) in enumerate(values)
        for bound in ((number, observed, check.at_least), (number, check.at_most, observed))
        if None not in bound
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
    with _LOCK:
        result = batches.get_batch({"dataframe": frame}).validate(
            suite, result_format={"result_format": "COMPLETE", "unexpected_index_column_names": ["value"]}
        )
    failed: set[int] = set()
    for outcome in result.results:
        if outcome.exception_info and outcome.exception_info.get("raised_exception"):
            raise RuntimeError(f"{outcome.expectation_config}: {outcome.exception_info}")
        failed.update(int(row["value"]) for row in outcome.result["unexpected_index_list"] or [])
    return [
        MetricResult(check, row, observed, number not in failed)
        for number, (check, row, observed) in enumerate(values)
    ]
