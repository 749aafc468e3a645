"""What every spark-submit job has in common: its arguments, its session, and what it says of errors."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from transom.app.audit import audit
from transom.app.command_lines import submit
from transom.app.pipeline import run_stages, select_stages
from transom.app.run_stage import require_inputs, root_of
from transom.app.verify import DamagedInputsError
from transom.core.intervals import Interval
from transom.core.terminal_log import terminal_log
from transom.engine.checks import preload
from transom.features.ingest.landing import LandingError
from transom.storage.session import session
from transom.storage.tables import LakeError, RunSuperseded, TableMismatch
from transom.stream import Stream, StreamFile, load

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """A script for spark-submit.

    Attributes:
        stage: the stage that it runs; None of the one that runs several.
        description: what `--help` prints.
        stream_type: the type of the stream's file, with the features that it may have.
    """

    stage: str | None
    description: str | None
    stream_type: type[Stream] = StreamFile

    def arg_parser(self) -> argparse.ArgumentParser:
        """Return a parser of the job's arguments."""
        parser = arg_parser(self.description)
        if self.stage is None:
            parser.add_argument(
                "--stages",
                type=lambda text: text.split(","),
                help="which, such as ingest,aggregates; all stages of the stream where it is not given",
            )
        if any(feature.audit for feature in self.stream_type.features if self.stage in (None, feature.name)):
            parser.add_argument(
                "--audit",
                action="store_true",
                help="count the windows exactly as well, and print what is missed, wrong and saved",
            )
        return parser

    def main(self) -> None:
        """Read the arguments and run."""
        arguments = self.arg_parser().parse_args()
        stages = arguments.stages if self.stage is None else [self.stage]
        run(
            self.stage or "run",
            arguments,
            stages,
            partial(audit, stages) if vars(arguments).get("audit") else None,
            self.stream_type,
        )


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
    parser.add_argument("--run-id", default=None, help="a name for the run in the ledger")
    parser.add_argument(
        "--recompute",
        nargs="?",
        const=True,
        default=False,
        type=_switch,
        metavar="true|false",
        help="compute and write the hours from --from to --to again, even where they are fresh",
    )
    parser.add_argument("--trigger", default="by hand", help="why it runs: schedule, manual, backfill")
    return parser


def _switch(text: str) -> bool:
    """Whether a switch is on, as the command line or a template of Airflow writes it."""
    known = {"true": True, "yes": True, "false": False, "no": False, "": False}
    if text.lower() not in known:
        raise argparse.ArgumentTypeError(f"must be true or false; got {text!r}")
    return known[text.lower()]


PostRunHook = Callable[[SparkSession, Stream, Interval, str], None]
"""What else is done in the session: with the stream, the interval and the folder of the stream's tables."""


def run(
    name: str,
    arguments: argparse.Namespace,
    stages: Sequence[str] | None = None,
    afterwards: PostRunHook | None = None,
    stream_type: type[Stream] = StreamFile,
) -> None:
    """Runs stages in an application of its own.

    A withheld hour is no failure of it: what the gates say is printed, and without Airflow nothing comes
    after that.

    Args:
        name: of the job, as its file is called.
        stages: None are all that the stream has.
        afterwards: None is nothing.
        stream_type: the type of the stream's file.

    Raises:
        SystemExit: a wrong argument or stream file, a lake or a landing folder that cannot be used, or
            a run that another has overtaken: in one line.
    """
    with terminal_log():
        _run(name, arguments, stages, afterwards, stream_type)


def _run(
    name: str,
    arguments: argparse.Namespace,
    stages: Sequence[str] | None,
    afterwards: PostRunHook | None,
    stream_type: type[Stream],
) -> None:
    began = time.monotonic()
    try:
        interval = Interval.parse(arguments.start, arguments.end)
        stream = load(arguments.stream, stream_type)
        stages = stream.stages if stages is None else select_stages(stream, stages)
        require_inputs(stages[0], stream, arguments.lake)
    except (ValueError, OSError) as error:
        sys.exit(f"{name}: {error}")
    preload()
    spark = session(f"transom {name} {stream.name} {interval}")
    try:
        run_stages(
            spark, stream, interval,
            lake=arguments.lake, command=submit(name, arguments.stream, arguments.lake), stages=stages,
            run_id=arguments.run_id, trigger=arguments.trigger, began=began, recompute=arguments.recompute,
        )  # fmt: skip
        if afterwards is not None:
            afterwards(spark, stream, interval, root_of(arguments.lake, stream))
    except DamagedInputsError as error:
        sys.exit("\n".join(f"{name}: {line}" for line in str(error).splitlines()))
    except (LandingError, LakeError, TableMismatch, RunSuperseded) as error:
        # What a library says in them may have lines of its own.
        sys.exit(f"{name}: {' '.join(str(error).split())}")
    except Exception as error:
        where = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        LOG.error(
            f"{name}: failed: {type(error).__name__}: {_format_outcome(error)}{where}\n"
            f"{name}: hours that were being written are marked so and not called fresh; mend the cause and "
            "run the interval again"
        )
        raise
    finally:
        spark.stop()


def _format_outcome(error: Exception) -> str:
    """The first line of an error, or of what a Python worker raised: Spark quotes that in a traceback."""
    said = str(error).strip().rpartition("Traceback (most recent call last):\n")[2]
    return next((line for line in said.splitlines() if not line.startswith(" ")), "")
