"""Print rows as a table, with escaped control characters."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from math import isfinite

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from transom.core.terminal import escape_control_chars

_COLLECTED: ContextVar[dict[str, list[Mapping[str, object]]] | None] = ContextVar("collected", default=None)


def plain(value: object) -> str:
    """Return a value as text on one line, of printable characters.

    >>> plain(None), plain(0.1 + 0.2), plain(2.0)
    ('-', '0.3', '2')
    """
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S" if value.second or value.microsecond else "%Y-%m-%dT%H:%M")
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 2**53
        # A sum has two decimals, independent of its size.
        digits = max(6, len(f"{abs(value):.0f}") + 2) if isfinite(value) and abs(value) < 2**53 else 6
        return str(int(value)) if whole else f"{value:.{digits}g}"
    return escape_control_chars(str(value))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows below a title, or collect them (`collected_tables`); numbers are aligned to the right.

    Rows that do not fit the terminal without breaking words are printed one below the other, a line a column.
    """
    rows = [tuple(row) for row in rows]
    if collect(title, (dict(zip(columns, row, strict=True)) for row in rows)):
        return
    # In a terminal its width, else 160 characters.
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    cells = [[plain(value) for value in row] for row in rows]
    by_column = [*zip(columns, *cells, strict=True)]
    longest_words = [max(map(cell_len, " ".join(texts).split()), default=0) for texts in by_column]
    longest_texts = [max(map(cell_len, texts)) for texts in by_column]
    spare = console.width - 3 * (len(columns) - 1) - sum(longest_words)
    console.print()
    console.print(Text(title))
    if spare < 0:
        for texts in cells:
            record = Table.grid(padding=(0, 2))
            for name, text in zip(columns, texts, strict=True):
                record.add_row(Text(name), Text(text, overflow="fold"))
            console.print(record)
            console.print()
        return
    grid = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    # By itself, the library makes columns narrower than their longest words, and cuts these.
    share = min(spare / max(sum(longest_texts) - sum(longest_words), 1), 1)
    for index, name in enumerate(columns):
        word, whole = longest_words[index], longest_texts[index]
        numbers = (isinstance(row[index], int | float) and not isinstance(row[index], bool) for row in rows)
        grid.add_column(
            Text(name),
            justify="right" if any(numbers) else "left",
            width=word + int((whole - word) * share),
            overflow="fold",
        )
    for texts in cells:
        grid.add_row(*map(Text, texts))
    console.print(grid)


def collect(title: str, rows: Iterable[Mapping[str, object]]) -> bool:
    """Add rows to the collected tables, and return whether tables are collected."""
    collected = _COLLECTED.get()
    if collected is not None:
        collected[title] = [*rows]
    return collected is not None


@contextmanager
def collected_tables() -> Iterator[dict[str, list[Mapping[str, object]]]]:
    """Collect the rows of tables by title, instead of printing them."""
    tables: dict[str, list[Mapping[str, object]]] = {}
    token = _COLLECTED.set(tables)
    try:
        yield tables
    finally:
        _COLLECTED.reset(token)
