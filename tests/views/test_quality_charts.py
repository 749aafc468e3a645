"""Charts of the quality of a stream, and the filter of checks."""

import pytest

from tests.support.viewed_lake import ViewedLake, at, between, quality_of
from transom import __version__
from transom.charts.section import Section
from transom.charts.specs import millis
from transom.core.partitions import CheckResult
from transom.features.ingest.expected_inputs import partition_of
from transom.ledger.ledger import Run
from transom.views import quality
from transom.views.open_stream import OpenStream


def section(lake: ViewedLake, subject: str, check: str | None = None) -> Section:
    parts = quality_of(OpenStream(lake.uri, lake.stream), between(0, 6), 1, check)
    (found,) = (part for part in parts if part.subject == subject)
    return found


def test_published_hours_without_events_have_a_mark_at_zero(
    lake: ViewedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.publish([1, 2], rows=0)
    part = section(lake, "lines")
    assert part.chart is not None
    bars, zeros = part.chart["layer"]
    assert [row["start"] for row in zeros["data"]["values"]] == [millis(at(2)), millis(at(1))]
    assert {row["start"] for row in bars["data"]["values"]} == {millis(at(n)) for n in (0, 3, 4, 5)}
    assert "2 published hours without events, with a grey mark at zero." in part.note
    # Bars of days have no marks of hours.
    monkeypatch.setattr(quality, "BARS", 5)
    part = section(lake, "lines")
    assert part.chart is not None
    assert len(part.chart["layer"]) == 1
    assert "2 published hours without events. " in part.note


def test_work_is_with_its_bound(lake: ViewedLake) -> None:
    for number, work in enumerate((10, 30)):
        lake.ledger.record_run(
            Run(
                f"r{number}", "schedule", "patterns", at(number), at(number + 1), 0, None, 12, 3, {}, 100,
                __version__, at(90 + number), counters={"records_shown": work, "calls": 3},
                counter_limits={"records_shown": 40},
            )
        )  # fmt: skip
    lake.ran("frames", 0, 6, calls=3)
    part = section(lake, "work")
    assert part.table is not None
    assert part.table.columns[:7] == ("from", "to", "stage", "counter", "work", "bound", "share")
    assert [row[:7] for row in part.table.rows] == [
        (at(1), at(2), "patterns", "records_shown", 30, 40, 0.75),
        (at(0), at(1), "patterns", "records_shown", 10, 40, 0.25),
    ]
    assert part.chart is not None
    lines = [(row["series"], row["start"], row["end"], row["value"]) for row in part.chart["data"]["values"]]
    assert lines == [
        ("patterns: records shown to detectors", millis(at(1)), millis(at(2)), 0.75),
        ("patterns: records shown to detectors", millis(at(0)), millis(at(1)), 0.25),
    ]


def names_of(part: Section) -> list[object]:
    """Return the checks of the rows of a section."""
    return [] if part.table is None else [row[part.table.columns.index("check")] for row in part.table.rows]


def test_chosen_check_is_the_only_one_of_failed_and_solved_ones(lake: ViewedLake) -> None:
    failed = [
        CheckResult(partition_of("events", at(1)), name, "error", 1.0, "0", False) for name in ("c", "it's")
    ]
    lake.ledger.record_checks("ingest", failed, "earlier")
    assert names_of(section(lake, "solved", check="it's")) == ["it's"]
    note = section(lake, "checks", check="it's").note
    assert note.startswith(
        "it's does not fail now. 1 failure of earlier runs is solved: see below. Only it's:"
    )
    lake.ledger.record_checks("ingest", failed, "a")
    checks = section(lake, "checks", check="c")
    assert names_of(checks) == ["c"]
    assert "1 failed check of" in checks.note
    assert "Only c:" in checks.note
