"""`transom verify`: whether the tables still hold what the ledger says, and what to do where they do not."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transom.app.command_lines import submit
from transom.cli.arguments import UsageError, cli_errors, stream_of
from transom.cli.lake_argument import lake
from transom.core.terminal import counted, escape_control_chars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from transom.core.intervals import Interval
    from transom.spec.stream import Stream

MAX_DAMAGES_SHOWN = 50
"""Damages that are printed one by one."""


def verify(
    stream: Annotated[str, typer.Argument(metavar="STREAM", help="A stream file, or a stream's name.")],
    start: Annotated[
        str | None, typer.Option("--from", metavar="HOUR", help="The first hour, such as 2015-05-17T10:00.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="HOUR", help="The end of the hours, exclusive.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Mark what is damaged, so that the next run makes it again.")
    ] = False,
    lake_named: Annotated[
        str | None,
        typer.Option("--lake", metavar="URI", help="The lake; TRANSOM_LAKE else, or the checkout's."),
    ] = None,
) -> None:
    """Read all tables of a stream, and compare them with the digests in the ledger.

    Lists each hour of a table that is missing, cannot be read or holds other rows, with the file. Starts
    Spark, in this process. With --repair the damaged rows leave the tables, their hours are marked in the
    ledger, and the next run over them computes them again: events from the landing folder, all else from
    what it is made of. No run of the stream may be at work meanwhile.

    \b
    Example:
      transom verify site
      transom verify site --from 2015-05-17T10:00 --to 2015-05-18T00:00 --repair

    Exit code 1 where something is damaged, repaired or not, or the stream has never run; 2 where the stream
    or the lake cannot be read.
    """
    from transom.core.intervals import Interval
    from transom.storage.tables import LakeError, RunSuperseded, TableMismatch

    if (start is None) != (end is None):
        raise typer.BadParameter("--from and --to must be given together")
    with cli_errors(LakeError, TableMismatch, RunSuperseded):
        file, declared = stream_of(stream)
        try:
            interval = None if start is None or end is None else Interval.parse(start, end)
        except ValueError as error:
            raise UsageError(str(error)) from None
        uri = lake(lake_named)
        if not _is_there(f"{uri}/{declared.name}"):
            typer.echo(f"{declared.name}: no run yet in {uri}")
            raise typer.Exit(1)
        if not _verified(declared, file, uri, interval, repair):
            raise typer.Exit(1)


def _is_there(root: str) -> bool:
    """Whether a stream has tables in the lake; its ledger may be damaged."""
    from pyarrow import fs

    from transom.cli.lake_argument import reading
    from transom.storage.filesystem import resolve_filesystem

    with reading(root):
        system, folder = resolve_filesystem(root)
        return bool(system.get_file_info(folder).type == fs.FileType.Directory)


def _verified(stream: "Stream", file: Path, uri: str, interval: "Interval | None", repair: bool) -> bool:
    from transom.storage.session import session

    spark = session(f"transom verify {stream.name}")
    try:
        return verify_in(spark, stream, file, uri, interval, repair)
    finally:
        spark.stop()


def verify_in(
    spark: "SparkSession",
    stream: "Stream",
    file: Path,
    uri: str,
    interval: "Interval | None" = None,
    repair: bool = False,
) -> bool:
    """Prints what is damaged, and marks it where that is asked for.

    Args:
        file: the stream's file.
        uri: the lake.
        interval: only its hours; None is everything.

    Returns:
        Whether nothing is damaged.
    """
    from transom.app.verify import find, mark
    from transom.core.intervals import HOUR, format_hour

    root = f"{uri}/{stream.name}"
    found = find(spark, stream, root, interval)
    damages = found.damages
    for damage in damages[:MAX_DAMAGES_SHOWN]:
        typer.echo(escape_control_chars(f"{stream.name}: {damage}"))
    if len(damages) > MAX_DAMAGES_SHOWN:
        typer.echo(f"... and {len(damages) - MAX_DAMAGES_SHOWN} more")
    if found.tables is None:
        typer.echo("the other tables are compared once the ledger is repaired: transom verify --repair")
    else:
        typer.echo(
            f"{stream.name}: {counted(found.tables.partitions, 'hour')} of tables compared, "
            f"{counted(len(damages), 'damage')}"
        )
    _print_gone(found.gone)
    if not damages:
        return True
    if not repair:
        typer.echo("`--repair` marks these hours, so that the next run makes them again")
        return False
    marked = mark(spark, stream, root, interval)
    for note in marked.notes:
        typer.echo(escape_control_chars(note))
    if found.tables is None:
        _print_gone(marked.gone)
    typer.echo(f"{counted(len(marked.nodes), 'hour')} of tables marked")
    command = submit("run", file, uri)
    if marked.hours:
        command = command.replace("{from}", format_hour(min(marked.hours)))
        command = command.replace("{to}", format_hour(max(marked.hours) + HOUR))
        typer.echo(f"to make them again:\n  {command}")
    elif marked.nodes:
        typer.echo("any run makes them again")
    return False


def _print_gone(gone: dict[str, int]) -> None:
    """Prints which files cannot be read again."""
    for path, lines in sorted(gone.items())[:MAX_DAMAGES_SHOWN]:
        typer.echo(
            f"gone: {escape_control_chars(path)} is not in the landing folder as it was read, "
            f"{counted(lines, 'line')}: rows of it that are damaged are lost until the same file is there "
            "again; their hours count as incomplete"
        )
    if len(gone) > MAX_DAMAGES_SHOWN:
        typer.echo(f"gone: and {counted(len(gone) - MAX_DAMAGES_SHOWN, 'more file')}")
