"""What blocks of persistence read: the columns of their items, their conditions; and rules of these."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from transom.expressions import Expression, ExpressionError, condition
from transom.stream import item_rules
from transom.stream.alerts import title_problems
from transom.stream.errors import Problem, nearest
from transom.stream.item_rules import item_problems, list_problems

if TYPE_CHECKING:
    from transom.stream.model import Stream
    from transom.stream.persistence import Persistence

PERSISTENT_COLUMNS = (
    "hour", "block", "window_end", "stay_id", "low", "high", "estimate", "certain", "watched", "change",
    "state", "entered", "since", "slots", "first_slot", "last_slot", "records", "gap_mean_s", "gap_cv",
)  # fmt: skip
"""Columns of `persistent_items` beside those of the item."""
TUPLE_COLUMNS = (
    "row", "instance", "start", "latest", "counted", "first", "last", "squares", "bits",
    "slot", "long", "left", "unknown", "named",
)  # fmt: skip
"""Columns of `tuples` beside those of the item and the ones that both tables have; and what is computed with
them."""
TOLD = ("since", "window_end")
"""What a title may name beside the item's columns."""


def where(stream: "Stream", name: str) -> Expression | None:
    """Return the compiled `where` of a block; None where it sees every event."""
    text = stream.persistence[name].where
    return None if text is None else condition(text, stream.event_types)


def problems(stream: "Stream") -> Iterator[Problem]:
    """Yield what is wrong with the blocks of a stream, each of which is sound by itself."""
    for name, said in stream.persistence.items():
        place = f"persistence.{name}"
        taken = (*PERSISTENT_COLUMNS, *TUPLE_COLUMNS)
        unsound = list(item_problems(place, said.item, stream, taken, "persistent item"))
        yield from unsound
        if said.where is not None and said.where != stream.where:
            try:
                condition(said.where, stream.event_types)
            except ExpressionError as error:
                yield Problem(f"{place}.where", str(error))
        if not unsound:
            yield from _lists(place, said, stream)
        if said.title is not None:
            told = [*said.item, *TOLD]
            rule = f"a title names columns of the item, {TOLD[0]} and {TOLD[1]}"
            yield from title_problems(f"{place}.title", said.title, told, rule)


def _lists(place: str, said: "Persistence", stream: "Stream") -> Iterator[Problem]:
    yield from list_problems(f"{place}.watch", said.watch, said.item, stream)
    yield from list_problems(f"{place}.ignore.items", said.ignore.items, said.item, stream)
    ignored = {*item_rules.listed(said.ignore.items)}
    for index, item in enumerate(item_rules.listed(said.watch)):
        if item in ignored:
            yield Problem(f"{place}.watch[{index}]", "is ignored, too, and would never be told of")
    for column in said.ignore.networks:
        at = f"{place}.ignore.networks.{column}"
        if column not in said.item:
            yield Problem(at, f"no column {column!r} of the item{nearest(column, said.item)}")
        elif stream.event_types[column] != "string":
            kind = stream.event_types[column]
            yield Problem(at, f"takes a column of addresses, a text; {column} is {item_rules.a(kind)}")
    for column in said.ignore.table.columns if said.ignore.table else ():
        if column not in said.item:
            at = f"{place}.ignore.table.columns.{column}"
            yield Problem(at, f"no column {column!r} of the item{nearest(column, said.item)}")
