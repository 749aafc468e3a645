"""Rules of blocks of frequency: their names, and the columns of their items."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from transom.stream import item_rules
from transom.stream.errors import Problem

if TYPE_CHECKING:
    from transom.stream.model import Stream

COLUMNS = (
    "hour", "block", "window_end", "heavy_id", "rank", "estimate", "low", "high", "window_records", "margin",
    "others", "watched", "change", "state", "entered", "since",
    "row", "tick", "records", "items", "cells", "long", "place", "counters", "number",
)  # fmt: skip
"""Columns of `frequencies` and `tick_matrices` beside those of the item; and what is computed with them."""


def problems(stream: "Stream") -> Iterator[Problem]:
    """Yield what is wrong with the blocks of a stream, each of which is sound by itself."""
    for name, said in stream.frequency.items():
        place = f"frequency.{name}"
        if name in stream.persistence:
            yield Problem(place, f"persistence.{name} has the same name, in the same stage")
        yield from item_rules.problems(place, said, stream, COLUMNS, "frequent item")
