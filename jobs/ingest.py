"""spark-submit jobs/ingest.py: files become events, duplicates, rejections and file records.

Lines that cannot be read are kept in `rejected` with their reason, records that repeat another one of their
hour in `duplicates`; nothing is aggregated here.
"""

import argparse

from transom.app import main as application


def arg_parser() -> argparse.ArgumentParser:
    """The job's arguments."""
    return application.arg_parser(__doc__)


def main() -> None:
    """Reads the arguments and runs."""
    application.run("ingest", arg_parser().parse_args(), ["ingest"])


if __name__ == "__main__":
    main()
