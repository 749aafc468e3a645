"""spark-submit jobs/ingest.py: files of the landing folder become events, rejections and file records.

Lines that cannot be read are kept in `rejected` with their reason; nothing is aggregated here.
"""

import argparse

from transom import job
from transom.lake.refresh import Outcome
from transom.stages.ingest import STAGE, ingest
from transom.stages.ingest_tables import Tables


def arg_parser() -> argparse.ArgumentParser:
    """The job's arguments."""
    return job.arg_parser(__doc__)


def work(context: job.Context) -> Outcome:
    """One chunk."""
    context.store.create(Tables.of(context.stream))
    with context.phase("ingest"):
        return ingest(
            context.store, context.ledger, context.stream, context.chunk, context.run_id, context.interval
        )


def main() -> None:
    """Reads the arguments and runs."""
    job.run(STAGE, arg_parser().parse_args(), work)


if __name__ == "__main__":
    main()
