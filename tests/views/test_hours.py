"""The grid of hours, compared with the ledger."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.support.viewed_lake import ViewedLake, at, between
from transom.charts.section import MAX_ROWS
from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.features.ingest.expected_inputs import partition_of
from transom.ledger.hour_states import WORST
from transom.views.hours import HourGrid
from transom.views.view import view_of


def hours(lake: ViewedLake, interval: Interval | None = None) -> HourGrid:
    return view_of(lake.uri, lake.stream, interval).hours


def states(grid: HourGrid, stage: str) -> list[str]:
    return [cell.state for cell in grid.stages[stage]]


def test_cell_has_the_worst_state_of_its_partitions(lake: ViewedLake) -> None:
    for number, changes in enumerate(
        ({}, {"complete": False}, {"status": "quarantined", "reason": "bad"}, {"status": "blocked"})
    ):
        partition = partition_of("rejected", at(number))
        state = replace(lake.ledger.snapshot()[partition], **changes)  # type: ignore[arg-type]
        lake.enter("ingest", {partition: state}, "b")
    lake.ledger.claim("ingest", [partition_of("files", at(4))], "killed")
    grid = hours(lake, between(0, 8))
    assert states(grid, "ingest") == [
        "published", "incomplete", "quarantined", "blocked", "writing", "published", "none", "none",
    ]  # fmt: skip
    rows = {row[1]: row for row in grid.attention.rows if row[0] == "ingest"}
    assert rows["quarantined"][2:5] == (1, "2015-05-17T02:00", "bad")
    assert rows["quarantined"][5] == "transom explain six 2015-05-17T02:00"
    counts = dict(zip(grid.counts.columns, grid.counts.rows[0], strict=True))
    assert {name: counts[name] for name in Counter(states(grid, "ingest")) if name != "none"} == {
        "published": 2, "incomplete": 1, "quarantined": 1, "blocked": 1, "writing": 1,
    }  # fmt: skip


def test_worst_partition_counts_in_any_order(lake: ViewedLake) -> None:
    tables = ("events", "files", "rejected")
    for number, worst in enumerate(tables):
        stored = lake.ledger.snapshot()[partition_of(worst, at(number))]
        entries = {partition_of(name, at(number)): replace(stored, complete=False) for name in tables}
        entries[partition_of(worst, at(number))] = replace(stored, status="quarantined", reason="bad")
        lake.enter("ingest", entries, "b")
    assert states(hours(lake), "ingest")[:3] == ["quarantined"] * 3


def test_hours_that_a_stage_lacks_or_has_of_other_inputs_show_as_such(lake: ViewedLake) -> None:
    grid = hours(lake)
    # The ledger of this lake has no input hashes of other stages than ingest.
    assert set(states(grid, "ingest")) == {"published"}
    assert set(states(grid, "patterns")) == {"stale"}
    state = PartitionState(
        "published", "c", input_hashes=lake.ledger.snapshot()[partition_of("events", at(0))].input_hashes
    )
    lake.enter("ingest", {partition_of(name, at(6)): state for name in ("events", "rejected", "files")}, "c")
    grid = hours(lake)
    assert states(grid, "patterns")[-1] == "missing"
    assert ("patterns", "missing", 1) in [row[:3] for row in grid.attention.rows]


@pytest.mark.parametrize(
    ("length", "unit", "cells"), [(24 * 7, "hour", 168), (24 * 31, "day", 31), (24 * 365, "month", 13)]
)
def test_long_intervals_have_cells_of_days_and_months(
    lake: ViewedLake, length: int, unit: str, cells: int
) -> None:
    grid = hours(lake, between(0, length))
    assert (grid.unit, len(grid.stages["ingest"])) == (unit, cells)
    assert sum(len(cell.interval) for cell in grid.stages["ingest"]) == length


def test_cell_of_a_day_has_its_worst_hour(lake: ViewedLake) -> None:
    bad = PartitionState("quarantined", "b", reason="bad")
    lake.enter("ingest", {partition_of("events", at(3)): bad}, "b")
    (first, *_) = hours(lake, between(0, 24 * 30)).stages["ingest"]
    assert (first.state, first.text) == ("quarantined", "1 quarantined, 5 published, 18 not requested")
    assert first.is_partial


def test_hour_without_events_shows_as_empty_in_every_stage(lake: ViewedLake) -> None:
    lake.publish([2, 4], rows=0)
    grid = hours(lake)
    assert states(grid, "ingest") == ["published", "published", "empty", "published", "empty", "published"]
    assert [cell.text for cell in grid.stages["ingest"]][1:3] == ["published", "without events"]
    counts = dict(zip(grid.counts.columns, grid.counts.rows[0], strict=True))
    assert (counts["published"], counts["empty"]) == (4, 2)
    assert grid.states["empty"] == "computed and checked, without an event"
    assert grid.newest == at(5)
    assert grid.notes == (
        "No file is expected of this stream, so no check finds a missing one.",
        "2 hours without events, as no file came: 2015-05-17T02:00, 2015-05-17T04:00.",
    )
    # Of an hour in trouble the trouble is shown, and rows of other tables of ingest are no events.
    lake.enter("ingest", {partition_of("rejected", at(2)): PartitionState("quarantined", "b", rows=3)}, "b")
    state = replace(lake.ledger.snapshot()[partition_of("rejected", at(4))], rows=7)
    lake.enter("ingest", {partition_of("rejected", at(4)): state}, "b")
    grid = hours(lake)
    assert states(grid, "ingest")[2:5] == ["quarantined", "published", "empty"]
    assert grid.notes[1:] == ("1 hour without events, as no file came: 2015-05-17T04:00.",)


def test_day_with_events_in_some_hours_is_published(lake: ViewedLake) -> None:
    lake.publish([*range(1, 6), *range(24, 48)], rows=0)
    first, second, *_ = hours(lake, between(0, 24 * 30)).stages["ingest"]
    assert (first.state, first.text) == ("published", "1 published, 5 without events, 18 not requested")
    assert (second.state, second.text, second.is_partial) == ("empty", "24 without events", False)


@pytest.mark.parametrize(
    ("start", "length", "dates"),
    [
        (9, 40, {0: "2015-05-17", 15: "2015-05-18", 23: "08:00", 31: "16:00", 39: "2015-05-19"}),
        (22, 12, {2: "2015-05-18", 10: "08:00"}),
        (1, 5, {0: "2015-05-17"}),
        (0, 24 * 20, {1: "2015-05-18", 8: "2015-05-25", 15: "2015-06-01"}),
        (0, 24 * 300, {8: "2016-01-01", 0: "2015-05-17"}),
    ],
)
def test_dates_below_the_grid_do_not_overlap(
    lake: ViewedLake, start: int, length: int, dates: dict[int, str]
) -> None:
    shown = hours(lake, between(start, start + length)).dates
    assert {place: text for place, text in enumerate(shown) if text} == dates


def test_hours_of_blocks_that_are_gone_do_not_count(lake: ViewedLake) -> None:
    lake.enter("nothing", {PartitionKey("nothing", "b", "t", at(1)): PartitionState("blocked", "r")}, "r")
    assert "nothing" not in hours(lake).stages


def test_all_hours_that_need_attention_are_in_the_download(lake: ViewedLake) -> None:
    lake.publish(range(MAX_ROWS + 20))
    states = {
        partition_of("rejected", at(number)): PartitionState("quarantined", "b", reason=f"cause {number}")
        for number in range(MAX_ROWS + 20)
    }
    lake.enter("ingest", states, "b")
    table = hours(lake, between(0, MAX_ROWS + 20)).attention
    assert len(table.rows) == MAX_ROWS
    assert {str(row[4]) for row in table.all_rows} >= {f"cause {n}" for n in range(MAX_ROWS + 20)}


def test_the_worst_hours_of_all_stages_come_first(lake: ViewedLake) -> None:
    stored = lake.ledger.snapshot()[partition_of("events", at(1))]
    lake.enter("ingest", {partition_of("events", at(1)): replace(stored, complete=False)}, "b")
    partition = PartitionKey("patterns", "back", "episodes", at(4))
    lake.enter("patterns", {partition: PartitionState("quarantined", "b", reason="bad")}, "b")
    order = [row[1] for row in hours(lake).attention.rows]
    assert order == sorted(order, key=WORST.index)
    assert order[0] == "quarantined"
