"""The last report in which an item that has left still qualified."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from transom.engine.selection import Selection
from transom.storage.tables import instant


def last_report(
    stage: str, table: str, selection: Selection, name: str, since: datetime
) -> Mapping[str, Any] | None:
    """Return `window_end`, `low` and `high` of the last report with the count of the selected item.

    Args:
        stage: the stage.
        table: its table of reports.
        selection: the interval and the item.
        name: the block.
        since: the end of the window of the first report of the spell.
    """
    where = f"low IS NOT NULL AND since = {instant(since)}"
    columns = ("window_end", "low", "high")
    query = selection.query(stage, name, table, columns, where=where, order="window_end DESC")
    return next(iter(query.rows(1)), None)
