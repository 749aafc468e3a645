"""Run hours of the web stream one by one in a separate lake, with the code of the jobs.

Usage: one_by_one.py LAKE FROM TO
"""

import sys
from pathlib import Path

from transom.app import run_stage as job
from transom.core.intervals import HOUR, Interval
from transom.core.terminal_log import terminal_log
from transom.engine.evaluate_checks import preload
from transom.storage.session import session
from transom.stream import load

STREAM = Path(__file__).resolve().parents[1] / "schemas" / "streams" / "web.yaml"


def main(lake: str, start: str, end: str) -> None:
    """Run all stages hour by hour in one Spark session."""
    preload()
    stream = load(STREAM)
    spark = session("one by one")
    try:
        with terminal_log():
            for hour in Interval.parse(start, end).hours():
                for stage in stream.stages:
                    job.run_stage(spark, stage, stream, Interval(hour, hour + HOUR), lake=lake)
    finally:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
