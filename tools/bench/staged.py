"""Run a stage like a job: write tables of a lake, with digests and checks."""

from pathlib import Path

from pyspark.sql import SparkSession

from bench.ways import linked, timed
from transom.app import run_stage as job
from transom.core.intervals import Interval
from transom.stream import Stream


def staged(
    spark: SparkSession, stage: str, stream: Stream, interval: Interval, lake: str, kept: Path, passes: str
) -> list[float]:
    """Return the seconds of each pass; each has a separate lake, named by its number.

    Args:
        lake: the lake with the tables that the stage reads.
        kept: the folder of the lakes of the passes.
    """
    return timed(
        passes,
        lambda number: job.run_stage(spark, stage, stream, interval, lake=str(kept / str(number))),
        lambda number: linked(lake, kept / str(number)),
    )
