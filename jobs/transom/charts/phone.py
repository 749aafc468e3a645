"""Charts for narrow screens: as wide as a phone, with the labels of bars above them."""

from collections.abc import Mapping
from typing import Any

from transom.charts.specs import ROW_HEIGHT, WIDTH, Spec

PHONE_WIDTH, AXIS_WIDTH = 334, 52
"""The width of a chart, and of an axis with numbers or of a text next to a bar, in pixels."""
LABEL_HEIGHT = 16
"""The height of a label above its bar, in pixels."""
MIN_BAR = 8
"""The smallest height of a bar of a group, in pixels."""
MAX_OF_TWO = 22
"""The number of characters up to which two entries of a legend are next to each other."""
_TIMES = "[utcFormat(datum.value, '%Y-%m-%d'), utcFormat(datum.value, '%H:%M')]"
"""The text of a time in two lines, as an expression of Vega."""


def for_phone(spec: Mapping[str, Any]) -> Spec:
    """Return a specification of `transom.charts.specs` for a narrow screen."""
    rows = [row for part in [spec, *spec.get("layer", ())] for row in part.get("data", {}).get("values", ())]
    texts = {str(row.get(name) or "") for name in ("series", "state") for row in rows}
    height = spec.get("spec", spec).get("height")
    is_grouped = isinstance(height, Mapping) and "for" in height
    group = max(height["step"], len({row["series"] for row in rows}) * MIN_BAR) if is_grouped else None
    narrow = _narrow(spec, group)
    if max(map(len, texts), default=0) > MAX_OF_TWO:
        narrow["config"] = {"legend": {"columns": 1}}
    return narrow


def _narrow(spec: Mapping[str, Any], group: float | None) -> Spec:
    """Return a part of a specification for a narrow screen.

    Args:
        spec: the part.
        group: the height of the bars of a label, in pixels; None if a label has one bar.
    """
    changed: Spec = {}
    for name, value in spec.items():
        match name:
            case "width" if value == WIDTH:
                is_whole = _has_labels(spec) and not _has_texts(spec)
                changed[name] = PHONE_WIDTH if is_whole else PHONE_WIDTH - AXIS_WIDTH
            case "height" if isinstance(value, Mapping):
                changed[name] = {**value, "step": (group or ROW_HEIGHT) + LABEL_HEIGHT}
            case "mark" if _has_labels(spec) and group is None:
                changed[name] = _below_its_label(value)
            case "encoding":
                changed[name] = {channel: _channel(channel, field, group) for channel, field in value.items()}
            case "layer":
                changed[name] = [_narrow(layer, group) for layer in value]
            case "spec":
                changed[name] = _narrow(value, group)
            case _:
                changed[name] = value
    return changed


def _has_labels(spec: Mapping[str, Any]) -> bool:
    """Return whether the rows of a part, or of its layers, have labels."""
    parts = [spec, *spec.get("layer", ())]
    return any(part.get("encoding", {}).get("y", {}).get("field") == "label" for part in parts)


def _has_texts(spec: Mapping[str, Any]) -> bool:
    """Return whether a layer of a part writes texts next to its bars."""
    return any("text" in layer.get("encoding", {}) for layer in spec.get("layer", ()))


def _below_its_label(mark: Mapping[str, Any]) -> Spec:
    height = mark.get("height")
    pixels = {"height": height["band"] * ROW_HEIGHT} if isinstance(height, Mapping) else {}
    bar = {"height": 0.6 * ROW_HEIGHT} if mark["type"] == "tick" else {}
    return {**mark, **pixels, **bar, "yOffset": LABEL_HEIGHT / 2}


def _channel(channel: str, encoding: Mapping[str, Any], group: float | None) -> Mapping[str, Any]:
    """Return the encoding of a channel; `group` as of `_narrow`."""
    if channel == "x" and encoding.get("type") == "temporal":
        return {**encoding, "axis": {"labelExpr": _TIMES, "tickCount": 4, "labelSeparation": 10}}
    if channel == "x" and encoding.get("type") == "quantitative":
        return {**encoding, "axis": {"tickCount": 4}}
    if channel != "y" or encoding.get("field") != "label":
        return encoding
    axis = {
        "labelAlign": "left", "labelLimit": PHONE_WIDTH, "labelPadding": 0, "labelOverlap": False,
        "labelOffset": -((group or 0) + LABEL_HEIGHT) / 2, "ticks": False, "domain": False, "zindex": 1,
    }  # fmt: skip
    if group is None:
        return {**encoding, "axis": axis}
    padding = LABEL_HEIGHT / (group + LABEL_HEIGHT)
    return {**encoding, "axis": axis, "scale": {"paddingInner": padding, "paddingOuter": padding}}
