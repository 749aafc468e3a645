"""Print the persistent items of a try: those of the last report of each block that has any."""

from datetime import datetime, timedelta
from typing import Any

import typer
from deltalake import DeltaTable

from transom.core.durations import format_duration
from transom.core.intervals import EPOCH, HOUR, UNKNOWN_HOUR, format_hour
from transom.core.terminal_tables import table
from transom.features.persistence.spec import Persistence
from transom.ledger.ledger import Ledger
from transom.spec.stream import Stream
from transom.storage.tables import in_hours_sql, query

ROWS = 10
"""Items shown for each block."""
WIDE = 48
"""Maximum number of characters for the slots of a window. If there are more slots, several share one."""


def print_persistent_items(stream: Stream, root: str) -> None:
    """Print the items of each block's last report that has any, the most persistent first."""
    for name, block in stream.blocks(Persistence).items():
        last, rows = _latest(root, block, name)
        together = _slots_per_character(block.slots)
        rule = f"in {block.params.min_certain} of {block.slots} slots of {format_duration(block.slot)}"
        if not rows:
            typer.echo(f"\n{name}: no {', '.join(block.item)} {rule}, nor nearly so, in any report")
            continue
        shown = [
            [
                *(row[column] for column in block.item), f"{row['low']} to {row['high']}", row["estimate"],
                row["since"] or "watched",
                row["records"], row["gap_mean_s"], row["gap_cv"], _drawn(row["slots"]),
            ]
            for row in rows[:ROWS]
        ]  # fmt: skip
        order = "from old to new" + ("" if together == 1 else f", {together} slots each, - in some")
        columns = [*block.item, "slots", "estimate", "since", "records", "gap, s", "spread", order]
        end = f"{rows[0]['window_end']:%Y-%m-%dT%H:%M}"
        # Findings come from all reports, also for items that are not in the last one.
        if rows[0]["hour"] < last:
            end += f" (the last report that names any; none is named at {format_hour(last + HOUR)})"
        count = f"the first {ROWS} of {len(rows)}" if len(rows) > ROWS else f"{len(rows)}"
        table(f"{name}: {', '.join(block.item)} {rule}, or nearly so, at {end}: {count}", columns, shown)
        if any("?" in row["slots"] for row in rows[:ROWS]):
            typer.echo("?: not remembered, so here or not")


def _latest(root: str, block: Persistence, name: str) -> tuple[datetime, list[dict[str, Any]]]:
    """Return the hour of the last report, and the rows of the last one that has any."""
    series = Ledger(root).snapshot().series("persistence", name, "persistent_items")
    # A slot of several hours is reported when it ends.
    reports = [hour for hour in series if (hour + HOUR - EPOCH) % max(block.slot, HOUR) == timedelta(0)]
    if not reports:
        return UNKNOWN_HOUR, []
    order = ", ".join(["low DESC", *(f'"{column}"' for column in block.item)])
    named = f"SELECT * FROM t WHERE block = '{name}' AND low IS NOT NULL AND {in_hours_sql(reports)}"
    rows: list[dict[str, Any]] = query(
        DeltaTable(f"{root}/persistent_items"),
        f"SELECT * FROM ({named}) WHERE hour = (SELECT max(hour) FROM ({named})) ORDER BY {order}",
    ).to_pylist()
    return max(reports), rows


def _drawn(slots: str) -> str:
    """Return a character for one or several slots of a window: `-` if the item is in only some of them."""
    width = _slots_per_character(len(slots))
    parts = (slots[place : place + width] for place in range(0, len(slots), width))
    return "".join(part[0] if len({*part}) == 1 else "-" if "1" in part else "0" for part in parts)


def _slots_per_character(slots: int) -> int:
    return -(-slots // WIDE)
