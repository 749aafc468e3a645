"""Run a job with all rows in Spark's tasks, even few ones: for Spark's event log, and for tests of a cluster.

Usage: spark-submit by_spark.py JOB [the job's arguments]
"""

import sys
from pathlib import Path


def main(job: str, *arguments: str) -> None:
    """Run the job, such as `ingest`, or `run` for all stages."""
    # First, as for the scripts of jobs: the archive of a cluster's job has no presets.
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "jobs"))
    from transom.app import main as application
    from transom.storage import driver_io as small

    small.MAX_DRIVER_BYTES = 0
    application.run(job, application.arg_parser("").parse_args(arguments), None if job == "run" else [job])


if __name__ == "__main__":
    main(*sys.argv[1:])
