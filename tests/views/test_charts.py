"""Charts: no peak is lost, no line is drawn over missing hours, and no value takes the page."""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from tests.support.viewed_lake import ViewedLake, at, between, sections_of, window
from transom.charts.phone import LABEL_HEIGHT
from transom.charts.section import Section, thin
from transom.charts.specs import (
    MAX_LABEL,
    PANEL_HEIGHT,
    ROW_HEIGHT,
    WIDTH,
    Spec,
    bounds,
    grouped_bars,
    label,
    labels,
    millis,
    panels,
    segments,
    slots,
    spans,
    stacked_bars,
)
from transom.core.terminal import escape_control_chars
from transom.engine import selection
from transom.features.aggregates import view as aggregates
from transom.views.open_stream import OpenStream
from transom.views.render import svg


def traffic(lake: ViewedLake) -> Section:
    (part,) = sections_of(
        OpenStream(lake.uri, lake.stream), "aggregates", None, between(0, 6), {"client": "a"}
    )
    return part


def line(part: Section, measure: str, level: str = "1 hour every 1 hour") -> list[object]:
    assert part.chart is not None
    rows: list[Mapping[str, Any]] = part.chart["data"]["values"]
    return [row["value"] for row in rows if (row["panel"], row["series"]) == (measure, level)]


def test_part_of_a_long_line_keeps_its_smallest_and_largest_value() -> None:
    rows = [{"n": (n * 37) % 1000 + 10, "place": n} for n in range(5_000)]
    rows[17]["n"], rows[4_711]["n"] = -1, 9_999
    kept = thin(rows, 100, "n")
    assert len(kept) <= 100
    assert rows[17] in kept
    assert rows[4_711] in kept
    assert [row["place"] for row in kept] == sorted(row["place"] for row in kept)
    assert thin(rows[:100], 100, "n") == rows[:100]


def test_part_of_a_long_line_keeps_its_first_gap() -> None:
    rows: list[dict[str, int | None]] = [{"n": None if n % 10 == 3 else n} for n in range(100)]
    assert [row["n"] for row in thin(rows, 4, "n")] == [0, None, 49, 50, None, 99]
    assert [row["n"] for row in thin([{"n": None}] * 9, 2, "n")] == [None]


def test_each_measure_keeps_its_own_peaks(lake: ViewedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregates, "POINTS", 2)
    sent = [5, 1, 9, 3, 4, 2]
    lake.add("aggregates", [window(n, "a", n + 1) | {"sent": sent[n]} for n in range(6)])
    part = traffic(lake)
    assert (line(part, "n"), line(part, "sent")) == ([1, 6], [1, 9])
    assert "of each line at most 2 points" in part.note


def test_line_is_broken_where_hours_are_missing(lake: ViewedLake) -> None:
    lake.add("aggregates", [window(n, "a", n) for n in (0, 1, 4, 5)])
    part = traffic(lake)
    assert line(part, "n") == [0, 1, None, 4, 5]
    assert part.chart is not None
    paths = re.findall(r'<path[^>]* d="(M[^"]*)"', svg(part.chart))
    assert any(path.count("M") == 2 for path in paths)


def test_line_of_many_rows_is_read_apart_from_the_table(
    lake: ViewedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.add("aggregates", [window(n, "a", n + 1) for n in range(6)])
    whole = traffic(lake)
    monkeypatch.setattr(selection, "AT_ONCE", 4)
    assert traffic(lake) == whole
    monkeypatch.setattr(selection, "MAX_READ", 5)
    assert line(traffic(lake), "n") == [2, 3, 4, 5, 6]


def test_not_a_number_does_not_take_the_page(lake: ViewedLake) -> None:
    rows = [window(n, "a", n, level=1) | {"intercept_n": value, "slope_n": 1.0} for n, value in
            enumerate((float("nan"), float("inf"), 1.0, 2.0))]  # fmt: skip
    lake.add("aggregates", rows)
    part = traffic(lake)
    assert part.chart is not None
    assert svg(part.chart).startswith("<svg")
    assert part.table is not None
    assert any(str(value) == "nan" for row in part.table.rows for value in row)


def test_chart_that_cannot_be_drawn_is_a_sentence() -> None:
    assert "cannot be drawn" in svg({"mark": "none such"})
    assert svg(panels([], [])).startswith("<svg")


def test_equal_labels_are_numbered() -> None:
    assert labels({1: "a", 2: "b", 3: "a", 4: "a"}) == {1: "a", 2: "b", 3: "a (2)", 4: "a (3)"}


def test_frames_and_episodes_of_one_second_have_their_own_bars(lake: ViewedLake) -> None:
    episode = {
        "block": "back", "client": "a", "matches": 1, "level": 0, "state": "final", "detected_at": at(2),
        "hour": at(1), "last_time": at(2), "start_time": at(1),
    }  # fmt: skip
    lake.add("episodes", [episode | {"episode_id": name} for name in "ef"])
    frame = {
        "block": "busy", "client": "a", "missing": 0, "state": "final", "records": 1, "fragment": 1,
        "hour": at(1), "last_time": at(2), "start_time": at(1), "length_s": 1.0,
    }  # fmt: skip
    lake.add("frames", [frame | {"frame_id": name} for name in "gh"])
    fill = {"block": "before", "client": "a", "start_time": at(-2), "shift_s": 10800.0, "hour": at(1)}
    lake.add("fills", [fill | {"fragment": 1, "frame_id": name, "sent": 1, "coverage": 1.0} for name in "gh"])
    opened = OpenStream(lake.uri, lake.stream)
    for feature in ("patterns", "fills"):
        (part,) = sections_of(opened, feature)
        assert part.chart is not None
        layers = [part.chart, *part.chart.get("layer", ())]
        rows = [row for layer in layers if "data" in layer for row in layer["data"]["values"]]
        assert {row["label"] for row in rows} == {"2015-05-17T01:00 a", "2015-05-17T01:00 a (2)"}


@pytest.mark.parametrize("text", ["/a" * 20, "x" * 200, "\x1b[31m" * 9])
def test_label_of_a_long_text_has_its_beginning_and_its_end_without_a_hash(text: str) -> None:
    shown = label(text)
    if len(text) <= MAX_LABEL:
        assert shown == escape_control_chars(text)
    else:
        assert shown == f"{text[:35]}...{text[-18:]}"


def charts() -> dict[str, Spec]:
    """Return a chart of each kind, with long labels and many series."""
    names = [f"/a/long/path/of/a/page/{n:030}.html" for n in range(6)]
    series = [f"{n} days every {n} hours*" for n in range(6)]
    times = [
        {"label": name, "start": millis(at(n)), "end": millis(at(n + 2)), "time": millis(at(n)),
         "step": "s", "state": "b",
         "value": 230_240 * n, "series": series[n], "panel": f"panel {n % 2}", "low": n, "high": 2 * n,
         "estimate": n, "text": "text", "is_whole": True}
        for n, name in enumerate(names)
    ]  # fmt: skip
    return {
        "panels": panels(times, series),
        "spans": spans(times, ["a", "b"], times, ["var(--gap)", "var(--bad)"]),
        "slots": slots(times, ["a", "b", "c"]),
        "bounds": bounds(times),
        "stacked": stacked_bars(times, between(0, 9), times),
        "segments": segments(time | {"value": time["low"] / 7} for time in times),
        "grouped": grouped_bars(times),
    }


@pytest.mark.parametrize("kind", charts())
def test_chart_for_a_phone_fits_its_screen(kind: str) -> None:
    wide, narrow = re.findall(r'class="marks (\w+)" width="([\d.]+)"', svg(charts()[kind]))
    assert (wide[0], narrow[0]) == ("wide", "narrow")
    assert float(narrow[1]) <= 366 < float(wide[1])


def test_stacked_bars_begin_at_zero_or_at_the_bar_below() -> None:
    hour = {"start": millis(at(0)), "end": millis(at(1))}
    rows = [{**hour, "value": value, "series": name} for value, name in ((10, "a"), (30, "b"))]
    wide = svg(stacked_bars(rows, between(0, 4), (), ("var(--gap)", "var(--bad)"))).partition("</svg>")[0]
    drawn = re.findall(r'd="M([\d.]+),([\d.]+)h([\d.]+)v([\d.]+)h[^"]*" fill="var\(--(gap|bad)\)"', wide)
    bars = {colour: [float(number) for number in numbers] for *numbers, colour in drawn}
    # Of 4 hours and of 40, on an axis up to 40.
    assert (bars["gap"][0], bars["gap"][2]) == (bars["bad"][0], bars["bad"][2]) == (0, WIDTH / 4)
    assert bars["bad"][3] == pytest.approx(3 * bars["gap"][3])
    assert {bars["gap"][1], bars["bad"][1]} & {0}
    assert bars["gap"][3] + bars["bad"][3] == pytest.approx(PANEL_HEIGHT)


def test_axis_of_counts_has_whole_numbers() -> None:
    row = {"start": millis(at(0)), "end": millis(at(1)), "value": 1, "series": "a"}
    texts = re.findall(r">([\d.,]+)</text>", svg(stacked_bars([row], between(0, 4))))
    assert {"0", "1"} <= {*texts}
    assert not [text for text in texts if "." in text]


@pytest.mark.parametrize("kind", ["spans", "slots", "bounds"])
def test_labels_of_a_phone_are_above_their_bars(kind: str) -> None:
    _, narrow = svg(charts()[kind]).split("</svg>")[:2]
    texts = re.findall(
        r'<text text-anchor="(\w+)" transform="translate\(([-\d.]+),([-\d.]+)\)"[^>]*>/a/', narrow
    )
    assert len(texts) == 6
    assert {anchor for anchor, *_ in texts} == {"start"}
    assert all(0 <= float(x) <= 1 for _, x, _ in texts)
    heights = [float(y) for *_, y in texts]
    assert [round(lower - upper) for upper, lower in pairwise(heights)] == [ROW_HEIGHT + LABEL_HEIGHT] * 5


def test_frames_of_long_keys_that_differ_in_the_middle_have_their_own_lines(lake: ViewedLake) -> None:
    frame = {
        "block": "busy", "missing": 0, "state": "final", "records": 1, "fragment": 1, "hour": at(1),
        "last_time": at(2), "start_time": at(1), "length_s": 1.0,
    }  # fmt: skip
    clients = [f"{'a' * 60}{name}{'b' * 60}" for name in ("one", "two", "two")]
    lake.add("frames", [frame | {"client": of, "frame_id": f"f{n}"} for n, of in enumerate(clients)])
    (part,) = sections_of(OpenStream(lake.uri, lake.stream), "frames")
    assert part.chart is not None
    shown = [row["label"] for row in part.chart["layer"][0]["data"]["values"]]
    assert len(shown) == 3
    assert len({*shown}) == 2
