"""The quality of a stream, compared with the tables."""

import shutil
from typing import Any

import pytest

from tests.support.viewed_lake import ViewedLake, at, between
from transom.charts.section import MAX_ROWS, Section
from transom.core.partitions import CheckResult, PartitionState
from transom.features.ingest.expected_inputs import partition_of
from transom.views import quality
from transom.views.open_stream import OpenStream
from transom.views.quality import quality_of


def section(lake: ViewedLake, subject: str, page: int = 1) -> Section:
    parts = quality_of(OpenStream(lake.uri, lake.stream), between(0, 6), page)
    (found,) = (part for part in parts if part.subject == subject)
    return found


def column(part: Section, name: str) -> list[object]:
    return [] if part.table is None else [row[part.table.columns.index(name)] for row in part.table.rows]


def heights(part: Section) -> dict[str, int]:
    assert part.chart is not None
    sums: dict[str, int] = {}
    for row in part.chart["data"]["values"]:
        sums[row["series"]] = sums.get(row["series"], 0) + row["value"]
    return sums


def test_failed_checks_are_counted_and_paged(lake: ViewedLake) -> None:
    results = [
        CheckResult(partition_of("events", at(n % 6)), f"check{n:03}", "warning", 1.0, "0", False)
        for n in range(MAX_ROWS + 30)
    ]
    lake.ledger.record_checks("ingest", results, "a")
    lake.ledger.record_checks("ingest", results, "another run")
    pages = [section(lake, "checks", page) for page in (1, 2, 3)]
    shown = [check for part in pages for check in column(part, "check")]
    assert shown == [f"check{n:03}" for n in sorted(range(MAX_ROWS + 30), key=lambda n: (-(n % 6), n))]
    assert {part.table.total for part in pages if part.table} == {MAX_ROWS + 30}
    assert pages[0].note.startswith("230 failed checks")
    assert sum(heights(pages[0]).values()) == MAX_ROWS + 30
    assert pages[0].table is not None
    assert len([*pages[0].table.all_rows]) == MAX_ROWS + 30


def test_accepted_check_does_not_withhold_the_hour(lake: ViewedLake) -> None:
    result = CheckResult(partition_of("events", at(1)), "c", "error", 1.0, "0", False, accepted="ann: fine")
    lake.ledger.record_checks("ingest", [result], "a")
    part = section(lake, "checks")
    assert column(part, "accepted") == ["ann: fine"]
    assert "that is not accepted" in part.note


def test_rejected_lines_of_hours_that_are_not_published_do_not_count(lake: ViewedLake) -> None:
    lake.enter("ingest", {partition_of("rejected", at(2)): PartitionState("quarantined", "u")}, "u")
    row = {"source_id": "s", "raw": "r", "reason": "odd"}
    lake.add("rejected", [{**row, "hour": at(n), "source_line": n} for n in (1, 2, 50)])
    part = section(lake, "rejected")
    assert (column(part, "source_line"), heights(part)) == ([1], {"odd": 1})
    assert part.note.endswith("Of 6 requested hours: 5 published, 1 quarantined.")


def test_samples_are_the_last_lines_of_each_reason_and_cut(lake: ViewedLake) -> None:
    row = {"source_id": "s", "raw": "x" * 9_000, "detail": "d" * 9_000}
    lines: list[dict[str, Any]] = [
        {**row, "hour": at(n % 5), "source_line": n, "reason": reason}
        for reason, count in (("rare", 1), ("odd", 7))
        for n in range(count)
    ]
    lake.add("rejected", lines)
    part = section(lake, "rejected")
    assert column(part, "reason") == ["odd"] * 3 + ["rare"]
    assert column(part, "lines") == [7, 7, 7, 1]
    assert column(part, "source_line") == [4, 3, 2, 0]
    assert {len(str(text)) for text in column(part, "raw") + column(part, "detail")} == {2_000}


def test_reasons_have_a_stated_limit(lake: ViewedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality, "MAX_ROWS", 9)
    row = {"source_id": "s", "raw": "r", "hour": at(1), "source_line": 1}
    lake.add("rejected", [{**row, "reason": f"r{n}"} for n in range(5)])
    part = section(lake, "rejected")
    assert column(part, "reason") == ["r0", "r1", "r2"]
    assert "Only the 3 most frequent reasons are listed." in part.note


def test_runs_have_their_work_beside_its_bound(lake: ViewedLake) -> None:
    lake.ran("patterns", 0, 3, comparisons=1_000)
    lake.ran("patterns", 50, 60)
    part = section(lake, "runs")
    assert (column(part, "from"), column(part, "seconds"), column(part, "rows_read")) == (
        [at(0)],
        [7.5],
        [12],
    )
    assert part.note == "1 run over these hours, the last first."


def test_missing_tables_of_quality_are_empty(lake: ViewedLake) -> None:
    for name in ("checks", "runs"):
        shutil.rmtree(f"{lake.root}/{name}")
    parts = quality_of(OpenStream(lake.uri, lake.stream), between(0, 6))
    assert [part.table for part in parts] == [None, None, None]
