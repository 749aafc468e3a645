"""Run a job that reads all rows with Spark, even few ones, so that Spark's event log counts them.

Usage: spark-submit by_spark.py JOB [the job's arguments]
"""

import sys

from transom.app import main as application
from transom.storage import driver_io as small


def never(*_: object, **__: object) -> None:
    """Return None instead of rows on the driver."""


def main(job: str, *arguments: str) -> None:
    """Run the job."""
    small.read_if_small = never
    application.run(job, application.arg_parser("").parse_args(arguments), [job])


if __name__ == "__main__":
    main(*sys.argv[1:])
