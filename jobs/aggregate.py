"""spark-submit jobs/aggregate.py: events become granules, and granules figures over sliding windows."""

import argparse

from transom import job
from transom.work import WORKS


def arg_parser() -> argparse.ArgumentParser:
    """The job's arguments."""
    return job.arg_parser(__doc__)


def main() -> None:
    """Reads the arguments and runs."""
    job.run("aggregate", arg_parser().parse_args(), WORKS["aggregate"])


if __name__ == "__main__":
    main()
