"""The view of aggregates: every level of one key on one time axis, or the busiest keys; fitted lines."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from transom.charts.section import DataTable, Section, thin
from transom.charts.specs import label, millis, panels
from transom.core.durations import format_duration
from transom.core.terminal import counted
from transom.engine.reader import sql_name
from transom.engine.selection import MAX_READ, Selection
from transom.features.aggregates.output_columns import columns_of
from transom.features.aggregates.spec import Aggregation
from transom.findings.text import key_text

KEYS = 5
"""The number of keys in a chart without a selected key."""
POINTS = 300
"""The maximum number of windows of a line."""
Rows = Sequence[Mapping[str, Any]]


def sections(selection: Selection) -> Iterator[Section]:
    """Yield a section for each block that has the selected key."""
    for name, block in selection.stream.blocks(Aggregation).items():
        if selection.has_key(block.key):
            yield _section(selection, name, block)


def _section(selection: Selection, name: str, block: Aggregation) -> Section:
    names = {
        number: f"{format_duration(level.range)} every {format_duration(level.slide)}"
        for number, level in enumerate(reversed(block.levels))
    }
    widest = len(names) - 1
    title = f"{block.title or name}: {', '.join(block.measures)}"
    if set(block.key) <= selection.key.keys():
        rows, total = selection.rows("aggregates", name, "aggregates", order="window_end DESC, level")
        series = {names[level]: [row for row in rows if row["level"] == level] for level in reversed(names)}
        lines, note = (
            _lines(block, rows, names),
            f"{counted(total, 'window')} of {counted(len(names), 'level')}",
        )
    else:
        # The same key may be busiest in several windows.
        top, keys = selection.rows(
            "aggregates", name, "aggregates", where=f"level = {widest}",
            each=", ".join(map(sql_name, block.key)), best='"count" DESC, window_end',
            order=f'"count" DESC, {", ".join(map(sql_name, block.key))}', limit=KEYS,
        )  # fmt: skip
        of_keys = " OR ".join(selection.equals(block.key, row) for row in top) or "FALSE"
        rows, total = selection.rows(
            "aggregates", name, "aggregates", where=f"level = {widest} AND ({of_keys})",
            order="window_end DESC",
        )  # fmt: skip
        series = {label(key_text(block.key, row) or ""): [] for row in top}
        for row in rows:
            series[label(key_text(block.key, row) or "")].append(row)
        lines = []
        note = f"{len(top)} of {counted(keys, 'key')}, with the fullest windows of {names[widest]}"
    if total > MAX_READ:
        note += f", of which the last {MAX_READ:,} are read"
    shown = {key: thin(of[::-1], POINTS, "count") for key, of in series.items()}
    if any(len(of) > POINTS for of in series.values()):
        note += f"; of each line at most {POINTS} points, those with most events"
    figures = [column for columns in columns_of(selection.stream, name).values() for column in columns]
    columns = ["window_start", "window_end", "level", *block.key, "count", *figures, "complete"]
    points: list[Mapping[str, Any]] = [
        {"time": millis(row["window_end"]), "value": row[measure], "series": key, "panel": measure}
        for measure in block.measures
        for key, of in shown.items()
        for row in of
    ]
    return Section(
        title,
        f"{note}. A point is a window, at its end. Counts and sums are exact; {_exactness(block)}.",
        DataTable.of(columns, ([row[column] for column in columns] for row in rows), total),
        panels([*points, *lines], [*series]) if points else None,
        name,
    )


def _lines(block: Aggregation, rows: Rows, names: Mapping[int, str]) -> list[Mapping[str, Any]]:
    """Return the fitted lines of each level's windows that do not overlap, the last window first."""
    lines: list[Mapping[str, Any]] = []
    if block.unit is None:
        return lines
    measures = [m for m, measure in block.measures.items() if measure.function != "distinct"]
    for number, level in enumerate(reversed(block.levels)):
        of_level = [row for row in rows if row["level"] == number]
        last = of_level[0]["window_end"] if of_level else None
        apart = [row for row in of_level if (last - row["window_end"]) % level.range == level.range * 0]
        steps = level.range / block.unit - 1
        lines += [
            {
                "start": millis(row["window_start"]), "end": millis(row["window_end"] - block.unit),
                "first": row[f"intercept_{m}"], "last": row[f"intercept_{m}"] + steps * row[f"slope_{m}"],
                "series": names[number], "panel": f"{m}: lines of each {format_duration(block.unit)}",
            }
            for m in measures
            for row in apart[:POINTS]
            if row[f"intercept_{m}"] is not None
        ]  # fmt: skip
    return lines


def _exactness(block: Aggregation) -> str:
    distinct = [name for name, measure in block.measures.items() if measure.function == "distinct"]
    columns = ", ".join(f"error_{name}" for name in distinct)
    return f"{columns} has the standard error of {', '.join(distinct)}" if distinct else "so are all others"
