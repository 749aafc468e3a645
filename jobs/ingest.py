"""spark-submit jobs/ingest.py: files of the landing folder become events, rejections and file records.

Lines that cannot be read are kept in `rejected` with their reason; nothing is aggregated here.
"""

import argparse

from transom import application


def arg_parser() -> argparse.ArgumentParser:
    """The job's arguments."""
    return application.arg_parser(__doc__)


def main() -> None:
    """Reads the arguments and runs."""
    application.run("ingest", arg_parser().parse_args(), ["ingest"])


if __name__ == "__main__":
    main()
