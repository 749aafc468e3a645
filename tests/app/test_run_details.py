"""What runs did, as `runs` records it and pages show it: junk that is replaced, and a late file."""

from collections.abc import Callable
from typing import Any

from tests.support.stream_harness import PLAIN, StreamHarness, hour, line
from transom.app.pipeline import run_stages
from transom.app.run_report import format_run
from transom.core.intervals import Interval
from transom.ledger.run_records import RunRecord
from transom.views.hour_history import HourHistory, hour_history
from transom.views.open_stream import OpenStream
from transom.views.run_changes import RunChanges, run_changes
from transom.views.runs import run_of, section

ALERT = PLAIN.replace("    levels: RANGES 6 HOURS", "    alert: {many: n > 3}\n    levels: RANGES 6 HOURS")
FIRST, SECOND, THIRD = (f"landing/web/2015-05-17/access.0{number}.log.gz" for number in (0, 1, 2))
FOURTH = FIRST.replace("00", "03")


def run(lake: StreamHarness, name: str, start: int, end: int) -> None:
    run_stages(
        lake.spark, lake.stream, Interval(hour(start), hour(end)), lake=lake.root.removesuffix("/web"),
        command="", run_id=name, trigger="manual", past_gates=True,
    )  # fmt: skip


def tell(lake: StreamHarness) -> None:
    """Run three hours, of which one has no file and one has junk; replace the junk; then the file comes."""
    lake.land(0, [line(60 * n) for n in range(5)])
    lake.land(2, ["\0junk"] * 40)
    run(lake, "first", 0, 3)
    lake.land(2, [line(7200 + 60 * n) for n in range(6)])
    run(lake, "second", 0, 3)
    lake.land(1, [line(3600 + 60 * n) for n in range(7)])
    lake.land(3, [line(10800 + 60 * n) for n in range(2)])
    run(lake, "third", 3, 4)


def ranges(record: RunRecord, table: str) -> list[tuple[int, int, str, bool, int]]:
    return [
        (*(number(end) for end in (of.start, of.end)), of.status, of.changed, of.rows)
        for of in record.written or ()
        if of.table == table and of.block != "site"
    ]


def number(of: Any) -> int:
    return int((of - hour(0)).total_seconds()) // 3600


def test_story_of_a_replaced_and_a_late_file_can_be_read(
    make_stream: Callable[..., StreamHarness],
) -> None:
    """It may take 30 seconds: both stages run three times, with their gates, as in the DAG."""
    lake = make_stream(ALERT)
    tell(lake)
    rows = map(RunRecord.of_row, lake.ledger.runs(details=True))
    records = {(of.name, of.stage): of for of in rows}

    # What each run wrote, of the events and of the windows.
    assert ranges(records["first", "ingest"], "events") == [
        (0, 1, "published", True, 5), (1, 2, "incomplete", True, 0), (2, 3, "quarantined", False, 0),
    ]  # fmt: skip
    assert ranges(records["second", "ingest"], "events") == [(2, 3, "published", True, 6)]
    assert ranges(records["third", "ingest"], "events") == [
        (1, 2, "published", True, 7), (3, 4, "published", True, 2),
    ]  # fmt: skip
    assert records["third", "aggregates"].hours_outside() == [hour(1), hour(2)]

    # The files that it read for that.
    files = {
        of.name: [(file.path, file.lines, file.records, file.rejected, file.replaced, file.late)
                  for file in of.files or ()]
        for of in records.values() if of.stage == "ingest"
    }  # fmt: skip
    assert files == {
        "first": [(FIRST, 5, 5, 0, False, False), (THIRD, 40, 0, 40, False, False)],
        "second": [(THIRD, 6, 6, 0, True, False)],
        "third": [(SECOND, 7, 7, 0, False, True), (FOURTH, 2, 2, 0, False, False)],
    }

    # The same on the pages.
    opened = OpenStream(lake.root.removesuffix("/web"), lake.stream)
    quarantined, late = history(opened, 2), history(opened, 1)
    assert [line.partition(" at ")[0] for line in quarantined.summary] == [
        "Quarantined by run first", "Solved by run second",
    ]  # fmt: skip
    assert f"rejected_share of {THIRD}: observed 1, expected at most" in quarantined.summary[0]
    assert quarantined.summary[1].endswith(f", as the new content of {THIRD} was read.")
    assert [event.name for event in quarantined.events] == ["first", "second", "third"]
    assert quarantined.events[0].stages[0].files == (
        f"{THIRD} (40 lines, 0 events, 40 rejected): quarantined",
    )
    assert [of.unpublished for of in quarantined.events[0].stages] == [True, True]
    assert [of.stage for of in quarantined.events[2].stages] == ["aggregates"]
    of_stages = [(of.stage, of.outcome) for event in late.events for of in event.stages]
    assert [outcome for stage, outcome in of_stages if stage == "aggregates"] == [
        "published, incomplete, as an input is", "written again; now complete",
    ]  # fmt: skip
    assert of_stages[0] == ("ingest", "published, incomplete")
    assert late.summary[0].startswith("Written again by run third at ")
    assert late.summary[0].endswith(
        f", as {SECOND} came late; before, something was missing: files_expected: observed 0, expected at "
        "least 1."
    )

    changes = changes_of(opened, "third")
    assert (changes.late, [(of.file.path, of.remark) for of in changes.files]) == (
        1, [(SECOND, "late"), (FOURTH, "in time")],
    )  # fmt: skip
    beyond = {
        (of.stage, of.table, number(hours.start), number(hours.end)): of.cause
        for of in changes.beyond
        for hours in of.hours
    }
    assert beyond["ingest", "events", 1, 2] == f"{SECOND} came late"
    assert beyond["aggregates", "aggregates", 1, 3] == (
        f"the events of 2015-05-17T01:00 changed: {SECOND} came late"
    )
    assert changes.counts == {"withdrawn": 1, "updated": 2}
    withdrawn = changes.findings[0]
    assert (withdrawn.change, withdrawn.title) == (
        "withdrawn",
        "no file of web for 2015-05-17T01:00 (1 hour)",
    )

    # Runs of hour 1: the third one was not requested for it.
    table = section(opened.selection(Interval(hour(1), hour(2)))).table
    assert table is not None
    assert [row[0] for row in table.rows] == ["third", "second", "first"]
    assert table.rows[0][2:4] == ("2015-05-17T03:00", "2015-05-17T01:00 to 2015-05-17T04:00")

    # The report of Airflow's task has the same files and hours.
    assert format_run(lake.ledger, "third", Interval(hour(3), hour(4))) == [
        "run ingest: 2 files read, 9 rows written; repaired outside the interval: 2015-05-17T01:00",
        f"run aggregates: {records['third', 'aggregates'].rows_out} rows written; repaired outside the "
        "interval: 2015-05-17T01:00 to 2015-05-17T03:00",
        f"late files: 1: {SECOND}",
    ]


def history(opened: OpenStream, of: int) -> HourHistory:
    return hour_history(opened.selection(Interval(hour(of), hour(of + 1))), hour(of))


def changes_of(opened: OpenStream, name: str) -> RunChanges:
    selection = opened.selection(Interval(hour(0), hour(4)))
    found = run_of(selection, name)
    assert found is not None
    return run_changes(selection, found, opened.freshness(opened.snapshot()))
