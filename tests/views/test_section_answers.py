"""Sections of results: the answer before its guarantee, growth, and frames compared with earlier periods."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.viewed_lake import SIX, ViewedLake, at, between, finding, sections_of, window
from transom.charts.section import Section
from transom.features.fills import comparison
from transom.features.persistence.describe import slots_text
from transom.views import events
from transom.views.finding_text import FindingText
from transom.views.open_stream import OpenStream
from transom.views.results import sections

HOURS = "0 hours, 3 hours"


def of(lake: ViewedLake, feature: str, **more: Any) -> Section:
    (part,) = sections_of(OpenStream(lake.uri, lake.stream), feature, None, **more)
    return part


def growing(lake: ViewedLake, order: str) -> Section:
    opened = OpenStream(lake.uri, lake.stream)

    def read(selection: Any) -> list[Section]:
        return sections(replace(selection, order=order), "aggregates")

    (part,), _ = opened.consistent(opened.interval_of(None, None)[0], {}, 1, read)
    return part


def column(part: Section, name: str, rows: Any = None) -> list[object]:
    assert part.table is not None
    place = part.table.columns.index(name)
    return [row[place] for row in (part.table.rows if rows is None else rows)]


def test_keys_are_ordered_by_the_slope_of_their_last_window(lake: ViewedLake) -> None:
    rows = [window(4, f"k{n}", 100 - n, level=1, slope_n=n / 2, slope_sent=-n / 2) for n in range(8)]
    # An earlier window, another level, and a window without a line do not count.
    rows += [window(3, "k0", 1, level=1, slope_n=99.0), window(4, "k0", 1, slope_n=99.0)]
    lake.add("aggregates", [*rows, window(4, "none", 1, level=1)])
    part = growing(lake, "n")
    assert column(part, "client") == [f"k{n}" for n in range(7, -1, -1)]
    assert column(part, "slope_n (n per hour, per hour)") == [n / 2 for n in range(7, -1, -1)]
    assert part.note.startswith(
        "8 keys by the slope of n (n per hour, per hour), in the 2 hours up to 2015-05-17T05:00, the fastest "
        "growing first: k7 (3.5, 93 records), k6 (3, 94 records), k5 (2.5, 95 records), k4 (2, 96 records), "
        "k3 (1.5, 97 records)."
    )
    assert part.chart is not None
    drawn = dict.fromkeys(row["series"] for row in part.chart["data"]["values"])
    assert [*drawn] == ["k7", "k6", "k5", "k4", "k3"]
    assert column(growing(lake, "sent"), "client") == [f"k{n}" for n in range(8)]
    assert part.orders == {"n": "Fastest growing n", "sent": "Fastest growing sent"}
    lines = "    fit: {unit: 1 hour, value: sum, missing: zero}\n"
    lake.file.write_text(SIX.replace(lines, ""))
    lake.load()
    assert of(lake, "aggregates").orders == {}


def test_no_column_of_aggregates_repeats_another(lake: ViewedLake) -> None:
    lake.add("aggregates", [window(4, "a", 1, level=1)])
    table = of(lake, "aggregates").table
    assert table is not None
    assert table.columns == (
        "window_start", "window_end", "level", "client",
        "n", "units_n", "slope_n (n per hour, per hour)", "intercept_n (n per hour)",
        "sent", "values_sent", "mean_sent", "min_sent", "max_sent",
        "units_sent", "slope_sent (sent per hour, per hour)", "intercept_sent (sent per hour)", "complete",
    )  # fmt: skip
    assert table.meanings["slope_n (n per hour, per hour)"] == "the change of the line in each hour"
    assert table.meanings["level"] == "0: windows of 1 hour every 1 hour, 1: windows of 2 hours every 1 hour"
    lake.file.write_text(SIX.replace("{n: count, sent: sum(bytes)}", "{sent: mean(bytes)}"))
    lake.load()
    table = of(lake, "aggregates").table
    assert table is not None
    assert {"count", "sum_sent", "slope_sent (sent per hour, per hour)"} <= {*table.columns}
    assert "mean_sent" not in table.columns


def test_file_of_aggregates_has_all_keys(lake: ViewedLake) -> None:
    lake.add("aggregates", [window(4, f"k{n}", n, level=1) for n in range(8)])
    part = of(lake, "aggregates")
    assert part.table is not None
    assert part.download is not None
    assert (part.table.total, part.download.total) == (5, 8)
    assert column(part, "client", part.download.all_rows) == [f"k{n}" for n in range(8)]
    assert part.file_of == "windows of 2 hours every 1 hour of all 8 keys"


def test_answer_names_the_first_and_the_guarantee_follows(lake: ViewedLake) -> None:
    item = {"hour": at(4), "block": "regulars", "window_end": at(5), "spell_id": "s", "slots": "?011"}
    lake.add("persistent_items", [item | {"client": f"c{n}", "low": n, "high": 3} for n in (1, 2, 3)])
    part = of(lake, "persistence")
    assert part.note.startswith(
        "3 items of client that were in 3 or more of 4 hours, or close to it (in 1 at least), each as last "
        "reported. The first: c3 (3), c2 (2 to 3), c1 (1 to 3)."
    )
    assert "An item that has left by the end of these hours is not listed; Findings has it." in part.note
    assert "most" not in part.note
    assert part.guarantee.startswith("The number of slots")
    assert "first contact of a slot to that of the next slot" in part.guarantee


def test_slots_are_in_words() -> None:
    minute = timedelta(minutes=1)
    assert [slots_text(60, minute), slots_text(12, 5 * minute), slots_text(1, minute)] == [
        "60 minutes", "12 slots of 5 minutes", "1 minute",
    ]  # fmt: skip


def fill(frame: str, shift: float | None, sent: int | None, coverage: float = 1.0) -> dict[str, Any]:
    start = at(4) if frame == "f" else at(3)
    return {
        "hour": at(5), "block": "before", "frame_id": frame, "fragment": 1, "client": frame, "state": "final",
        "shift_s": shift, "start_time": start, "end_time": at(5), "rows_matched": sent, "sent": sent,
        "coverage": coverage,
    }  # fmt: skip


def test_frames_are_compared_where_all_is_known(lake: ViewedLake) -> None:
    lake.file.write_text(SIX.replace("shift: [3 hours]", f"shift: [{HOURS}]"))
    lake.load()
    rows = [fill("f", 0.0, 30), fill("f", 10800.0, 20), fill("g", 0.0, 9), fill("g", 10800.0, 6, 0.5)]
    rows += [fill("h", 0.0, 7), fill("h", 10800.0, None, 0.0), fill("i", 0.0, 5), fill("i", 10800.0, 10)]
    lake.add("fills", rows)
    part = of(lake, "fills")
    assert part.title == "before: sent in and 3 hours before each frame of busy"
    assert part.note.startswith("sent is larger in 1 of 2 frames than 3 hours before, of those that can be")
    assert "Not known, as nothing of it is published: 3 hours before 2015-05-17T06:00 h." in part.note
    assert part.chart is not None
    bars = {(row["label"][-1], row["series"]): row for row in part.chart["data"]["values"]}
    assert {key: (row["value"], row["text"], row["is_whole"]) for key, row in bars.items()} == {
        ("f", "the frame"): (30, "30", True),
        ("f", "3 hours before"): (20, "20, the frame +50.0 %", True),
        ("g", "the frame"): (9, "9", True),
        ("g", "3 hours before"): (6, "6 in 50.0 % of the time", False),
        ("h", "the frame"): (7, "7", True),
        ("h", "3 hours before"): (None, "not known", False),
        ("i", "the frame"): (5, "5", True),
        ("i", "3 hours before"): (10, "10, the frame -50.0 %", True),
    }


@pytest.mark.parametrize("before", [0, None])
def test_no_change_of_nothing_is_shown(before: int | None) -> None:
    rows = [fill("f", 0.0, 30), fill("f", 10800.0, before)]
    texts = [text for _, text in comparison.texts(rows, "sent")]
    assert texts == ["30", "0" if before == 0 else "not known"]
    assert comparison.answer(rows, "sent", lambda row: "x") == ""
    # The frame itself is not known as a whole.
    rows = [fill("f", 0.0, 30, 0.9), fill("f", 10800.0, 20)]
    assert [text for _, text in comparison.texts(rows, "sent")] == ["30 in 90.0 % of the time", "20"]


def test_columns_that_add_nothing_are_left_out_of_raw_lines(lake: ViewedLake) -> None:
    row = {"hour": at(1), "event_time": at(1), "source_id": "s", "client": "a", "method": "GET"}
    rows = [
        row | {"source_line": n, "request": f"GET /{n} HTTP/1.1", "path": f"/{n}", "status": 200}
        for n in (1, 2)
    ]
    columns = {*lake.tables["events"].arrow_schema().names}
    lake.add("events", [{name: value for name, value in of.items() if name in columns} for of in rows])
    query = events.events(OpenStream(lake.uri, lake.stream).selection(between(0, 6)))
    shown = query.rows(9)
    short = events.section(query, "t", "n", shown, 2)
    whole = short.download
    assert whole is not None
    assert short.table is not None
    assert {*whole.columns} > {*short.table.columns} >= {"event_time", "client", "request", "status", "file"}
    left_out = {*whole.columns} - {*short.table.columns}
    assert {"method", "path", "referer", "user"} <= left_out
    assert "method (in request)" in short.guarantee
    assert "referer (empty)" in short.guarantee
    assert all(name in short.guarantee for name in left_out)


def frame(name: str, length: float, start: int = 0) -> dict[str, Any]:
    return {
        "hour": at(5), "block": "busy", "frame_id": name, "fragment": 1, "client": name, "state": "final",
        "start_time": at(start), "last_time": at(start) + timedelta(seconds=length), "length_s": length,
        "records": 1, "missing": 0,
    }  # fmt: skip


def test_frames_of_the_greatest_length_are_counted(lake: ViewedLake) -> None:
    lake.add("frames", [frame("a", 7200.0, 1), frame("b", 3600.0), frame("c", 7200.0)])
    parts = sections_of(OpenStream(lake.uri, lake.stream), "frames", "busy")
    assert parts[0].note.startswith(
        "3 frames, the longest first. 2 are equally long, 2 hours each; the first of them: c, from "
        "2015-05-17T00:00. All"
    )
    lake.add("frames", [frame("d", 7201.0, 2)])
    parts = sections_of(OpenStream(lake.uri, lake.stream), "frames", "busy")
    assert "first. The longest: d, 2 hours 1 second from 2015-05-17T02:00." in parts[0].note


def test_frames_that_are_all_equally_long(lake: ViewedLake) -> None:
    lake.add("frames", [frame("a", 7200.0, 1), frame("b", 7200.0)])
    parts = sections_of(OpenStream(lake.uri, lake.stream), "frames", "busy")
    assert parts[0].note.startswith(
        "2 frames, the longest first. All are equally long, 2 hours each; the first"
    )


def test_rule_of_frames_has_their_least_length(lake: ViewedLake) -> None:
    lake.file.write_text(SIX.replace("idle: 2 hours}", "idle: 2 hours, min_length: 3 hours, min_records: 2}"))
    lake.load()
    rule = "as long as status = 200, for at least 3 hours with at least 2 readings"
    opened = OpenStream(lake.uri, lake.stream)
    assert sections_of(opened, "frames", "busy")[0].title == f"busy: frames {rule}"
    text = FindingText(lake.stream, opened.snapshot())
    found = finding(1, "x", stage="frames", block="busy", kind="frame")
    # The stored text has no length.
    found = replace(found, evidence=("the rule: as long as status = 200", "3 readings"))
    assert text.evidence(found) == [f"the rule: {rule}", "3 readings"]
