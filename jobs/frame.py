"""spark-submit jobs/frame.py: readings become frames, stretches of time that the data delimits."""

import argparse

from transom.app import main as application


def arg_parser() -> argparse.ArgumentParser:
    """The job's arguments."""
    return application.arg_parser(__doc__)


def main() -> None:
    """Reads the arguments and runs."""
    application.run("frame", arg_parser().parse_args(), ["frame"])


if __name__ == "__main__":
    main()
