"""The view of aggregates: every level of one key on one time axis, or the busiest keys; fitted lines."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from transom.charts.section import Section, thin
from transom.charts.specs import labels, millis, panels
from transom.core.durations import format_duration
from transom.core.terminal import counted
from transom.engine.reader import sql_name
from transom.engine.selection import MAX_READ, Query, Row, Selection
from transom.features.aggregates.output_columns import columns_of
from transom.features.aggregates.spec import Aggregation
from transom.findings.text import as_text, key_text

KEYS = 5
"""The number of keys in a chart without a selected key."""
POINTS = 750
"""The maximum number of windows of a line."""


def section(selection: Selection, name: str) -> Section:
    """Return the section of a block."""
    block = selection.stream.blocks(Aggregation)[name]
    levels = {
        number: f"{format_duration(level.range)} every {format_duration(level.slide)}"
        for number, level in enumerate(reversed(block.levels))
    }
    figures = [column for columns in columns_of(selection.stream, name).values() for column in columns]
    columns = ["window_start", "window_end", "level", *block.key, "count", *figures, "complete"]
    lines: list[Mapping[str, Any]] = []
    if set(block.key) <= selection.key.keys():
        table = _query(selection, name, columns, "TRUE")
        rows, page, total = table.all_and_page(_drawn(block))
        series = {levels[level]: [row for row in rows if row["level"] == level] for level in reversed(levels)}
        lines = _lines(block, rows, levels)
        note = f"{counted(len(levels), 'level')}"
    else:
        widest = len(levels) - 1
        keys = ", ".join(map(sql_name, block.key))
        of_level = _query(selection, name, columns, f"level = {widest}")
        top = of_level.ask(
            f'SELECT {keys}, max("count") AS __most, count(*) OVER () AS __keys FROM r GROUP BY {keys} '
            f"ORDER BY __most DESC, {keys} LIMIT {KEYS}"
        )
        number = top[0]["__keys"] if top else 0
        of_keys = " OR ".join(selection.equals(block.key, row) for row in top) or "FALSE"
        table = _query(selection, name, columns, f"level = {widest} AND ({of_keys})")
        rows, page, total = table.all_and_page([*_drawn(block), *block.key])
        named = labels({_key(block, row): key_text(block.key, row) or "" for row in top})
        series = {label: [] for label in named.values()}
        for row in rows:
            series[named[_key(block, row)]].append(row)
        note = f"{len(top)} of {counted(number, 'key')}, with the fullest windows of {levels[widest]}"
    if len(rows) == MAX_READ:
        note += f"; the last {MAX_READ:,} of them are drawn"
    if any(len(of) > POINTS for of in series.values()):
        note += f"; of each line at most {POINTS} points, the smallest and the largest of each part"
    points = [
        {"time": millis(row["window_end"]), "value": row[measure], "series": key, "panel": measure}
        for measure in block.measures
        for key, of in series.items()
        for row in thin(_with_gaps(block, of[::-1]), POINTS, measure)
    ]
    return Section(
        f"{block.title or name}: {', '.join(block.measures)}",
        "No window in these hours."
        if not total
        else f"{counted(total, 'window')} of {note}. A point is a window, at its end; a line is broken where "
        f"windows are missing. {exactness(block)} A row that is not complete lacks files.",
        table.data_table(page, total),
        panels([*points, *lines], [*series]) if points else None,
        name,
    )


def _query(selection: Selection, name: str, columns: Sequence[str], where: str) -> Query:
    # Several keys have windows with the same end, and the pages of a table need the same order.
    key = map(sql_name, selection.stream.blocks(Aggregation)[name].key)
    order = ", ".join(["window_end DESC", "level", *key])
    return selection.query("aggregates", name, "aggregates", columns, where=where, order=order)


def _drawn(block: Aggregation) -> list[str]:
    """Return the columns that a chart needs."""
    lines = [f"{part}_{m}" for m in _fitted(block) for part in ("intercept", "slope")]
    return ["level", "window_start", "window_end", *block.measures, *lines]


def _fitted(block: Aggregation) -> list[str]:
    """Return the measures with lines."""
    measures = block.measures.items() if block.unit is not None else ()
    return [name for name, measure in measures if measure.function != "distinct"]


def _key(block: Aggregation, row: Row) -> tuple[object, ...]:
    # NaN equals no value, and the text of null is that of a column with this text.
    return tuple((row[column] is None, as_text(row[column])) for column in block.key)


def _with_gaps(block: Aggregation, rows: Sequence[Row]) -> list[Row]:
    """Return the windows of a line in order, with a row without values where windows are missing."""
    result: list[Row] = []
    for row in rows:
        if result:
            slide = block.levels[len(block.levels) - 1 - row["level"]].slide
            after: timedelta = row["window_end"] - result[-1]["window_end"]
            if after > slide:
                result.append(dict.fromkeys(row) | {"window_end": row["window_end"] - slide})
        result.append(row)
    return result


def _lines(block: Aggregation, rows: Sequence[Row], levels: Mapping[int, str]) -> list[Mapping[str, Any]]:
    """Return the fitted lines of each level's windows that do not overlap, the last window first."""
    lines: list[Mapping[str, Any]] = []
    if block.unit is None:
        return lines
    for number, level in enumerate(reversed(block.levels)):
        of_level = [row for row in rows if row["level"] == number]
        last = of_level[0]["window_end"] if of_level else None
        apart = [row for row in of_level if (last - row["window_end"]) % level.range == level.range * 0]
        steps = level.range / block.unit - 1
        lines += [
            {
                "start": millis(row["window_start"]), "end": millis(row["window_end"] - block.unit),
                "first": row[f"intercept_{m}"], "last": row[f"intercept_{m}"] + steps * row[f"slope_{m}"],
                "series": levels[number], "panel": f"{m}: lines of each {format_duration(block.unit)}",
            }
            for m in _fitted(block)
            for row in apart[:POINTS]
            if row[f"intercept_{m}"] is not None
        ]  # fmt: skip
    return lines


def exactness(block: Aggregation) -> str:
    """Return how exact the values of a block are."""
    distinct = [name for name, measure in block.measures.items() if measure.function == "distinct"]
    lines = ", and lines fitted to these," if _fitted(block) else ""
    exact = f"Counts, sums, means, minima and maxima{lines} are exact."
    if not distinct:
        return exact
    errors = ", ".join(f"error_{name}" for name in distinct)
    return (
        f"{exact} {', '.join(distinct)}: exact up to 1,024 values, above an estimate; {errors} has its "
        "standard error, about 4 %."
    )
