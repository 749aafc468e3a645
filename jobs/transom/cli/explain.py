"""`transom explain`: why an hour is not fresh, down to the cause, and what mends it."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from transom.app.command_lines import submit
from transom.cli.arguments import cli_errors, stream_of
from transom.cli.lake_argument import lake, ledger_of, reading
from transom.core.intervals import HOUR, format_hour, parse
from transom.core.terminal import escape_control_chars

WHY = "why, stage by stage:"


def explain(
    stream: Annotated[str, typer.Argument(metavar="STREAM", help="A stream file, or a stream's name.")],
    hour: Annotated[str, typer.Argument(metavar="HOUR", help="Such as 2015-05-17T10:00, UTC.")],
    lake_named: Annotated[
        str | None,
        typer.Option("--lake", metavar="URI", help="The lake; TRANSOM_LAKE else, or the checkout's."),
    ] = None,
) -> None:
    """Say why an hour is stale, incomplete, quarantined or blocked, and the command that mends it.

    Reads the ledger and lists the landing folder; starts no Spark, changes nothing.

    \b
    Example:
      transom explain site 2015-05-17T10:00

    Exit code 1 where the hour is not fresh, 2 where the stream or the lake cannot be read.
    """
    from transom.cli.explain_hour import HourExplanation
    from transom.features.ingest.landing import LandingError
    from transom.storage.tables import LakeError, TableMismatch

    try:
        asked = parse(hour, "HOUR")
    except ValueError as error:
        raise typer.BadParameter(str(error).removeprefix("HOUR: "), param_hint="HOUR") from None
    with cli_errors(LakeError, TableMismatch):
        file, declared = stream_of(stream)
        uri = lake(lake_named)
        root = f"{uri}/{declared.name}"
        ledger = ledger_of(root)
        typer.echo(f"{declared.name} {format_hour(asked)}, in {uri}")
        if ledger is None:
            typer.echo(f"  nobody has asked for it: no run of {declared.name} is in this lake")
            typer.echo(f"  to run it:\n    {_command(file, uri, asked, asked)}")
            raise typer.Exit(1)
        with reading(root):
            reasons = HourExplanation(declared, ledger, asked)
            try:
                changes = reasons.files()
            except LandingError as error:
                changes = [f"files: not looked at: {error}"]
            remarks = reasons.remarks()
        # What helps comes first, then why.
        for line in [*changes, *(f"files: {remark}" for remark in remarks)]:
            typer.echo(f"  {escape_control_chars(line)}")
        troubled = bool(reasons.troubled or changes)
        if troubled:
            first, last = reasons.run_interval
            typer.echo(f"  {reasons.advice}:\n    {_command(file, uri, first, last)}")
            typer.echo(f"  {WHY}")
        for line in reasons.lines:
            typer.echo(f"  {escape_control_chars(line)}")
    if troubled:
        raise typer.Exit(1)


def _command(file: Path, uri: str, first: datetime, last: datetime) -> str:
    """What runs every stage from one hour to another."""
    command = submit("run", file, uri)
    return command.replace("{from}", format_hour(first)).replace("{to}", format_hour(last + HOUR))
