"""Drawn histories, five in each of five lakes, in which a changed file is held back or replaces the rows."""

from pathlib import Path
from typing import Literal

import pytest
from pyspark.sql import SparkSession

from tests.support.scenarios import assert_histories_leave_no_trace


@pytest.mark.full
@pytest.mark.parametrize(("on_conflict", "also"), [("hold", ["file conflict"]), ("replace", [])])
def test_drawn_histories_leave_no_trace(
    spark: SparkSession,
    tmp_path: Path,
    run_seed: int,
    on_conflict: Literal["hold", "replace"],
    also: list[str],
) -> None:
    """Slow (a minute each): every history is three or four runs over several hours, and one over all."""
    assert_histories_leave_no_trace(spark, tmp_path, run_seed, on_conflict, *also)
