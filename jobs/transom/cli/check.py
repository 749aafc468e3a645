"""`transom check`: validate stream files, and describe them."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from transom.cli.arguments import JsonOption, print_json, stream_of
from transom.core.terminal import counted, escape_control_chars
from transom.ledger.waivers import entries_of, format_waiver
from transom.spec.endings import endings
from transom.spec.impossible_conditions import impossible
from transom.stream import SpecificationError, Stream
from transom.stream_files import folder, streams


def check(
    named: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STREAM]...", help="Stream files, or names. Default: all of schemas/streams."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Read stream files, and list what they declare, or all their problems.

    \b
    Example:
      transom check
      transom check schemas/streams/site.yaml

    Exit code 1 if a stream file is wrong, 2 if one does not exist.
    """
    sound: dict[Path, Stream] = {}
    wrong: list[str] = []
    errors: list[SpecificationError] = []
    missing: list[str] = []
    for name in named or ():
        try:
            file, stream = stream_of(name)
            sound[file] = stream
        except typer.BadParameter as error:
            missing.append(error.message)
            wrong.append(error.message)
        except SpecificationError as error:
            errors.append(error)
            wrong.append(str(error))
    if not named:
        sound, errors = streams()
        wrong = list(map(str, errors))
        if not sound and not wrong:
            raise typer.BadParameter(f"no stream file in {folder()}", param_hint="STREAM")
    if as_json:
        print_json(
            {
                "valid": [_description(file, stream) for file, stream in sound.items()],
                "invalid": [
                    {
                        "files": error.files,
                        "problems": [
                            {"path": problem.path, "message": problem.message} for problem in error.problems
                        ],
                    }
                    for error in errors
                ],
                "missing": missing,
            }
        )
        raise typer.Exit(2 if missing else 1 if wrong else 0)
    for file, stream in sound.items():
        typer.echo(f"{file}: {describe_stream(stream)}")
        for words in warnings(stream):
            typer.echo(f"  {words}")
        for index, waiver in enumerate(map(format_waiver, entries_of(stream.waivers))):
            typer.echo(f"  waivers[{index}] accepts {escape_control_chars(waiver)}")
        for place, entry in endings(stream):
            typer.echo(f"  {place} ends at {entry.describe()}")
    for message in wrong:
        typer.echo(message, err=True)
    if wrong:
        if len(sound) + len(wrong) > 1:
            typer.echo(f"{len(wrong)} of {len(sound) + len(wrong)} cannot be used", err=True)
        raise typer.Exit(2 if missing else 1)


def _description(file: Path, stream: Stream) -> dict[str, object]:
    """Return what a stream file declares, for JSON."""
    blocks = {
        feature.name: {name: feature.summary(stream, name) for name in stream.blocks(feature.block)}
        for feature in stream.features
    }
    return {
        "file": str(file),
        "stream": stream.name,
        "format": stream.preset or stream.source.format,
        "columns": [*stream.event_columns],
        "path": stream.source.path,
        "blocks": blocks,
        "warnings": [*warnings(stream)],
        "waivers": [*map(format_waiver, entries_of(stream.waivers))],
        "endings": {place: entry.describe() for place, entry in endings(stream)},
    }


def warnings(stream: Stream) -> Iterator[str]:
    """Yield messages on conditions that no row can meet, zones that probably differ, and notifiers."""
    yield from impossible(stream)
    if stream.notify or stream.silence:
        from transom.alerts import notifiers

        yield from notifiers.unknown_kinds(stream)
        if find_spec("airflow") is not None:
            yield from notifiers.unknown_classes(stream)
    zone, source = stream.time and stream.time.zone, stream.source
    is_open = source.pattern.unit is not None and "zone" not in source.model_fields_set
    if is_open and zone not in (None, source.zone):
        yield (
            f"source.zone: times in file names are read as {source.zone}, those of lines as {zone}; if names "
            f"have local times, set `zone: {zone}`, else `zone: {source.zone}`"
        )


def describe_stream(stream: Stream) -> str:
    """Return a line about a stream, and one for each block."""
    kind = stream.preset or stream.source.format
    columns = counted(len(stream.event_columns), "column")
    lines = [f"stream {stream.name}, {kind}, {columns}, from {stream.source.path}"]
    for feature in stream.features:
        blocks = stream.blocks(feature.block)
        lines += [f"  {feature.noun} {name}: {feature.summary(stream, name)}" for name in blocks]
    return "\n".join(lines)
