"""A job whose rows are all read by Spark, however few they are, so that Spark counts them where they lie.

Usage: spark-submit by_spark.py JOB [the job's arguments]
"""

import sys
from collections.abc import Iterable

from transom.app import main as application
from transom.storage import driver_io as small


def never(parts: Iterable[object]) -> None:
    """The driver takes no rows."""


def main(job: str, *arguments: str) -> None:
    """Runs the job."""
    small.read_if_small = never
    application.run(job, application.arg_parser("").parse_args(arguments), [job])


if __name__ == "__main__":
    main(*sys.argv[1:])
