"""Findings in pages and one by one, compared with the tables."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.viewed_lake import ViewedLake, at, between, finding
from transom import __version__
from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval
from transom.core.partitions import CheckResult, PartitionState
from transom.features.ingest.expected_inputs import partition_of
from transom.ledger.ledger import Run
from transom.views.finding import RAW_LINES, FindingDetail, finding_of
from transom.views.findings import PER_PAGE, FindingFilter, FindingsPage, findings_of, table_of
from transom.views.open_stream import OpenStream
from transom.web import csv

EVENING = between(4, 6)


def opened(lake: ViewedLake) -> OpenStream:
    return OpenStream(lake.uri, lake.stream)


def titles(page: FindingsPage) -> list[str]:
    return [row.finding.title for row in page.rows]


def message(name: str, number: int, sequence: int = 1, **more: Any) -> dict[str, Any]:
    """Return a row of `deliveries`, with the columns that a page reads."""
    return {
        "stream": "six", "recipient": "page", "finding_id": name, "sequence": sequence, "state": "withdrawn",
        "hash": "gone", "reason": "late.log", "stage": "patterns", "kind": "episode", "severity": "medium",
        "block": "back", "key": "a", "item": None, "title": f"gone {name}",
        "start_time": at(number), "end_time": at(number + 1),
        "first_hour": at(number), "last_hour": at(number), "ongoing": False, "time": at(number + 9),
    } | more  # fmt: skip


TIMES = ("start_time", "end_time", "first_hour", "last_hour", "time")
TYPES = {**dict.fromkeys(TIMES, pa.timestamp("us", "UTC")), "sequence": pa.int64(), "ongoing": pa.bool_()}
SCHEMA = pa.schema([(name, TYPES.get(name, pa.string())) for name in message("x", 0)])


def deliver(lake: ViewedLake, *rows: dict[str, Any]) -> None:
    write_deltalake(f"{lake.root}/deliveries", pa.Table.from_pylist([*rows], schema=SCHEMA), mode="append")


@pytest.fixture(scope="module")
def full(make_lake: Callable[[Path], ViewedLake], tmp_path_factory: pytest.TempPathFactory) -> ViewedLake:
    """Return a lake with findings of all states, which no test changes."""
    lake = make_lake(tmp_path_factory.mktemp("full"))
    no_hour: dict[str, Any] = {"start_time": None, "end_time": None, "first_hour": None, "hour": UNKNOWN_HOUR}
    lake.find(
        finding(4, "new one", severity="high", key="a"),
        finding(5, "new two", kind="alert", block="traffic", stage="aggregates", key="b"),
        finding(4, "old", first_hour=at(1), start_time=at(1), key="a"),
        finding(1, "over", key="a"),
        finding(5, "of no hour", block=None, **no_hour),
    )
    deliver(
        lake,
        message("w", 5), message("w", 5, recipient="mail"),
        message("back", 5, time=at(20)), message("back", 5, 2, state="raised", hash="h", time=at(21)),
        message("early", 1),
        message("4new one", 4),
        message("sent", 5, recipient="mail"),
    )  # fmt: skip
    return lake


def test_findings_have_their_state_in_the_interval(full: ViewedLake) -> None:
    page = findings_of(opened(full), FindingFilter(EVENING))
    states = {row.finding.title: row.state for row in page.rows}
    assert states == {
        "new one": "new", "new two": "new", "old": "earlier", "of no hour": "undated", "gone w": "withdrawn",
    }  # fmt: skip
    assert (titles(page)[0], titles(page)[-1], page.total, page.pages) == ("new one", "gone w", 5, 1)
    (gone,) = (row for row in page.rows if row.withdrawal is not None)
    assert gone.withdrawal is not None
    assert (gone.withdrawal.reason, gone.withdrawal.time) == ("late.log", at(14))
    assert (gone.finding.key, gone.finding.start_time, gone.finding.evidence) == ("a", at(5), ())


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"state": "new"}, ["new one", "new two"]),
        ({"state": "withdrawn"}, ["gone w"]),
        ({"severity": "high"}, ["new one"]),
        ({"kind": "alert"}, ["new two"]),
        ({"block": "back"}, ["new one", "old", "gone w"]),
        ({"key": {"client": "a"}}, ["new one", "old", "gone w"]),
        ({"key": {"client": "a"}, "state": "earlier"}, ["old"]),
        ({"state": "undated"}, ["of no hour"]),
        ({"block": "' OR TRUE --"}, []),
    ],
)
def test_findings_are_filtered(full: ViewedLake, filters: dict[str, Any], expected: list[str]) -> None:
    page = findings_of(opened(full), FindingFilter(EVENING, **filters))
    assert (titles(page), page.total) == (expected, len(expected))
    table = table_of(opened(full), FindingFilter(EVENING, **filters))
    place = table.columns.index("title")
    assert sorted(str(row[place]) for row in table.all_rows) == sorted(expected)
    assert table.total == len(expected)


def test_choices_count_the_findings_of_the_interval_and_key(full: ViewedLake) -> None:
    page = findings_of(opened(full), FindingFilter(EVENING, state="new"))
    assert page.severities == {"high": 1, "medium": 3}
    choices = page.choices
    assert choices["state"] == {"new": 2, "earlier": 1, "undated": 1, "withdrawn": 1}
    assert choices["severity"] == {"high": 1, "medium": 4}
    assert choices["block"] == {"back": 3, "traffic": 1}
    assert findings_of(opened(full), FindingFilter(EVENING, {"client": "b"})).choices["kind"] == {"alert": 1}


def test_findings_have_pages_and_withdrawn_ones_are_on_the_last(lake: ViewedLake) -> None:
    lake.find(*(finding(5, f"f{number:03}") for number in range(PER_PAGE + 20)))
    deliver(lake, *(message(f"w{number:03}", 5, time=at(100 - number)) for number in range(PER_PAGE)))
    pages = [findings_of(opened(lake), FindingFilter(EVENING), page) for page in (1, 2, 3, 4)]
    assert [len(page.rows) for page in pages] == [PER_PAGE, PER_PAGE, 20, 0]
    assert {(page.total, page.withdrawn, page.pages) for page in pages} == {(2 * PER_PAGE + 20, PER_PAGE, 3)}
    new = findings_of(opened(lake), FindingFilter(EVENING, state="new"))
    assert (new.total, new.withdrawn) == (PER_PAGE + 20, 0)
    shown = [title for page in pages for title in titles(page)]
    assert shown == [f"f{n:03}" for n in range(PER_PAGE + 20)] + [f"gone w{n:03}" for n in range(PER_PAGE)]


def test_without_tables_there_are_no_findings(lake: ViewedLake) -> None:
    page = findings_of(opened(lake), FindingFilter(EVENING))
    assert (page.rows, page.total, page.pages) == ([], 0, 1)
    assert [*csv.lines(table_of(opened(lake), FindingFilter(EVENING)))][1:] == []
    assert finding_of(opened(lake), "x") is None


def detail(lake: ViewedLake, finding_id: str) -> FindingDetail:
    found = finding_of(opened(lake), finding_id)
    assert found is not None
    return found


def lines(found: FindingDetail, column: str) -> list[object]:
    table = found.raw.table
    return [] if table is None else [row[table.columns.index(column)] for row in table.rows]


def event(number: float, client: str, line: int, **more: Any) -> dict[str, Any]:
    hour = at(number // 1)
    return {
        "hour": hour,
        "event_time": at(number),
        "client": client,
        "source_id": "s",
        "source_line": line,
    } | more


def test_lines_of_an_episode_are_the_records_of_its_matches(lake: ViewedLake) -> None:
    lake.find(finding(1, "e", key="a", end_time=at(2)))
    lake.add("events", [event(1 + n / 10, "a", n, path=f"/{n}") for n in range(9)])
    match = {"hour": at(3), "block": "back", "client": "a", "first_time": at(1.2), "last_time": at(1.6)}
    records = [{"event_time": at(1 + n / 10), "source_id": "s", "source_line": n} for n in (2, 6)]
    lake.add("matches", [{**match, "match_id": "e", "records": records}])
    lake.add("matches", [{**match, "client": "b", "match_id": "f", "records": records[:1]}])
    lake.add("files", [{"path": "landing/access.log", "hour": at(1), "source_id": "s", "status": "ingested"}])
    lake.find(finding(3, "later", key="a", finding_id="reported later", start_time=at(1), end_time=at(2)))
    found = detail(lake, "reported later")
    assert found.key == {"client": "a"}
    assert lines(found, "source_line") == [2, 6]
    assert lines(found, "file") == ["landing/access.log"] * 2
    # The matches are in an hour that this finding is too early for: all events of the key.
    assert lines(detail(lake, "1e"), "source_line") == [*range(9)]


def test_lines_of_a_key_are_those_of_its_time_and_at_most_some(lake: ViewedLake) -> None:
    of = {"stage": "aggregates", "block": "traffic", "kind": "alert", "key": "a"}
    lake.find(finding(1, "x", finding_id="x", **of), finding(2, "y", finding_id="y", **of))
    lake.add("events", [event(1 + n / 100, "a", n, path="p" * 5_000) for n in range(RAW_LINES + 5)])
    lake.add("events", [event(1.5, "b", 99), event(2.5, "a", 98)])
    found = detail(lake, "x")
    assert lines(found, "source_line") == [*range(RAW_LINES)]
    assert found.raw.note.startswith(f"{RAW_LINES} of {RAW_LINES + 5} events of its key in")
    assert {len(str(path)) for path in lines(found, "path")} == {2_000}
    assert [other.finding_id for other in found.others] == ["y"]


def test_lines_of_an_item_are_the_last_ones_before_its_end(lake: ViewedLake) -> None:
    of = {"stage": "frequency", "block": "often", "kind": "heavy_hitter", "item": "/"}
    lake.find(finding(4, "x", finding_id="x", **of, start_time=at(4), end_time=at(5)))
    lake.add("events", [event(n, "a", int(10 * n), path="/") for n in (0.5, 3.5, 4.5, 5.5)])
    found = detail(lake, "x")
    assert found.key == {"path": "/"}
    assert lines(found, "source_line") == [45, 35]


@pytest.mark.parametrize("number", [3, RAW_LINES + 9])
def test_lines_of_a_failed_check_are_its_failing_rows(lake: ViewedLake, number: int) -> None:
    state = PartitionState("quarantined", "u", reason="bad")
    partition = partition_of("events", at(2))
    lake.enter("ingest", {partition: state}, "u")
    failed = CheckResult(partition, "keys_not_null", "error", 1.0, "0", False, column="client")
    rows = tuple(f"row {n}" for n in range(number))
    lake.ledger.record_checks("ingest", [failed.with_failing_rows(rows)], "u")
    lake.ledger.record_checks("ingest", [failed.with_failing_rows(("of another run",))], "v")
    other = CheckResult(partition, "other", "error", 1.0, "0", False)
    lake.ledger.record_checks("ingest", [other.with_failing_rows(("of another check",))], "u")
    title = "six: events are quarantined: check keys_not_null on client saw 1, expected 0"
    lake.find(finding(2, title, finding_id="c", stage="ingest", kind="check_failed", block="events"))
    assert lines(detail(lake, "c"), "row") == [*rows[:RAW_LINES]]


def test_failing_rows_of_several_hours_are_those_of_the_first_ones(lake: ViewedLake) -> None:
    for number in (4, 1, 5, 0, 3, 2):
        failed = CheckResult(partition_of("events", at(number)), "odd", "warning", 1.0, "0", False)
        rows = tuple(f"row {number}.{n}" for n in range(RAW_LINES // 4))
        lake.ledger.record_checks("ingest", [failed.with_failing_rows(rows)], "a")
    of: dict[str, Any] = {"stage": "ingest", "kind": "check_failed", "block": "events"}
    lake.find(finding(5, "check odd fails", finding_id="c", **of, start_time=at(0), end_time=at(6)))
    expected = [f"row {number}.{n}" for number in range(4) for n in range(RAW_LINES // 4)]
    assert lines(detail(lake, "c"), "row") == expected


def test_lines_of_a_check_without_failing_rows_are_the_rejected_ones(lake: ViewedLake) -> None:
    lake.find(finding(2, "t", finding_id="r", stage="ingest", kind="check_failed", block="events"))
    row = {"source_id": "s", "reason": "odd", "raw": "x" * 9_000}
    lake.add("rejected", [{**row, "hour": at(2), "source_line": 1}, {**row, "hour": at(3), "source_line": 2}])
    found = detail(lake, "r")
    assert lines(found, "source_line") == [1]
    assert [len(str(raw)) for raw in lines(found, "raw")] == [2_000]


def test_lines_of_a_finding_without_a_key_are_those_of_its_time(lake: ViewedLake) -> None:
    lake.find(finding(1, "x", finding_id="x"), finding(1, "y", finding_id="y", block="gone", key="a"))
    lake.add("events", [event(0.5, "a", 1), event(1.5, "b", 2), event(1.2, "a", 3)])
    found = detail(lake, "x")
    assert (lines(found, "source_line"), found.raw.note) == ([3, 2], "2 lines: events in its time.")
    assert (detail(lake, "y").raw.table, detail(lake, "y").key) == (None, {})


def test_finding_of_a_silent_source_has_no_lines(lake: ViewedLake) -> None:
    lake.find(finding(2, "t", finding_id="s", stage="ingest", kind="source_silent", block="events"))
    assert detail(lake, "s").raw.table is None


def test_withdrawn_finding_is_found_with_its_reason(full: ViewedLake) -> None:
    found = detail(full, "w")
    assert found.withdrawal is not None
    assert (found.finding.title, found.withdrawal.reason) == ("gone w", "late.log")
    # It is raised again, or still there.
    assert finding_of(opened(full), "back") is None
    assert detail(full, "4new one").withdrawal is None
    assert finding_of(opened(full), "' OR TRUE --") is None


def test_finding_of_the_ledger_that_has_ended_is_withdrawn(lake: ViewedLake) -> None:
    of = {"state": "ended", "stage": "ingest", "kind": "check_failed", "block": "events", "key": None}
    deliver(lake, message("c", 5, **of), message("over", 5, **(of | {"kind": "frame", "hash": "h"})))
    page = findings_of(opened(lake), FindingFilter(EVENING))
    assert (titles(page), page.choices["state"]) == (["gone c"], {"withdrawn": 1})
    assert detail(lake, "c").withdrawal is not None
    assert finding_of(opened(lake), "over") is None


def test_lines_of_a_withdrawn_check_are_its_failing_rows_of_an_earlier_run(lake: ViewedLake) -> None:
    failed = CheckResult(partition_of("events", at(2)), "odd", "warning", 1.0, "0", False)
    lake.ledger.record_checks("ingest", [failed.with_failing_rows(("row of then",))], "earlier")
    lake.ledger.record_checks("ingest", [failed.with_failing_rows(("row of now",))], "a")
    of = {"stage": "ingest", "kind": "check_failed", "block": "events", "title": "check odd saw 1"}
    deliver(lake, message("c", 2, state="ended", **of))
    found = detail(lake, "c")
    assert lines(found, "row") == ["row of then"]
    assert found.raw.note == "1 row that failed the check in an earlier run."
    lake.find(finding(2, finding_id="c", **of))
    assert lines(detail(lake, "c"), "row") == ["row of now"]


def withdraw(lake: ViewedLake, name: str, minute: int, start: int, *ids: str) -> None:
    """Record a run that has withdrawn findings, and has made another one new."""
    changes = [("withdrawn", of) for of in ids] + [("new", f"{name} new")]
    lake.ledger.record_run(
        Run(
            f"{name} patterns 1 {minute:012x}", "manual", "patterns", at(start), at(start + 1), 0, None, 1, 1,
            {"total": 1.0}, 1, __version__, at(100 + minute),
            finding_counts={"withdrawn": len(ids), "new": 1},
            findings=[
                {"finding_id": of, "change": change, "severity": "high", "title": f"title {of}"}
                for change, of in changes
            ],
        )
    )  # fmt: skip


def test_withdrawn_findings_without_a_message_are_those_of_runs(lake: ViewedLake) -> None:
    withdraw(lake, "first", 1, 4, "twice", "sent", "raised again")
    withdraw(lake, "second", 2, 5, "twice")
    withdraw(lake, "early", 3, 1, "of an early hour")
    lake.find(finding(5, "raised again", finding_id="raised again"))
    deliver(lake, message("sent", 5, finding_id="sent"))
    page = findings_of(opened(lake), FindingFilter(EVENING))
    assert titles(page) == ["raised again", "gone sent", "title twice"]
    assert page.choices["state"] == {"new": 1, "withdrawn": 2}
    assert page.choices["kind"] == {"episode": 2, "not kept": 1}
    gone = page.rows[-1].withdrawal
    assert gone is not None
    assert (gone.reason, gone.time) == ("by run second", at(102))
    # Runs do not have the keys of findings.
    of_key = findings_of(opened(lake), FindingFilter(EVENING, {"client": "a"}))
    assert titles(of_key) == ["gone sent"]
    found = detail(lake, "of an early hour")
    assert found.withdrawal is not None
    assert (found.finding.title, found.hours, found.raw.table) == ("title of an early hour", None, None)
    assert finding_of(opened(lake), "early new") is None


def test_evidence_of_an_item_begins_a_window_earlier_if_that_is_requested(lake: ViewedLake) -> None:
    of: dict[str, Any] = {"stage": "frequency", "block": "often", "kind": "heavy_hitter", "item": "/"}
    for name, start in (("late", 5), ("early", 1)):
        lake.find(finding(start, name, finding_id=name, **of))
    lake.find(finding(5, "key", finding_id="key", key="a"))
    assert detail(lake, "late").hours == between(5, 6)
    (feature,) = (feature for feature in lake.stream.features if feature.name == "frequency")
    (window,) = {length for _, length in feature.lookback(lake.stream)}
    assert detail(lake, "late").evidence_hours == Interval(at(5) - window, at(6))
    assert detail(lake, "early").evidence_hours == between(0, 2)
    assert detail(lake, "key").evidence_hours == between(5, 6)


def test_key_of_several_columns_is_parsed_by_their_names(lake: ViewedLake) -> None:
    text = lake.file.read_text().replace("  traffic:\n", "  traffic:\n    key: [client, path]\n")
    lake.file.write_text(text)
    of = {"stage": "aggregates", "block": "traffic", "kind": "alert"}
    lake.find(finding(1, "x", finding_id="x", key="client=a, b, path=/c, d=e", **of))
    found = finding_of(OpenStream(lake.uri, lake.file), "x")
    assert found is not None
    assert found.key == {"client": "a, b", "path": "/c, d=e"}
    assert found.finding.hour + HOUR == at(2)
