"""The generated lake of the page's benchmark, and its views."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench import aims, page_lake, page_views, table
from bench.draw import FIRST
from bench.page import ALL, GRID, KEY, VIEWS, WEEK
from transom.app.freshness import freshness_of, snapshot_of
from transom.core.intervals import HOUR, Interval
from transom.features.aggregates.view import KEYS
from transom.ledger.ledger import Ledger
from transom.stream import load
from transom.views.view import view_of

HOURS = 60


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    page_lake.create_lake(folder, 2, HOURS)
    return folder


def test_few_hours_of_the_generated_ledger_are_stale(drawn: Path) -> None:
    for number in range(2):
        stream = load(drawn / "streams" / f"{page_lake.name_of(number)}.yaml")
        snapshot = snapshot_of(stream, Ledger(f"{drawn}/lake/{stream.name}", create=False))
        assert len(snapshot.required_hours) == HOURS
        freshness = freshness_of(stream, snapshot)
        stale = {stage: list(freshness.stale(stage)) for stage in stream.stages}
        outdated = [page_lake.FIRST + 9 * HOUR]
        assert stale == {stage: outdated if stage == "aggregates" else [] for stage in stream.stages}


@pytest.mark.parametrize("edit", [page_lake.EDITED, page_lake.OTHER])
def test_edits_of_the_stream_file_make_every_hour_of_a_stage_stale(
    drawn: Path, tmp_path: Path, edit: dict[str, object]
) -> None:
    stream = load(page_lake.spec_file(tmp_path, 0, edit))
    snapshot = snapshot_of(stream, Ledger(f"{drawn}/lake/{stream.name}", create=False))
    freshness = freshness_of(stream, snapshot)
    stages = stream.stages if edit is page_lake.OTHER else ["patterns"]
    # An hour of fills is blocked, which shows as such.
    expected = {stage: HOURS - (stage == "fills") for stage in stages}
    assert {stage: len(freshness.stale(stage)) for stage in stages} == expected


def test_page_of_the_generated_windows_has_a_chart_and_a_table(drawn: Path) -> None:
    stream = load(drawn / "streams" / f"{page_lake.name_of(0)}.yaml")
    results = view_of(f"{drawn}/lake", stream, Interval(FIRST, FIRST + HOURS * HOUR)).results
    (part,) = (part for part in results if part.anchor == "part-aggregates-traffic")
    assert part.chart
    assert part.table
    # One hour is quarantined.
    assert part.table.total == KEYS * (HOURS - 1)


@pytest.mark.parametrize("view", sorted(set(VIEWS.values())))
def test_each_view_shows_something(drawn: Path, monkeypatch: pytest.MonkeyPatch, view: str) -> None:
    monkeypatch.setenv("TRANSOM_LAKE", f"{drawn}/lake")
    monkeypatch.setenv("TRANSOM_STREAMS", str(drawn / "streams"))
    views: dict[str, Callable[[], int]] = dict(page_views.views(f"{drawn}/lake", drawn / "streams"))
    assert views[view]() > 0


def test_views_are_judged_by_their_aims(tmp_path: Path) -> None:
    seconds = {GRID: (0.9, 0.2), ALL: (1.0, 0.2), WEEK: (0.2, 1.0), KEY: (1.9, 1.2)}
    rows = [
        {
            **{"bench": "page", "hours": 26280, "streams": 1, "who": who, "peak_mib": 9},
            **{"cold": first, "seconds": warm},
        }
        for who, (first, warm) in seconds.items()
    ]
    assert [row["met"] for row in aims.judged(rows)] == [True, False, False, True]
    assert f"| {KEY} | 1 | 26,280 | 1.9 | 1.2 | under 2 s | yes | 9 |" in table.written(rows, tmp_path)
