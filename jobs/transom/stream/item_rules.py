"""Rules of the columns of items, and of items that are listed in a stream's file."""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from transom.formats.layout import FieldType
from transom.stream.errors import Problem, nearest

if TYPE_CHECKING:
    from transom.stream.model import Stream

TYPES: dict[FieldType, type] = {"string": str, "integer": int, "boolean": bool}
"""Types of columns of which values can be written in the stream's file."""


def a(kind: str) -> str:
    """Return a type with its article."""
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def listed(items: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return items of a list, each with a value for every column."""
    return [item if isinstance(item, tuple) else (item,) for item in items]


def item_problems(
    place: str, item: Sequence[str], stream: "Stream", taken: Collection[str], called: str
) -> Iterator[Problem]:
    """Yield what is wrong with the columns of an item.

    Args:
        taken: columns that the tables of the block have themselves.
        called: what has them.
    """
    for index, column in enumerate(item):
        at = f"{place}.item[{index}]"
        if column not in stream.event_columns:
            yield Problem(at, f"no column {column!r}{nearest(column, stream.event_columns)}")
        elif column in taken:
            yield Problem(at, f"{column} is a column that every {called} has; name it otherwise")
        elif stream.event_types[column] == "number":
            rule = f"must be a text, an integer, a truth value or a time; {column} is a number"
            yield Problem(at, f"{rule}: derive a text or an integer of it")


def list_problems(
    path: str, items: tuple[Any, ...], item: Sequence[str], stream: "Stream"
) -> Iterator[Problem]:
    """Yield what is wrong with listed items, of columns that are sound."""
    for index, values in enumerate(listed(items)):
        yield from _values(f"{path}[{index}]", values, item, stream)


def _values(at: str, values: tuple[Any, ...], item: Sequence[str], stream: "Stream") -> Iterator[Problem]:
    if len(values) != len(item):
        rule = f"must have a value for each of {', '.join(item)}"
        yield Problem(at, f"{rule}; got {list(values)}")
        return
    for column, value in zip(item, values, strict=True):
        kind = stream.event_types[column]
        if kind not in TYPES:
            yield Problem(at, f"no value of {column} can be written here, which is {a(kind)}")
        elif type(value) is not TYPES[kind]:
            yield Problem(at, f"must be {a(kind)} for {column}; got {value!r}")
