"""spark-submit jobs/sketch.py: events become items that are there all the time, and how often items are seen,
found in little memory."""

import argparse
import sys
import time

from pyspark.sql import SparkSession

from transom.app import main as application
from transom.app.run_stage import record_audit
from transom.core.intervals import Interval
from transom.features.frequency import audit as frequency_audit
from transom.features.frequency.spec import Frequency
from transom.features.persistence import audit as persistence_audit
from transom.features.persistence.spec import Persistence
from transom.stream import Stream


def arg_parser() -> argparse.ArgumentParser:
    """The job's arguments."""
    parser = application.arg_parser(__doc__)
    parser.add_argument(
        "--audit", action="store_true",
        help="count the interval's windows exactly as well, and tell what is missed, wrong and saved",
    )  # fmt: skip
    return parser


def audited(spark: SparkSession, stream: Stream, interval: Interval, root: str) -> None:
    """Audits the blocks of persistence and of frequency.

    Hours that do not stand, or are out of date, are left out.

    Raises:
        SystemExit: one has told what is not so.
    """
    began = time.monotonic()
    found: list[persistence_audit.PersistenceAudit | frequency_audit.FrequencyAudit] = [
        *persistence_audit.audit(spark, stream, interval, root),
        *frequency_audit.audit(spark, stream, interval, root),
    ]
    work = {f"{one.block}.{name}": amount for one in found for name, amount in one.counts.items()}
    # What the ledger counts is whole numbers.
    work |= {
        f"{one.block}.{name}_millionths": round(rate * 1e6)
        for one in found
        for name, rate in one.rates.items()
    }
    record_audit("sketch", root, interval, work, began)
    for one in found:
        print(f"audit of {one}")
    for name in (*stream.blocks(Persistence), *stream.blocks(Frequency)):
        if name not in {one.block for one in found}:
            print(f"audit of {name}: no hour of {interval} stands, is up to date, and reports a window")
    if not all(one.sound for one in found):
        sys.exit("sketch: the audit has found items below the guarantee or outside their bounds")


def main() -> None:
    """Reads the arguments and runs."""
    arguments = arg_parser().parse_args()
    application.run("sketch", arguments, ["sketch"], audited if arguments.audit else None)


if __name__ == "__main__":
    main()
