"""`transom check`: whether stream files can be used, and what they declare."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from transom.cli.arguments import stream_of
from transom.core.durations import format_duration
from transom.core.shifts import format_ago
from transom.core.terminal import counted
from transom.features.fills.spec import Fill
from transom.features.frames import validate as frame_columns
from transom.features.frequency.spec import Frequency
from transom.features.patterns.spec import Pattern
from transom.features.persistence.spec import Persistence
from transom.spec.impossible_conditions import impossible
from transom.spec.stream_files import folder, streams
from transom.stream import SpecificationError, Stream


def check(
    named: Annotated[
        list[str] | None,
        typer.Argument(metavar="[STREAM]...", help="Stream files, or names; all of schemas/streams else."),
    ] = None,
) -> None:
    """Read stream files, and say what they declare or everything that is wrong with them.

    \b
    Example:
      transom check
      transom check schemas/streams/site.yaml

    Exit code 1 where one cannot be used, 2 where one is not there.
    """
    sound: dict[Path, Stream] = {}
    wrong: list[str] = []
    missing = False
    if named:
        for name in named:
            try:
                file, stream = stream_of(name)
                sound[file] = stream
            except typer.BadParameter as error:
                missing = True
                wrong.append(error.message)
            except SpecificationError as error:
                wrong.append(str(error))
    else:
        sound, mistaken = streams()
        wrong = [str(error) for error in mistaken]
        if not sound and not wrong:
            raise typer.BadParameter(f"no stream file in {folder()}", param_hint="STREAM")
    for file, stream in sound.items():
        typer.echo(f"{file}: {declared(stream)}")
        for words in impossible(stream):
            typer.echo(f"  {words}")
    for mistakes in wrong:
        typer.echo(mistakes, err=True)
    if wrong:
        if len(sound) + len(wrong) > 1:
            typer.echo(f"{len(wrong)} of {len(sound) + len(wrong)} cannot be used", err=True)
        raise typer.Exit(2 if missing else 1)


def declared(stream: Stream) -> str:
    """What a stream declares, in two lines, and in one more for each pattern, kind of frame and fill."""
    kind = stream.preset or stream.source.format
    blocks = [
        f"{name} ({', '.join(block.measures)} by {', '.join(block.key) or 'nothing'}, "
        + ", ".join(format_duration(level.range) for level in block.levels)
        + "".join(f", {asked}" for asked in ("fit", "aging", "recurring", "alert") if getattr(block, asked))
        + ")"
        for name, block in stream.aggregate.items()
    ]
    return (
        f"stream {stream.name}, {kind}, {counted(len(stream.event_columns), 'column')}, "
        f"from {stream.source.path}\n"
        f"  aggregate: {'; '.join(blocks) or 'nothing'}"
        + "".join(f"\n  pattern {name}: {looked_for(one)}" for name, one in stream.patterns.items())
        + "".join(f"\n  frames {name}: {delimited(stream, name)}" for name in stream.frames)
        + "".join(f"\n  fill {name}: {filled(one)}" for name, one in stream.fills.items())
        + "".join(f"\n  persistence {name}: {persistent(one)}" for name, one in stream.persistence.items())
        + "".join(f"\n  frequency {name}: {frequent(one)}" for name, one in stream.frequency.items())
    )


def frequent(said: Frequency) -> str:
    """What is counted, and by how much it may be wrong."""
    shape = said.shape
    wrong = "too small or too large, nobody knows by how much but of items that are kept"
    if said.never_below:
        wrong = (
            f"never too small, and more than {shape.epsilon:.2g} of all records too large in "
            f"{shape.delta:.2g} of the cases at most"
        )
    elif said.variant == "splitter":
        wrong = "too small or too large; by how much is told of each, as its margin"
    ticks = f"by ticks of {format_duration(said.tick)}"
    # Vanilla has no window.
    window = "" if said.variant == "vanilla" else f" in {format_duration(said.window)} {ticks}"
    return (
        f"{', '.join(said.item)}{window}, "
        f"{said.variant}; {counted(shape.rows, 'row')} of "
        f"{counted(shape.columns, 'column')}, an estimate is {wrong}"
    )


def persistent(said: Persistence) -> str:
    """What is persistent, and what of it is remembered."""
    asked, slot = said.asked, format_duration(said.slot)
    many = f"{asked.instances} instance{'' if asked.instances == 1 else 's together'}"
    pairs = float(1 / (asked.tau * asked.instances))
    beside = "" if pairs > 1 else ", which is more than an exact count takes"
    return (
        f"{', '.join(said.item)} in {asked.certain} of {said.slots} slots of {slot}, none in fewer than "
        f"{asked.least}; epsilon {float(asked.epsilon):.3g}, a tuple of one in {pairs:.3g} "
        f"pairs of an item and a slot, in {many}{beside}"
    )


def delimited(stream: Stream, name: str) -> str:
    """What delimits a kind of frame."""
    frame, key = stream.frames[name], frame_columns.key(stream, name)
    return f"{frame.kind}, {frame.rule}, by {', '.join(key) or 'nothing'}, of {frame.over or 'events'}"


def filled(fill: Fill) -> str:
    """What fills which frames."""
    told = ", ".join(fill.measures) or "how many rows"
    shifts = " and ".join(map(format_ago, fill.shift))
    ago = "" if fill.shift == (timedelta(0),) else f", shifted by {shifts}"
    return f"{fill.frame}, from {fill.from_.called}{ago}: {told}"


def looked_for(pattern: Pattern) -> str:
    """What a pattern looks for, and how time is cut for it."""
    steps, levels = len(pattern.all_steps), pattern.levels
    what = pattern.detector or f"{steps} step{'' if steps == 1 else 's'}"
    return (
        f"{what} by {', '.join(pattern.key) or 'nothing'}, within {format_duration(pattern.within)}, "
        f"{levels} level{'' if levels == 1 else 's'} from batches of {format_duration(pattern.batch)}"
    )
