"""`transom explain`: why an hour is not fresh, down to the cause, and the remedy."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from transom.app.command_lines import submit_hours
from transom.cli.arguments import JsonOption, StreamArgument, cli_errors, print_json, stream_of
from transom.cli.lake_argument import LakeOption, lake, ledger_of, reading
from transom.core.intervals import format_hour, parse
from transom.core.terminal import escape_control_chars
from transom.spec.stream import Stream

WHY = "why, stage by stage:"


def explain(
    stream: StreamArgument,
    hour: Annotated[str, typer.Argument(metavar="HOUR", help="The hour, UTC, such as 2015-05-17T10:00.")],
    lake_named: LakeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explain why an hour is stale, incomplete, quarantined or blocked, and print the command that fixes it.

    Reads the ledger, and lists the landing folder. Starts no Spark, and changes nothing.

    \b
    Example:
      transom explain site 2015-05-17T10:00

    Exit code 1 if the hour is not fresh, 2 if the stream or the lake cannot be read.
    """
    from transom.storage.tables import LakeError, TableMismatch

    try:
        time = parse(hour, "HOUR")
    except ValueError as error:
        raise typer.BadParameter(str(error).removeprefix("HOUR: "), param_hint="HOUR") from None
    with cli_errors(LakeError, TableMismatch):
        file, declared = stream_of(stream)
        uri = lake(lake_named)
        explained = _explained(file, declared, uri, time)
        if as_json:
            print_json(explained)
        else:
            _print(explained)
    if not explained["fresh"]:
        raise typer.Exit(1)


def _explained(file: Path, stream: Stream, uri: str, hour: datetime) -> dict[str, Any]:
    """Return the state of an hour with its reasons, as `--json` prints it.

    Args:
        file: the stream file.
        uri: the lake.
    """
    from transom.features.ingest.landing import LandingError
    from transom.views.explain_hour import HourExplanation

    root = f"{uri}/{stream.name}"
    ledger = ledger_of(root)
    explained: dict[str, Any] = {"stream": stream.name, "hour": format_hour(hour), "lake": uri}
    if ledger is None:
        reason = f"not requested: no run of {stream.name} is in this lake"
        advice, command = "to run it", submit_hours(file, uri, hour, hour)
        return {
            **explained,
            "fresh": False,
            "files": [reason],
            "advice": advice,
            "command": command,
            "reasons": [],
        }
    with reading(root):
        explanation = HourExplanation(stream, ledger, hour)
        try:
            changes = explanation.files()
        except LandingError as error:
            changes = [f"files: not looked at: {error}"]
        files = [*changes, *(f"files: {remark}" for remark in explanation.remarks())]
    fresh = not explanation.troubled and not changes
    return {
        **explained,
        "fresh": fresh,
        "files": files,
        "advice": None if fresh else explanation.advice,
        "command": None if fresh else submit_hours(file, uri, *explanation.run_interval),
        "reasons": explanation.lines,
    }


def _print(explained: Mapping[str, Any]) -> None:
    """Print an explanation; the remedy comes before the reasons."""
    typer.echo(f"{explained['stream']} {explained['hour']}, in {explained['lake']}")
    for line in explained["files"]:
        typer.echo(f"  {escape_control_chars(line)}")
    if explained["command"]:
        typer.echo(f"  {explained['advice']}:\n    {explained['command']}")
    if explained["command"] and explained["reasons"]:
        typer.echo(f"  {WHY}")
    for line in explained["reasons"]:
        typer.echo(f"  {escape_control_chars(line)}")
