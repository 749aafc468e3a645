"""What a run makes of damaged data: it reports and marks it, recomputes it, or leaves the hour damaged."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.app.damaged_lakes import (
    HOURS,
    SMALL,
    STREAM,
    Make,
    assert_whole,
    build,
    mark_damage,
    run_reopened,
)
from tests.support import damage as damaging
from tests.support.stream_harness import StreamHarness, hour, line
from transom.app.pipeline import run_stages
from transom.app.verify import find, mark
from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey
from transom.features.ingest.expected_inputs import partition_of


def build_with_late_file(lake: StreamHarness) -> None:
    """Build as `build` does, with a late file of the last hour."""
    build(lake)
    land_late_file(lake)
    lake.run(0, HOURS)


def land_late_file(lake: StreamHarness) -> None:
    lake.land(2, [line(3600 * 2 + 30 * second, "10.0.0.9") for second in range(20)], ".late")


def test_missing_file_and_damaged_block_of_another_hour_are_repaired_together(make_stream: Make) -> None:
    """Rows of other blocks are retained when an hour is written again, and a missing file is not read."""
    lake = make_stream(SMALL, "damaged", ready=build)
    damaging.missing(lake.root, "granules", hour(1))
    damaging.added(lake.root, "granules", hour(2))
    mark_damage(lake)
    assert_whole(run_reopened(lake), make_stream(SMALL, "whole", ready=build))


@pytest.mark.full
def test_rows_are_lost_until_their_removed_file_returns(make_stream: Make, tmp_path: Path) -> None:
    lake = make_stream(SMALL, "damaged", ready=build)
    whole = make_stream(SMALL, "whole", ready=build)
    damaging.missing(lake.root, "events", hour(1))
    (landed,) = (lake.folder / "landing").rglob("access.01.log.gz")
    shutil.move(landed, tmp_path / "kept")
    removed = find(lake.spark, lake.stream, lake.root).gone
    assert list(removed) == ["landing/web/2015-05-17/access.01.log.gz"]
    mark_damage(lake)
    lake = run_reopened(lake)
    entry = lake.snapshot()[partition_of("events", hour(1))]
    # A record that repeated a lost one is now the only one.
    assert (entry.status, entry.complete) == ("published", False)
    assert entry.rows < whole.snapshot()[partition_of("events", hour(1))].rows
    assert entry.reason is not None
    assert "access.01.log.gz: rows were damaged and are lost" in entry.reason
    shutil.move(tmp_path / "kept", landed)
    lake.run(0, HOURS)
    assert_whole(lake, whole)


def all_stages(lake: StreamHarness, recompute: bool = False) -> None:
    """Run every stage, as the job does."""
    run_stages(
        lake.spark, lake.stream, Interval(hour(0), hour(HOURS)),
        lake=str(Path(lake.root).parent), command="", recompute=recompute,
    )  # fmt: skip


@pytest.mark.full
def test_job_reports_damage_and_continues(make_stream: Make, caplog: pytest.LogCaptureFixture) -> None:
    lake = make_stream(STREAM, "damaged", ready=build)
    land_late_file(lake)
    file = damaging.truncated(lake.root, "events", hour(0))
    all_stages(lake)
    reported = next(lines for lines in caplog.messages if "marked as damaged" in lines)
    first, second, third, fourth = reported.splitlines()
    assert fourth.startswith("fills web: failed with ")
    assert first.startswith(f"fills web: unreadable: ingest, events {hour(0):%Y-%m-%dT%H:%M}: ")
    assert file in first
    assert "marked as damaged" in second
    assert "transom verify web" in third
    snapshot = lake.ledger.snapshot()
    assert snapshot[partition_of("events", hour(0))].status == "damaged"
    waiting = {node for node, entry in snapshot.items() if entry.status == "blocked"}
    assert waiting == {PartitionKey("fills", "around", "fills", hour(2))}, (
        "all else needs no events of that hour"
    )
    all_stages(lake)
    lake.assert_same(make_stream(STREAM, "whole", ready=build_with_late_file))


@pytest.mark.full
def test_damaged_state_is_recomputed_at_once(make_stream: Make, caplog: pytest.LogCaptureFixture) -> None:
    lake = make_stream(SMALL, "damaged", ready=build)
    land_late_file(lake)
    damaging.missing(lake.root, "granules", hour(1))
    all_stages(lake)
    assert any("granules" in lines and "is not there" in lines for lines in caplog.messages)
    lake.assert_same(make_stream(SMALL, "whole", ready=build_with_late_file))


@pytest.mark.full
def test_named_hours_are_recomputed(make_stream: Make) -> None:
    lake = make_stream(SMALL, "damaged", ready=build)
    for table in ("events", "rejected", "granules", "aggregates"):
        DeltaTable(f"{lake.root}/{table}").delete(f"hour = '{hour(1):%Y-%m-%dT%H:%M:%SZ}'")
    all_stages(lake)
    assert find(lake.spark, lake.stream, lake.root).damages, "no damage is reported"
    all_stages(lake, recompute=True)
    assert_whole(lake, make_stream(SMALL, "whole", ready=build))


LONG = """
name: web
preset: apache/combined
source: {path: "landing/long/*.log"}
key: [client]
repair_window: 2 hours
"""
"""Files without a time in their names, which may have hours outside a run."""
MANY = 8


def build_long(lake: StreamHarness) -> None:
    """Land a file of many hours and a file of one of them, and run all."""
    folder = lake.folder / "landing/long"
    folder.mkdir(parents=True)
    (folder / "all.log").write_text("".join(line(1800 * half) + "\n" for half in range(2 * MANY)))
    (folder / "one.log").write_text("".join(line(3600 * 4 + second) + "\n" for second in range(5)))
    lake.run(0, MANY)


def test_hour_stays_damaged_until_a_run_reads_its_whole_file(make_stream: Make) -> None:
    lake = make_stream(LONG, "damaged", ready=build_long)
    damaging.missing(lake.root, "events", hour(4))
    hours = mark(lake.spark, lake.stream, lake.root).hours
    assert (min(hours), max(hours)) == (hour(0), hour(MANY - 1))
    lake.run(4, 5)
    entry = lake.snapshot()[partition_of("events", hour(4))]
    assert entry.status == "damaged"
    assert "long/all.log and others, by a run from 2015-05-17T00:00 to 2015-05-17T08:00" in str(entry.reason)
    lake.in_chunks("ingest", 0, MANY)
    lake.assert_same(make_stream(LONG, "whole", ready=build_long))


def test_changed_rows_get_no_new_digest(make_stream: Make) -> None:
    lake = make_stream(LONG, "damaged", ready=build_long)
    before = lake.snapshot()[partition_of("events", hour(4))]
    recomputed = replace(lake.context(4, 5), recompute=True)
    lake._stage("ingest", recomputed)
    same = lake.snapshot()[partition_of("events", hour(4))]
    assert (same.status, same.digest) == ("published", before.digest), (
        "what equals its digest is written again"
    )
    damaging.changed(lake.root, "events", hour(4))
    lake._stage("ingest", recomputed)
    entry = lake.snapshot()[partition_of("events", hour(4))]
    assert (entry.status, entry.digest) == ("damaged", before.digest)
    assert "its rows do not have the digest in the ledger" in str(entry.reason)
    lake._stage("ingest", replace(lake.context(0, MANY), recompute=True))
    lake.assert_same(make_stream(LONG, "whole", ready=build_long))
