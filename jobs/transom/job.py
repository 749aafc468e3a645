"""What every spark-submit job has in common: its arguments, its run, its row in the ledger.

A job is told its interval and asks no clock what to compute; the clock is read once, for `runs`.
"""

import argparse
import os
import resource
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from transom import __version__
from transom.intervals import Interval
from transom.lake import findings
from transom.lake.gate import judge, submit
from transom.lake.ledger import Ledger, Overtaken, Run
from transom.lake.quality import preload
from transom.lake.refresh import Outcome
from transom.lake.session import session
from transom.lake.store import Store
from transom.lake.tables import LakeError, TableMismatch
from transom.stages.landing import LandingError
from transom.stream import Stream, load

NOTED = {
    "files_read": "files read",
    "lines_rejected": "lines rejected",
    "files_conflicting": "files held back that differ from what stands",
    "files_gone": "files gone",
    "files_waiting": "files waiting",
}
"""Figures of a run's work that a person should see, where they are not zero."""


def arg_parser(description: str | None) -> argparse.ArgumentParser:
    """The arguments of every job."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stream", required=True, type=Path, help="the stream file, YAML")
    lake = os.environ.get("TRANSOM_LAKE")
    parser.add_argument(
        "--lake", required=lake is None, default=lake, help="path or URI of the lake; else TRANSOM_LAKE"
    )
    parser.add_argument(
        "--from", required=True, dest="start", help="first hour, UTC, such as 2015-05-17T10:00"
    )
    parser.add_argument("--to", required=True, dest="end", help="end of the interval, exclusive, on the hour")
    parser.add_argument("--run-id", default=None, help="a name for the run in the ledger, new each time")
    parser.add_argument("--cause", default="by hand", help="why it runs: schedule, trigger, backfill")
    return parser


@dataclass
class Context:
    """What a stage's function is given."""

    store: Store
    ledger: Ledger
    stream: Stream
    interval: Interval
    run_id: str
    chunk: Interval
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Adds the time spent inside to the run's phases."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - began, 3)


def run(stage: str, arguments: argparse.Namespace, work: Callable[[Context], Outcome]) -> Outcome:
    """Runs a stage as an application of its own.

    Raises:
        SystemExit: a wrong argument or stream file, a lake or a landing folder that cannot be used, or
            a run that another has overtaken: in one line.
    """
    began = time.monotonic()
    try:
        interval = Interval.parse(arguments.start, arguments.end)
        stream = load(arguments.stream)
    except (ValueError, OSError) as error:
        sys.exit(f"{stage}: {error}")
    preload()
    spark = session(f"transom {stage} {stream.name} {interval}")
    try:
        outcome = perform(
            spark, stage, stream, interval, work,
            lake=arguments.lake, run_id=arguments.run_id, cause=arguments.cause, began=began,
        )  # fmt: skip
    except (LandingError, LakeError, TableMismatch, Overtaken) as error:
        # What a library says in them may have lines of its own.
        sys.exit(f"{stage}: {' '.join(str(error).split())}")
    except Exception as error:
        print(
            f"{stage}: failed: {type(error).__name__}: {_in_short(error)}\n"
            f"{stage}: hours that were being written are marked so and not called fresh; mend the cause and "
            "run the interval again",
            file=sys.stderr,
        )
        raise
    finally:
        spark.stop()
    print(_said(stage, stream, interval, arguments))
    return outcome


def _said(stage: str, stream: Stream, interval: Interval, arguments: argparse.Namespace) -> str:
    """What the stage's gate says: a withheld hour is no failure of the job, and without Airflow there is no
    gate after it."""
    ledger = Ledger(_root(arguments.lake, stream))
    command = submit(stage, arguments.stream, arguments.lake)
    judged = judge(ledger, stage, stream.name, interval, command, stream.heal)
    return "\n".join([*judged.failures, *judged.warnings, judged.summary])


def _root(lake: str, stream: Stream) -> str:
    return f"{lake.rstrip('/')}/{stream.name}"


def _in_short(error: Exception) -> str:
    """The first line of an error, or of what a Python worker raised: Spark quotes that in a traceback."""
    said = str(error).strip().rpartition("Traceback (most recent call last):\n")[2]
    return next((line for line in said.splitlines() if not line.startswith(" ")), "")


def perform(
    spark: SparkSession,
    stage: str,
    stream: Stream,
    interval: Interval,
    work: Callable[[Context], Outcome],
    *,
    lake: str,
    run_id: str | None = None,
    cause: str = "by hand",
    began: float | None = None,
) -> Outcome:
    """Runs a stage over an interval, chunk by chunk, and records the run.

    Args:
        began: when the run began on the monotonic clock, where that was before its session.
    """
    entered = time.monotonic()
    began = entered if began is None else began
    run_id = run_id or f"{stage}-{uuid.uuid4().hex[:12]}"
    root = _root(lake, stream)
    seconds = {"session": round(entered - began, 3)}
    total = Outcome()
    ledger = Ledger(root)
    chunks = list(interval.chunks(stream.chunk))
    # What a chunk's checks saw is told from what an earlier chunk's saw in the same hour.
    names = [run_id] if len(chunks) == 1 else [f"{run_id} {number}" for number in range(len(chunks))]
    for name, chunk in zip(names, chunks, strict=True):
        total.add(work(Context(Store(spark, root), ledger, stream, interval, name, chunk, seconds)))
    found = time.monotonic()
    findings.publish(ledger, stream.name, stage, total.stale)
    seconds["findings"] = round(time.monotonic() - found, 3)
    figures = {**total.work, **total.standing}
    ledger.record_run(
        Run(
            run_id=run_id,
            cause=cause,
            stage=stage,
            start=interval.start,
            end=interval.end,
            hours_healed=total.hours_healed,
            stale_since=total.stale_since,
            rows_read=total.work.get("lines_read", 0),
            rows_out=total.rows_out,
            seconds={**seconds, "total": round(time.monotonic() - began, 3)},
            peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            code_version=__version__,
            finished_at=datetime.now(UTC),
            work=figures,
        )
    )
    print(
        f"{stage} {stream.name} {interval}: {total.published} published, {total.quarantined} quarantined, "
        f"{total.blocked} blocked, {total.hours_healed} of them healed (tables' hours); {total.rows_out} rows"
        + "".join(f", {figures[name]} {words}" for name, words in NOTED.items() if figures.get(name))
    )
    return total
