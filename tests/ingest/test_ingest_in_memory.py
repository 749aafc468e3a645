"""Ingest in the lake in memory: the state of hours and files after any kills of its runs. No Spark."""

import zlib
from collections.abc import Callable
from datetime import timedelta

import pytest
import yaml

from tests.support.memory_ingest import access_log
from tests.support.memory_lake import at
from tests.support.memory_pipeline import EVERY_FEATURE, Pipeline
from transom.core.partitions import PartitionState
from transom.features.ingest.expected_inputs import partition_of
from transom.storage.fencing import RunSuperseded
from transom.stream import parse

STREAM = parse(yaml.safe_load(EVERY_FEATURE.replace('.log.gz"}', '.log.gz", equal_files: one}')))
"""A stream in which files of equal bytes are one; a run repairs the two hours before its own."""
SIDES = ["before", pytest.param("after", marks=pytest.mark.full)]


def put(lake: Pipeline, name: str, *minutes: int, of: int | None = None, sent: int = 1) -> None:
    """Put a file into the landing folder.

    Args:
        name: begins with the hour.
        minutes: the times of its lines in that hour.
        of: the hour of its lines, if it is another one.
    """
    hour = at(int(name[:2]) if of is None else of)
    lines = access_log(*(hour + timedelta(minutes=minute) for minute in minutes), sent=sent)
    lake.landing[path(name)] = (lines, at(zlib.crc32(lines) % 1000))


def path(name: str) -> str:
    return f"landing/web/2015-05-17/access.{name}.log.gz"


def files(lake: Pipeline) -> dict[str, tuple[str, int]]:
    """Return status and number of events of each file."""
    return {row["path"][30:-7]: (row["status"], row["accepted"]) for row in lake.files().values()}


def events(lake: Pipeline) -> dict[int, int]:
    """Return the number of events of each published complete hour."""
    entries = {n: lake.ledger.snapshot().get(partition_of("events", at(n))) for n in range(9)}
    return {n: entry.rows for n, entry in entries.items() if entry and _is_whole(entry)}


def _is_whole(entry: PartitionState) -> bool:
    return entry.status == "published" and entry.complete


def failed(lake: Pipeline, hour: int) -> list[str]:
    """Return the checks that failed in an hour."""
    snapshot = lake.ledger.snapshot()
    return [v.check for v in lake.ledger.checks(snapshot, "ingest", {at(hour)}) if not v.success]


def first(lake: Pipeline) -> None:
    put(lake, "00a", 10, 20)
    put(lake, "01a", 10)


def later(lake: Pipeline) -> None:
    """Add a late file, a grown file, a duplicate, and a new file."""
    put(lake, "00b", 30)
    put(lake, "01a", 10, 50)
    put(lake, "01b", 10, 50)
    put(lake, "02a", 5)


def test_late_and_grown_files_and_duplicates_equal_one_run_over_all_files() -> None:
    lake = Pipeline(STREAM)
    first(lake)
    outcome = lake.ingest(0, 2)
    assert (outcome.published, outcome.rows_out, outcome.partitions_repaired) == (2, 3, 0)
    assert events(lake) == {0: 2, 1: 1}
    later(lake)
    outcome = lake.ingest(2, 3)
    assert (outcome.published, outcome.rows_out, outcome.partitions_repaired) == (3, 6, 2)
    assert events(lake) == {0: 3, 1: 2, 2: 1}
    assert files(lake) == {
        "00a": ("ingested", 2), "00b": ("ingested", 1), "01a": ("ingested", 2), "01b": ("duplicate", 2),
        "02a": ("ingested", 1),
    }  # fmt: skip
    lake.assert_ledger_true()
    again_run = Pipeline(STREAM)
    first(again_run)
    later(again_run)
    again_run.ingest(0, 3)
    lake.assert_same(again_run)
    version = lake.ledger.version
    assert lake.ingest(0, 3).published == 0
    assert lake.ledger.version == version


def test_changed_file_is_a_conflict_and_removed_file_keeps_its_rows() -> None:
    lake = Pipeline(STREAM)
    first(lake)
    later(lake)
    lake.ingest(0, 3)
    put(lake, "02a", 5, sent=2)
    put(lake, "00b", 30, 31, of=9)
    del lake.landing[path("00a")]
    lake.ingest(2, 3)
    assert events(lake) == {0: 3, 1: 2, 2: 1}
    assert files(lake)["00a"] == ("missing", 2)
    assert files(lake)["00b"] == files(lake)["02a"] == ("conflict", 1)
    assert "files_unchanged" in failed(lake, 2)
    # If the name of a duplicate is gone, another one has its rows.
    del lake.landing[path("01a")]
    lake.ingest(2, 3)
    assert files(lake).keys() == {"00a", "00b", "01b", "02a"}
    assert (files(lake)["01b"], events(lake)[1]) == (("ingested", 2), 2)
    lake.assert_ledger_true()


def test_file_later_than_the_repair_window_waits() -> None:
    lake = Pipeline(STREAM)
    first(lake)
    lake.ingest(0, 2)
    put(lake, "00b", 30)
    lake.ingest(4, 5)
    assert files(lake)["00b"] == ("waiting", 0)
    assert events(lake) == {1: 1, 4: 0}
    lake.ingest(0, 1)
    assert events(lake) == {0: 3, 1: 1, 4: 0}


def test_late_file_changes_every_stage() -> None:
    lake, again_run = Pipeline(STREAM), Pipeline(STREAM)
    first(lake)
    for number in range(3):
        if number == 2:
            later(lake)
        lake.ingest(number, number + 1)
        lake.run(number, number + 1)
    first(again_run)
    later(again_run)
    again_run.ingest(0, 3)
    again_run.run(0, 3)
    lake.assert_same(again_run)


def killed_at_each_commit(lake: Pipeline, run: Callable[[Pipeline], object]) -> list[Pipeline]:
    """Return the states that a run leaves if it is killed before its first commit or after any."""
    remaining = [lake.copied()]
    lake.commits.observer = lambda: remaining.append(lake.copied())
    run(lake)
    lake.commits.observer = lambda: None
    return remaining


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
def test_run_killed_between_any_two_commits_is_repaired_by_next_run(again: bool) -> None:
    never = Pipeline(STREAM)
    first(never)
    if again:
        never.ingest(0, 2)
        later(never)
        del never.landing[path("00a")]
    hours = (2, 3) if again else (0, 2)
    remaining = killed_at_each_commit(never, lambda lake: lake.ingest(*hours))
    # A pin, a claim, rows of events and files, checks, and the results.
    assert len(remaining) > 5
    for number, lake in enumerate(remaining):
        lake.ingest(*hours)
        lake.assert_same(never, f"killed after commit {number}:")
        lake.assert_ledger_true()


@pytest.mark.parametrize("side", SIDES)
def test_run_overtaken_at_any_commit_leaves_the_rows_of_the_other_run(side: str) -> None:
    old = Pipeline(STREAM)
    first(old)
    old.ingest(0, 1)
    new, alone = old.copied(), old.copied()
    alone.ingest(0, 2)

    def others(lake: Pipeline) -> None:
        later(lake)
        lake.ingest(0, 3)

    others(new)
    overtaken = 0
    for point in range(1, alone.commits.count - old.commits.count + 1):
        lake = old.copied()
        with lake.commits.struck(point, side, lambda lake=lake: others(lake)):
            try:
                lake.ingest(0, 2)
            except RunSuperseded:
                overtaken += 1
        lake.assert_ledger_true()
        lake.ingest(0, 3)
        lake.assert_same(new, f"overtaken {side} commit {point}:")
    assert overtaken
