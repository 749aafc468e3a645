"""Tables of items."""

from collections.abc import Iterable, Mapping

from transom.storage.tables import Table

LONG = "items_long"
"""The counter of skipped records of items that are too long."""


def item_table(name: str, items: Iterable[Mapping[str, str]]) -> Table:
    """Return a table of items.

    Args:
        items: the columns of each block's, with their Spark types.
    """
    return Table.load(name).declare(item={column: kind for item in items for column, kind in item.items()})
