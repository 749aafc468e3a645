"""Rules of blocks of persistence: the columns of their items, and what they ignore."""

from collections.abc import Iterator
from datetime import timedelta

from transom.features.items import validate as item_rules
from transom.features.persistence.spec import Persistence, state_lookback
from transom.spec.block_columns import BlockColumns
from transom.spec.errors import Issue, no_column
from transom.spec.impossible_conditions import own_where
from transom.spec.stream import Stream
from transom.spec.value_domains import Tested

PERSISTENT_COLUMNS = (
    "hour", "block", "window_end", "spell_id", "low", "high", "estimate", "is_certain", "watched", "change",
    "state", "entered", "since", "slots", "first_slot", "last_slot", "records", "gap_mean_s", "gap_cv",
)  # fmt: skip
"""Columns of `persistent_items` beside those of the item."""
TUPLE_COLUMNS = (
    "row_kind", "instance", "start", "latest", "counted", "first", "last", "gap_squares", "bits",
    "slot", "long", "left", "unknown", "named",
)  # fmt: skip
"""Columns of `tuples` beside those of the item and the ones that both tables have; and what is computed with
them."""


def problems(stream: Stream) -> Iterator[Issue]:
    """Yield what is wrong with the blocks of a stream, each of which is sound by itself."""
    taken = (*PERSISTENT_COLUMNS, *TUPLE_COLUMNS)
    for name, said in stream.blocks(Persistence).items():
        place = f"persistence.{name}"
        sound = yield from item_rules.problems(place, said, stream, taken, "persistent item")
        if sound:
            yield from _ignored(place, said, stream)


def _ignored(place: str, said: Persistence, stream: Stream) -> Iterator[Issue]:
    yield from item_rules.list_problems(f"{place}.ignore.items", said.ignore.items, said.item, stream)
    ignored = {*item_rules.listed(said.ignore.items)}
    for index, item in enumerate(item_rules.listed(said.watch)):
        if item in ignored:
            yield Issue(f"{place}.watch[{index}]", "is ignored, too, and would never be told of")
    for column in said.ignore.networks:
        at = f"{place}.ignore.networks.{column}"
        if column not in said.item:
            yield no_column(at, column, said.item, " of the item")
        elif stream.event_types[column] != "string":
            kind = stream.event_types[column]
            yield Issue(
                at, f"takes a column of addresses, a text; {column} is {item_rules.with_article(kind)}"
            )
    for column in said.ignore.table.columns if said.ignore.table else ():
        if column not in said.item:
            at = f"{place}.ignore.table.columns.{column}"
            yield no_column(at, column, said.item, " of the item")


def columns_read(stream: Stream) -> Iterator[BlockColumns]:
    """Yield what each block needs of the events."""
    return item_rules.columns_read(stream, stream.blocks(Persistence))


def lookback(stream: Stream) -> Iterator[tuple[str, timedelta]]:
    """Yield how far back each block remembers."""
    for name, block in stream.blocks(Persistence).items():
        yield f"the window of persistence {name}", state_lookback(block)


def conditions(stream: Stream) -> Iterator[Tested]:
    """Yield the conditions of the blocks."""
    for name, block in stream.blocks(Persistence).items():
        yield from own_where(stream, f"persistence.{name}", block.where)
