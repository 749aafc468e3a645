"""`transom explain`: why an hour is not fresh, down to the cause, and the remedy."""

from typing import Annotated

import typer

from transom.app.command_lines import submit_hours
from transom.cli.arguments import StreamArgument, cli_errors, stream_of
from transom.cli.lake_argument import LakeOption, lake, ledger_of, reading
from transom.core.intervals import format_hour, parse
from transom.core.terminal import escape_control_chars

WHY = "why, stage by stage:"


def explain(
    stream: StreamArgument,
    hour: Annotated[str, typer.Argument(metavar="HOUR", help="Such as 2015-05-17T10:00, UTC.")],
    lake_named: LakeOption = None,
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
        time = parse(hour, "HOUR")
    except ValueError as error:
        raise typer.BadParameter(str(error).removeprefix("HOUR: "), param_hint="HOUR") from None
    with cli_errors(LakeError, TableMismatch):
        file, declared = stream_of(stream)
        uri = lake(lake_named)
        root = f"{uri}/{declared.name}"
        ledger = ledger_of(root)
        typer.echo(f"{declared.name} {format_hour(time)}, in {uri}")
        if ledger is None:
            typer.echo(f"  nobody has asked for it: no run of {declared.name} is in this lake")
            typer.echo(f"  to run it:\n    {submit_hours(file, uri, time, time)}")
            raise typer.Exit(1)
        with reading(root):
            explanation = HourExplanation(declared, ledger, time)
            try:
                changes = explanation.files()
            except LandingError as error:
                changes = [f"files: not looked at: {error}"]
            remarks = explanation.remarks()
        # The remedy comes before the reasons.
        for line in [*changes, *(f"files: {remark}" for remark in remarks)]:
            typer.echo(f"  {escape_control_chars(line)}")
        troubled = bool(explanation.troubled or changes)
        if troubled:
            command = submit_hours(file, uri, *explanation.run_interval)
            typer.echo(f"  {explanation.advice}:\n    {command}")
            typer.echo(f"  {WHY}")
        for line in explanation.lines:
            typer.echo(f"  {escape_control_chars(line)}")
    if troubled:
        raise typer.Exit(1)
