"""The view of aggregates: every level of one key on one time axis, or some keys; fitted lines.

Without a key it has the busiest keys. In an order of growth it has all keys by the slopes of their last
windows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from transom.charts.section import DataTable, Section, thin
from transom.charts.specs import label, labels, millis, panels
from transom.core.durations import format_duration
from transom.core.intervals import Interval
from transom.core.terminal import counted
from transom.core.terminal_tables import plain
from transom.engine.reader import Reader, sql_name
from transom.engine.selection import MAX_READ, Query, Row, Selection
from transom.features.aggregates.spec import Aggregation
from transom.features.aggregates.view_columns import fitted, meanings, per_unit, shown_columns, titles
from transom.findings.text import as_text, key_text
from transom.storage.tables import instant

KEYS = 5
"""The number of keys in a chart without a selected key."""
POINTS = 750
"""The maximum number of windows of a line."""


def section(selection: Selection, name: str) -> Section:
    """Return the section of a block."""
    block = selection.stream.blocks(Aggregation)[name]
    levels = _levels(block)
    orders = {measure: f"Fastest growing {measure}" for measure in fitted(block)}
    if set(block.key) <= selection.key.keys():
        part = _of_key(selection, name, block, levels)
    elif selection.order in orders:
        part = _of_growing_keys(selection, name, block, levels)
    else:
        part = _of_busiest_keys(selection, name, block, levels)
    return replace(part, orders=orders)


def _levels(block: Aggregation) -> dict[int, str]:
    """Return the text of each level, by its number."""
    return {
        number: f"{format_duration(level.range)} every {format_duration(level.slide)}"
        for number, level in enumerate(reversed(block.levels))
    }


def _of_key(selection: Selection, name: str, block: Aggregation, levels: Mapping[int, str]) -> Section:
    query = _query(selection, name, block, "TRUE")
    rows, page, total = query.all_and_page(_drawn(block))
    series = {levels[n]: [row for row in rows if row["level"] == n] for n in reversed([*levels])}
    note = f"{counted(total, 'window')} of {counted(len(levels), 'level')}{_cut(rows)}"
    table = _table(query, name, block, page, total)
    return _section(name, block, note, table, series, _lines(block, rows, levels))


def _of_busiest_keys(
    selection: Selection, name: str, block: Aggregation, levels: Mapping[int, str]
) -> Section:
    widest = len(levels) - 1
    keys = ", ".join(map(sql_name, block.key))
    of_level = _query(selection, name, block, f"level = {widest}")
    top = of_level.ask(
        f'SELECT {keys}, max("count") AS __most, count(*) OVER () AS __keys, '
        f"sum(count(*)) OVER () AS __rows FROM r GROUP BY {keys} ORDER BY __most DESC, {keys} LIMIT {KEYS}"
    )
    number, of_all = (top[0]["__keys"], top[0]["__rows"]) if top else (0, 0)
    query, rows, page, total, series = _of_keys(of_level, block, top)
    most = ", ".join(f"{label(_named(block, row))} (up to {row['__most']:,} records)" for row in top)
    note = (
        f"{counted(total, 'window')} of {len(top)} of {counted(number, 'key')}, with the fullest windows of "
        f"{levels[widest]}: {most}{_cut(rows)}"
    )
    part = _section(name, block, note, _table(query, name, block, page, total), series)
    if number == len(top):
        return part
    return replace(
        part,
        file=_table(of_level, name, block, (), of_all),
        file_of=f"windows of {levels[widest]} of all {number:,} keys",
    )


def _of_growing_keys(
    selection: Selection, name: str, block: Aggregation, levels: Mapping[int, str]
) -> Section:
    widest, slope = len(levels) - 1, f"slope_{selection.order}"
    of_level = _query(selection, name, block, f"level = {widest}")
    (last,) = of_level.ask(f"SELECT max(window_end) AS last FROM r WHERE {sql_name(slope)} IS NOT NULL") or [
        {"last": None}
    ]
    end = last["last"]
    where = f"window_end = {instant(end)} AND {sql_name(slope)} IS NOT NULL" if end else "FALSE"
    order = ", ".join([f"{sql_name(slope)} DESC", *map(sql_name, block.key)])
    query = replace(of_level, where=f"level = {widest} AND {where}", order=order)
    rows, total = query.page()
    top = replace(query, columns=tuple(dict.fromkeys([*query.columns, "count"]))).rows(KEYS)
    *_, series = _of_keys(of_level, block, top)
    unit = per_unit(block, selection.order)
    most = ", ".join(
        f"{label(_named(block, row))} ({plain(row[slope])}, {counted(row['count'], 'record')})" for row in top
    )
    note = (
        f"{counted(total, 'key')} by the slope of {selection.order} ({unit}), in the "
        f"{format_duration(block.levels[0].range)} up to {plain(end)}, the fastest growing first: {most}. "
        f"The chart has the first {len(top)}"
        if total
        else "0 keys with a line"
    )
    return _section(name, block, note, _table(query, name, block, rows, total), series)


def _of_keys(
    of_level: Query, block: Aggregation, top: Sequence[Row]
) -> tuple[Query, list[Row], list[Row], int, dict[str, list[Row]]]:
    """Return the query of the windows of some keys, and its rows: all, a page, their number, by key."""
    of_keys = " OR ".join(of_level.selection.equals(block.key, row) for row in top) or "FALSE"
    query = replace(of_level, where=f"{of_level.where} AND ({of_keys})")
    rows, page, total = query.all_and_page([*_drawn(block), *block.key])
    named = labels({_key(block, row): _named(block, row) for row in top})
    series: dict[str, list[Row]] = {text: [] for text in named.values()}
    for row in rows:
        series[named[_key(block, row)]].append(row)
    return query, rows, page, total, series


def _section(
    name: str,
    block: Aggregation,
    note: str,
    table: DataTable,
    series: Mapping[str, Sequence[Row]],
    lines: Sequence[Mapping[str, Any]] = (),
) -> Section:
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
        f"{note}." if table.total else "No window in these hours.",
        table,
        panels([*points, *lines], [*series]) if points else None,
        name,
        guarantee="A point is a window, at its end; a line is broken where windows have no events or are "
        "not published. "
        f"{exactness(block)} A row that is not complete lacks files. Hours that were not "
        "requested count as empty."
        if table.total
        else "",
    )


def _query(selection: Selection, name: str, block: Aggregation, where: str) -> Query:
    # Several keys have windows with the same end, and the pages of a table need the same order.
    order = ", ".join(["window_end DESC", "level", *map(sql_name, block.key)])
    columns = shown_columns(selection.stream, name)
    return selection.query("aggregates", name, "aggregates", columns, where=where, order=order)


def _table(query: Query, name: str, block: Aggregation, page: Sequence[Row], total: int) -> DataTable:
    named = titles(block)
    of = {named.get(column, column): text for column, text in meanings(query.selection.stream, name).items()}
    of["level"] = ", ".join(f"{number}: windows of {text}" for number, text in _levels(block).items())
    return query.data_table(
        page, total, columns=[named.get(column, column) for column in query.columns], meanings=of
    )


def _cut(rows: Sequence[Row]) -> str:
    return f"; the last {MAX_READ:,} of them are drawn" if len(rows) == MAX_READ else ""


def _drawn(block: Aggregation) -> list[str]:
    """Return the columns that a chart needs."""
    lines = [f"{part}_{m}" for m in fitted(block) for part in ("intercept", "slope")]
    return ["level", "window_start", "window_end", *block.measures, *lines]


def _key(block: Aggregation, row: Row) -> tuple[object, ...]:
    # NaN equals no value, and the text of null is that of a column with this text.
    return tuple((row[column] is None, as_text(row[column])) for column in block.key)


def _named(block: Aggregation, row: Row) -> str:
    return key_text(block.key, row) or ""


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
                "series": levels[number], "panel": f"{m}: lines fitted to each {format_duration(block.unit)}",
            }
            for m in fitted(block)
            for row in apart[:POINTS]
            if row[f"intercept_{m}"] is not None
        ]  # fmt: skip
    return lines


def section_of_key(reader: Reader, name: str, key: Mapping[str, Any], interval: Interval) -> Section | None:
    """Return the section of the values of a key over a whole interval; None if the block has another key.

    Raises:
        ValueError, LookupError: as of `queries.horizon`.
    """
    from transom.features.aggregates.queries import horizon  # which imports Spark

    block = reader.stream.blocks(Aggregation)[name]
    if {*block.key} != key.keys():
        return None
    title = f"{block.title or name}: {', '.join(block.measures)} of the whole interval"
    row = horizon(reader, key, interval.end, interval.end - interval.start, block=name)
    gap = "" if row is None or row["complete"] else " Some of its hours are incomplete."
    note = f"Of all its events, not of a level. {exactness(block)}{gap}" if row else "No event."
    values = DataTable.of(("figure", "value"), row.items()) if row else None
    return Section(title, note, values)


def exactness(block: Aggregation) -> str:
    """Return how exact the values of a block are."""
    distinct = [name for name, measure in block.measures.items() if measure.function == "distinct"]
    lines = ", and lines fitted to these," if fitted(block) else ""
    exact = f"Counts, sums, means, minima and maxima{lines} are exact."
    if not distinct:
        return exact
    errors = ", ".join(f"error_{name}" for name in distinct)
    return (
        f"{exact} {', '.join(distinct)}: exact up to 1,024 values, above an estimate; {errors} has its "
        "standard error, about 4 %."
    )
