"""Every check of ingest fails on files that are bad for it, and no other check does."""

import gzip
import json
import re
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.failing_checks import failed, makes_fail, noted
from tests.support.stream_harness import StreamHarness, hour, line
from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import PartitionKey
from transom.features.ingest.file_checks import check_files
from transom.features.ingest.file_records import ListedFile
from transom.features.ingest.parsed_rows import ParsedRows
from transom.features.ingest.read_files import FileReadResult, FileReadTask
from transom.features.registry import BUILT_IN
from transom.formats.read_file import FileSummary
from transom.formats.record_format import Span
from transom.storage.data_files import write_data_files
from transom.storage.store import Store
from transom.storage.tables import ARROW_TYPES

Make = Callable[..., StreamHarness]

CHECKED = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expected_files: 1}
key: [client]
aggregates:
  site: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
checks:
  no_errors: {stage: ingest, every: "status < 500", share: 0.9}
  enough: {stage: ingest, rows: {at_least: 2}, severity: incomplete}
"""
PATH = "landing/web/2015-05-17/access.02.log.gz"


def good(number: int) -> list[str]:
    """Return ten lines of an hour."""
    return [line(3600 * number + i) for i in range(10)]


class Case(NamedTuple):
    """The file of an hour, with the expected result.

    Attributes:
        lines: None if there is no file.
        observed: the values of the checks that fail; each makes the hour incomplete.
        sample: patterns of the stored rows at fault.
    """

    lines: list[str] | None
    observed: dict[str, Any]
    status: str = "published"
    sample: tuple[str, ...] = ()


CUT = 5
"""The hour whose file is truncated."""
CASES = {
    0: Case(good(0), {}),
    1: Case(good(1), {}),
    2: Case(
        [*good(2), *good(2), "junk" * 10**5, "junk"],
        {"rejected_share": pytest.approx(2 / 22)},
        "quarantined",
        (r"line 21: no_match: (junk){50}… \(400000 characters\)$", "line 22: no_match"),
    ),
    3: Case(
        [*good(3), *(line(3 * 3600 + i, status=503) for i in range(2))],
        {"no_errors": pytest.approx(10 / 12)},
        "quarantined",
        ("line 11: .*status 503", "line 12: .*status 503"),
    ),
    4: Case(good(4)[:1], {"enough": 1}),
    CUT: Case(
        [line(CUT * 3600 + i, f"10.0.{i % 200}.{i % 7}") for i in range(2000)],
        {"file_readable": 1},
        "published",
        ("line [0-9]+: truncated: ",),
    ),
    6: Case(None, {"files_expected": 0}),
}


@pytest.fixture(scope="module")
def landed_files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> StreamHarness:
    """Return a lake with all the files, after one run of ingest; tests must not change it."""
    folder = tmp_path_factory.mktemp("landed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSOM_HOME", str(folder))
        harness = StreamHarness(spark, folder, CHECKED)
        for number, case in CASES.items():
            if case.lines is not None:
                path = harness.land(number, case.lines)
                if number == CUT:
                    path.write_bytes(path.read_bytes()[:-400])
        harness.stage("ingest", 0, len(CASES))
    return harness


@pytest.mark.xdist_group("checks of ingest")
@pytest.mark.parametrize("number", [pytest.param(n, id=f"hour {n}") for n in CASES])
def test_file_fails_its_check_alone(landed_files: StreamHarness, number: int) -> None:
    case = CASES[number]
    verdicts = noted(landed_files.ledger.checks(landed_files.snapshot(), "ingest", {hour(number)}), "ingest")
    assert {verdict.check: verdict.observed for verdict in verdicts} == case.observed
    sample = [row for verdict in verdicts for row in verdict.failing_rows]
    assert len(sample) == len(case.sample)
    assert all(re.match(texts, row) for texts, row in zip(case.sample, sample, strict=True))
    entry = landed_files.snapshot()[PartitionKey("ingest", "events", "events", hour(number))]
    assert (entry.status, entry.complete) == (case.status, not case.observed)
    assert all(check in (entry.reason or "") for check in case.observed)


@pytest.mark.xdist_group("checks of ingest")
def test_quarantined_file_publishes_no_rows_and_others_do(landed_files: StreamHarness) -> None:
    rows = landed_files.rows_of("events")
    count = {number: sum(row["hour"] == hour(number) for row in rows) for number in CASES}
    expected = {number: len(case.lines or ()) for number, case in CASES.items()}
    assert 0 < count[CUT] < expected[CUT]
    expected |= {CUT: count[CUT]} | {n: 0 for n, case in CASES.items() if case.status == "quarantined"}
    assert count == expected
    reasons = [row["reason"] for row in landed_files.rows_of("rejected") if row["hour"] == hour(CUT)]
    assert reasons == ["truncated"]


@makes_fail("files_unchanged")
def test_changed_file_warns_and_is_published(make_stream: Make) -> None:
    day = make_stream(CHECKED)
    day.land(2, good(2))
    day.stage("ingest", 2, 3)
    assert failed(day, "ingest") == {}
    day.land(2, good(2)[5:])
    day.stage("ingest", 2, 3)
    (verdict,) = failed(day, "ingest").values()
    assert (verdict.check, verdict.severity, verdict.observed) == ("files_unchanged", "warning", 1)
    (row,) = verdict.failing_rows
    assert row.startswith(f"{PATH}: ")
    entry = day.snapshot()[PartitionKey("ingest", "events", "events", hour(2))]
    assert (entry.status, entry.complete) == ("published", True)


SCATTERING = """
name: web
preset: apache/combined
source: {path: "landing/*.log"}
checks: {hours_bounded: {hours: 3}, rejected_share: {at_most: 0.5}}
"""


@makes_fail("hours_bounded")
def test_file_of_too_many_hours_changes_none_of_them(make_stream: Make, tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    for name, hours in (("good", 3), ("random", 4)):
        lines = [*(line(7200 * number, f"10.0.0.{number}") for number in range(hours)), "junk"]
        (tmp_path / f"landing/{name}.log").write_text("".join(text + "\n" for text in lines))
    day = make_stream(SCATTERING)
    day.stage("ingest", 0, 10)
    result = failed(day, "ingest")
    assert result.keys() == {"hours_bounded"}
    verdict = result["hours_bounded"]
    assert (verdict.file, verdict.partition.hour, verdict.observed) == ("landing/random.log", UNKNOWN_HOUR, 4)
    assert verdict.failing_rows[0] == "line 1: event_time 2015-05-17T00:00:00"
    assert {node.hour for node, entry in day.snapshot().items() if entry.status == "quarantined"} == {
        UNKNOWN_HOUR
    }
    assert len(day.rows_of("events")) == 3
    passed = "hour: 1970-01-01T00:00, stage: ingest, check: hours_bounded, observed: 4, who: a, why: b"
    accepting = f"{SCATTERING}waivers: [{{{passed}}}]"
    for number, text in enumerate((SCATTERING.replace("hours: 3", "hours: 4"), accepting)):
        # A copy of the lake after the strict run.
        shutil.copytree(tmp_path / "lake", tmp_path / f"lake-{number}")
        lenient = make_stream(text, f"lake-{number}")
        lenient.stage("ingest", 0, 10)
        assert not failed(lenient, "ingest")
        assert len(lenient.rows_of("events")) == 7
        lenient.assert_ledger_true()


DRIFTING = """
name: app
source: {path: "landing/%Y-%m-%d-%H.json", format: json}
columns:
  user: user
  note: note
  sent: {type: integer}
  kib: {is: sent / 1024, resolution: 0.1}
  mib: {is: kept / 1048576, resolution: 0.1}
  kept: {type: integer}
time: {column: at}
aggregates: {all: {key: [user], measures: {n: count, kib: max(kib)}, levels: RANGES 1 HOUR SLIDES 1 HOUR}}
"""


@makes_fail("fields_known", "fields_present", "used_fields_present")
def test_new_and_missing_fields_fail_their_checks(make_stream: Make, tmp_path: Path) -> None:
    def observed(text: str = DRIFTING) -> dict[str, tuple[float | None, str, tuple[str, ...]]]:
        day = make_stream(text)
        day.stage("ingest", 2, 3)
        return {v.check: (v.observed, v.severity, v.failing_rows) for v in failed(day, "ingest").values()}

    path = tmp_path / "landing/2015-05-17-02.json"
    path.parent.mkdir(parents=True)
    record = {"at": "2015-05-17T02:00:00Z", "user": "ann", "sent": 2000, "more": 1, "and": {"more": 2}}
    path.write_text(json.dumps(record) + "\n")
    unknown = (2, "warning", ("and", "more"))
    absent = (2, "warning", ("note", "kept"))
    assert observed() == {"fields_known": unknown, "fields_present": absent}
    assert observed(DRIFTING + "extra_fields: keep\n") == {"fields_present": absent}
    (row,) = make_stream(DRIFTING).table("events").collect()
    assert (row.kib, row.mib, row.note, row.rest) == (2.0, None, None, '{"and":{"more":2},"more":1}')
    used = DRIFTING + 'checks: {noted: {stage: ingest, every: "mib is null"}, fields_known: {"off": true}}\n'
    assert observed(used) == {"fields_present": absent, "used_fields_present": (1, "error", ("kept",))}
    entry = make_stream(used).snapshot()[PartitionKey("ingest", "events", "events", hour(2))]
    assert (entry.status, entry.reason) == (
        "quarantined",
        "landing/2015-05-17-02.json: used_fields_present: observed 1, expected at most 0 "
        f"({BUILT_IN['used_fields_present'].advice})",
    )


GAMES = """
name: web
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", format: json}
columns:
  kind: kind
  currency: currency
  map: map
  os: {from: os, type: integer}
time: {column: at}
aggregates:
  sales:
    {key: [currency], where: "kind = 'purchase'", measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
  play: {key: [map, os], where: "kind = 'end'", measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
  kinds: {key: [kind], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
"""


@makes_fail("keys_not_null", "used_fields_present")
def test_event_without_a_key_fails_the_check_of_each_block_that_selects_it(make_stream: Make) -> None:
    day = make_stream(GAMES)
    purchase, login = {"kind": "purchase", "currency": "EUR"}, {"kind": "login"}
    end = {"kind": "end", "map": "a", "os": 1}

    def land(number: int, *events: dict[str, Any]) -> None:
        at = {"at": f"2015-05-17T{number:02}:00:01Z"}
        day.land(number, [json.dumps(at | event) for event in events])

    land(1, purchase, end, login)
    # Columns that a whole file lacks, and that none of its events needs.
    land(2, login, login)
    land(3, purchase, {"kind": "purchase"}, end | {"map": None}, end | {"os": None}, end | {"os": None})
    # A column that the file lacks altogether, and that its events need.
    land(4, login, {"kind": "purchase"})
    # No condition is true for an event without a kind; the block that selects every event needs one.
    land(5, purchase, end, {"currency": "EUR"})
    ingested = day.stage("ingest", 1, 6)
    assert (ingested.published, ingested.quarantined) == (2, 3)
    failures = noted(day.ledger.failures(day.snapshot(), "ingest"), "ingest")
    noticed = [v for v in failures if v.severity == "error"]
    assert [(v.partition.hour, v.check, v.column, v.observed, v.failing_rows) for v in noticed] == [
        (hour(3), "keys_not_null", "currency", 1, ("line 2: kind purchase",)),
        (hour(3), "keys_not_null", "map", 1, ("line 3: kind end, os 1",)),
        (hour(3), "keys_not_null", "os", 2, ("line 4: kind end, map a", "line 5: kind end, map a")),
        (hour(4), "keys_not_null", "currency", 1, ("line 2: kind purchase",)),
        (hour(4), "used_fields_present", None, 1, ("currency",)),
        (hour(5), "keys_not_null", "kind", 1, ("line 3: currency EUR",)),
    ]
    assert noticed[0].expected == (
        "at most 0 (lines of sales that lack currency: fix the data, or omit them, `where: "
        "\"currency is not null\"`, or key by a derived column, `is: coalesce(currency, '-')`, or give the "
        "check another severity)"
    )


def check_events(
    spark: SparkSession, harness: StreamHarness, times: list[int], claimed: int, span: Span
) -> dict[str, float | None]:
    """Return the verdicts on a file with events at some seconds, with a summary of so many events."""
    rows = ParsedRows(Store(spark, str(harness.root)), harness.stream)
    events = [
        {
            "event_time": hour(0) + timedelta(seconds=second),
            "client": "10.0.0.1",
            "status": 200,
            "source_id": "0",
            "source_line": number,
        }
        for number, second in enumerate(times)
    ]
    schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in rows.columns.items()])
    batch = pa.RecordBatch.from_pylist(events, schema=schema)
    parts = tuple(write_data_files(rows.store.uri("events"), "read", "part", [batch], "event_time"))
    summary = FileSummary("0", 1, claimed, 0, claimed, 0, (), None, {})
    moments = [event["event_time"] for event in events]
    touched = np.array([hour(2).timestamp() // 3600], dtype=np.int64)
    read = FileReadResult(summary, None, touched, min(moments), max(moments), parts)
    listed = ListedFile(PATH, 1, hour(2), {}, hour(2), hour(2), hour(3))
    reading = FileReadTask(listed, PATH, span)
    _, verdicts = check_files(harness.stream, [reading], {PATH: read}, rows)
    return {verdict.check: verdict.observed for verdict in noted(verdicts, "ingest")}


@makes_fail("lines_accounted")
def test_unaccounted_lines_fail_their_check(spark: SparkSession, make_stream: Make) -> None:
    span = Span(hour(2), hour(3))
    times = [7200, 7201, 10799]
    assert check_events(spark, make_stream(CHECKED), times, 3, span) == {}
    assert check_events(spark, make_stream(CHECKED), times, 5, span) == {"lines_accounted": 2}


@makes_fail("times_inside_hour")
def test_events_outside_the_hour_of_their_file_fail_their_check(
    spark: SparkSession, make_stream: Make
) -> None:
    for second, outside in ((7199, 1), (10800, 1e-6)):
        result = check_events(spark, make_stream(CHECKED), [7200, second], 2, Span(hour(2), hour(3)))
        assert result == {"times_inside_hour": pytest.approx(outside)}


@makes_fail("rejected_share", "no_nul_bytes")
def test_share_of_few_lines_and_nul_bytes_before_lines_are_warnings(make_stream: Make) -> None:
    day = make_stream(CHECKED.partition("checks:")[0])
    day.land(0, ["junk", *good(0)])
    path = day.land(1, [])
    text = "".join(f"{text}\n" for text in good(1)).encode()
    path.write_bytes(gzip.compress(b"\0" * 300_000 + text))
    day.land(2, []).write_bytes(gzip.compress(b"\0" * 300))
    day.land(3, ["junk"] * 5)
    day.stage("ingest", 0, 4)
    verdicts = noted(
        day.ledger.checks(day.snapshot(), "ingest", {hour(number) for number in range(4)}), "ingest"
    )
    assert {(v.partition.hour, v.check, v.severity, v.observed) for v in verdicts} == {
        (hour(0), "rejected_share", "warning", 1 / 11),
        (hour(1), "no_nul_bytes", "warning", 300_000),
        (hour(2), "no_nul_bytes", "warning", 300),
        (hour(2), "file_readable", "incomplete", 1),
        # None of these lines is an event: no check of a share.
        (hour(3), "rejected_share", "error", 1),
    }
    entries = [
        day.snapshot()[PartitionKey("ingest", "events", "events", hour(number))] for number in range(4)
    ]
    assert [(entry.status, entry.complete, entry.rows) for entry in entries] == [
        ("published", True, 10), ("published", True, 10), ("published", False, 0), ("quarantined", False, 0),
    ]  # fmt: skip
    assert "300 NUL bytes and nothing else" in (entries[2].reason or "")


@makes_fail("captures_filled")
def test_file_with_an_empty_capture_in_its_name_is_quarantined(make_stream: Make) -> None:
    day = make_stream(CHECKED.partition("checks:")[0].replace("access.%H*.log.gz", "access.%H{site}.log.gz"))
    day.land(0, good(0), ".north")
    path = day.land(1, good(1))
    day.land(2, good(2), ".north")
    day.land(2, good(2))
    day.stage("ingest", 0, 3)
    (first, second) = noted(
        day.ledger.checks(day.snapshot(), "ingest", {hour(number) for number in range(3)}), "ingest"
    )
    rule = (
        "{site} of source.path, landing/web/%Y-%m-%d/access.%H{site}.log.gz, must have a text in each name; "
    )
    for verdict, number in ((first, 1), (second, 2)):
        assert (verdict.check, verdict.severity, verdict.partition.hour) == (
            "captures_filled", "error", hour(number),
        )  # fmt: skip
        assert verdict.file == f"landing/web/2015-05-17/access.{number:02}.log.gz"
        assert verdict.failing_rows == (f"{rule}it is empty in this one",)
    entries = [
        day.snapshot()[PartitionKey("ingest", "events", "events", hour(number))] for number in range(3)
    ]
    # The hour's other file is fine: the hour is quarantined all the same.
    assert [(entry.status, entry.rows) for entry in entries] == [
        ("published", 10), ("quarantined", 0), ("quarantined", 10),
    ]  # fmt: skip
    assert f"access.01.log.gz: captures_filled: {rule}it is empty in this one" in (entries[1].reason or "")
    path.rename(path.with_name("access.01.south.log.gz"))
    day.stage("ingest", 1, 2)
    entry = day.snapshot()[PartitionKey("ingest", "events", "events", hour(1))]
    assert (entry.status, entry.complete, entry.rows) == ("published", True, 10)
