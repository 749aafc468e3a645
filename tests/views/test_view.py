"""What a page shows, compared with the tables."""

import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.viewed_lake import SIX, ViewedLake, at, between, finding, window
from transom.charts.section import MAX_ROWS, Section, thin
from transom.charts.specs import MAX_LABEL, label, millis
from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.core.partitions import CheckResult, PartitionKey, PartitionState
from transom.features.ingest.expected_inputs import partition_of
from transom.features.registry import FEATURES
from transom.ledger.ledger import Ledger
from transom.storage.tables import LakeError
from transom.views import view as module
from transom.views.view import NothingToView, View, view_of


def section(view: View, subject: str) -> Section:
    (found,) = (part for part in [*view.results, *view.quality] if part.subject == subject)
    return found


def cells(part: Section, *columns: str) -> list[tuple[object, ...]]:
    assert part.table is not None
    places = [part.table.columns.index(column) for column in columns]
    return [tuple(row[place] for place in places) for row in part.table.rows]


def values(part: Section) -> list[Mapping[str, Any]]:
    """Return the data of a chart, of all its layers."""
    assert part.chart is not None
    data = [part.chart, *part.chart.get("layer", ())]
    return [row for layer in data if "data" in layer for row in layer["data"]["values"]]


def test_every_feature_has_a_view(lake: ViewedLake) -> None:
    assert all(feature.view is not None for feature in FEATURES)
    blocks = [name for feature in FEATURES for name in lake.stream.blocks(feature.block)]
    assert [part.subject for part in view_of(lake.uri, lake.stream).results] == blocks


def test_page_of_a_lake_without_tables_of_results(lake: ViewedLake) -> None:
    view = view_of(lake.uri, lake.stream)
    assert (view.interval, view.findings, view.notices) == (between(0, 6), [], [])
    parts = [*view.results, *view.quality]
    # The ledger has the number of events.
    assert (len(parts), [part.subject for part in parts if part.chart]) == (14, ["lines"])


def test_chart_of_a_key_has_every_level_and_its_lines(lake: ViewedLake) -> None:
    line = {"intercept_n": 3.0, "slope_n": 2.0, "units_n": 2}
    rows = [window(n, "a", 4 + n) for n in range(4)]
    rows += [window(n, "a", 9 + n, level=1, **line) for n in range(4)]
    lake.add("aggregates", [*rows, window(2, "b", 100)])
    part = section(view_of(lake.uri, lake.stream, key="client=a"), "traffic")
    assert cells(part, "window_end", "level", "client", "n", "sent") == [
        (row["window_end"], row["level"], "a", row["n"], row["sent"])
        for row in sorted(rows, key=lambda row: (-row["window_end"].timestamp(), row["level"]))
    ]
    points = [row for row in values(part) if row["panel"] == "n"]
    assert {(row["time"], row["value"], row["series"]) for row in points} == {
        (millis(row["window_end"]), row["n"], ("1 hour every 1 hour", "2 hours every 1 hour")[row["level"]])
        for row in rows
    }
    assert "a line is broken where windows have no events or are not published" in part.guarantee
    lines = [row for row in values(part) if "first" in row]
    assert {row["panel"] for row in lines} == {"n: lines fitted to each 1 hour"}
    # Windows of two hours that do not overlap, from the last one.
    assert [(row["start"], row["end"], row["first"], row["last"]) for row in lines] == [
        (millis(at(2)), millis(at(3)), 3.0, 5.0),
        (millis(at(0)), millis(at(1)), 3.0, 5.0),
    ]


def test_without_a_key_the_chart_has_the_busiest_keys(lake: ViewedLake) -> None:
    lake.add("aggregates", [window(n, f"k{k}", 10 * k + n, level=1) for k in range(8) for n in range(3)])
    part = section(view_of(lake.uri, lake.stream), "traffic")
    assert list(dict.fromkeys(row["series"] for row in values(part))) == ["k7", "k6", "k5", "k4", "k3"]
    assert part.note.startswith("15 windows of 5 of 8 keys")
    assert {row[0] for row in cells(part, "n")} == {10 * k + n for k in range(3, 8) for n in range(3)}


def test_long_series_are_thinned_to_their_peaks() -> None:
    rows = [{"n": n % 7, "place": n} for n in range(1000)]
    rows[500]["n"] = 99
    kept = thin(rows, 100, "n")
    assert len(kept) <= 100
    assert rows[500] in kept
    assert [row["place"] for row in kept] == sorted(row["place"] for row in kept)


def test_tables_have_a_stated_limit(lake: ViewedLake) -> None:
    lake.add("aggregates", [window(n % 6, "a", n, level=n // 6 % 2) for n in range(MAX_ROWS + 40)])
    table = section(view_of(lake.uri, lake.stream, key="a"), "traffic").table
    assert table is not None
    assert (len(table.rows), table.total) == (MAX_ROWS, MAX_ROWS + 40)


def test_only_published_hours_of_the_interval_are_shown(lake: ViewedLake) -> None:
    lake.add("aggregates", [window(n, "a", n) for n in range(6)])
    state = PartitionState("quarantined", "b", reason="a check")
    lake.enter("aggregates", {PartitionKey("aggregates", "traffic", "aggregates", at(3)): state}, "b")
    part = section(view_of(lake.uri, lake.stream, between(1, 5), "a"), "traffic")
    assert cells(part, "n") == [(4,), (2,), (1,)]


def test_frames_and_fills_are_those_of_the_last_report(lake: ViewedLake) -> None:
    frame = {
        "block": "busy",
        "client": "a",
        "frame_id": "f",
        "start_time": at(1),
        "missing": 0,
        "state": "partial",
    }
    reports = [
        {
            **frame,
            "hour": at(n),
            "last_time": at(n),
            "length_s": 3600.0 * n,
            "records": n,
            "fragment": n,
            "peak": 7.0,
        }
        for n in (1, 2, 3)
    ]
    lake.add("frames", reports)
    fill = {"block": "before", "client": "a", "frame_id": "f", "start_time": at(-2), "shift_s": 10800.0}
    lake.add("fills", [{**fill, "hour": at(n), "fragment": n, "sent": n, "coverage": 1.0} for n in (1, 2, 3)])
    view = view_of(lake.uri, lake.stream)
    busy, before = section(view, "busy"), section(view, "before")
    assert cells(busy, "client", "length_s", "records", "peak bytes") == [("a", 10800.0, 3, 7.0)]
    (bar,) = values(busy)
    assert bar == {
        "label": "a",
        "start": millis(at(1)),
        "end": millis(at(4)),
        "state": "open at the end of these hours",
    }
    assert cells(before, "sent", "coverage") == [(3, 1.0)]
    assert [(row["value"], row["series"]) for row in values(before)] == [(3, "3 hours before")]


def test_slots_of_a_persistent_item_become_cells(lake: ViewedLake) -> None:
    row = {"hour": at(4), "block": "regulars", "window_end": at(5), "client": "a", "low": 2, "high": 3}
    row["spell_id"] = "s"
    lake.add("persistent_items", [{**row, "slots": "?011"}, {**row, "hour": at(1), "window_end": at(2)}])
    part = section(view_of(lake.uri, lake.stream), "regulars")
    assert cells(part, "client", "low", "high", "slots") == [("a", 2, 3, "?011")]
    assert [(cell["start"], cell["end"], cell["state"]) for cell in values(part)] == [
        (millis(at(n)), millis(at(n + 1)), state)
        for n, state in ((1, "not remembered"), (2, "not seen"), (3, "seen"), (4, "seen"))
    ]


def test_frequent_items_are_those_of_the_last_report_with_their_bounds(lake: ViewedLake) -> None:
    def row(number: int, path: str, rank: int, low: int, high: int) -> dict[str, Any]:
        return {
            "hour": at(number), "block": "often", "window_end": at(number + 1), "path": path, "rank": rank,
            "estimate": high, "low": low, "high": high, "window_records": 50, "max_unreported": 4,
        }  # fmt: skip

    lake.add("frequencies", [row(2, "/old", 1, 9, 9), row(4, "/a", 1, 20, 22), row(4, "/b", 2, 5, 5)])
    part = section(view_of(lake.uri, lake.stream), "often")
    assert cells(part, "rank", "path", "low", "high") == [(1, "/a", 20, 22), (2, "/b", 5, 5)]
    assert [(item["label"], item["low"], item["high"]) for item in values(part)] == [
        ("/a", 20, 22),
        ("/b", 5, 5),
    ]
    assert "50 records" in part.note
    of_key = section(view_of(lake.uri, lake.stream, key="path=/old"), "often")
    assert cells(of_key, "path", "low") == [("/old", 9)]


def test_all_reports_of_an_item_are_drawn_and_a_page_of_them_is_listed(lake: ViewedLake) -> None:
    reports = MAX_ROWS + 30
    lake.add(
        "frequencies",
        [
            {
                "hour": at(n % 6), "block": "often", "window_end": at(n / 60), "path": "/a", "rank": 1,
                "estimate": n, "low": n, "high": n,
            }
            for n in range(reports)
        ],
    )  # fmt: skip
    part = section(view_of(lake.uri, lake.stream, key="path=/a"), "often")
    assert part.table is not None
    assert (len(part.table.rows), part.table.total) == (MAX_ROWS, reports)
    assert sum(point["series"] == "low" for point in values(part)) == reports


def test_episodes_have_the_steps_of_their_matches(lake: ViewedLake) -> None:
    minute = timedelta(minutes=1)
    episode = {
        "block": "back",
        "client": "a",
        "matches": 1,
        "level": 0,
        "state": "final",
        "detected_at": at(2),
    }
    times = {"start_time": at(1), "last_time": at(1) + 9 * minute}
    lake.add("episodes", [{**episode, "hour": at(1), "episode_id": "e", **times}])
    steps = [
        {"id": "one", "time": at(1), "count": 1},
        {"id": "other", "time": at(1) + 9 * minute, "count": 1},
    ]
    match = {
        "hour": at(1),
        "block": "back",
        "first_time": at(1),
        "last_time": at(1) + 9 * minute,
        "steps": steps,
    }
    lake.add(
        "matches", [{**match, "client": "a", "match_id": "e"}, {**match, "client": "b", "match_id": "x"}]
    )
    part = section(view_of(lake.uri, lake.stream), "back")
    assert cells(part, "client", "start_time", "matches") == [("a", at(1), 1)]
    assert [(row["step"], row["time"]) for row in values(part) if "step" in row] == [
        ("detected", millis(at(2))),
        ("one", millis(at(1))),
        ("other", millis(at(1) + 9 * minute)),
    ]


def test_findings_of_a_key_are_those_whose_key_or_item_it_is(lake: ViewedLake) -> None:
    lake.find(
        finding(1, "one", key="10.0.0.1"),
        finding(2, "two", item="10.0.0.1"),
        finding(4, "four", key="10.0.0.11"),
    )
    titles = [item.title for item in view_of(lake.uri, lake.stream, key="10.0.0.1").findings]
    assert sorted(titles) == ["one", "two"]
    assert len(view_of(lake.uri, lake.stream).findings) == 3
    assert [item.title for item in view_of(lake.uri, lake.stream, between(4, 5)).findings] == ["four"]


def test_rejected_lines_are_counted_by_reason(lake: ViewedLake) -> None:
    row = {"source_id": "s", "raw": "x" * 100_000, "column": None, "detail": "d"}
    lake.add("rejected", [{**row, "hour": at(n), "source_line": n, "reason": "odd"} for n in range(5)])
    lake.add("rejected", [{**row, "hour": at(1), "source_line": 9, "reason": "broken"}])
    part = section(view_of(lake.uri, lake.stream), "rejected")
    assert cells(part, "reason", "lines", "source_line") == [
        ("odd", 5, 4), ("odd", 5, 3), ("odd", 5, 2), ("broken", 1, 9),
    ]  # fmt: skip
    assert sum(bar["value"] for bar in values(part)) == 6


def test_lake_without_a_run_is_an_error(tmp_path: Path, lake: ViewedLake) -> None:
    with pytest.raises(NothingToView, match="no run of six is in this lake"):
        view_of(tmp_path / "none", lake.stream)


def test_hours_that_nobody_requested_are_a_notice(lake: ViewedLake) -> None:
    view = view_of(lake.uri, lake.stream, between(100, 101))
    assert view.notices == ["No run has requested an hour of [2015-05-21T04:00, 2015-05-21T05:00)."]


def test_view_is_read_again_if_a_run_publishes_meanwhile(
    lake: ViewedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.add("aggregates", [window(n, "a", 1) for n in range(6)])
    partition = PartitionKey("aggregates", "traffic", "aggregates", at(3))
    read, reads = module.quality.sections, []

    def slow(selection: Any) -> Any:
        reads.append(1)
        if len(reads) < runs:
            state = PartitionState("published", f"{runs} {len(reads)}")
            other = Ledger(lake.root)
            other.claim("aggregates", {partition: state}, state.run_id)
            other.publish("aggregates", {partition: state}, state.run_id)
        return read(selection)

    monkeypatch.setattr(module.quality, "sections", slow)
    runs = 2
    assert view_of(lake.uri, lake.stream).notices == []
    assert len(reads) == 2
    reads.clear()
    runs = 99
    assert view_of(lake.uri, lake.stream).notices[0].startswith("A run is publishing")


def test_labels_of_long_texts_differ() -> None:
    one, other = label("x" * 100_000 + "1"), label("x" * 100_000 + "2")
    assert one != other
    assert max(len(one), len(other)) <= MAX_LABEL
    assert label("a\x00\u202eb") == "a\\x00\\u202eb"


def episode(number: int, name: str, **more: Any) -> dict[str, Any]:
    return {
        "hour": at(number), "block": "back", "client": "a", "episode_id": name, "start_time": at(1),
        "last_time": at(2), "matches": 1, "level": 0, "state": "final", "detected_at": at(2),
    } | more  # fmt: skip


def test_episode_that_joined_another_does_not_count(lake: ViewedLake) -> None:
    rows = [episode(1, "e", state="partial"), episode(2, "e", state="joined"), episode(2, "f")]
    lake.add("episodes", [*rows, episode(2, "g", client="b", state="partial")])
    part = section(view_of(lake.uri, lake.stream), "back")
    assert sorted(cells(part, "client", "state")) == [("a", "final"), ("b", "partial")]
    assert part.note.startswith("2 episodes")


def test_steps_are_those_of_the_own_block_and_of_the_drawn_episodes(
    lake: ViewedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transom.features.patterns.view.MATCHES", 2)
    lake.add("episodes", [episode(2, "e"), episode(2, "f", client="b")])

    def match(block: str, client: str, start: float) -> dict[str, Any]:
        steps = [{"id": block, "time": at(start), "count": 1}]
        times = {"first_time": at(start), "last_time": at(start), "steps": steps}
        return {"hour": at(1), "block": block, "client": client, "match_id": f"{client}{start}", **times}

    early = [match("back", "a", 0.1 * n) for n in range(5)]
    lake.add("matches", [*early, match("back", "a", 1.5), match("other", "a", 1.4), match("other", "b", 1.3)])
    points = [row for row in values(section(view_of(lake.uri, lake.stream), "back")) if "step" in row]
    assert [(row["step"], row["time"]) for row in points if row["step"] != "detected"] == [
        ("back", millis(at(1.5)))
    ]
    assert len({row["label"] for row in points}) == 2


def test_items_that_have_left_or_are_not_persistent_do_not_count(lake: ViewedLake) -> None:
    def row(number: int, client: str, **more: Any) -> dict[str, Any]:
        times = {"hour": at(number), "window_end": at(number + 1)}
        return {**times, "block": "regulars", "client": client, "low": 2, "high": 3, "slots": "0011"} | more

    left = row(3, "left", low=None, high=None, slots=None, spell_id="l")
    rows = [row(2, "left", spell_id="l"), left, row(3, "here", spell_id="h"), row(3, "seldom", watched=False)]
    lake.add("persistent_items", [*rows, row(3, "watched", watched=True)])
    part = section(view_of(lake.uri, lake.stream), "regulars")
    assert sorted(cells(part, "client")) == [("here",), ("watched",)]


def test_checks_of_files_without_an_hour_are_on_every_page(lake: ViewedLake) -> None:
    partition = partition_of("files", UNKNOWN_HOUR)
    lake.enter("ingest", {partition: PartitionState("quarantined", "u", reason="no hour")}, "u")
    lake.ledger.record_checks("ingest", [CheckResult(partition, "hour", "error", 1.0, "0", False)], "u")
    view = view_of(lake.uri, lake.stream)
    checks = section(view, "checks")
    assert cells(checks, "hour", "check") == [(UNKNOWN_HOUR, "hour")]
    assert checks.chart is None
    assert ("ingest", "quarantined", 1, "files without an hour") in [
        row[:4] for row in view.hours.attention.rows
    ]


def test_columns_that_no_run_has_written_are_null(lake: ViewedLake) -> None:
    lake.add("aggregates", [window(n, "a", n, level=1) for n in range(3)])
    edited = SIX.replace("{n: count,", "{n: count, most: max(bytes),")
    edited = edited.replace("  traffic:\n", "  traffic:\n    key: [client, path]\n")
    lake.file.write_text(edited)
    part = section(view_of(lake.uri, lake.file), "traffic")
    assert sorted(cells(part, "path", "n", "most")) == [(None, n, None) for n in range(3)]
    assert section(view_of(lake.uri, lake.file, key="path=/"), "traffic").chart is None


def test_view_creates_no_table(lake: ViewedLake) -> None:
    for name in ("checks", "runs"):
        shutil.rmtree(f"{lake.root}/{name}")
    view_of(lake.uri, lake.stream)
    assert not (Path(lake.root) / "checks").exists()
    assert not (Path(lake.root) / "runs").exists()


def test_missing_external_table_is_a_notice(lake: ViewedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise LakeError("fills.before.source: no table /prices")

    monkeypatch.setattr("transom.views.open_stream.ExternalSources.revisions", fail)
    assert view_of(lake.uri, lake.stream).notices == ["Waits: fills.before.source: no table /prices."]


def test_interval_of_thousands_of_years_has_the_requested_hours(lake: ViewedLake) -> None:
    ages = Interval.parse("0001-01-01T00:00", "9999-12-31T00:00")
    assert view_of(lake.uri, lake.stream, ages).interval == between(0, 6)
