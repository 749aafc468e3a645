"""The common part of every spark-submit job: arguments, session, and messages of errors."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from transom.app.audit import audit
from transom.app.command_lines import submit
from transom.app.pipeline import run_stages, select_stages
from transom.app.run_stage import require_inputs, root_of
from transom.app.verify import DamagedInputsError
from transom.core.collector import relax
from transom.core.intervals import Interval
from transom.core.locations import spark_server, without_parameters
from transom.core.terminal_log import terminal_log
from transom.engine.evaluate_checks import preload
from transom.features.ingest.landing import LandingError
from transom.storage.connect import is_lost
from transom.storage.fencing import RunSuperseded
from transom.storage.session import session, use_utc
from transom.storage.session_on_demand import SessionOnDemand
from transom.storage.tables import LakeError, TableMismatch
from transom.stream import Stream, StreamFile, load

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """A script for spark-submit.

    Attributes:
        stage: the stage that the job runs; None if it can run several.
        description: the text of `--help`.
        stream_type: the type of the stream file, with its features.
    """

    stage: str | None
    description: str | None
    stream_type: type[Stream] = StreamFile

    def arg_parser(self) -> argparse.ArgumentParser:
        """Return the parser of the job's arguments."""
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
        """Read the arguments and run, as the only work of this process."""
        relax()
        arguments = self.arg_parser().parse_args()
        stages = arguments.stages if self.stage is None else [self.stage]
        run(self.stage or "run", arguments, stages, self.stream_type)


def arg_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser for the arguments that every job has."""
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
    """Parse a switch of the command line or of an Airflow template."""
    values = {"true": True, "yes": True, "false": False, "no": False, "": False}
    if text.lower() not in values:
        raise argparse.ArgumentTypeError(f"must be true or false; got {text!r}")
    return values[text.lower()]


@terminal_log()
def run(
    name: str,
    arguments: argparse.Namespace,
    stages: Sequence[str] | None = None,
    stream_type: type[Stream] = StreamFile,
) -> None:
    """Run stages in one Spark application, then their audits if the arguments request them.

    A quarantined hour is not a failure: the results of the gates are printed.

    Args:
        name: the name of the job's script.
        arguments: the arguments of `arg_parser`, and perhaps `audit`.
        stages: the stages. Default: all stages of the stream.
        stream_type: the type of the stream file.

    Raises:
        SystemExit: an argument or the stream file is wrong, the lake, the landing folder or a Spark Connect
            server cannot be used, a table is damaged, or another run has superseded this one.
    """
    began = time.monotonic()
    try:
        interval = Interval.parse(arguments.start, arguments.end)
        stream = load(arguments.stream, stream_type)
        stages = stream.stages if stages is None else select_stages(stream, stages)
        require_inputs(stages[0], stream, arguments.lake)
    except (ValueError, OSError) as error:
        sys.exit(f"{name}: {error}")
    use_utc()
    key = f"{name} {stream.name} {arguments.lake}"
    application = f"transom {name} {stream.name} {interval}"
    # On a server, each of two stages at once has a session with Python workers of its own.
    second = None if spark_server() is None else partial(session, application, f"{key} second")
    # Ingest of few lines needs no session, but the stages after it do.
    spark = SessionOnDemand(partial(_start, application, key), second, ahead=len(stages) > 1)
    try:
        run_stages(
            spark, stream, interval,
            lake=arguments.lake, command=submit(name, arguments.stream, arguments.lake), stages=stages,
            run_id=arguments.run_id, trigger=arguments.trigger, began=began, recompute=arguments.recompute,
        )  # fmt: skip
        if vars(arguments).get("audit"):
            audit(stages, spark.get(), stream, interval, root_of(arguments.lake, stream))
    except DamagedInputsError as error:
        sys.exit("\n".join(f"{name}: {line}" for line in str(error).splitlines()))
    except (LandingError, LakeError, TableMismatch, RunSuperseded) as error:
        # Messages of libraries can have several lines.
        sys.exit(f"{name}: {' '.join(str(error).split())}")
    except Exception as error:
        if is_lost(error):
            server = without_parameters(spark_server() or "")
            sys.exit(
                f"{name}: failed: the Spark server at {server} has ended or has started again\n"
                f"{name}: partitions being written are marked so and will be computed again\n"
                f"{name}: start the server if it does not run, then run the interval again"
            )
        where = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        LOG.error(
            f"{name}: failed: {type(error).__name__}: {_first_line(error)}{where}\n"
            f"{name}: partitions being written are marked so and will be computed again; fix the cause, "
            "then run the interval again"
        )
        raise
    finally:
        spark.stop()


def _start(name: str, key: str) -> SparkSession:
    """Return the session of a run that has work, as `session`, while Great Expectations is imported."""
    preload()
    return session(name, key)


def _first_line(error: Exception) -> str:
    """Return the first line of an error; of the Python worker's error, if Spark quotes its traceback."""
    message = str(error).strip().rpartition("Traceback (most recent call last):\n")[2]
    return next((line for line in message.splitlines() if not line.startswith(" ")), "")
