"""spark-submit jobs/aggregate.py: events become granules, and granules figures over sliding windows."""

import argparse

from transom.app import main as application


def arg_parser() -> argparse.ArgumentParser:
    """The job's arguments."""
    return application.arg_parser(__doc__)


def main() -> None:
    """Reads the arguments and runs."""
    application.run("aggregate", arg_parser().parse_args(), ["aggregate"])


if __name__ == "__main__":
    main()
