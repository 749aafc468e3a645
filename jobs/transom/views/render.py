"""HTML of a view: templates that escape every value, and charts as static SVG. No script, no other host."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from importlib.resources import files
from typing import Any

import vl_convert
from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from transom.charts.phone import for_phone
from transom.charts.section import MAX_TEXT, DataTable
from transom.core.intervals import format_hour
from transom.core.terminal import counted
from transom.core.terminal_tables import plain
from transom.engine.selection import MAX_READ
from transom.findings.text import value_in_key
from transom.views.events import CUT
from transom.views.runs import HourName, RunName

MAX_NOTE = 2_000
"""The maximum number of characters of a note of this package, which may have the text of an error."""
OPEN_ROWS = 20
"""The number of rows up to which a table below a chart is open."""
FONT_SIZE = 12.5
"""The size for which charts have room. `style.css` draws texts smaller: the font of a reader may be wider
than the one with which they are measured."""
_AXIS = {
    "labelColor": "currentColor", "titleColor": "currentColor", "gridColor": "var(--line)",
    "domainColor": "var(--line)", "tickColor": "var(--line)", "labelLimit": 380, "labelOverlap": True,
    "labelFontSize": FONT_SIZE,
}  # fmt: skip
_LEGEND = {
    "columns": 4,
    "labelColor": "currentColor",
    "titleColor": "currentColor",
    "orient": "top",
    "labelLimit": 260,
    "labelFontSize": FONT_SIZE,
}
CONFIG: Mapping[str, Any] = {
    # The heading and the table describe the chart.
    "aria": False,
    "background": None,
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "padding": {"left": 16, "right": 16, "top": 4, "bottom": 4},
    "view": {"stroke": None},
    "axis": _AXIS,
    "legend": _LEGEND,
    "header": {
        "labelColor": "currentColor",
        "labelAnchor": "start",
        "labelOrient": "top",
        "labelPadding": 4,
        "labelFontSize": FONT_SIZE,
    },
    "text": {"fontSize": FONT_SIZE},
    "range": {"category": [f"var(--c{number})" for number in range(1, 9)]},
    "facet": {"spacing": 14},
}
"""The appearance of all charts; colours are variables of `style.css`."""
PHONE_CONFIG = {
    **CONFIG, "padding": 4, "legend": {**_LEGEND, "columns": 2, "labelLimit": 300}
}  # fmt: skip
"""The appearance of charts on narrow screens."""


def render(template: str, **values: object) -> str:
    """Return a template of this package with its values; every text among them is escaped."""
    return environment(__package__).get_template(template).render(**values, style=style())


@cache
def environment(*packages: str) -> Environment:
    """Return the templates of packages, the first ones first; every text is escaped."""
    loader = ChoiceLoader([PackageLoader(package) for package in packages])
    built = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    built.filters |= {
        "as_text": as_text,
        "in_key": lambda text, columns: value_in_key([*columns], text),
        "as_note": partial(as_text, limit=MAX_NOTE),
        "svg": svg,
        "hour": format_hour,
        "second": _second,
    }
    built.globals |= {"counted": counted, "OPEN_ROWS": OPEN_ROWS, "download_text": download_text}
    built.tests["number"] = lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    built.tests["run"] = lambda value: isinstance(value, RunName)
    built.tests["hour_name"] = lambda value: isinstance(value, HourName)
    built.tests["time"] = lambda value: isinstance(value, datetime)
    return built


def download_text(table: DataTable, of: str = "") -> str:
    """Return what a download of a table has: all rows, or how many of them.

    Args:
        table: the table.
        of: what its rows are about.
    """
    rows = f"{of}: {counted(table.total, 'row')}" if of else counted(table.total, "row")
    if table.download is None and table.total > len(table.rows):
        return f"The first {len(table.rows):,} of {rows} as CSV"
    if table.total > MAX_READ:
        return f"The first {MAX_READ:,} of {rows} as CSV"
    return f"All {rows} as CSV" if table.total != 1 else f"{rows} as CSV"


def svg(spec: Mapping[str, Any]) -> Markup:
    """Return a chart as SVG for a part of a page; if it cannot be drawn, a sentence instead.

    There are two: `style.css` shows the one for a wide screen or the one for a narrow screen.
    """
    try:
        wide = _drawn(spec, CONFIG, "wide")
        return Markup(wide + _drawn(for_phone(spec), PHONE_CONFIG, "narrow"))
    except ValueError:
        # One chart must not take the page.
        return Markup('<p class="note">The chart cannot be drawn; the table has its values.</p>')


def _drawn(spec: Mapping[str, Any], config: Mapping[str, Any], name: str) -> str:
    own = spec.get("config", {})
    merged = {**config, "legend": {**config["legend"], **own.get("legend", {})}}
    drawn = _svg(json.dumps(_finite({**spec, "config": merged}), allow_nan=False))
    return drawn.replace('class="marks"', f'class="marks {name}"', 1)


def _finite(value: Any) -> Any:
    """Return a specification in which null replaces numbers that JSON lacks, such as NaN."""
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_finite, value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_text(value: object, limit: int = MAX_TEXT) -> str:
    """Return a value as text for a page: printable characters, cut to a limit."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        # A key may be a number, and must be found as it is shown.
        return str(value)
    if isinstance(value, float | datetime):
        return plain(value)
    text = str(value)
    if len(text) > limit:
        return f"{plain(text[:limit])}... ({'at least ' if len(text) == CUT else ''}{len(text):,} characters)"
    return plain(text)


def _second(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def style() -> Markup:
    """Return the style sheet."""
    return Markup(files(__package__).joinpath("templates/style.css").read_text())


@lru_cache(64)
def _svg(spec: str) -> str:
    # A page that is open all day is rendered often, and its charts seldom change.
    return vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
