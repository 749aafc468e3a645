"""What blocks of frequency read: the columns of their items, their conditions; and rules of these."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from transom.expressions import Expression, ExpressionError, condition
from transom.stream.alerts import title_problems
from transom.stream.errors import Problem
from transom.stream.item_rules import item_problems, list_problems

if TYPE_CHECKING:
    from transom.stream.model import Stream

COLUMNS = (
    "hour", "block", "window_end", "heavy_id", "rank", "estimate", "low", "high", "window_records", "margin",
    "others", "watched", "change", "state", "entered", "since",
    "row", "tick", "records", "items", "cells", "long", "place", "counters", "number",
)  # fmt: skip
"""Columns of `frequencies` and `tick_matrices` beside those of the item; and what is computed with them."""
TOLD = ("since", "window_end")
"""What a title may name beside the item's columns."""


def where(stream: "Stream", name: str) -> Expression | None:
    """Return the compiled `where` of a block; None where it counts every event."""
    text = stream.frequency[name].where
    return None if text is None else condition(text, stream.event_types)


def problems(stream: "Stream") -> Iterator[Problem]:
    """Yield what is wrong with the blocks of a stream, each of which is sound by itself."""
    for name, said in stream.frequency.items():
        place = f"frequency.{name}"
        if name in stream.persistence:
            yield Problem(place, f"persistence.{name} has the same name, in the same stage")
        unsound = list(item_problems(place, said.item, stream, COLUMNS, "frequent item"))
        yield from unsound
        if said.where is not None and said.where != stream.where:
            try:
                condition(said.where, stream.event_types)
            except ExpressionError as error:
                yield Problem(f"{place}.where", str(error))
        if not unsound:
            yield from list_problems(f"{place}.watch", said.watch, said.item, stream)
        if said.title is not None:
            told = [*said.item, *TOLD]
            rule = f"a title names columns of the item, {TOLD[0]} and {TOLD[1]}"
            yield from title_problems(f"{place}.title", said.title, told, rule)
