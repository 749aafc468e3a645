"""`transom try`: run all stages of a stream on files, in a temporary lake."""

import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transom.app.command_lines import cli_command, file_arguments
from transom.cli.arguments import (
    JsonOption,
    StreamArgument,
    UsageError,
    cli_errors,
    command_log,
    print_json,
    stream_file,
)
from transom.cli.environment import require_spark
from transom.cli.report_command import HtmlOption, write_page
from transom.core.terminal import counted
from transom.core.terminal_log import progress
from transom.core.terminal_tables import collected_tables
from transom.features.frames.spec import Frame
from transom.features.patterns.spec import Pattern

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from transom.core.intervals import Interval
    from transom.spec.stream import Stream

LOG = logging.getLogger(__name__)
MAX_READING_LINES = 5
"""Maximum number of lines about the files being read; with more files, a line is for several of them."""


def try_(
    stream: StreamArgument,
    files: Annotated[list[Path], typer.Argument(help="Files of its log, under any names.")],
    lake: Annotated[
        str | None, typer.Option(metavar="DIR", help="Keep the tables in this folder, which must not exist.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="HOUR", help="The first hour to run; with --to."),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="HOUR", help="The end of these hours, exclusive.")
    ] = None,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run all stages of a stream on some files, and print the results.

    Needs no Airflow, and uses a lake of its own, which it removes. Prints the findings, the first rows of
    each result, the rejected lines with the reason, and the run time.

    \b
    Example:
      transom try site /var/log/nginx/access.log
      transom try schemas/streams/site.yaml access.*.log.gz --lake /tmp/tried --html tried.html

    Exit code 1 if a check quarantines an hour or no line is an event, 2 if the stream or a file cannot be
    read.
    """
    from transom.core.intervals import Interval
    from transom.features.ingest.landing import LandingError
    from transom.storage.tables import LakeError, TableMismatch

    file = stream_file(stream)
    hours = None
    with cli_errors(ValueError, LandingError, LakeError, TableMismatch):
        if (start is None) != (end is None):
            raise UsageError(f"--from and --to: must be given together; got --from {start}, --to {end}")
        if start is not None and end is not None:
            hours = Interval.parse(start, end)
        require_spark()
        with _folder(lake) as (folder, root):
            if as_json:
                # Results are collected; all that is printed on the way is for people.
                with redirect_stdout(sys.stderr), collected_tables() as tables:
                    passed = try_in(folder, root, file, files, hours=hours, html=html)
                print_json({"passed": passed, "tables": tables})
            else:
                passed = try_in(folder, root, file, files, hours=hours, html=html)
    if not passed:
        raise typer.Exit(1)


@contextmanager
def _folder(lake: str | None) -> Iterator[tuple[Path, str]]:
    """Yield a temporary folder for landing links, and the lake: in this folder, or at the option's path."""
    if lake is not None and Path(lake).exists():
        raise UsageError(f"--lake: must not be there yet, so that nothing is mixed; got {lake}")
    folder = Path(tempfile.mkdtemp(prefix="transom-try-"))
    try:
        yield folder, str(Path(lake).absolute()) if lake else str(folder / "lake")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        # A failure before the first stage leaves no lake.
        if lake is not None and Path(lake).exists():
            typer.echo(f"kept: {lake}", err=True)


def try_in(
    folder: Path,
    lake: str,
    file: Path,
    files: list[Path],
    spark: "SparkSession | None" = None,
    hours: "Interval | None" = None,
    html: Path | None = None,
) -> bool:
    """Run a stream on some files, print the results, and return whether every gate passed.

    Args:
        folder: an empty folder, for links to the files.
        lake: the lake of the tables.
        spark: the session to use; None starts one, and stops it.
        hours: the hours to run; None means all that the files cover.
        html: where to write the page of the stream; None writes none.

    Raises:
        UsageError: a file is no log, no line is an event, or the times cover too many hours.
        SpecificationError: the stream file is wrong.
    """
    from transom.cli import try_report as report
    from transom.cli.adhoc_files import (
        first_remarks,
        hours_cut_to,
        interval_of,
        link_into_landing,
        other_hours,
        scan_file,
    )
    from transom.cli.log_sample import read_samples
    from transom.core.intervals import format_hour
    from transom.spec.yaml_file import read_mapping
    from transom.stream import load
    from transom.views.explain_hour import TRY_TRIGGER

    stream = load(file)
    files = [sample.path for sample in read_samples(files)]
    scanned = []
    step = -(-len(files) // MAX_READING_LINES)
    for number, path in enumerate(files):
        if number % step == 0:
            LOG.info(f"reading {path}" + (f" ({number + 1} of {len(files)})" if step > 1 else ""))
        scanned.append(scan_file(stream, path))
    report.print_files(scanned)
    holes = [
        f"{file.path}: {counted(file.nul_bytes, 'NUL byte')} before lines skipped: lines may be missing there"
        for file in scanned
        if file.nul_bytes
    ]
    doubts = list(filter(None, (other_hours(stream, file) for file in scanned)))
    for remark in [*first_remarks(holes), *first_remarks(doubts)]:
        LOG.warning(remark)
    try:
        covered = hours or interval_of(scanned)
    except UsageError:
        report.print_rejected(scanned)
        raise
    only = hours_cut_to(scanned, hours) if hours is not None else None
    interval = _reporting_interval(stream, covered)
    if interval != covered:
        LOG.info(
            f"the hours to {format_hour(interval.end)} run as well, as slow episodes and long frames are "
            "reported that late; an episode may still grow then, and is marked `partial`"
        )
    landed = link_into_landing(read_mapping(file), stream, scanned, folder, interval, covered.end, only)
    for note in landed.notes:
        LOG.info(note)
    began = time.monotonic()
    with _landing(folder), _session(spark, stream.name) as session:
        from transom.app.pipeline import run_stages

        with command_log(landed.named), progress("running the stages"):
            command = f"{cli_command('try', file)} {file_arguments(files)}"
            gates = run_stages(
                session, landed.stream, interval,
                lake=lake, command=command, trigger=TRY_TRIGGER, began=began, past_gates=True,
            )  # fmt: skip
        root = f"{lake}/{stream.name}"
        report.print_results(landed.stream, root, interval, gates, landed.named)
    report.print_equal_files(landed.stream, root, landed.paths)
    report.print_duplicates(landed.stream, root, landed.paths)
    report.print_rejected(scanned)
    report.print_cost(root, interval)
    if html is not None:
        from transom.views.view import view_of

        write_page(view_of(lake, landed.stream, interval), html)
    return all(gate.passed for gate in gates)


def _reporting_interval(stream: "Stream", covered: "Interval") -> "Interval":
    """Return the hours of the files, extended until their slow episodes and long frames are reported.

    An episode is reported some time after its last record, the longest frames of a period at its end.
    """
    from transom.core.intervals import EPOCH, HOUR, Interval

    longest = max((pattern.top for pattern in stream.blocks(Pattern).values()), default=timedelta(0))
    periods = [frame.period for frame in stream.blocks(Frame).values() if frame.period is not None]
    ends = [EPOCH - (EPOCH - covered.end) // period * period for period in periods]
    return Interval(covered.start, max(covered.end - -longest // HOUR * HOUR, *ends, covered.end))


@contextmanager
def _landing(folder: Path) -> Iterator[None]:
    """Use a folder as the landing folder in the context."""
    previous = os.environ.get("TRANSOM_LANDING")
    os.environ["TRANSOM_LANDING"] = str(folder)
    try:
        yield
    finally:
        del os.environ["TRANSOM_LANDING"]
        if previous is not None:
            os.environ["TRANSOM_LANDING"] = previous


@contextmanager
def _session(spark: "SparkSession | None", name: str) -> Iterator["SparkSession"]:
    if spark is not None:
        yield spark
        return
    LOG.info("starting Spark")
    from pyspark.errors import PySparkException

    from transom.engine.evaluate_checks import preload
    from transom.storage.session import session

    preload()
    try:
        started = session(f"transom try {name}")
    except PySparkException as error:
        raise UsageError(f"Spark does not start: {' '.join(str(error).split())}") from error
    try:
        yield started
    finally:
        sys.stdout.flush()
        started.stop()
