"""Show results of the demo as tables in the terminal, read from the lake without Spark."""

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from transom.core.intervals import format_hour, merge_hours
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.tables import read_rows

DEMO = Path(__file__).resolve().parents[2] / ".transom" / "demo"
LAKE = DEMO / "lake"
console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 110)


def step(text: str) -> None:
    """Print the next step."""
    console.print(f"\n[bold]{text}[/]")


def show(title: str, columns: Sequence[str], lines: Sequence[Sequence[object]]) -> None:
    """Print a table."""
    # A truncated time or address is useless, so long cells break at spaces.
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, column in enumerate(columns):
        words = [word for text in (column, *(str(line[number]) for line in lines)) for word in text.split()]
        table.add_column(column, overflow="fold", min_width=max(map(len, words), default=0))
    for line in lines:
        table.add_row(*map(str, line))
    console.print(table)


def rows(table: str, stream: str = "web", **equal: object) -> list[dict[str, Any]]:
    """Read rows of a table without Spark."""
    found = read_rows(DeltaTable(str(LAKE / stream / table)))
    return [row for row in found if all(row[name] == value for name, value in equal.items())]


def snapshot(lake: Path = LAKE) -> LedgerSnapshot:
    """Return a snapshot of the web stream's ledger."""
    return Ledger(str(lake / "web")).snapshot()


def stretches(hours: set[datetime]) -> str:
    """Format hours as text."""
    return ", ".join(f"{format_hour(s.start)} to {format_hour(s.end)}" for s in merge_hours(sorted(hours)))
