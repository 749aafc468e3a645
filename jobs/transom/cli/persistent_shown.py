"""What a try has found of persistent items, printed: those that the last report of each block names."""

from collections.abc import Sequence
from typing import Any

import typer
from deltalake import DeltaTable

from transom.cli.shown import table
from transom.lake.tables import query
from transom.stream import Stream
from transom.units import format_duration

ROWS = 10
"""Items of each block that are shown."""
WIDE = 48
"""Slots that are drawn at most, one by one; of more as many together as need be."""


def print_persistent_items(stream: Stream, root: str) -> None:
    """Prints the items that the last report of each block names, the most persistent first."""
    for name, said in stream.persistence.items():
        rows = _latest(f"{root}/persistent_items", said.item, name)
        rule = f"in {said.asked.certain} of {said.slots} slots of {format_duration(said.slot)}"
        if not rows:
            typer.echo(f"\n{name}: no {', '.join(said.item)} {rule}, nor nearly so")
            continue
        shown = [
            [
                *(row[column] for column in said.item), f"{row['low']} to {row['high']}", row["estimate"],
                row["since"], row["records"], row["gap_mean_s"], row["gap_cv"], _drawn(row["slots"]),
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
            "from old to new",
        ]
        end = f"{rows[0]['window_end']:%Y-%m-%dT%H:%M}"
        many = f"the first {ROWS} of {len(rows)}" if len(rows) > ROWS else f"{len(rows)}"
        table(f"{name}: {', '.join(said.item)} {rule}, or nearly so, at {end}: {many}", columns, shown)


def _latest(uri: str, item: Sequence[str], block: str) -> list[dict[str, Any]]:
    if not DeltaTable.is_deltatable(uri):
        return []
    of_block = f"SELECT * FROM t WHERE block = '{block}' AND low IS NOT NULL"
    order = ", ".join(["low DESC", *(f'"{column}"' for column in item)])
    found: list[dict[str, Any]] = query(
        DeltaTable(uri),
        f"SELECT * FROM ({of_block}) WHERE hour = (SELECT max(hour) FROM ({of_block})) ORDER BY {order}",
    ).to_pylist()
    return found


def _drawn(slots: str) -> str:
    """The slots of a window, a character each, or one for several of them: whether it was seen in any."""
    apart = -(-len(slots) // WIDE)
    parts = (slots[place : place + apart] for place in range(0, len(slots), apart))
    return "".join("1" if "1" in part else "0" if "0" in part else "?" for part in parts)
