"""A hundred drawn histories, five in each of twenty lakes: what differs from what stands replaces it."""

import os
from collections import Counter
from itertools import count
from pathlib import Path
from unittest.mock import patch

from hypothesis import given
from pyspark.sql import SparkSession

from histories import DRAWN, HISTORIES, TEXT, History, lived, told_anew
from house import House
from transom.lake import small

KINDS: Counter[str] = Counter()
"""What has happened in this module so far."""
NUMBERS = count()


@DRAWN
@given(history=HISTORIES)
def test_any_history_comes_to_what_its_files_come_to(
    spark: SparkSession, tmp_path: Path, history: History
) -> None:
    def make(folder: Path) -> House:
        os.environ["TRANSOM_HOME"] = str(folder)
        return House(spark, folder, TEXT.replace("ON_CHANGE", "replace"))

    number = next(NUMBERS)
    # The rows of every tenth lake go through Spark, as many rows do.
    most = 0 if number % 10 == 9 else small.MOST
    with patch.dict(os.environ), patch.object(small, "MOST", most):
        day, landing = lived(history, make, tmp_path / f"{number}-lived", KINDS)
        anew = told_anew(day, landing, make, tmp_path / f"{number}-anew")
    day.assert_same(anew)
    if number % 20 == 0:
        day.assert_ledger_true()


def test_every_kind_of_thing_has_happened() -> None:
    kinds = {
        *("run killed", "run another", "run overtaken", "hour published", "hour quarantined"),
        *("file ingested", "file duplicate", "file waiting", "file withheld", "file gone"),
    }
    assert kinds <= KINDS.keys(), "in a run of the whole module, each has happened by now"
