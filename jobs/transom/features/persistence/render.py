"""What a try has found of persistent items, printed: those that the last report of each block names."""

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
"""Items of each block that are shown."""
WIDE = 48
"""Slots that are drawn at most, one by one; of more as many together as need be."""


def print_persistent_items(stream: Stream, root: str) -> None:
    """Prints the items of the last report of each block that names any, the most persistent first."""
    for name, said in stream.blocks(Persistence).items():
        last, rows = _latest(root, said, name)
        together = _slots_per_character(said.slots)
        rule = f"in {said.params.min_certain} of {said.slots} slots of {format_duration(said.slot)}"
        if not rows:
            typer.echo(f"\n{name}: no {', '.join(said.item)} {rule}, nor nearly so, in any report")
            continue
        shown = [
            [
                *(row[column] for column in said.item), f"{row['low']} to {row['high']}", row["estimate"],
                row["since"] or "watched",
                row["records"], row["gap_mean_s"], row["gap_cv"], _drawn(row["slots"]),
            ]
            for row in rows[:ROWS]
        ]  # fmt: skip
        columns = [
            *said.item,
            "slots",
            "estimate",
            "since",
            "records",
            "gap, s",
            "spread",
            "from old to new" if together == 1 else f"from old to new, {together} slots each, - in some",
        ]
        end = f"{rows[0]['window_end']:%Y-%m-%dT%H:%M}"
        # Findings tell of all reports: of items, too, that are not there any more in the last one.
        if rows[0]["hour"] < last:
            end += f" (the last report that names any; none is named at {format_hour(last + HOUR)})"
        many = f"the first {ROWS} of {len(rows)}" if len(rows) > ROWS else f"{len(rows)}"
        table(f"{name}: {', '.join(said.item)} {rule}, or nearly so, at {end}: {many}", columns, shown)


def _latest(root: str, said: Persistence, block: str) -> tuple[datetime, list[dict[str, Any]]]:
    """The hour of the last report, and what the last one names that names anything."""
    series = Ledger(root).snapshot().series("persistence", block, "persistent_items")
    # A slot of several hours is reported when it is over.
    reports = [h for h in series if (h + HOUR - EPOCH) % max(said.slot, HOUR) == timedelta(0)]
    if not reports:
        return UNKNOWN_HOUR, []
    order = ", ".join(["low DESC", *(f'"{column}"' for column in said.item)])
    named = f"SELECT * FROM t WHERE block = '{block}' AND low IS NOT NULL AND {in_hours_sql(reports)}"
    found: list[dict[str, Any]] = query(
        DeltaTable(f"{root}/persistent_items"),
        f"SELECT * FROM ({named}) WHERE hour = (SELECT max(hour) FROM ({named})) ORDER BY {order}",
    ).to_pylist()
    return max(reports), found


def _drawn(slots: str) -> str:
    """The slots of a window, a character each, or one for several of them: `-` where it was seen in some."""
    apart = _slots_per_character(len(slots))
    parts = (slots[place : place + apart] for place in range(0, len(slots), apart))
    return "".join(part[0] if len({*part}) == 1 else "-" if "1" in part else "0" for part in parts)


def _slots_per_character(slots: int) -> int:
    """How many slots a character stands for."""
    return -(-slots // WIDE)
