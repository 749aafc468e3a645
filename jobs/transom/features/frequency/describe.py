"""Texts for a block of frequency."""

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
"""The fields of the stream file, by the keys of fingerprints."""


def summary(stream: Stream, name: str) -> str:
    """Return the text for the item of a block, its window, its matrix and the error of an estimate."""
    block = stream.blocks(Frequency)[name]
    shape = block.shape
    error = "off in either direction; bounds exist only for items kept exactly"
    if block.never_below:
        share = f"{shape.epsilon:.2g} of all records too large in {shape.delta:.2g} of the cases at most"
        error = f"never too small, and more than {share}"
    elif block.variant == "splitter":
        error = "off in either direction; each item has its error_bound"
    # Vanilla has no window.
    window = f" in {format_duration(block.window)} by ticks of {format_duration(block.tick)}"
    return (
        f"{', '.join(block.item)}{'' if block.variant == 'vanilla' else window}, "
        f"{block.variant}; {counted(shape.rows, 'row')} of "
        f"{counted(shape.columns, 'column')}, an estimate is {error}"
    )


def facts(stream: Stream, name: str) -> str:
    """Return the text for the item of a block, its window and its variant."""
    block = stream.blocks(Frequency)[name]
    return f"{', '.join(block.item)}, in {format_duration(block.window)}, {block.variant}"


def evidence(stream: Stream, name: str, line: str, exactness: str) -> str:
    """Return a line of evidence for a page: an exact count is not about a number."""
    return line.removeprefix("about ") if exactness == "exact" else line
