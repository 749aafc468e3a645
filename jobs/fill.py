"""spark-submit jobs/fill.py: frames are filled with what lies between their ends, or did in the past."""

import argparse

from transom.app import main as application


def arg_parser() -> argparse.ArgumentParser:
    """The job's arguments."""
    return application.arg_parser(__doc__)


def main() -> None:
    """Reads the arguments and runs."""
    application.run("fill", arg_parser().parse_args(), ["fill"])


if __name__ == "__main__":
    main()
