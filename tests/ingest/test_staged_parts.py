"""Rows are written once, in their final place; no file of unpublished rows remains."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.stream_harness import PLAIN, StreamHarness, line
from transom.engine.staging import StagedOutput
from transom.features.ingest.file_decisions import Decisions, decide
from transom.features.ingest.landing import LandingError
from transom.storage.tables import LakeError

Make = Callable[..., StreamHarness]
TWO_BLOCKS = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
aggregates:
  each: {measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
  large: {measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR, where: bytes > 1000}
"""


def committed_files(harness: StreamHarness, table: str) -> set[str]:
    """Return the data files that any commit has added."""
    logs = sorted(Path(harness.root, table, "_delta_log").glob("*.json"))
    entries = [json.loads(text) for log in logs for text in log.read_text().splitlines()]
    return {Path(entry["add"]["path"]).name for entry in entries if "add" in entry}


def existing_files(harness: StreamHarness, table: str) -> set[str]:
    """Return the data files on the disk."""
    return {path.name for path in Path(harness.root, table).rglob("*.parquet")}


def read(harness: StreamHarness, table: str, of: str = "read") -> set[str]:
    """Return the data files that the reading of a file wrote; or those that a task has `made`."""
    return {path.name for path in Path(harness.root, table).glob(f"{of}-*/*.parquet")}


def folders(harness: StreamHarness, table: str) -> set[Path]:
    """Return the folders in which tasks have written."""
    return set(Path(harness.root, table).glob("read-*"))


def test_unpublished_hour_uses_rows_where_they_were_written(make_stream: Make) -> None:
    day = make_stream()
    day.land(0, [*map(line, range(40)), "torn"])
    day.land(1, [line(3601)])
    day.stage("ingest", 0, 2)
    assert len(read(day, "events")) == 2
    assert len(folders(day, "events")) == 1
    # A second file: the published rows of the hour are written together with it.
    day.land(0, [line(3)], ".more")
    day.stage("ingest", 0, 2)
    for table in ("events", "rejected"):
        assert existing_files(day, table) == committed_files(day, table)
    assert len(read(day, "events")) == 2
    assert (len(folders(day, "events")), folders(day, "rejected")) == (1, set())
    assert {row.source_line for row in day.table("rejected").collect()} == {41}
    day.assert_ledger_true()


def test_hour_that_is_empty_for_another_block_uses_rows_where_they_were_written(make_stream: Make) -> None:
    day = make_stream(TWO_BLOCKS)
    day.land(0, [line(1, sent=2000)])
    day.land(1, [line(3601, sent=1)])
    day.run(0, 2)
    assert len(read(day, "aggregates", "made")) == 3
    assert existing_files(day, "aggregates") == read(day, "aggregates", "made")
    # The published hour of the other block is empty, too.
    day.land(1, [line(3602, sent=1)], ".more")
    day.run(1, 2)
    assert existing_files(day, "aggregates") == read(day, "aggregates", "made")
    assert [(row.block, row.n) for row in day.table("aggregates").orderBy("hour", "block").collect()] == [
        ("each", 1), ("large", 1), ("each", 2)
    ]  # fmt: skip
    day.assert_ledger_true()


def test_quarantined_file_leaves_no_data_files(make_stream: Make) -> None:
    day = make_stream()
    day.land(0, [line(1), *["torn"] * 30])
    day.stage("ingest", 0, 1)
    assert {row.status for row in day.table("files").collect()} == {"quarantined"}
    assert existing_files(day, "events") == existing_files(day, "rejected") == set()


def test_failed_run_leaves_no_data_files(make_stream: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    day = make_stream()
    day.land(0, [line(1)])

    def fails(*_: object) -> None:
        raise LandingError("the folder is gone")

    monkeypatch.setattr("transom.features.ingest.stage.decide", fails)
    with pytest.raises(LandingError):
        day.stage("ingest", 0, 1)
    assert existing_files(day, "events") == set()


def test_lake_with_pattern_characters_in_its_name_is_written(make_stream: Make) -> None:
    day = make_stream(PLAIN, "lake {a,b} *?")
    day.land(0, [line(1), line(2)])
    day.run(0, 1)
    assert day.table("events").count() == 2
    day.assert_ledger_true()


def test_file_of_more_hours_than_parts_is_written_completely(
    make_stream: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PLAIN.replace("access.%H*.log.gz", "access.*.log.gz").replace(", expected_files: 1", "")
    divided, together = make_stream(text), make_stream(text, lake="other")
    divided.land(0, [line(1), line(3600), line(2)])
    divided.stage("ingest", 0, 2)
    monkeypatch.setattr("transom.features.ingest.parsed_rows.MOST_HOURS", 1)
    together.stage("ingest", 0, 2)
    together.assert_same(divided)
    assert (len(read(divided, "events")), len(read(together, "events"))) == (2, 0)
    assert existing_files(together, "events") == committed_files(together, "events")


AGGREGATE = ("granules", "aggregates")


def build(day: StreamHarness) -> None:
    """Build two hours of several clients, with every stage."""
    for number in range(2):
        day.land(number, [line(3600 * number + second, f"10.0.0.{second}") for second in range(9)])
    day.run(0, 2)


@pytest.mark.full
def test_rows_of_tasks_are_used_where_they_were_written(make_stream: Make) -> None:
    """Slow (20 seconds): two lakes of all stages."""
    day = make_stream(PLAIN, ready=build)
    for table in AGGREGATE:
        assert existing_files(day, table) == committed_files(day, table) == read(day, table, "made") != set()
    # One block's existing rows and the new ones of the other are written together.
    text = PLAIN.replace("sent: sum(bytes)", "sent: max(bytes)")
    changed = make_stream(text)
    changed.stage("aggregates", 0, 2)
    for table in AGGREGATE:
        assert existing_files(changed, table) == committed_files(changed, table)
    assert existing_files(changed, "granules") == read(changed, "granules", "made")
    assert existing_files(changed, "aggregates") != read(changed, "aggregates", "made")
    fresh = make_stream(text, lake="fresh")
    fresh.run(0, 2)
    changed.assert_same(fresh)


@pytest.mark.full
@pytest.mark.parametrize(("bound", "limit"), [("MOST_HOURS", 1), ("MOST_FILES", 0)])
def test_rows_of_tasks_equal_rows_written_otherwise(
    make_stream: Make, monkeypatch: pytest.MonkeyPatch, bound: str, limit: int
) -> None:
    """Slow (20 seconds): two lakes of all stages."""
    one, other = make_stream(PLAIN, ready=build), make_stream(PLAIN, "other")
    monkeypatch.setattr(f"transom.engine.staging.{bound}", limit)
    other.run(0, 2)
    other.assert_same(one)
    for table in AGGREGATE:
        assert read(other, table, "made") == set()
        assert existing_files(other, table) == committed_files(other, table)


@pytest.mark.full
@pytest.mark.parametrize("table", AGGREGATE)
def test_rows_lost_after_computation_fail_the_run(
    make_stream: Make, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    day = make_stream(PLAIN)
    for number in range(2):
        day.land(number, [line(3600 * number)])
    day.stage("ingest", 0, 2)
    result = StagedOutput.adopt_files

    def loses(spool: StagedOutput, targets: Any) -> Any:
        for path in list(Path(day.root, table).glob("made-*/*.parquet"))[:1]:
            path.unlink()
        return result(spool, targets)

    with monkeypatch.context() as patch:
        patch.setattr(StagedOutput, "adopt_files", loses)
        with pytest.raises(
            LakeError, match=rf"lake: 1 of \d+ files that were written for {table} cannot be found; run the"
        ):
            day.stage("aggregates", 0, 2)
    assert existing_files(day, "aggregates") == set()
    day.run(0, 2)
    day.assert_ledger_true()


@pytest.mark.full
@pytest.mark.parametrize("is_published", [False, True])
@pytest.mark.parametrize("table", ["events", "rejected"])
def test_rows_lost_after_reading_fail_the_run(
    make_stream: Make, monkeypatch: pytest.MonkeyPatch, table: str, is_published: bool
) -> None:
    day = make_stream()
    if is_published:
        day.land(0, [*map(line, range(40, 80)), "torn"], ".first")
        day.stage("ingest", 0, 1)
    before, previous = day.snapshot(), set(Path(day.root, table).rglob("*.parquet"))
    day.land(0, [*map(line, range(40)), "torn"])
    day.land(1, [*map(line, range(3600, 3640)), "torn"])

    def loses(*given: Any) -> Decisions:
        min(set(Path(day.root, table).glob("read-*/*.parquet")) - previous).unlink()
        return decide(*given)

    with monkeypatch.context() as patch:
        patch.setattr("transom.features.ingest.stage.decide", loses)
        with pytest.raises(
            LakeError, match=rf"lake: 1 of \d+ files that were written for {table} cannot be found; run the"
        ):
            day.stage("ingest", 0, 2)
    assert day.snapshot() == before
    day.stage("ingest", 0, 2)
    count = (80, 2) if not is_published else (120, 3)
    assert (day.table("events").count(), day.table("rejected").count()) == count
