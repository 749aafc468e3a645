"""Metrics of computed rows. No Spark."""

from datetime import UTC, datetime
from unittest.mock import Mock

import pytest

from transom.core.partitions import EMPTY_DIGEST, PartitionKey
from transom.engine.measurement import RunRows, measure
from transom.ledger.stage import StepResult, TableStep
from transom.storage.tables import Table

HOUR = datetime(2024, 3, 5, 4, tzinfo=UTC)
KEYS = [PartitionKey("frames", block, "frames", HOUR) for block in ("a", "b")]


@pytest.mark.parametrize(("rows", "read"), [((), False), ((1, 1), False), ((1, 2), True)])
def test_further_metrics_are_computed_if_a_partition_has_enough_rows(
    rows: tuple[int, ...], read: bool
) -> None:
    aggregates = [
        {"block": key.block, "hour": HOUR, "count": n, "digest": EMPTY_DIGEST, "bytes": n}
        for key, n in zip(KEYS, rows, strict=False)
    ]
    metrics = Mock(return_value=[])
    step, computed = TableStep(Table.load("frames"), {}), StepResult((), metrics, least_rows=2)
    measured = measure(step, RunRows(Mock(), aggregates), computed, KEYS, {})
    assert metrics.called == read
    assert [measured[key]["count"] for key in KEYS] == [*rows, 0, 0][:2]
