"""How values are shown to a person, rows as a table: their texts can do nothing to the terminal."""

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from math import isfinite

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from transom.core.terminal import escape_control_chars

WIDE = 160
"""Columns of a page that is no terminal."""


def plain(value: object) -> str:
    """A value as text, on one line, of characters that are printed."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.strftime(
            "%Y-%m-%dT%H:%M" if not value.second and not value.microsecond else "%Y-%m-%dT%H:%M:%S"
        )
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 2**53
        # However large a sum is, its cents are shown.
        digits = max(6, len(f"{abs(value):.0f}") + 2) if isfinite(value) and abs(value) < 2**53 else 6
        return str(int(value)) if whole else f"{value:.{digits}g}"
    return escape_control_chars(str(value))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints rows below a title; numbers stand on the right."""
    rows = [tuple(row) for row in rows]
    shown = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, name in enumerate(columns):
        numeric = any(
            isinstance(row[index], int | float) and not isinstance(row[index], bool) for row in rows
        )
        shown.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(plain(value)) for value in row))
    console = Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)
    console.print()
    console.print(Text(title))
    console.print(shown)
