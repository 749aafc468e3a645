"""Damaged data is found. After a repair and a run the lake equals one that was never damaged."""

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from deltalake import DeltaTable

from tests.support import damage as damaging
from tests.support.stream_harness import StreamHarness, hour, line
from transom.app import verify as verifying
from transom.app.definitions import stage_names
from transom.app.pipeline import run_stages
from transom.app.verify import find, layouts_of, mark
from transom.cli.verify import verify_in
from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.engine import verification
from transom.engine.ledger_repair import examine
from transom.engine.verification import Verification
from transom.features.ingest.expected_inputs import partition_of
from transom.ledger.damage import Damage
from transom.ledger.ledger import Run

Make = Callable[..., StreamHarness]
HOURS = 3

STREAM = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
unique: [client, bytes, status]
aggregates:
  traffic:
    measures: {n: count, sent: sum(bytes)}
    levels: RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES
    recurring: [status]
    alert: {many: n > 3}
  site: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
patterns:
  back:
    within: 3 hours
    batch: 20 minutes
    merge_gap: 1 hour
    steps: [{id: one, where: status = 404}, {id: other, where: status = 200, gap: {min: 5 minutes}}]
frames:
  served: {kind: threshold, where: status = 200, value: bytes, on_duplicate_time: sum, idle: 2 hours}
fills:
  around: {frame: served, lead: 30 minutes, measures: {sent: sum(bytes)}}
persistence:
  regulars: {item: [client], slot: 30 minutes, window: 3 hours, alpha: 0.6, epsilon: 0.4}
frequency:
  often: {item: [client], window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5, top: 2}
  split: {item: [client], window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5, variant: splitter}
"""


def build(lake: StreamHarness) -> None:
    """Land files of some hours, with a rejected line and duplicate lines, and run all stages."""
    for number in range(HOURS):
        lines = [
            line(
                3600 * number + second,
                f"10.0.0.{second * (number + 3) % 11 % 4}",
                100 + second % 7,
                404 if second % 5 == number else 200,
            )
            for second in (*range(0, 3600, 151), 3599)
        ]
        lake.land(number, [*lines, "no request"])
    lake.run(0, HOURS)
    for stage in lake.stream.stages:
        # Under one name, as runs by hand may be.
        run = Run(
            "by hand",
            "by hand",
            stage,
            hour(0),
            hour(HOURS),
            0,
            None,
            0,
            0,
            {"total": 1.0},
            1,
            "1",
            hour(HOURS),
        )
        lake.ledger.record_run(run)
        lake.ledger.record_run(replace(run, finished_at=hour(HOURS + 1)))


TABLES = (
    "events", "duplicates", "rejected", "files", "batches", "matches", "episodes", "granules", "aggregates",
    "item_granules", "recurring", "alerts", "open_frames", "frames", "fills", "tuples", "persistent_items",
    "tick_matrices", "cells", "frequencies",
)  # fmt: skip
"""The tables for which the ledger has digests."""
OF_LEDGER = ("ledger", "checks", "runs", "findings")
OF_FILES = (damaging.truncated, damaging.flipped, damaging.missing, damaging.added, damaging.changed)
OF_LOGS = (damaging.without_entry, damaging.without_last_entry)


def mark_damage(lake: StreamHarness) -> Verification:
    """Mark the damage and return it, reading the lake once for both."""
    result: list[Verification] = []

    def verify(*arguments: Any) -> Verification:
        result.append(verification.verify(*arguments))
        return result[-1]

    with patch.object(verifying, "verify", verify):
        mark(lake.spark, lake.stream, lake.root)
    return result[0]


def reopened(lake: StreamHarness) -> StreamHarness:
    """Return the lake as another process opens it."""
    return StreamHarness(lake.spark, lake.folder, lake.text, Path(lake.root).parent.name)


def run_reopened(lake: StreamHarness) -> StreamHarness:
    """Run every stage in the lake, opened again."""
    opened = reopened(lake)
    opened.run(0, HOURS)
    return opened


def ledger_damage(lake: StreamHarness) -> list[Damage]:
    """Return the damage of the ledger's tables."""
    layouts = layouts_of(lake.stream)
    return examine(lake.root, stage_names(lake.stream), [layout.table.name for layout in layouts]).damages


def assert_whole(lake: StreamHarness, whole: StreamHarness) -> None:
    """Assert that a lake equals the undamaged one.

    `find` has nothing to report: rows and ledger are equal, and digests match the rows.
    """
    lake.assert_same(whole)
    lake.assert_ledger_true()
    assert ledger_damage(lake) == []


def test_command_lists_and_marks(make_stream: Make, capsys: pytest.CaptureFixture[str]) -> None:
    lake = make_stream(STREAM, "damaged", ready=build)
    uri, file = str(Path(lake.root).parent), Path("web.yaml")
    assert verify_in(lake.spark, lake.stream, file, uri), "nothing is damaged"
    assert f"web: {len(lake.snapshot())} hours of tables compared, 0 damages" in capsys.readouterr().out
    damaging.truncated(lake.root, "frames", hour(1))
    assert verify_in(lake.spark, lake.stream, file, uri, Interval(hour(0), hour(1))), "another hour is"
    assert not verify_in(lake.spark, lake.stream, file, uri, repair=True)
    text = capsys.readouterr().out
    assert "web: unreadable: frames, frames 2015-05-17T01:00: " in text
    assert "--from 2015-05-17T01:00 --to 2015-05-17T02:00" in text
    assert not verify_in(lake.spark, lake.stream, file, uri)
    assert "web: marked: frames, frames of served 2015-05-17T01:00: " in capsys.readouterr().out


def test_damage_is_found_and_repaired(make_stream: Make) -> None:
    lake = make_stream(STREAM, "damaged", ready=build)
    files = {
        damaging.truncated(lake.root, "events", hour(1)),
        damaging.changed(lake.root, "events", hour(2)),
    }
    damaging.without_entry(lake.root, "aggregates")
    result = mark_damage(lake)
    assert {of.table for of in result.damages} == {"events", "aggregates"}
    assert {Path(str(of.file)).name for of in result.damages if of.table == "events"} == files
    lake = run_reopened(lake)
    assert_whole(lake, make_stream(STREAM, "whole", ready=build))
    assert find(lake.spark, lake.stream, lake.root).damages == []


def test_damage_of_the_ledger_is_found_and_repaired(make_stream: Make) -> None:
    lake = make_stream(STREAM, "damaged", ready=build)
    damaging.truncated(lake.root, "ledger")
    damaging.added(lake.root, "runs")
    assert find(lake.spark, lake.stream, lake.root).tables is None, "a damaged ledger says nothing of tables"
    assert {of.table for of in ledger_damage(lake)} == {"ledger", "runs"}
    mark_damage(lake)
    assert_whole(run_reopened(lake), make_stream(STREAM, "whole", ready=build))


DAMAGES = (
    {0: damaging.truncated, 1: damaging.flipped, 2: damaging.missing},
    {1: damaging.changed, 2: damaging.added},
)
"""Damages that one lake has together in each table, by hour: a file is compared with its own hour."""


@pytest.mark.full
@pytest.mark.parametrize("damages", DAMAGES)
def test_every_damage_of_every_file_is_marked(
    make_stream: Make, damages: Mapping[int, damaging.Damaging]
) -> None:
    """The result of a run after that is the same for every damage: no row, and the ledger's content."""
    lake = make_stream(STREAM, "damaged", ready=build)
    before, rows = dict(lake.snapshot()), lake.rows()
    hurt = {
        (table, hour(number)): (damage, damage(lake.root, table, hour(number)))
        for table in TABLES
        for number, damage in damages.items()
        # The first hour has no recurring items; see `GROUPS`.
        if (table, number) != ("recurring", 0)
    }
    result = mark_damage(lake)
    for (table, moment), (damage, file) in hurt.items():
        of_file = [of for of in result.damages if (of.table, of.hours) == (table, (moment,))]
        assert any(file in str(of) for of in of_file), (table, moment, damage)
    nodes = set(result.reasons)
    assert {(node.table, node.hour) for node in nodes} == hurt.keys()
    for node, entry in lake.snapshot().items():
        retained = before[node]
        if node in nodes:
            retained = replace(retained, status="damaged", rows=0, run_id=entry.run_id, reason=entry.reason)
        elif (node.table, node.hour) in hurt:
            # Files of other blocks are intact.
            assert hurt[node.table, node.hour][0] in (damaging.added, damaging.changed), node
        assert comparable(entry) == comparable(retained), node
    opened = reopened(lake)
    for table, there in opened.rows().items():
        remaining = [row for row in rows[table] if not _of_nodes(row, table, nodes)]
        assert there == remaining, table


def comparable(entry: PartitionState) -> PartitionState:
    """Return an entry without the run, which every claim of its hour changes."""
    return replace(entry, run_id="")


def _of_nodes(row: Mapping[str, object], table: str, nodes: Collection[PartitionKey]) -> bool:
    return any(
        node.table == table and row["hour"] == node.hour and row.get("block", node.block) == node.block
        for node in nodes
    )


@pytest.mark.full
@pytest.mark.parametrize("damage", OF_LOGS)
def test_every_damage_of_every_log_is_marked(make_stream: Make, damage: damaging.Damaging) -> None:
    lake = make_stream(STREAM, "damaged", ready=build)
    before = dict(lake.snapshot())
    for table in TABLES:
        damage(lake.root, table, None)
    result = mark_damage(lake)
    assert {of.table for of in result.damages} == set(TABLES)
    for node, entry in lake.snapshot().items():
        assert entry.damaged or not before[node].rows, node
        assert (entry.digest, entry.input_hashes) == (before[node].digest, before[node].input_hashes), node
    rows = reopened(lake).rows()
    assert not any(rows[table] for table in TABLES)


GROUPS = [TABLES[::2], TABLES[1::2]]
"""Tables that are damaged together, a lake for each group. Neighbours in `TABLES` are in different groups, so
that next to every damaged table there are intact ones among its inputs or its readers. Each table of a group
is damaged in another way, `recurring` by a truncated file.
"""


@pytest.mark.full
@pytest.mark.parametrize("tables", GROUPS, ids=lambda tables: tables[0])
@pytest.mark.parametrize("damages", [OF_FILES, OF_LOGS], ids=["files", "logs"])
def test_every_damaged_table_is_recomputed(
    make_stream: Make, damages: Sequence[damaging.Damaging], tables: Sequence[str]
) -> None:
    """Slow (half a minute): mark, and a run of every stage."""
    lake = make_stream(STREAM, "damaged", ready=build)
    for number, table in enumerate(tables):
        damages[number % len(damages)](lake.root, table, hour(1))
    assert {of.table for of in mark_damage(lake).damages} == set(tables)
    assert_whole(run_reopened(lake), make_stream(STREAM, "whole", ready=build))


@pytest.mark.full
@pytest.mark.parametrize("damage", [damaging.missing, damaging.added, damaging.without_entry])
def test_every_damage_of_the_ledger_is_repaired(make_stream: Make, damage: damaging.Damaging) -> None:
    """Slow (half a minute). Two damages cannot be detected: a change, as the ledger has no digest of its own
    tables, and the loss of a log's last entry, which looks like a killed run.
    """
    lake = make_stream(STREAM, "damaged", ready=build)
    for table in OF_LEDGER:
        damage(lake.root, table, hour(1))
    assert {of.table for of in ledger_damage(lake)} == set(OF_LEDGER)
    mark_damage(lake)
    assert ledger_damage(lake) == []
    if damage is damaging.missing:
        # The remaining ledger is the same for a missing file and for an unreadable one.
        for other in (damaging.truncated, damaging.flipped):
            same = make_stream(STREAM, other.__name__, ready=build)
            for table in OF_LEDGER:
                other(same.root, table, hour(1))
            assert {of.table for of in ledger_damage(same)} == set(OF_LEDGER)
            mark_damage(same)
            same.assert_same(lake)
            assert same.rows_of("runs") == lake.rows_of("runs")
    assert_whole(run_reopened(lake), make_stream(STREAM, "whole", ready=build))


SMALL = STREAM[: STREAM.index("patterns:")]
"""Two stages, for tests that need no more."""


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
    assert find(lake.spark, lake.stream, lake.root).damages, "nothing says that these hours are not fresh"
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
