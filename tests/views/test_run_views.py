"""Runs of an interval, the history of an hour, and what a run changed, from hand-written records."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.viewed_lake import ViewedLake, at, between, quality_of
from transom import __version__
from transom.charts.section import Section
from transom.core.partitions import CheckResult
from transom.engine.compaction import AT_ONCE, delete_details
from transom.features.ingest.expected_inputs import partition_of
from transom.ledger.ledger import Run
from transom.ledger.run_details import DETAILS, KEPT_DAYS, FileRead, Written
from transom.ledger.run_records import RunRecord
from transom.storage.tables import Table
from transom.views import runs
from transom.views.hour_history import HourHistory, hour_history
from transom.views.open_stream import OpenStream
from transom.views.run_changes import UNKNOWN, run_changes

FILE = "landing/six/2015-05-17/access.0{}.log"
ENDED = datetime(2015, 5, 20, tzinfo=UTC)


def wrote(start: int, end: int, status: str = "published", changed: bool = True) -> Written:
    return Written("events", "events", status, changed, at(start), at(end), 7)


def read(number: int, late: bool = False, replaced: bool = False) -> FileRead:
    hour = at(number)
    return FileRead(FILE.format(number), hour, hour, at(number + 1), "ingested", replaced, 9, 8, 1, late)


def ran(
    lake: ViewedLake,
    name: str,
    start: int,
    end: int,
    minute: int,
    written: Iterable[Written] = (),
    **more: Any,
) -> str:
    """Record a run of a stage by its end in minutes; return its id."""
    stage = more.pop("stage", "ingest")
    run_id = f"{name} {stage} 1 {minute:012x}"
    lake.ledger.record_run(
        Run(
            run_id, more.pop("trigger", "manual"), stage, at(start), at(end), 0, None, 12, 3, {"total": 7.5},
            100, __version__, ENDED + timedelta(minutes=minute), written=tuple(written), **more,
        )
    )  # fmt: skip
    return run_id


def opened(lake: ViewedLake) -> OpenStream:
    return OpenStream(lake.uri, lake.stream)


def runs_of(lake: ViewedLake, start: int, end: int, page: int = 1) -> Section:
    return runs.section(opened(lake).selection(between(start, end), page=page))


def names(part: Section) -> list[object]:
    return [] if part.table is None else [row[0] for row in part.table.rows]


def history(lake: ViewedLake, number: int) -> HourHistory:
    view = partial(hour_history, hour=at(number))
    return opened(lake).consistent(between(number, number + 1), {}, 1, view)[0]


def test_runs_are_those_that_wrote_or_were_requested(lake: ViewedLake) -> None:
    ran(lake, "request", 0, 4, 1)
    ran(lake, "beyond", 5, 6, 2, [wrote(2, 3), wrote(5, 6)])
    ran(lake, "others", 8, 9, 3, [wrote(0, 1), wrote(8, 9)])
    assert names(runs_of(lake, 2, 3)) == ["beyond", "request"]
    # The hours between the first and the last one that a run wrote are not its own.
    assert names(runs_of(lake, 4, 5)) == []
    part = runs_of(lake, 5, 6)
    assert part.table is not None
    assert part.table.rows[0][2:4] == ("2015-05-17T05:00", "2015-05-17T02:00, 2015-05-17T05:00")


def test_stages_of_a_run_are_one_row(lake: ViewedLake) -> None:
    ran(lake, "manual__2015 x", 0, 2, 1)
    ran(lake, "manual__2015 x", 0, 2, 2, [wrote(0, 1)], stage="aggregates", trigger="manual")
    ran(lake, "persistence audit", 0, 2, 3, stage="persistence", trigger="audit")
    table = runs_of(lake, 0, 2).table
    assert table is not None
    audit, run = table.rows
    assert run[0] == "manual__2015 x"
    assert run[1] == "by a person in Airflow"
    assert run[4] == "ingest, aggregates"
    assert run[6:] == (24, 6, 15.0)
    assert str(audit[1]).startswith("an audit")


def test_stages_of_one_task_have_the_name_of_the_dag_run(lake: ViewedLake) -> None:
    for minute, stage in enumerate(("ingest", "aggregates")):
        ran(lake, "manual__2015 run 2", 0, 2, minute, stage=stage)
    assert names(runs_of(lake, 0, 2)) == ["manual__2015"]
    found = runs.run_of(opened(lake).selection(between(0, 6)), "manual__2015")
    assert found is not None
    assert [of.stage for of in found.stages] == ["ingest", "aggregates"]


def test_runs_are_paged_the_last_first(lake: ViewedLake, monkeypatch: Any) -> None:
    monkeypatch.setattr(runs, "MAX_ROWS", 2)
    for number in range(5):
        ran(lake, f"r{number}", 0, 1, number)
    assert [names(runs_of(lake, 0, 1, page)) for page in (1, 2, 3)] == [["r4", "r3"], ["r2", "r1"], ["r0"]]


def test_history_tells_why_an_hour_was_quarantined_and_what_solved_it(lake: ViewedLake) -> None:
    first = ran(lake, "first", 0, 6, 1, [wrote(2, 3, "quarantined", changed=False)], files=[read(2)])
    failed = CheckResult(
        partition_of("events", at(2)),
        "rejected_share",
        "error",
        0.5,
        "at most 0.05",
        False,
        file=FILE.format(2),
    )
    lake.ledger.record_checks("ingest", [failed], first)
    ran(lake, "second", 0, 6, 2, [wrote(2, 3)], files=[read(2, replaced=True)])
    ran(lake, "third", 0, 6, 3, [wrote(2, 3, changed=False)])
    of = history(lake, 2)
    assert of.summary == (
        f"Quarantined by run first at 2015-05-20 00:01:00 UTC: rejected_share of {FILE.format(2)}: observed "
        "0.5, expected at most 0.05.",
        f"Solved by run second at 2015-05-20 00:02:00 UTC, as the new content of {FILE.format(2)} was read.",
    )
    assert [event.stages[0].outcome for event in of.events] == [
        "quarantined",
        f"published; it was not published before, as the new content of {FILE.format(2)} was read",
        "computed again, with the same rows",
    ]
    assert of.events[0].stages[0].files == (f"{FILE.format(2)} (9 lines, 8 events, 1 rejected)",)
    assert history(lake, 3).events == ()


def test_history_tells_that_a_late_file_made_an_hour_written_again(lake: ViewedLake) -> None:
    ran(lake, "first", 0, 6, 1, [wrote(0, 6)])
    ran(lake, "second", 6, 7, 2, [wrote(3, 4), wrote(6, 7)], files=[read(3, late=True), read(6)])
    of = history(lake, 3)
    assert of.summary == (
        f"Written again by run second at 2015-05-20 00:02:00 UTC, as {FILE.format(3)} came late.",
    )
    assert of.events[1].stages[0].files == (f"{FILE.format(3)} (9 lines, 8 events, 1 rejected): came late",)


def test_history_is_in_order_of_time_if_a_run_goes_on_after_another_one(lake: ViewedLake) -> None:
    ran(lake, "first", 0, 6, 1, [wrote(2, 3, "quarantined", changed=False)], files=[read(2)])
    ran(lake, "second", 0, 6, 2, [wrote(2, 3)], files=[read(2, replaced=True)])
    window = Written("traffic", "aggregates", "published", True, at(2), at(3), 4)
    ran(lake, "first", 0, 6, 3, [window], stage="aggregates")
    of = history(lake, 2)
    assert [text.partition(" at ")[0] for text in of.summary] == [
        "Quarantined by run first", "Solved by run second",
    ]  # fmt: skip
    assert [event.name for event in of.events] == ["first", "second", "first"]


def test_accepted_check_does_not_quarantine_an_hour_of_a_run_without_record(lake: ViewedLake) -> None:
    passed = CheckResult(partition_of("events", at(1)), "c", "error", 1.0, "0", True, accepted="ann: fine")
    lake.ledger.record_checks("ingest", [passed, replace(passed, accepted=None, success=True)], "killed")
    (event,) = history(lake, 1).events
    assert (event.run, event.name) == (None, "killed")
    assert event.stages[0].failed == ("error: c: observed 1, expected 0; accepted by ann: fine",)


def test_run_of_an_older_version_has_its_checks(lake: ViewedLake) -> None:
    """Its row lacks the columns of details, as the table of its version does."""
    run_id = ran(lake, "old", 4, 5, 1)
    old = (
        lake.ledger.open("runs")
        .to_pyarrow_table()
        .drop_columns([*DETAILS, "first_hour", "last_hour", "finding_counts"])
    )
    write_deltalake(f"{lake.root}/runs", old, mode="overwrite", schema_mode="overwrite")
    failed = CheckResult(partition_of("events", at(1)), "c", "error", 2.0, "0", False, file=FILE.format(1))
    lake.ledger.record_checks("ingest", [failed], run_id)
    of = history(lake, 1)
    assert of.summary == (
        f"Quarantined by run old at 2015-05-20 00:01:00 UTC: c of {FILE.format(1)}: observed 2, expected 0.",
    )
    assert of.events[0].stages[0].files == (FILE.format(1),)
    assert names(runs_of(lake, 1, 2)) == ["old"]
    found = runs.run_of(opened(lake).selection(between(0, 6)), "old")
    assert found is not None
    assert not found.known


def test_sentences_on_a_run_count_more_hours_than_its_table_lists(
    lake: ViewedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transom.views.run_changes.MAX_ROWS", 1)
    window = Written("traffic", "aggregates", "published", True, at(1), at(3), 4)
    ran(lake, "late", 5, 6, 1, [window, replace(window, table="recurring")], stage="aggregates")
    stream = opened(lake)
    found = runs.run_of(stream.selection(between(0, 6)), "late")
    assert found is not None
    changes = run_changes(stream.selection(between(0, 6)), found, stream.freshness(stream.snapshot()))
    assert [[of.table for of in rows] for rows in changes.causes.values()] == [["aggregates"]]
    tables = "aggregates of traffic (2 hours), recurring of traffic (2 hours)"
    assert f"Written beyond the request, changed: {tables}." in changes.summary


def test_changes_of_a_run_have_their_root_cause(lake: ViewedLake) -> None:
    ran(lake, "late", 5, 6, 1, [wrote(1, 2), wrote(5, 6)], files=[read(1, late=True), read(5)])
    window = Written("traffic", "aggregates", "published", True, at(1), at(3), 4)
    state = Written("traffic", "granules", "published", False, at(0), at(1), 4)
    apart = replace(window, start=at(4), end=at(5), changed=False)
    next_ = replace(window, start=at(3), end=at(4))
    whole = replace(apart, table="recurring", status="incomplete")
    title = {"finding_id": "f", "change": "new", "severity": "high", "title": "t"}
    ran(
        lake, "late", 5, 6, 2, [state, window, apart, whole, next_], stage="aggregates", findings=[title],
        finding_counts={"new": 3},
    )  # fmt: skip
    stream = opened(lake)
    found = runs.run_of(stream.selection(between(0, 6)), "late")
    assert found is not None
    changes = run_changes(stream.selection(between(0, 6)), found, stream.freshness(stream.snapshot()))
    cause = f"the events of 2015-05-17T01:00 changed: {FILE.format(1)} came late"
    assert [(of.table, of.outcome, of.cause, *of.hours) for of in changes.beyond] == [
        ("events", "changed", f"{FILE.format(1)} came late", between(1, 2)),
        ("aggregates", "changed", cause, between(1, 3)),
        ("aggregates", "the same rows as before", UNKNOWN, between(4, 5)),
        ("recurring", "the same rows as before, incomplete", UNKNOWN, between(4, 5)),
        ("aggregates", "changed", UNKNOWN, between(3, 4)),
        ("granules", "the same rows as before", UNKNOWN, between(0, 1)),
    ]
    assert changes.summary == [
        "2 files read, of which 1 late.",
        f"Late, of 2015-05-17T01:00: {FILE.format(1)} (9 lines, 8 events, 1 rejected).",
        "Written beyond the request, changed: events (1 hour), aggregates of traffic (3 hours).",
        "Written beyond the request, the same rows as before, incomplete: recurring of traffic (1 hour).",
        "Findings: 3 new.",
    ]


def test_run_that_reads_two_contents_of_a_file_has_both(lake: ViewedLake) -> None:
    bad = replace(read(2), status="quarantined", lines=40, records=0, rejected=40)
    ran(lake, "tried", 0, 6, 1, [wrote(0, 6)], files=[read(1), bad])
    again = replace(read(1), status="duplicate")
    ran(lake, "tried", 0, 6, 2, [wrote(2, 3)], files=[read(2, replaced=True), again])
    stream = opened(lake)
    found = runs.run_of(stream.selection(between(0, 6)), "tried")
    assert found is not None
    changes = run_changes(stream.selection(between(0, 6)), found, stream.freshness(stream.snapshot()))
    assert [(of.file.path, of.file.status, of.file.lines, of.remark) for of in changes.files] == [
        (FILE.format(2), "quarantined", 40, "replaced by a new content"),
        (FILE.format(2), "ingested", 9, "new content"),
        (FILE.format(1), "duplicate", 9, "duplicate"),
    ]
    assert changes.summary[:2] == [
        "3 contents of 2 files read, of which 0 late.",
        f"New content, of 2015-05-17T02:00: {FILE.format(2)} (9 lines, 8 events, 1 rejected).",
    ]


def rejected_of(lake: ViewedLake, start: int, end: int) -> list[Section]:
    parts = quality_of(opened(lake), between(start, end))
    return [of for of in parts if of.subject in ("rejected", "replaced")]


def test_rejected_lines_of_a_replaced_content_are_listed_with_what_is_kept(lake: ViewedLake) -> None:
    bad = replace(read(2), status="quarantined", lines=40, records=0, rejected=40)
    first = ran(lake, "first", 0, 6, 1, [wrote(0, 6)], files=[bad, replace(bad, path="p")])
    ran(lake, "second", 0, 6, 2, [wrote(2, 3)], files=[bad])
    good, better = (replace(read(2, replaced=True), path=path) for path in (bad.path, "p"))
    ran(lake, "third", 0, 6, 3, [wrote(2, 3)], files=[replace(good, rejected=1), replace(better, rejected=0)])
    share = CheckResult(partition_of("events", at(2)), "rejected_share", "error", 1.0, "0", False, file="p")
    lines = [f"line {n}: odd" for n in range(9)]
    lake.ledger.record_checks("ingest", [share.with_failing_rows(lines)], first)
    other = replace(share, check="keys_not_null").with_failing_rows(("an event",))
    lake.ledger.record_checks("ingest", [other], first)
    rejected, replaced = rejected_of(lake, 2, 3)
    answer = "79 more lines were rejected, of 2 contents that a newer content of the same file replaced."
    assert answer in rejected.note
    assert replaced.note == answer
    assert replaced.table is not None
    assert replaced.table.rows == (
        (
            "2015-05-17T02:00", bad.path, 40, 40, "quarantined", "2015-05-20 00:02:00", "second", "third",
            "not kept",
        ),
        (
            "2015-05-17T02:00", "p", 40, 40, "quarantined", "2015-05-20 00:01:00", "first", "third",
            " | ".join(lines[:3]),
        ),
    )  # fmt: skip
    assert [of.subject for of in rejected_of(lake, 3, 4)] == ["rejected"]


def test_file_that_grows_has_no_replaced_lines(lake: ViewedLake) -> None:
    """What its longer content rejects is in the table of rejected lines."""
    for minute in range(3):
        grown = replace(read(2, replaced=minute > 0), lines=9 + minute, rejected=1 + minute)
        ran(lake, f"r{minute}", 0, 6, minute, [wrote(2, 3)], files=[grown])
    # The same content, which a changed stream file parses: its lines became events.
    bad = replace(read(3), path="p", rejected=9)
    ran(lake, "bad", 0, 6, 4, [wrote(3, 4)], files=[bad])
    ran(lake, "parsed", 0, 6, 5, [wrote(3, 4)], files=[replace(bad, rejected=0)])
    ran(lake, "new", 0, 6, 6, [wrote(3, 4)], files=[replace(bad, rejected=0, replaced=True)])
    assert [of.subject for of in rejected_of(lake, 0, 6)] == ["rejected"]


def test_runs_table_describes_all_details() -> None:
    types = Table.load("runs").arrow_schema()
    for name, of in (("written", Written), ("files", FileRead)):
        assert [field.name for field in types.field(name).type.value_type] == [*of.__dataclass_fields__]
    assert pa.types.is_map(types.field("finding_counts").type)


def test_details_of_runs_that_are_older_than_a_year_are_deleted(lake: ViewedLake) -> None:
    minute = timedelta(minutes=1)
    kept, at_once = timedelta(days=KEPT_DAYS) // minute, AT_ONCE // minute
    for name, end in (("old", 0), ("new", at_once + 1), ("later", kept + at_once)):
        ran(lake, name, 0, 6, end, [wrote(2, 3)], files=[read(2)], finding_counts={"new": 1})
    # Each deletion writes a file again, so it waits for the details of a month.
    before = lake.ledger.open("runs").version()
    delete_details(lake.ledger.open("runs"), "ingest")
    assert lake.ledger.open("runs").version() == before
    ran(lake, "last", 0, 6, kept + at_once + 1, [wrote(2, 3)])
    versions = set()
    for _ in range(2):
        delete_details(lake.ledger.open("runs"), "ingest")
        versions.add(lake.ledger.open("runs").version())
    assert len(versions) == 1
    records = {of.name: of for of in map(RunRecord.of_row, lake.ledger.runs(details=True))}
    assert (records["old"].written, records["old"].files, records["old"].rows_out) == (None, None, 3)
    assert (records["new"].written, records["new"].files) == ((wrote(2, 3),), (read(2),))
    assert records["old"].finding_counts == {"new": 1}
