"""spark-submit jobs/run.py: several stages in one application, each behind the gate of the one that it reads.

The start of an application is most of what a small hour costs. Where a gate does not pass, the later stages
do not run.
"""

import argparse

from transom.app import main as application


def arg_parser() -> argparse.ArgumentParser:
    """The job's arguments."""
    parser = application.arg_parser(__doc__)
    parser.add_argument(
        "--stages",
        type=lambda text: text.split(","),
        help="which, such as ingest,aggregate; else all that the stream has",
    )
    return parser


def main() -> None:
    """Reads the arguments and runs."""
    arguments = arg_parser().parse_args()
    application.run("run", arguments, arguments.stages)


if __name__ == "__main__":
    main()
