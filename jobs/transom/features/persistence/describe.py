"""Texts for a block of persistence."""

import re
from datetime import timedelta

from transom.core.durations import format_duration
from transom.core.terminal import counted
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
    "ignore_left": "`ignore`",
    "types": "the type or resolution of a column",
}
"""The fields of the stream file, by the keys of fingerprints."""


def summary(stream: Stream, name: str) -> str:
    """Return the text for the slots of a persistent item, and the share of pairs that start a tuple."""
    block = stream.blocks(Persistence)[name]
    params = block.params
    instances = f"{params.instances} instance{'' if params.instances == 1 else 's together'}"
    pairs = float(1 / (params.tau * params.instances))
    return (
        f"{', '.join(block.item)} in {params.min_certain} of {block.slots} slots of "
        f"{format_duration(block.slot)}, none in fewer than {params.min_reported}; epsilon "
        f"{float(params.epsilon):.3g}, a tuple of one in {pairs:.3g} pairs of an item and a slot, in "
        f"{instances}{'' if pairs > 1 else ', which is more than an exact count takes'}"
    )


def facts(stream: Stream, name: str) -> str:
    """Return the text for the item of a block, and the share of slots that makes it persistent."""
    block = stream.blocks(Persistence)[name]
    window = f"the slots of {format_duration(block.slot)} in {format_duration(block.window)}"
    return f"{', '.join(block.item)}, in {block.alpha:g} of {window}"


def unit(stream: Stream, name: str) -> str:
    """Return what the bounds of an item count: slots of its window."""
    block = stream.blocks(Persistence)[name]
    return f"of {slots_text(block.slots, block.slot)}"


def slots_text(count: int, length: timedelta) -> str:
    """Return a number of slots with their length.

    >>> slots_text(60, timedelta(minutes=1)), slots_text(12, timedelta(minutes=5))
    ('60 minutes', '12 slots of 5 minutes')
    """
    text = format_duration(length)
    one, _, unit = text.partition(" ")
    return counted(count, unit) if one == "1" else f"{counted(count, 'slot')} of {text}"


def evidence(stream: Stream, name: str, line: str, exactness: str) -> str:
    """Return a line of evidence for a page.

    An exact count is neither a range nor about a number. The records are not those of the whole window: a
    sketch remembers an item from a slot on.

    >>> evidence(None, "", "in 29 to 29 of 60 slots of 1 minute, about 29.0; 676 records", "exact")
    'in 29 of 60 slots of 1 minute; 676 records from the first remembered slot on'
    """
    line = re.sub(r"^in (\d+) to \1 of (.+), about [\d.]+;", r"in \1 of \2;", line)
    return re.sub(r"^(in .+; \d+ records)$", r"\1 from the first remembered slot on", line)
