"""`transom verify`: compare the tables with the ledger, and mark damaged hours."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transom.app.command_lines import submit_hours
from transom.cli.arguments import StreamArgument, UsageError, cli_errors, stream_of
from transom.cli.lake_argument import LakeOption, lake, reading
from transom.core.terminal import counted, escape_control_chars
from transom.core.terminal_log import progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from transom.core.intervals import Interval
    from transom.spec.stream import Stream

MAX_DAMAGES_SHOWN = 50
"""Maximum number of damages, and of files, that are printed one by one."""


def verify(
    stream: StreamArgument,
    start: Annotated[
        str | None, typer.Option("--from", metavar="HOUR", help="The first hour, such as 2015-05-17T10:00.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="HOUR", help="The end of the hours, exclusive.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Mark what is damaged, so that the next run computes it again.")
    ] = False,
    lake_named: LakeOption = None,
) -> None:
    """Read all tables of a stream, and compare them with the digests in the ledger.

    Lists each hour of a table that is missing, cannot be read or has other rows, with the file. Starts Spark
    in this process. --repair removes damaged rows, and marks their hours in the ledger. The next run of these
    hours computes them again: events from the landing folder, everything else from its inputs. No run of the
    stream may be active meanwhile.

    \b
    Example:
      transom verify site
      transom verify site --from 2015-05-17T10:00 --to 2015-05-18T00:00 --repair

    Exit code 1 if something is damaged, repaired or not, or the stream never ran; 2 if the stream or the lake
    cannot be read.
    """
    from pyarrow import fs

    from transom.core.intervals import Interval
    from transom.storage.fencing import RunSuperseded
    from transom.storage.filesystem import resolve_filesystem
    from transom.storage.tables import LakeError, TableMismatch

    if (start is None) != (end is None):
        raise typer.BadParameter("--from and --to must be given together")
    with cli_errors(LakeError, TableMismatch, RunSuperseded):
        file, declared = stream_of(stream)
        try:
            interval = None if start is None or end is None else Interval.parse(start, end)
        except ValueError as error:
            raise UsageError(str(error)) from None
        uri = lake(lake_named)
        with reading(root := f"{uri}/{declared.name}"):
            system, place = resolve_filesystem(root)
            # The ledger may be damaged.
            exists = system.get_file_info(place).type == fs.FileType.Directory
        if not exists:
            typer.echo(f"{declared.name}: no run yet in {uri}")
            raise typer.Exit(1)
        from transom.storage.session import session

        spark = session(f"transom verify {declared.name}")
        try:
            sound = verify_in(spark, declared, file, uri, interval, repair)
        finally:
            spark.stop()
        if not sound:
            raise typer.Exit(1)


def verify_in(
    spark: "SparkSession",
    stream: "Stream",
    file: Path,
    uri: str,
    interval: "Interval | None" = None,
    repair: bool = False,
) -> bool:
    """Print the damaged hours of a stream, and return whether there are none.

    Args:
        file: the stream file.
        uri: the lake.
        interval: the hours to compare; None means all.
        repair: whether to mark the damaged hours.
    """
    from transom.app.verify import find, mark

    root = f"{uri}/{stream.name}"
    with progress("reading the tables"):
        damage = find(spark, stream, root, interval)
    damages, tables = damage.damages, damage.tables
    for line in damages[:MAX_DAMAGES_SHOWN]:
        typer.echo(escape_control_chars(f"{stream.name}: {line}"))
    if len(damages) > MAX_DAMAGES_SHOWN:
        typer.echo(f"... and {len(damages) - MAX_DAMAGES_SHOWN} more")
    if tables is None:
        typer.echo("the other tables are compared once the ledger is repaired: transom verify --repair")
    else:
        compared = f"{counted(tables.partitions, 'hour')} of tables compared"
        typer.echo(f"{stream.name}: {compared}, {counted(len(damages), 'damage')}")
    _print_gone(damage.gone)
    if not damages:
        return True
    if not repair:
        typer.echo("`--repair` marks these hours, so that the next run computes them again")
        return False
    marked = mark(spark, stream, root, interval)
    for note in marked.notes:
        typer.echo(escape_control_chars(note))
    if tables is None:
        _print_gone(marked.gone)
    typer.echo(f"{counted(len(marked.partitions), 'hour')} of tables marked")
    if marked.hours:
        command = submit_hours(file, uri, min(marked.hours), max(marked.hours))
        typer.echo(f"to compute them again:\n  {command}")
    elif marked.partitions:
        typer.echo("any run computes them again")
    return False


def _print_gone(gone: dict[str, int]) -> None:
    """Print the files that cannot be read again."""
    for path, lines in sorted(gone.items())[:MAX_DAMAGES_SHOWN]:
        typer.echo(
            f"gone: {escape_control_chars(path)} is not in the landing folder as it was read, "
            f"{counted(lines, 'line')}: rows of it that are damaged are lost until the same file is there "
            "again; their hours count as incomplete"
        )
    if len(gone) > MAX_DAMAGES_SHOWN:
        typer.echo(f"gone: and {counted(len(gone) - MAX_DAMAGES_SHOWN, 'more file')}")
