"""Tables of items, and the check that all of these are short enough."""

from collections.abc import Iterable, Mapping

from transom.storage.tables import Table

SHORT, LONG = "items_short", "items_long"
"""The check that no item is too long, and how many records of such items are passed over."""


def item_table(name: str, items: Iterable[Mapping[str, str]]) -> Table:
    """Return a table of items.

    Args:
        items: the columns of each block's, with their Spark types.
    """
    return Table.load(name).declare(item={column: kind for item in items for column, kind in item.items()})
