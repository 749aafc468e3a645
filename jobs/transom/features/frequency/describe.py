"""A block of frequency in words."""

from transom.core.durations import format_duration
from transom.core.terminal import counted
from transom.features.frequency.spec import Frequency
from transom.spec.stream import Stream

LABELS = {
    "item": "`item`",
    "where": "`where`",
    "watch": "`watch`",
    "tick": "`tick`",
    "window": "`window` or `tick`",
    "matrix": "`epsilon`, `delta` or `seed`",
    "kept": "`top`",
    "variant": "`variant`",
    "splitter": "`tau` or `mu`",
    "start": "`start`",
    "top": "`top`",
    "heavy": "`min_share`",
    "types": "the type or resolution of a column",
}
"""What the keys of fingerprints are called in the stream's file."""


def summary(stream: Stream, name: str) -> str:
    """Return what is counted, and by how much it may be wrong."""
    said = stream.blocks(Frequency)[name]
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


def facts(stream: Stream, name: str) -> str:
    """Return the item of a block, its window and its variant."""
    block = stream.blocks(Frequency)[name]
    return f"{', '.join(block.item)}, in {format_duration(block.window)}, {block.variant}"
