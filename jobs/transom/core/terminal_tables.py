"""Print rows as a table, with escaped control characters."""

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from math import isfinite

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from transom.core.terminal import escape_control_chars


def plain(value: object) -> str:
    """Return a value as text on one line, of printable characters."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S" if value.second or value.microsecond else "%Y-%m-%dT%H:%M")
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 2**53
        # A sum has two decimals, however large it is.
        digits = max(6, len(f"{abs(value):.0f}") + 2) if isfinite(value) and abs(value) < 2**53 else 6
        return str(int(value)) if whole else f"{value:.{digits}g}"
    return escape_control_chars(str(value))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows below a title; numbers are aligned to the right."""
    rows = [tuple(row) for row in rows]
    grid = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, name in enumerate(columns):
        numbers = (isinstance(row[index], int | float) and not isinstance(row[index], bool) for row in rows)
        grid.add_column(Text(name), justify="right" if any(numbers) else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(plain(value)) for value in row))
    # In a terminal its width, else 160 characters.
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    console.print()
    console.print(Text(title))
    console.print(grid)
