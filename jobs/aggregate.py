"""spark-submit jobs/aggregate.py: events become granules, and granules figures over sliding windows."""

import argparse

from transom import job
from transom.lake.refresh import Outcome, refresh
from transom.stages.aggregate import stage
from transom.stages.checks import accepted_of


def arg_parser() -> argparse.ArgumentParser:
    """The job's arguments."""
    return job.arg_parser(__doc__)


def work(context: job.Context) -> Outcome:
    """One chunk."""
    declared = stage(context.stream)
    context.store.create(step.table for step in declared.steps)
    with context.phase("aggregate"):
        return refresh(
            context.store,
            context.ledger,
            declared,
            context.chunk,
            context.stream.heal,
            context.run_id,
            accepted_of(context.stream),
            context.interval,
            context.stream.retention,
        )


def main() -> None:
    """Reads the arguments and runs."""
    job.run("aggregate", arg_parser().parse_args(), work)


if __name__ == "__main__":
    main()
