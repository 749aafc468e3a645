"""A block of persistence in words."""

from transom.core.durations import format_duration
from transom.features.persistence.spec import Persistence
from transom.spec.stream import Stream

LABELS = {
    "item": "`item`",
    "where": "`where`",
    "slots": "`slot` or `window`",
    "shares": "`alpha`, `epsilon` or `budget`",
    "seeds": "`seed` or `delta`",
    "watch": "`watch`",
    "ignore": "`ignore`",
    "types": "the type or resolution of a column",
}
"""What the keys of fingerprints are called in the stream's file."""


def summary(stream: Stream, name: str) -> str:
    """Return what is persistent, and what of it is remembered."""
    said = stream.blocks(Persistence)[name]
    asked, slot = said.params, format_duration(said.slot)
    many = f"{asked.instances} instance{'' if asked.instances == 1 else 's together'}"
    pairs = float(1 / (asked.tau * asked.instances))
    beside = "" if pairs > 1 else ", which is more than an exact count takes"
    return (
        f"{', '.join(said.item)} in {asked.min_certain} of {said.slots} slots of {slot}, none in fewer than "
        f"{asked.min_reported}; epsilon {float(asked.epsilon):.3g}, a tuple of one in {pairs:.3g} "
        f"pairs of an item and a slot, in {many}{beside}"
    )


def facts(stream: Stream, name: str) -> str:
    """Return the item of a block, and in how many slots of its window it has to be."""
    block = stream.blocks(Persistence)[name]
    return (
        f"{', '.join(block.item)}, in {block.alpha:g} of the slots of {format_duration(block.slot)} in "
        f"{format_duration(block.window)}"
    )
