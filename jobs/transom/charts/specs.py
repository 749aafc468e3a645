"""Vega-Lite specifications of the charts of a page.

Times are in UTC. Colours are variables of the page's style sheet, so one chart fits a light and a dark page.
The fields of the data have fixed names: no text from a log is a part of a specification, except as a value.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from transom.core.intervals import Interval, micros
from transom.core.terminal import escape_control_chars

WIDTH, PANEL_HEIGHT, ROW_HEIGHT = 720, 110, 18
MAX_LABEL, TAIL = 56, 18
"""The maximum number of characters of a label, and how many of them are from the end of a longer text."""
_TIME: Mapping[str, Any] = {
    "type": "temporal",
    "scale": {"type": "utc"},
    "axis": {"format": "%Y-%m-%d %H:%M", "tickCount": 8, "labelSeparation": 10},
    "title": None,
}
_LABEL: Mapping[str, Any] = {"field": "label", "type": "nominal", "sort": None, "title": None}
Row = Mapping[str, Any]
Spec = dict[str, Any]
T = TypeVar("T")


def label(text: str) -> str:
    """Return a text as a label: printable characters, without its middle if it is too long."""
    if len(text) > MAX_LABEL:
        text = f"{text[: MAX_LABEL - TAIL - 3]}...{text[-TAIL:]}"
    return escape_control_chars(text)


def labels(texts: Mapping[T, str]) -> dict[T, str]:
    """Return a label for each of some things; equal labels are numbered, so that each has its own bar."""
    seen, numbered = Counter[str](), dict[T, str]()
    for thing, text in texts.items():
        name = label(text)
        seen[name] += 1
        numbered[thing] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return numbered


def millis(moment: datetime | None) -> float | None:
    """Return a time as a number of Vega-Lite: milliseconds since the epoch."""
    return None if moment is None else micros(moment) / 1000


def panels(rows: Iterable[Row], series: Sequence[str]) -> Spec:
    """Return lines over time, a panel for each measure, with the lines that were fitted to the windows.

    Args:
        rows: `time`, `value`, `series`, `panel`; a row without a value breaks its line. A fitted line has
            `start`, `end`, `first` and `last` instead of the first two.
        series: the series, in the order of their colours.
    """
    colour = {"field": "series", "sort": [*series], "title": None, "scale": {"domain": [*series]}}
    line = {
        "transform": [{"filter": "isValid(datum.time)"}],
        "mark": {"type": "line", "point": {"size": 14}, "strokeWidth": 1.5},
        "encoding": {
            "x": {"field": "time", **_TIME},
            "y": {"field": "value", "type": "quantitative", "title": None},
            "color": {**colour, "type": "nominal"},
        },
    }
    fit = {
        "transform": [{"filter": "isValid(datum.first)"}],
        "mark": {"type": "rule", "strokeDash": [4, 3], "strokeWidth": 1.5},
        "encoding": {
            "x": {"field": "start", **_TIME},
            "x2": {"field": "end"},
            "y": {"field": "first", "type": "quantitative"},
            "y2": {"field": "last"},
            "color": {**colour, "type": "nominal"},
        },
    }
    rows = [*rows]
    return {
        "data": {"values": rows},
        "facet": _panels(rows),
        "spec": {"width": WIDTH, "height": PANEL_HEIGHT, "layer": [line, fit]},
        "resolve": {"scale": {"y": "independent"}},
    }


def spans(
    rows: Iterable[Row], states: Sequence[str], points: Iterable[Row] = (), colours: Sequence[str] = ()
) -> Spec:
    """Return bars from a start to an end on a time axis, a line for each label, with points on the bars.

    Args:
        rows: `label`, `start`, `end`, `state`.
        states: the states, in the order of their colours.
        points: `label`, `time`, `step`.
        colours: the colours of the states; bars of the last one have an outline, too. Default: those of any
            series.
    """
    rows, points = [*rows], [*points]
    scale = {"domain": [*states], **({"range": [*colours]} if colours else {})}
    colour = {"field": "state", "type": "nominal", "title": None, "scale": scale}
    bars: Spec = {
        "data": {"values": rows},
        "mark": {"type": "bar", "height": {"band": 0.6}, "minBandSize": 3},
        "encoding": {
            "x": {"field": "start", **_TIME},
            "x2": {"field": "end"},
            "y": _LABEL,
            "color": colour,
        },
    }
    if colours:
        # Not by colour alone.
        is_last = {"test": f"datum.state === '{states[-1]}'", "value": "currentColor"}
        bars["encoding"]["stroke"] = {"condition": is_last, "value": None}
    steps: Spec = {
        "data": {"values": points},
        "mark": {"type": "point", "filled": True, "size": 40, "color": "currentColor", "opacity": 1},
        "encoding": {
            "x": {"field": "time", **_TIME},
            "y": _LABEL,
            "shape": {"field": "step", "type": "nominal", "title": None},
        },
    }
    return {"width": WIDTH, "height": {"step": ROW_HEIGHT}, "layer": [bars, steps] if points else [bars]}


def slots(rows: Iterable[Row], states: Sequence[str]) -> Spec:
    """Return a row of cells on a time axis for each label.

    Args:
        rows: `label`, `start`, `end`, `state`.
        states: the states, in the order of their colours.
    """
    spec = spans(rows, states, colours=("var(--c1)", "var(--page)", "var(--gap)"))
    (bars,) = spec["layer"]
    bars["mark"] = {"type": "bar", "height": {"band": 0.8}, "strokeWidth": 1}
    bars["encoding"]["stroke"] = {"value": "var(--soft)"}
    return spec


def bounds(rows: Iterable[Row]) -> Spec:
    """Return a bar for each label: solid to the lower bound, light to the upper one, a mark at the estimate.

    Args:
        rows: `label`, `low`, `high`, `estimate`, the first at the top.
    """
    value = {"type": "quantitative", "title": None, "scale": {"zero": True}}
    bar = {"type": "bar", "height": {"band": 0.6}, "color": "var(--c1)"}
    return {
        "data": {"values": [*rows]},
        "width": WIDTH,
        "height": {"step": ROW_HEIGHT},
        "layer": [
            {"mark": bar, "encoding": {"y": _LABEL, "x": {"field": "low", **value}}},
            {
                "mark": {**bar, "opacity": 0.4},
                "encoding": {"y": _LABEL, "x": {"field": "low", **value}, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "tick", "thickness": 3, "color": "currentColor"},
                "encoding": {"y": _LABEL, "x": {"field": "estimate", **value}},
            },
        ],
    }


def stacked_bars(
    rows: Iterable[Row], interval: Interval, empty: Iterable[Row] = (), colours: Sequence[str] = ()
) -> Spec:
    """Return bars over time, of the values of every series.

    Args:
        rows: `start`, `end`, `value`, `series`.
        interval: the hours of the axis, also those without bars.
        empty: `start`, `end` of a mark at zero, for hours whose value is 0.
        colours: the colours of the series, by their first rows. Default: those of any series.
    """
    rows, empty = [*rows], [*empty]
    time = {**_TIME, "scale": {"type": "utc", "domain": [millis(interval.start), millis(interval.end)]}}
    scale = {"scale": {"range": [*colours]}} if colours else {}
    whole = "datum.value % 1 ? '' : format(datum.value, ',')"
    value = {"type": "quantitative", "title": None, "axis": {"labelExpr": whole}}
    bars: Spec = {
        "data": {"values": rows},
        # A bar with a start and an end would be a thin line at its value.
        "transform": [{"stack": "value", "groupby": ["start"], "as": ["low", "high"]}],
        "mark": {"type": "rect", "stroke": "var(--page)", "strokeWidth": 0.5},
        "encoding": {
            "x": {"field": "start", **time},
            "x2": {"field": "end"},
            "y": {"field": "low", **value},
            "y2": {"field": "high"},
            "color": {"field": "series", "type": "nominal", "sort": None, "title": None, **scale},
        },
    }
    zeros: Spec = {
        "data": {"values": empty},
        "mark": {"type": "rule", "strokeWidth": 4, "color": "var(--soft)"},
        "encoding": {"x": {"field": "start", **time}, "x2": {"field": "end"}, "y": {"datum": 0}},
    }
    return {"width": WIDTH, "height": PANEL_HEIGHT, "layer": [bars, zeros] if empty else [bars]}


def segments(rows: Iterable[Row]) -> Spec:
    """Return horizontal lines from a start to an end at a height that is a share of 1.

    Args:
        rows: `start`, `end`, `value`, `series`.
    """
    value = {"type": "quantitative", "title": None, "axis": {"format": ".2~p"}, "scale": {"zero": True}}
    series = {"field": "series", "type": "nominal", "sort": None, "title": None}
    return {
        "data": {"values": [*rows]},
        "width": WIDTH,
        "height": PANEL_HEIGHT,
        "mark": {"type": "rule", "strokeWidth": 4},
        "encoding": {
            "x": {"field": "start", **_TIME},
            "x2": {"field": "end"},
            "y": {"field": "value", **value},
            "color": series,
        },
    }


def grouped_bars(rows: Iterable[Row]) -> Spec:
    """Return a group of bars for each label, a bar for each series, and a panel for each measure.

    Args:
        rows: `label`, `value`, `series`, `panel`, `text` at the end of the bar, and `is_whole`: whether the
            value is of all that the bar is about; if not, the bar is light. Without a value there is no bar.
    """
    rows = [*rows]
    # Each bar has a text.
    bars = len({row["series"] for row in rows})
    value = {"type": "quantitative", "title": None}
    place = {"y": _LABEL, "yOffset": {"field": "series", "sort": None}}
    opacity = {"condition": {"test": "datum.is_whole", "value": 1}, "value": 0.45}
    return {
        "data": {"values": rows},
        "facet": _panels(rows),
        "spec": {
            "width": WIDTH,
            "height": {"step": 0.8 * ROW_HEIGHT * max(1, bars), "for": "position"},
            # A label without a value keeps its place.
            "transform": [
                {"calculate": "datum.value || 0", "as": "bar"},
                {"calculate": "max(0, datum.bar)", "as": "end"},
            ],
            "layer": [
                {
                    "mark": {"type": "bar"},
                    "encoding": {
                        **place,
                        "x": {"field": "bar", **value},
                        "color": {"field": "series", "type": "nominal", "sort": None, "title": None},
                        "opacity": opacity,
                    },
                },
                {
                    "mark": {"type": "text", "align": "left", "dx": 4, "color": "currentColor"},
                    "encoding": {**place, "x": {"field": "end", **value}, "text": {"field": "text"}},
                },
            ],
        },
        "resolve": {"scale": {"x": "independent"}},
    }


def _panels(rows: Iterable[Row]) -> Spec:
    """Return the facets of rows, in their order."""
    order = list(dict.fromkeys(row["panel"] for row in rows))
    return {"row": {"field": "panel", "type": "nominal", "sort": order, "title": None}}
