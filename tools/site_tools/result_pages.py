"""Put the measured tables into the pages of benchmarks and reproductions, as a hook of MkDocs.

The tables exist only while the site is built, so none of them can be out of date. Where a table goes, a page
has a line with a link to the data: `[levels](data/levels.json)`.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mkdocs.structure.pages import Page

LINK = re.compile(r"^\[[\w -]+\]\((data/[\w-]+\.json)\)$", re.MULTILINE)
HEADS = {
    "a_second": "records a second",
    "airflow_mib": "of it Airflow, MiB",
    "calls": "detector calls",
    "claim": "result",
    "cold": "first time, s",
    "cpu_s": "CPU, s",
    "data_rows": "rows read",
    "disk_spilled_mib": "spilled to disk, MiB",
    "driver_cpu_s": "driver, CPU s",
    "driver_growth": "driver's memory, times the first",
    "driver_mib": "driver, peak MiB",
    "delay_min": "mean delay, minutes",
    "error": "mean error",
    "growth": "CPU's growth to the events'",
    "init_s": "init, s",
    "java_cpu_s": "Java, CPU s",
    "java_mib": "Java, peak MiB",
    "kept": "state, rows",
    "kept_bytes": "state, MiB",
    "layout": "files",
    "ledger_ms": "reading the ledger, ms",
    "ledger_rows": "rows of the ledger",
    "memory_spilled_mib": "spilled from memory, MiB",
    "met": "aim met",
    "most": "largest error",
    "opened": "tables opened",
    "other_rows": "rows of the tables' logs",
    "peak_mib": "peak memory, MiB",
    "per_second": "records a second",
    "produced": "matched rows",
    "read": "rows read for an hour",
    "reports": "rows",
    "seconds": "s",
    "short_delay_min": "of short ones, minutes",
    "shown": "records examined",
    "stage_s": "stage, s",
    "times_as_fast": "transom is times as fast",
    "to_fewest": "to the fewest columns'",
    "to_first_day": "to the first day's",
    "to_week": "to the week's",
    "who": "way",
    "whole_s": "to its end, s",
    "workers_cpu_s": "Python workers, CPU s",
    "workers_mib": "Python workers, peak MiB",
}
"""Heads of columns whose names are not clear enough."""
Row = Mapping[str, Any]


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Replace the links of a page to its data by tables."""
    folder = Path(page.file.abs_src_path or "").parent

    def table(link: re.Match[str]) -> str:
        return section(json.loads((folder / link[1]).read_text()), link[1])

    return LINK.sub(table, markdown)


def section(data: Mapping[str, Any], link: str) -> str:
    """Return the aim, the table and the origin of a benchmark's or reproduction's data.

    Args:
        link: the path of the data, relative to the page.
    """
    parts = [f"Aim: {data['aim']}."] if "aim" in data else []
    if "claims" in data:
        parts.append(_table(["claim", "as_in_the_paper"], [claim.values() for claim in data["claims"]]))
    elif data["rows"]:
        parts += [*_of_rows(data["rows"]), *_missed(data["rows"])]
    else:
        return "\n\n".join([*parts, f"Not measured yet, see [the data]({link})."])
    origin = f"{data['cores']} cores, {data['date']}, commit `{data['commit']}`"
    return "\n\n".join([*parts, f"Measured on {origin}: [data]({link})."])


def _of_rows(rows: Sequence[Row]) -> Iterable[str]:
    """Yield the facts that are common to all rows, and a table.

    The columns before `who` are the case. The table has a line for each case and a column for each way; with
    one case it has a line for each way.
    """
    names = list(rows[0])
    case = names[: names.index("who")]
    same = [name for name in case if len({row[name] for row in rows}) == 1]
    if same:
        yield "; ".join(f"{_head(name)} {_cell(name, rows[0][name])}" for name in same).capitalize() + "."
    varied = [name for name in case if name not in same]
    if not varied:
        columns = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in same]
        yield _table(columns, [[row.get(name) for name in columns] for row in rows])
        return
    ways = list(dict.fromkeys(row["who"] for row in rows))
    lines: dict[tuple[Any, ...], dict[str, str]] = {}
    for row in rows:
        lines.setdefault(tuple(row[name] for name in varied), {})[row["who"]] = _seconds(row)
    yield "Seconds, and how many times as fast transom is."
    yield _table([*varied, *ways], [[*at, *(cells.get(way) for way in ways)] for at, cells in lines.items()])


def _missed(rows: Sequence[Row]) -> Iterable[str]:
    """Yield a sentence for each row that misses its aim."""
    names = list(rows[0])
    case = [name for name in names[: names.index("who")] if len({row[name] for row in rows}) > 1]
    for row in rows:
        if row.get("met") is False:
            at = "".join(f", {_head(name)} {_cell(name, row[name])}" for name in case)
            result = f"{row['who']}{at}"
            if "times_as_fast" in row:
                result = f"transom is {_number(row['times_as_fast'])} times as fast as: {result}"
            yield f"**Aim missed.** {result}. The aim is {row['aim']}."


def _seconds(row: Row) -> str:
    """Return the seconds, the relative speed of transom, and whether its aim is missed."""
    notes = [f"{_number(row['times_as_fast'])}x"] if "times_as_fast" in row else []
    notes += ["aim missed"] if row.get("met") is False else []
    return _number(row["seconds"]) + (f" ({', '.join(notes)})" if notes else "")


def _table(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    cells = [[_cell(name, value) for name, value in zip(columns, line, strict=True)] for line in lines]
    return "\n".join(
        f"| {' | '.join(line)} |" for line in [[*map(_head, columns)], ["---"] * len(columns), *cells]
    )


def _head(name: str) -> str:
    return HEADS.get(name, name.replace("_", " "))


def _cell(name: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, int | float):
        return _number(value / 2**20 if name.endswith("_bytes") else value)
    return str(value).replace("|", "\\|")


def _number(value: float) -> str:
    """Return a number with three digits, or all of them before the point."""
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 100 else f"{value:.3g}"
