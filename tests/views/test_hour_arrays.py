"""The grid of hours by arrays equals the grid by plain loops, for any ledger."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.drawn_ledgers import ENTRIES, fresh, stored
from tests.support.plain_hours import plain_hours
from tests.support.viewed_lake import SIX, at, between
from transom.app.definitions import definitions_of
from transom.app.freshness import freshness_of
from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.core.partitions import SOURCE_STAGE, PartitionKey, PartitionState
from transom.features.ingest.expected_inputs import ExpectedInputs
from transom.ledger.snapshot import LedgerSnapshot
from transom.stream import parse
from transom.views.hours import LAST, GridCell, HourGrid, hours

STREAM = parse(yaml.safe_load(SIX))
STAGES = tuple(definitions_of(STREAM).values())
TABLES = [(SOURCE_STAGE, "events", table) for table in ("events", "files", "rejected")]
TABLES += [
    (stage.name, block, step.table.name) for stage in STAGES for step in stage.steps for block in step.outputs
]
GONE = ("patterns", "gone", "episodes")
HOURS = st.one_of(st.integers(0, 40).map(at), st.just(UNKNOWN_HOUR))
KEYS = st.builds(lambda table, hour: PartitionKey(*table, hour), st.sampled_from([*TABLES, GONE]), HOURS)
STATES = st.dictionaries(KEYS, ENTRIES, max_size=12)
CHANGES = st.dictionaries(KEYS, st.none() | ENTRIES, max_size=4)
INTERVALS = st.builds(
    lambda start, length: between(start, start + length),
    st.integers(-30, 40),
    st.sampled_from([1, 7, 24, 168, 169, 24 * 100, 24 * 201, 24 * 800]),
)


def published(numbers: set[int]) -> dict[PartitionKey, PartitionState]:
    """Return fresh hours of every table."""
    inputs = ExpectedInputs(STREAM)
    keys = [PartitionKey(*table, at(n)) for table in TABLES for n in sorted(numbers)]
    states = fresh(dict.fromkeys(keys, PartitionState("published", "a", digest="1:1")), STAGES)
    return {
        key: replace(state, input_hashes=inputs.expected(key.hour)) if key.stage == SOURCE_STAGE else state
        for key, state in states.items()
    }


def without_targets(grid: HourGrid) -> HourGrid:
    """Return what the plain loops have, too."""
    stages = {
        stage: tuple(replace(cell, target=cell.interval) for cell in cells)
        for stage, cells in grid.stages.items()
    }
    return replace(grid, stages=stages, wider=None)


@settings(max_examples=max(4, settings.default.max_examples // 2))
@given(st.sets(st.integers(0, 40), max_size=5), STATES, CHANGES, INTERVALS, st.booleans())
def test_arrays_equal_plain_loops(
    numbers: set[int],
    entries: dict[PartitionKey, PartitionState],
    changes: dict[PartitionKey, PartitionState | None],
    interval: Interval,
    in_columns: bool,
) -> None:
    states = {**published(numbers), **entries}
    snapshot = (stored(states) if in_columns else LedgerSnapshot(states)).updated(changes)
    freshness = freshness_of(STREAM, snapshot)
    result = hours(STREAM, snapshot, freshness, interval)
    assert without_targets(result) == plain_hours(STREAM, snapshot, freshness, interval)


def cells(interval: Interval) -> tuple[HourGrid, tuple[GridCell, ...]]:
    snapshot = LedgerSnapshot({})
    grid = hours(STREAM, snapshot, freshness_of(STREAM, snapshot), interval)
    return grid, grid.stages["ingest"]


@pytest.mark.parametrize(
    "start", [datetime(2015, 5, 17, 5, tzinfo=UTC), datetime(2016, 2, 29, 23, tzinfo=UTC)]
)
def test_a_year_zooms_into_months_a_month_into_days_and_a_day_into_hours(start: datetime) -> None:
    year, months = cells(Interval(start, start + timedelta(days=365)))
    month, days = cells(months[1].target)
    day, of_day = cells(days[-1].target)
    assert (year.unit, month.unit, day.unit) == ("month", "day", "hour")
    assert (len(days), len(of_day)) == ({5: 30, 2: 31}[start.month], 24)
    # A cell at the end of the interval is cut, and its target is whole.
    assert months[0].interval.start == start
    assert months[0].target == Interval(start.replace(day=1, hour=0), months[1].interval.start)
    assert of_day[3].target == of_day[3].interval
    assert day.wider == months[1].target
    assert month.wider is not None
    assert (month.wider.start.timetuple().tm_yday, len(month.wider)) == (
        1,
        24 * {5: 365, 2: 366}[start.month],
    )
    assert year.wider is None


def test_the_last_hours_of_all_have_a_grid() -> None:
    for length in (timedelta(hours=5), timedelta(days=30), timedelta(days=400)):
        grid, of_stage = cells(Interval(LAST - length, LAST))
        assert of_stage[-1].interval.end == LAST
        assert grid.wider is None or grid.wider.end == LAST


def test_hours_without_events_are_those_of_ingest_with_and_without_a_file() -> None:
    last = STAGES[-1]
    blocked = PartitionKey(last.name, next(iter(last.steps[0].outputs)), last.steps[0].table.name, at(4))
    states = published({2, 4}) | {blocked: PartitionState("blocked", "a")}
    files = PartitionKey(SOURCE_STAGE, "events", "files", at(4))
    snapshot = LedgerSnapshot(states | {files: replace(states[files], rows=1)})
    grid = hours(STREAM, snapshot, freshness_of(STREAM, snapshot), between(0, 6))
    assert [cell.state for cell in grid.stages[last.name]][2:5] == ["empty", "none", "blocked"]
    assert [note for note in grid.notes if "without events" in note] == [
        "1 hour without events, as their files have none: 2015-05-17T04:00.",
        "1 hour without events, as no file came: 2015-05-17T02:00.",
    ]


def test_fine_hours_of_a_stream_with_expected_files_miss_nothing() -> None:
    expecting = {**yaml.safe_load(SIX), "source": {**yaml.safe_load(SIX)["source"], "expected_files": 1}}
    for stream, notes in (
        (
            parse(expecting),
            ("Every requested hour is published and fresh, and nothing is known to be missing.",),
        ),
        (
            STREAM,
            (
                "Every requested hour is published and fresh.",
                "No file is expected of this stream, so no check finds a missing one.",
            ),
        ),
    ):
        snapshot = LedgerSnapshot({})
        assert hours(stream, snapshot, freshness_of(stream, snapshot), between(0, 6)).notes == notes
