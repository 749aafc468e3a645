"""Drawn histories, five in each of five lakes. A changed file is a conflict or replaces the rows."""

from pathlib import Path
from typing import Literal

import pytest
from pyspark.sql import SparkSession

from tests.support.scenarios import assert_histories_leave_no_trace


@pytest.mark.full
@pytest.mark.parametrize(("on_conflict", "also"), [("hold", ["file conflict"]), ("replace", [])])
def test_drawn_histories_equal_one_run(
    spark: SparkSession,
    tmp_path: Path,
    run_seed: int,
    on_conflict: Literal["hold", "replace"],
    also: list[str],
) -> None:
    """Slow (a minute each): every history has three or four runs over several hours, and one run over all."""
    assert_histories_leave_no_trace(spark, tmp_path, run_seed, on_conflict, *also)
