"""spark-submit jobs/sketch.py: events become items that are there all the time, found in little memory."""

import argparse
import sys
import time

from pyspark.sql import SparkSession

from transom import application
from transom.intervals import Interval
from transom.job import record_audit
from transom.stages.audit import audit
from transom.stream import Stream


def arg_parser() -> argparse.ArgumentParser:
    """The job's arguments."""
    parser = application.arg_parser(__doc__)
    parser.add_argument(
        "--audit", action="store_true",
        help="count the interval's windows exactly as well, and tell what is missed, named wrongly and saved",
    )  # fmt: skip
    return parser


def audited(spark: SparkSession, stream: Stream, interval: Interval, root: str) -> None:
    """Audits the blocks of persistence.

    Raises:
        SystemExit: one has told what is not so.
    """
    began = time.monotonic()
    found = audit(spark, stream, interval, root)
    work = {f"{one.block}.{name}": amount for one in found for name, amount in one.counts.items()}
    record_audit("sketch", root, interval, work, began)
    for one in found:
        print(f"audit of {one}")
    if not all(one.sound for one in found):
        sys.exit("sketch: the audit has found items named below the guarantee or outside their bounds")


def main() -> None:
    """Reads the arguments and runs."""
    arguments = arg_parser().parse_args()
    application.run("sketch", arguments, ["sketch"], audited if arguments.audit else None)


if __name__ == "__main__":
    main()
