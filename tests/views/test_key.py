"""All that is known of a key or an item, compared with the tables."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from tests.support.hostile import HOSTILE
from tests.support.viewed_lake import SIX, ViewedLake, at, between, finding, sections_of, window
from transom.api import Results
from transom.charts.section import MAX_ROWS, RAW_ROWS, Section
from transom.engine.reader import StaleDataError, UnknownKey
from transom.features.frequency.queries import Answer
from transom.views import events
from transom.views.finding import finding_of
from transom.views.key import KeyView, key_of
from transom.views.open_stream import OpenStream


def opened(lake: ViewedLake) -> OpenStream:
    return OpenStream(lake.uri, lake.stream)


def part(view: KeyView, subject: str) -> Section:
    (found,) = (section for section in view.sections if section.subject == subject)
    return found


def figures(section: Section) -> dict[object, object]:
    return {} if section.table is None else {row[0]: row[1] for row in section.table.rows}


def test_key_has_findings_results_queries_and_events(
    lake: ViewedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.add("aggregates", [window(n, "a", n + 1) for n in range(6)] + [window(2, "b", 9)])
    lake.find(finding(1, "one", key="a"), finding(2, "other", key="b"))
    event = {"source_id": "s", "path": "/"}
    lake.add("events", [
        {**event, "hour": at(n), "event_time": at(n + 0.1), "client": client, "source_line": n}
        for n, client in enumerate("abaaba")
    ])  # fmt: skip
    seen: list[Any] = []

    def horizon(results: Results, key: Mapping[str, Any], *of: object, block: str) -> dict[str, object]:
        seen.append((key, *of, block))
        return {"count": 21, "complete": False}

    monkeypatch.setattr("transom.features.aggregates.queries.horizon", horizon)
    view = key_of(opened(lake), {"client": "a"}, between(0, 9))
    assert [row.finding.title for row in view.findings.rows] == ["one"]
    subjects = [section.subject for section in view.sections]
    # `often` is about paths.
    assert subjects == ["key-traffic", "back", "traffic", "busy", "before", "regulars", "events"]
    # Of the requested hours: it ends with the last one.
    assert seen == [({"client": "a"}, at(6), timedelta(hours=6), "traffic")]
    assert figures(part(view, "key-traffic")) == {"count": 21, "complete": False}
    assert "Some of its hours are incomplete." in part(view, "key-traffic").note
    table = part(view, "events").table
    assert table is not None
    assert [row[table.columns.index("source_line")] for row in table.rows] == [5, 3, 2, 0]


@pytest.mark.parametrize("at_once", [7, events.AT_ONCE])
def test_every_event_has_the_file_of_its_line(
    lake: ViewedLake, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(events, "AT_ONCE", at_once)
    lake.add("files", [{"source_id": f"s{n}", "path": f"file {n}", "hour": at(n)} for n in range(5)])
    # The first page has no event of the first hour, and no file of the last hour is known.
    numbers = range(RAW_ROWS + 6)
    lake.add("events", [
        {"hour": hour, "event_time": hour, "client": "a", "source_id": f"s{n % 6}", "source_line": n}
        for n in numbers
        for hour in [at(n % 6)]
    ])  # fmt: skip
    views = [key_of(opened(lake), {"client": "a"}, between(0, 6), page) for page in (1, 2)]
    first, second = (table for view in views if (table := part(view, "events").table))
    file = part(views[0], "events").download
    assert file is not None
    assert first.columns[-2:] == file.columns[-2:] == ("source_line", "file")
    assert (len(first.rows), first.pages) == (RAW_ROWS, 2)
    expected = {(n, "s5" if n % 6 == 5 else f"file {n % 6}") for n in numbers}
    for rows in ([*first.rows, *second.rows], [*file.all_rows]):
        assert len(rows) == len(numbers)
        assert {row[-2:] for row in rows} == expected


def test_item_has_its_reports_and_its_frequency(lake: ViewedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"block": "often", "path": "/a", "rank": 1, "window_records": 50, "max_unreported": 4}
    counts = [
        {**row, "hour": at(n), "window_end": at(n + 1), "estimate": n + 2, "low": n, "high": n + 3}
        for n in (1, 4)
    ]
    lake.add("frequencies", [*counts, {**counts[0], "path": "/b"}])
    lake.find(finding(1, "one", stage="frequency", block="often", item="/a"))
    answer = Answer(7, 6, 8, 0.5, 50)
    monkeypatch.setattr("transom.features.frequency.queries.frequency", lambda *_: answer)
    view = key_of(opened(lake), {"path": "/a"}, between(0, 6))
    assert [section.subject for section in view.sections] == ["key-often", "often", "events"]
    often = part(view, "often")
    assert often.table is not None
    assert often.chart is not None
    assert often.note.startswith("2 reports, the last first: 4 to 7 in the 2 hours up to 2015-05-17T05:00.")
    assert [row[4:6] for row in often.table.rows] == [(4, 7), (1, 4)]
    values = {(row["series"], row["value"]) for row in often.chart["data"]["values"]}
    assert values == {("low", 1), ("low", 4), ("high", 4), ("high", 7), ("estimate", 3), ("estimate", 6)}
    assert figures(part(view, "key-often")) == {
        "estimate": 7, "low": 6, "high": 8, "error_bound": 0.5, "records": 50,
    }  # fmt: skip
    assert "more than error_bound" in part(view, "key-often").note
    answer = Answer(7, 7, 7, 0.5, 50)
    exact = part(key_of(opened(lake), {"path": "/a"}, between(0, 6)), "key-often")
    assert figures(exact)["error_bound"] is None
    assert exact.note.endswith("from low to high. Both are equal, so it is exact.")
    assert [row.finding.title for row in view.findings.rows] == ["one"]


def test_exact_count_has_no_bound_of_its_error(lake: ViewedLake) -> None:
    row = {"block": "often", "hour": at(4), "window_end": at(5), "window_records": 50, "max_unreported": 4}
    counts = {"/a": (3, 3), "/b": (1, 4)}
    lake.add("frequencies", [
        {**row, "path": path, "rank": rank, "estimate": high, "low": low, "high": high, "error_bound": 2.5}
        for rank, (path, (low, high)) in enumerate(counts.items(), 1)
    ])  # fmt: skip
    for key, expected in (({}, [None, 2.5]), ({"path": "/a"}, [None]), ({"path": "/b"}, [2.5])):
        (often,) = sections_of(opened(lake), "frequency", "often", between(0, 6), key)
        assert often.table is not None
        place = often.table.columns.index("error_bound")
        for rows in (often.table.rows, often.table.all_rows):
            assert [row[place] for row in rows] == expected


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (
            StaleDataError("granules of 2015-05-17T03:00 are out of date"),
            "Not known: granules of 2015-05-17T03:00 are out of date.",
        ),
        (UnknownKey("key: no hour has it"), "No hour of this block has a record of this key."),
    ],
)
def test_query_that_cannot_answer_is_a_sentence(
    lake: ViewedLake, monkeypatch: pytest.MonkeyPatch, error: Exception, note: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("transom.features.aggregates.queries.horizon", fail)
    lake.file.write_text(SIX.replace("  traffic:\n", "  traffic:\n    title: Requests of a client\n"))
    lake.load()
    horizon = part(key_of(opened(lake), {"client": "a"}, between(0, 6)), "key-traffic")
    assert (horizon.title, horizon.note) == ("Requests of a client", note)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ({"clint": "a"}, "key: six has no column 'clint'; nearest: client"),
        ({"status": "many"}, "key: status must be the text of a value of type integer; got 'many'"),
        ({"status": "9" * 5_000}, "key: status must be the text of a value of type integer"),
        ({"client": "\udcff"}, r"key: client must be the text of a value of type string; got '\\udcff'"),
    ],
)
def test_wrong_key_is_an_error(lake: ViewedLake, key: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        key_of(opened(lake), key, between(0, 6))
    with pytest.raises(ValueError, match=message):
        sections_of(opened(lake), "aggregates", None, between(0, 6), key)


@pytest.mark.parametrize("at_once", [1, 2, 24])
def test_latest_events_are_those_of_one_query(
    lake: ViewedLake, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    # Some hours have no event of the key, one has two pages.
    counts = {0: 15, 2: RAW_ROWS + 3, 5: 3}
    lake.add("events", [
        {"hour": at(hour), "event_time": at(hour + line / 1000), "client": client, "path": "/",
         "source_id": "s", "source_line": line}
        for hour, lines in counts.items()
        for line in range(lines)
        for client in "ab"
    ])  # fmt: skip
    monkeypatch.setattr(events, "LATEST_HOURS", at_once)
    for interval in (between(0, 6), between(0, 2), between(3, 5)):
        selection = opened(lake).selection(interval, {"client": "a"})
        rows, total = events.events(selection).page(RAW_ROWS)
        table = events.of_key(selection).table
        assert total == sum(lines for hour, lines in counts.items() if at(hour) in interval)
        if table is None:
            assert total == 0
        else:
            lines = [row[table.columns.index("source_line")] for row in table.rows]
            assert (lines, table.total) == ([row["source_line"] for row in rows], total)


@pytest.mark.parametrize("hostile", [text for text in HOSTILE if "\ud800" not in text])
def test_hostile_key_is_found_by_its_text(lake: ViewedLake, hostile: str) -> None:
    lake.add("aggregates", [window(1, hostile, 7), window(1, "other", 8)])
    row = {"hour": at(1), "event_time": at(1.5), "source_id": hostile, "source_line": 1, "path": hostile}
    lake.add("events", [row | {"client": hostile}, row | {"client": "other", "source_line": 2}])
    lake.find(
        finding(1, "one", finding_id="x", key=hostile, block="traffic", stage="aggregates", kind="alert")
    )
    view = key_of(opened(lake), {"client": hostile}, between(0, 6))
    traffic, of_key = part(view, "traffic").table, part(view, "events").table
    assert traffic is not None
    assert of_key is not None
    assert [row[traffic.columns.index("n")] for row in traffic.rows] == [7]
    assert [row[of_key.columns.index("source_line")] for row in of_key.rows] == [1]
    assert [row.finding.finding_id for row in view.findings.rows] == ["x"]
    found = finding_of(opened(lake), "x")
    assert found is not None
    assert found.raw.table is not None
    assert found.raw.table.total == 1


def test_numbers_and_missing_values_are_keys(lake: ViewedLake) -> None:
    text = lake.file.read_text().replace("  traffic:\n", "  traffic:\n    key: [status]\n")
    lake.file.write_text(text)
    lake.load()
    rows = [window(n, "x", n + 1) | {"status": status} for n, status in enumerate((200, 404, None))]
    lake.add("aggregates", rows)
    open_stream = opened(lake)
    for text, expected in (("200", 1), ("404", 2), ("null", 3)):
        (traffic,) = sections_of(open_stream, "aggregates", "traffic", between(0, 6), {"status": text})
        assert traffic.table is not None
        assert [row[traffic.table.columns.index("n")] for row in traffic.table.rows] == [expected]


def test_tables_have_pages(lake: ViewedLake) -> None:
    frame = {"block": "busy", "client": "a", "missing": 0, "state": "final", "records": 1, "fragment": 1}
    frames = [
        {
            **frame,
            "hour": at(1),
            "frame_id": f"f{n}",
            "start_time": at(1),
            "last_time": at(2),
            "length_s": float(n),
        }
        for n in range(MAX_ROWS + 50)
    ]
    lake.add("frames", frames)
    open_stream, lengths = opened(lake), []
    for page in (1, 2, 3):
        busy, _ = sections_of(open_stream, "frames", "busy", between(0, 6), page=page)
        assert busy.table is not None
        lengths += [row[busy.table.columns.index("length_s")] for row in busy.table.rows]
        assert (busy.table.first, busy.table.pages) == (1 + (page - 1) * MAX_ROWS, 2)
        assert busy.table.total == MAX_ROWS + 50
        drawn = {1: "; the chart has 1 to 200 of them. ", 2: "; the chart has 201 to 250 of them. "}
        assert busy.note.startswith(f"250 frames, the longest first{drawn.get(page, '. ')}")
    assert lengths == [float(n) for n in reversed(range(MAX_ROWS + 50))]
    busy, before = sections_of(open_stream, "frames", "busy", between(0, 6))
    assert before.subject == "before"
    assert busy.table is not None
    assert len([*busy.table.all_rows]) == MAX_ROWS + 50


def test_block_or_feature_that_does_not_exist_has_no_section(lake: ViewedLake) -> None:
    assert sections_of(opened(lake), "aggregates", "none") == []
    assert sections_of(opened(lake), "none", "traffic") == []
    assert [part.subject for part in sections_of(opened(lake), "fills")] == ["before"]


def test_findings_of_a_key_are_those_of_its_columns(lake: ViewedLake) -> None:
    lake.file.write_text(
        lake.file.read_text().replace("  traffic:\n", "  traffic:\n    key: [client, path]\n")
    )
    lake.load()
    alert: dict[str, Any] = {"kind": "alert", "stage": "aggregates", "block": "traffic"}
    lake.find(
        finding(1, "of client", key="/a"),
        finding(1, "of path", stage="frequency", block="often", kind="frequent_item", item="/a"),
        finding(1, "of both", key="client=/a, path=/b", **alert),
        finding(1, "of other", key="client=/b, path=/a", **alert),
        finding(1, "with comma", key="client=/a, b, path=/a, d", **alert),
        finding(1, "with a name", key='client=/c, path="x, client=/a,"', **alert),
        finding(1, "with the next name", key='client="/d, path=x", path=y', **alert),
    )

    def found(**key: str) -> list[str]:
        page = key_of(opened(lake), key, between(0, 6)).findings
        return sorted(row.finding.title for row in page.rows)

    assert found(client="/a") == ["of both", "of client"]
    assert found(path="/a") == ["of other", "of path"]
    assert found(client="/a, b") == ["with comma"]
    assert found(path="/a, d") == ["with comma"]
    assert found(path="x, client=/a,") == found(client="/c") == ["with a name"]
    assert found(client="/d, path=x") == found(path="y") == ["with the next name"]
    assert found(client="/d") == []
    assert found(client="/a", path="/b") == ["of both"]
    assert found(status="200") == []
