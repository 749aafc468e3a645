"""What blocks of persistence read: the columns of their items, their conditions; and rules of these."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from transom.expressions import Expression, ExpressionError, condition
from transom.formats.layout import FieldType
from transom.stream.alerts import title_problems
from transom.stream.errors import Problem, nearest

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
)  # fmt: skip
"""Columns of `tuples` beside those of the item and the ones that both tables have."""
TOLD = ("since", "window_end")
"""What a title may name beside the item's columns."""
TYPES: dict[FieldType, type] = {"string": str, "integer": int, "boolean": bool}
"""Types of columns of which values can be written in the stream's file."""


def where(stream: "Stream", name: str) -> Expression | None:
    """Return the compiled `where` of a block; None where it sees every event."""
    text = stream.persistence[name].where
    return None if text is None else condition(text, stream.event_types)


def listed(said: "Persistence", items: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return items of a list, each with a value for every column."""
    return [item if isinstance(item, tuple) else (item,) for item in items]


def problems(stream: "Stream") -> Iterator[Problem]:
    """Yield what is wrong with the blocks of a stream, each of which is sound by itself."""
    for name, said in stream.persistence.items():
        place = f"persistence.{name}"
        unsound = list(_item(place, said, stream))
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


def _item(place: str, said: "Persistence", stream: "Stream") -> Iterator[Problem]:
    for index, column in enumerate(said.item):
        at = f"{place}.item[{index}]"
        if column not in stream.event_columns:
            yield Problem(at, f"no column {column!r}{nearest(column, stream.event_columns)}")
        elif column in (*PERSISTENT_COLUMNS, *TUPLE_COLUMNS):
            yield Problem(at, f"{column} is a column that every persistent item has; name it otherwise")
        elif stream.event_types[column] == "number":
            rule = f"must be a text, an integer, a truth value or a time; {column} is a number"
            yield Problem(at, f"{rule}: derive a text or an integer of it")


def _lists(place: str, said: "Persistence", stream: "Stream") -> Iterator[Problem]:
    for path, items in ((f"{place}.watch", said.watch), (f"{place}.ignore.items", said.ignore.items)):
        for index, values in enumerate(listed(said, items)):
            yield from _values(f"{path}[{index}]", values, said, stream)
    for column in said.ignore.networks:
        at = f"{place}.ignore.networks.{column}"
        if column not in said.item:
            yield Problem(at, f"no column {column!r} of the item{nearest(column, said.item)}")
        elif stream.event_types[column] != "string":
            kind = stream.event_types[column]
            yield Problem(at, f"takes a column of addresses, a text; {column} is a {kind}")
    for column in said.ignore.table.columns if said.ignore.table else ():
        if column not in said.item:
            at = f"{place}.ignore.table.columns.{column}"
            yield Problem(at, f"no column {column!r} of the item{nearest(column, said.item)}")


def _values(at: str, values: tuple[Any, ...], said: "Persistence", stream: "Stream") -> Iterator[Problem]:
    if len(values) != len(said.item):
        rule = f"must have a value for each of {', '.join(said.item)}"
        yield Problem(at, f"{rule}; got {list(values)}")
        return
    for column, value in zip(said.item, values, strict=True):
        kind = stream.event_types[column]
        if kind not in TYPES:
            yield Problem(at, f"no value of {column} can be written here, which is a {kind}")
        elif type(value) is not TYPES[kind]:
            yield Problem(at, f"must be a {kind} for {column}; got {value!r}")
