"""Rejected lines on the page about quality."""

from typing import Any

import pytest

from tests.support.viewed_lake import ViewedLake, at, between, quality_of
from transom.charts.section import Section
from transom.charts.specs import millis
from transom.core.intervals import format_hour
from transom.core.partitions import PartitionState
from transom.features.ingest.expected_inputs import partition_of
from transom.views import quality
from transom.views.open_stream import OpenStream
from transom.views.runs import HourName


def section(lake: ViewedLake) -> Section:
    parts = quality_of(OpenStream(lake.uri, lake.stream), between(0, 6), 1)
    (found,) = (part for part in parts if part.subject == "rejected")
    return found


def column(part: Section, name: str) -> list[object]:
    return [] if part.table is None else [row[part.table.columns.index(name)] for row in part.table.rows]


def test_rejected_lines_of_hours_that_are_not_published_do_not_count(lake: ViewedLake) -> None:
    lake.enter("ingest", {partition_of("rejected", at(2)): PartitionState("quarantined", "u")}, "u")
    row = {"source_id": "s", "raw": "r", "reason": "odd"}
    lake.add("rejected", [{**row, "hour": at(n), "source_line": n} for n in (1, 2, 50)])
    part = section(lake)
    assert column(part, "source_line") == [1]
    assert part.chart is not None
    assert [row["value"] for row in part.chart["layer"][0]["data"]["values"]] == [1]
    # A link to the hour, and the file; the identity of its content if no file is known.
    assert column(part, "hour") == [HourName(format_hour(at(1)))]
    assert isinstance(column(part, "hour")[0], HourName)
    assert column(part, "file") == ["s"]
    lake.add("files", [{"source_id": "s", "path": "web/1.log", "hour": at(1)}])
    assert column(section(lake), "file") == ["web/1.log"]
    assert part.note.endswith("Of 6 requested hours: 5 published, 1 quarantined.")


def test_samples_are_the_last_lines_of_each_reason_and_cut(lake: ViewedLake) -> None:
    row = {"source_id": "s", "raw": "x" * 9_000, "detail": "d" * 9_000}
    lines: list[dict[str, Any]] = [
        {**row, "hour": at(n % 5), "source_line": n, "reason": reason}
        for reason, count in (("rare", 1), ("odd", 7))
        for n in range(count)
    ]
    lake.add("rejected", lines)
    part = section(lake)
    assert column(part, "reason") == ["odd"] * 3 + ["rare"]
    assert column(part, "lines") == [7, 7, 7, 1]
    assert column(part, "source_line") == [4, 3, 2, 0]
    assert {len(str(text)) for text in column(part, "raw") + column(part, "detail")} == {2_000}


def test_reasons_have_a_stated_limit(lake: ViewedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality, "MAX_ROWS", 9)
    row = {"source_id": "s", "raw": "r", "hour": at(1), "source_line": 1}
    lake.add("rejected", [{**row, "reason": f"r{n}"} for n in range(5)])
    part = section(lake)
    assert column(part, "reason") == ["r0", "r1", "r2"]
    assert "Only the 3 most frequent reasons are listed." in part.note


def test_rejected_lines_are_on_the_axis_of_the_whole_interval_with_their_share(lake: ViewedLake) -> None:
    lake.add("rejected", [{"source_id": "s", "raw": "r", "reason": "odd", "hour": at(1), "source_line": 1}])
    part = section(lake)
    assert part.chart is not None
    axis = part.chart["layer"][0]["encoding"]["x"]["scale"]
    assert axis["domain"] == [millis(at(0)), millis(at(6))]
    assert (
        "1 line of the files of published hours became no event, next to 60 events: 1.6 % of all" in part.note
    )
