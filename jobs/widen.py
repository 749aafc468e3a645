"""spark-submit jobs/widen.py: events become batches, and what patterns match in windows that widen."""

import argparse

from transom.app import main as application


def arg_parser() -> argparse.ArgumentParser:
    """The job's arguments."""
    return application.arg_parser(__doc__)


def main() -> None:
    """Reads the arguments and runs."""
    application.run("widen", arg_parser().parse_args(), ["widen"])


if __name__ == "__main__":
    main()
