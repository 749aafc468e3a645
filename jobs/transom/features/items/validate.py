"""Validate blocks of items: the item's columns, `where`, lists of items, titles."""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from transom.formats.record_format import FieldType
from transom.spec.block_columns import BlockColumns, Use, sql_of, tested
from transom.spec.errors import Issue, no_column, of_expression
from transom.spec.expressions import ExpressionError, condition
from transom.spec.impossible_conditions import own_where
from transom.spec.literals import TYPES, value_problem
from transom.spec.stream import Stream
from transom.spec.titles import title_problems
from transom.spec.value_domains import Tested


class ItemBlock(Protocol):
    """A block of `persistence` or `frequency`.

    Attributes:
        item: the columns of an item.
        where: a condition on the events that count.
        watch: items that are always reported.
        severity: the severity of its findings.
        title: their title.
    """

    item: tuple[str, ...]
    where: str | None
    watch: tuple[Any, ...]
    severity: Literal["high", "medium", "low"]
    title: str | None


LONGEST = 4096
"""Maximum number of bytes of an item's texts."""
REPORTED_COLUMNS = ("since", "window_end")
"""Columns that a title may name, besides the item's."""


def listed(items: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return the items of a list as tuples with a value for every column."""
    return [item if isinstance(item, tuple) else (item,) for item in items]


def problems(
    place: str, block: ItemBlock, stream: Stream, reserved: Collection[str], called: str
) -> Generator[Issue, None, bool]:
    """Yield the problems of a block that is valid by itself, and return whether its item is valid.

    Args:
        place: the path of the block.
        block: the block.
        stream: the stream.
        reserved: names of other columns of the block's tables.
        called: the noun for the tables' rows, for messages.
    """
    issues = list(_item(place, block.item, stream, reserved, called))
    yield from issues
    if block.where is not None and block.where != stream.where:
        try:
            condition(block.where, stream.event_types)
        except ExpressionError as error:
            yield of_expression(f"{place}.where", error)
    if not issues:
        yield from list_problems(f"{place}.watch", block.watch, block.item, stream)
    if block.title is not None:
        rule = f"a title names columns of the item, {REPORTED_COLUMNS[0]} and {REPORTED_COLUMNS[1]}"
        yield from title_problems(f"{place}.title", block.title, [*block.item, *REPORTED_COLUMNS], rule)
    return not issues


def _item(
    place: str, item: Sequence[str], stream: Stream, reserved: Collection[str], called: str
) -> Iterator[Issue]:
    for index, column in enumerate(item):
        at = f"{place}.item[{index}]"
        if column not in stream.event_columns:
            yield no_column(at, column, stream.event_columns)
        elif column in reserved:
            yield Issue(at, f"{column} is a column that every {called} has; choose another name")
        elif stream.event_types[column] == "number":
            rule = f"must be a text, an integer, a truth value or a time; {column} is a number"
            yield Issue(at, f"{rule}: derive a text or an integer of it")


def list_problems(path: str, items: tuple[Any, ...], item: Sequence[str], stream: Stream) -> Iterator[Issue]:
    """Yield the problems of the items of a list. Their columns are valid."""
    for index, values in enumerate(listed(items)):
        at = f"{path}[{index}]"
        if len(values) != len(item):
            yield Issue(at, f"must have a value for each of {', '.join(item)}; got {list(values)}")
        else:
            yield from (Issue(at, rule) for rule in value_problems(values, item, stream, TYPES))


def value_problems(
    values: Iterable[Any], item: Iterable[str], stream: Stream, types: Mapping[FieldType, type]
) -> Iterator[str]:
    """Yield why an item cannot have these values.

    Args:
        values: a value for each column.
        item: the columns.
        stream: the stream.
        types: the types of values, by the types of columns that can be used.
    """
    pairs = zip(item, values, strict=True)
    rules = (value_problem(column, value, stream.event_types[column], types) for column, value in pairs)
    problems = [rule for rule in rules if rule is not None]
    yield from problems
    size = 0 if problems else sum(len(value.encode()) for value in values if isinstance(value, str))
    if size > LONGEST:
        yield f"one of more than {LONGEST:,} bytes is skipped; got {size:,}"


def columns_read(stream: Stream, blocks: Mapping[str, ItemBlock]) -> Iterator[BlockColumns]:
    """Yield the columns that blocks read. An event that lacks a column of an item has no item."""
    for name, block in blocks.items():
        where = stream.where_of(block)
        uses = (*tested(where), Use(frozenset(block.item), sql_of(where)))
        yield BlockColumns(name, (), sql_of(where), uses)


def conditions(stream: Stream, feature: str, blocks: Mapping[str, ItemBlock]) -> Iterator[Tested]:
    """Yield the conditions of blocks."""
    for name, block in blocks.items():
        yield from own_where(stream, f"{feature}.{name}", block.where)
