"""Drawn histories, five in each of five lakes: what differs from what stands is held back."""

from pathlib import Path

from hypothesis import given
from pyspark.sql import SparkSession

from histories import DRAWN, HISTORIES, History, Told

TOLD = Told("hold")


@DRAWN
@given(history=HISTORIES)
def test_any_history_comes_to_what_its_files_come_to(
    spark: SparkSession, tmp_path: Path, history: History
) -> None:
    TOLD.one(spark, tmp_path, history)


def test_every_kind_of_thing_has_happened() -> None:
    TOLD.assert_happened("file conflict")
