"""Validate blocks of persistence: the columns of their items, and their lists of items."""

from collections.abc import Iterator
from datetime import timedelta

from transom.features.items import validate as item_rules
from transom.features.persistence.spec import Persistence
from transom.spec.errors import Issue, no_column
from transom.spec.literals import with_article
from transom.spec.stream import Stream

RESERVED = (
    # Columns of `persistent_items` and `tuples`, without the item.
    "hour", "block", "window_end", "spell_id", "low", "high", "estimate", "is_certain", "watched", "change",
    "state", "entered", "since", "slots", "first_slot", "last_slot", "records", "gap_mean_s", "gap_cv",
    "row_kind", "instance", "start", "latest", "counted", "first", "last", "gap_squares", "bits",
    # Columns of intermediate rows.
    "slot", "long", "left", "unknown", "named",
)  # fmt: skip


def problems(stream: Stream) -> Iterator[Issue]:
    """Yield the problems of the blocks of a stream, each of which is valid by itself."""
    for name, block in stream.blocks(Persistence).items():
        place = f"persistence.{name}"
        valid = yield from item_rules.problems(place, block, stream, RESERVED, "persistent item")
        if valid:
            yield from _ignored(place, block, stream)


def _ignored(place: str, block: Persistence, stream: Stream) -> Iterator[Issue]:
    ignored = set()
    for name, known in block.ignore_lists():
        at = f"{place}.{name}"
        yield from item_rules.list_problems(f"{at}.items", known.items, block.item, stream)
        if known.until is None:
            ignored.update(item_rules.listed(known.items))
        for column in known.networks:
            of_column = f"{at}.networks.{column}"
            if column not in block.item:
                yield no_column(of_column, column, block.item, " of the item")
            elif (kind := stream.event_types[column]) != "string":
                rule = f"takes a column of addresses, a text; {column} is {with_article(kind)}"
                yield Issue(of_column, rule)
        for column in known.table.columns if known.table else ():
            if column not in block.item:
                yield no_column(f"{at}.table.columns.{column}", column, block.item, " of the item")
    for index, item in enumerate(item_rules.listed(block.watch)):
        if item in ignored:
            yield Issue(f"{place}.watch[{index}]", "is ignored, too, and would never be reported")


def lookback(stream: Stream) -> Iterator[tuple[str, timedelta]]:
    """Yield how far back each block reads tuples, with a text for why."""
    for name, block in stream.blocks(Persistence).items():
        yield f"the window of persistence {name}", block.state_lookback
