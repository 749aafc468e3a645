"""Differences between expected and actual rows, short enough for one screen."""

from collections.abc import Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]
SHOWN = 5
"""Maximum number of differing rows printed, of each kind."""
WIDTH = 160
"""Maximum number of characters printed of a value or a row."""


def differences(expected: Iterable[Row], actual: Iterable[Row], name: str) -> str:
    """Compare two tables as multisets of rows. Return the differences, or nothing if they are equal.

    A missing row is printed next to the unexpected row with which it shares most values, and then only with
    the columns in which the two differ.

    Args:
        expected: the expected rows, in any order.
        actual: the actual rows, in any order.
        name: name of the table, for the first line.
    """
    missing, unexpected = _without_common(list(expected), list(actual))
    if not missing and not unexpected:
        return ""
    lines = [f"{name}: {len(missing)} rows missing, {len(unexpected)} unexpected"]
    remaining = list(unexpected)
    for row in missing[:SHOWN]:
        nearest = max(remaining, key=lambda other: _alike(row, other), default=None)
        if nearest is None or not _alike(row, nearest):
            lines.append(f"  missing    {_cut(dict(row))}")
            continue
        remaining.remove(nearest)
        same = {column: value for column, value in row.items() if nearest.get(column) == value}
        lines.append(f"  differs    {_cut(same)}")
        for column in (column for column in {**row, **nearest} if column not in same):
            lines.append(
                f"    {column}: expected {_cut(row.get(column))}, actual {_cut(nearest.get(column))}"
            )
    lines += [f"  unexpected {_cut(dict(row))}" for row in remaining[: max(SHOWN - len(missing), 0)]]
    return "\n".join(lines)


def _without_common(expected: list[Row], actual: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows that only one side has, or has more often, as often as it has more."""
    by_text: dict[str, list[Row]] = {}
    for row in actual:
        by_text.setdefault(_text(row), []).append(row)
    missing = []
    for row in expected:
        if rows := by_text.get(_text(row)):
            rows.pop()
        else:
            missing.append(row)
    return missing, [row for rows in by_text.values() for row in rows]


def _text(row: Row) -> str:
    return repr(sorted(row.items()))


def _alike(one: Row, other: Row) -> int:
    return sum(other.get(column) == value for column, value in one.items())


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}…"
