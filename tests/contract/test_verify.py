"""Damaged data is found, and after a repair and a run the lake is as one that was never damaged."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

import damaging
from house import House, hour, line
from transom.app.pipeline import run_stages
from transom.app.verify import find, mark
from transom.cli.verify import verify_in
from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey
from transom.features.ingest.specified import node_of
from transom.ledger.ledger import Run

Make = Callable[..., House]
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
    merge: 1 hour
    steps: [{id: one, where: status = 404}, {id: other, where: status = 200, gap: {min: 5 minutes}}]
frames:
  served: {kind: threshold, where: status = 200, of: bytes, ties: sum, idle: 2 hours}
fills:
  around: {frame: served, lead: 30 minutes, measures: {sent: sum(bytes)}}
persistence:
  regulars: {item: [client], slot: 30 minutes, window: 3 hours, alpha: 0.6, epsilon: 0.4}
frequency:
  often: {item: [client], window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5, top: 2}
  split: {item: [client], window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5, variant: splitter}
"""


def build(lake: House) -> None:
    """Land files of some hours, with a line that is refused and lines that repeat others, and run all."""
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
"""The tables that the ledger has digests of."""
OF_LEDGER = ("hours", "checks", "runs", "findings")
OF_FILES = (damaging.truncated, damaging.flipped, damaging.missing, damaging.added, damaging.changed)
OF_LOGS = (damaging.without_entry, damaging.without_last_entry)


def repair_and_run(lake: House) -> House:
    """Mark what is damaged, and run every stage; opened anew, as by another process."""
    mark(lake.spark, lake.stream, lake.root)
    opened = House(lake.spark, lake.folder, STREAM, Path(lake.root).parent.name)
    opened.run(0, HOURS)
    return opened


def assert_whole(lake: House, house: Make) -> None:
    """Assert that a lake is as the undamaged one, and that nothing is found in it."""
    lake.assert_same(house(STREAM, "whole", ready=build))
    lake.assert_ledger_true()
    assert find(lake.spark, lake.stream, lake.root).damages == []


def damaged_and_repaired(house: Make, tables: Sequence[str], damage: damaging.Damaging) -> None:
    """Damage tables, find that, repair them, and compare all tables with those of an undamaged lake."""
    lake = house(STREAM, "damaged", ready=build)
    files = {table: damage(lake.root, table, hour(1)) for table in tables}
    found = find(lake.spark, lake.stream, lake.root).damages
    assert {of.table for of in found} == set(tables)
    for table in tables:
        if damage in OF_FILES and table not in OF_LEDGER:
            assert any(files[table] in str(of) for of in found if of.table == table), table
    assert_whole(repair_and_run(lake), house)


def test_whole_lake_has_no_damage(house: Make) -> None:
    lake = house(STREAM, "whole", ready=build)
    found = find(lake.spark, lake.stream, lake.root)
    assert found.damages == []
    assert found.tables is not None
    assert found.tables.nodes == len(lake.book())


def test_command_lists_and_marks(house: Make, capsys: pytest.CaptureFixture[str]) -> None:
    lake = house(STREAM, "damaged", ready=build)
    uri, file = str(Path(lake.root).parent), Path("web.yaml")
    assert verify_in(lake.spark, lake.stream, file, uri)
    damaging.truncated(lake.root, "frames", hour(1))
    capsys.readouterr()
    assert verify_in(lake.spark, lake.stream, file, uri, Interval(hour(0), hour(1))), "another hour is"
    assert not verify_in(lake.spark, lake.stream, file, uri, repair=True)
    said = capsys.readouterr().out
    assert "web: unreadable: frame, frames 2015-05-17T01:00: " in said
    assert "--from 2015-05-17T01:00 --to 2015-05-17T02:00" in said
    assert not verify_in(lake.spark, lake.stream, file, uri)
    assert "web: marked: frame, frames of served 2015-05-17T01:00: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("table", "damage"),
    [
        ("events", damaging.truncated),
        ("events", damaging.changed),
        ("runs", damaging.added),
        ("aggregates", damaging.without_entry),
        ("hours", damaging.truncated),
    ],
)
def test_damage_is_found_and_repaired(house: Make, table: str, damage: damaging.Damaging) -> None:
    damaged_and_repaired(house, [table], damage)


GROUPS = [OF_LEDGER, TABLES[::2], TABLES[1::2]]
"""Tables that are damaged together, a lake for each group: tables that follow each other in `TABLES` are in
different ones, so that next to every damaged table there are whole ones which it is made from or that are
made from it. While a table of the ledger is damaged, the others cannot be compared with it."""


@pytest.mark.full
@pytest.mark.parametrize("tables", GROUPS, ids=lambda tables: tables[0])
@pytest.mark.parametrize("damage", [*OF_FILES, *OF_LOGS])
def test_every_damage_of_every_table(house: Make, damage: damaging.Damaging, tables: Sequence[str]) -> None:
    """Slow (half a minute): find, mark, and a run of every stage."""
    if damage is damaging.without_last_entry and tables is OF_LEDGER:
        pytest.skip("such a log looks like one that a killed run has left")
    if damage is damaging.changed and tables is OF_LEDGER:
        pytest.skip("the ledger has no digest of its own tables")
    damaged_and_repaired(house, tables, damage)


@pytest.mark.full
def test_rows_are_lost_until_a_file_that_is_gone_comes_back(house: Make, tmp_path: Path) -> None:
    lake = house(STREAM, "damaged", ready=build)
    damaging.missing(lake.root, "events", hour(1))
    (landed,) = (lake.folder / "landing").rglob("access.01.log.gz")
    shutil.move(landed, tmp_path / "kept")
    gone = find(lake.spark, lake.stream, lake.root).gone
    assert list(gone) == ["landing/web/2015-05-17/access.01.log.gz"]
    lake = repair_and_run(lake)
    entry = lake.book()[node_of("events", hour(1))]
    # A record that repeated one that is lost is the only one now.
    assert (entry.status, entry.complete) == ("published", False)
    assert entry.rows < house(STREAM, "whole", ready=build).book()[node_of("events", hour(1))].rows
    assert entry.cause is not None
    assert "access.01.log.gz: rows were damaged and are lost" in entry.cause
    shutil.move(tmp_path / "kept", landed)
    lake.run(0, HOURS)
    assert_whole(lake, house)


def all_stages(lake: House, recompute: bool = False) -> None:
    """Runs every stage, as the job does."""
    run_stages(
        lake.spark, lake.stream, Interval(hour(0), hour(HOURS)),
        lake=str(Path(lake.root).parent), command="", recompute=recompute,
    )  # fmt: skip


def test_job_that_meets_damage_says_so_and_goes_on(house: Make, caplog: pytest.LogCaptureFixture) -> None:
    lake = house(STREAM, "damaged", ready=build)
    late = [line(3600 * 2 + 30 * second, "10.0.0.9") for second in range(20)]
    lake.land(2, late, ".late")
    file = damaging.truncated(lake.root, "events", hour(0))
    all_stages(lake)
    told = next(lines for lines in caplog.messages if "marked as damaged" in lines)
    first, second, third, fourth = told.splitlines()
    assert fourth.startswith("fill web: failed with ")
    assert first.startswith(f"fill web: unreadable: ingest, events {hour(0):%Y-%m-%dT%H:%M}: ")
    assert file in first
    assert "marked as damaged" in second
    assert "transom verify web" in third
    book = lake.ledger.snapshot()
    assert book[node_of("events", hour(0))].status == "damaged"
    waiting = {node for node, entry in book.items() if entry.status == "blocked"}
    assert waiting == {PartitionKey("fills", "around", "fills", hour(2))}, (
        "all else needs no events of that hour"
    )
    all_stages(lake)
    whole = house(STREAM, "whole", ready=build)
    whole.run(0, HOURS)
    lake.assert_same(whole)


@pytest.mark.full
def test_state_that_is_damaged_is_made_again_at_once(house: Make, caplog: pytest.LogCaptureFixture) -> None:
    lake = house(STREAM, "damaged", ready=build)
    lake.land(2, [line(3600 * 2 + 30 * second, "10.0.0.9") for second in range(20)], ".late")
    damaging.missing(lake.root, "granules", hour(1))
    all_stages(lake)
    assert any("granules" in lines and "is not there" in lines for lines in caplog.messages)
    whole = house(STREAM, "whole", ready=build)
    whole.run(0, HOURS)
    lake.assert_same(whole)


@pytest.mark.full
def test_hours_that_are_named_are_recomputed(house: Make) -> None:
    lake = house(STREAM, "damaged", ready=build)
    for table in ("events", "rejected", "granules", "aggregates", "frames"):
        DeltaTable(f"{lake.root}/{table}").delete(f"hour = '{hour(1):%Y-%m-%dT%H:%M:%SZ}'")
    all_stages(lake)
    assert find(lake.spark, lake.stream, lake.root).damages, "nothing says that these hours are not fresh"
    all_stages(lake, recompute=True)
    assert_whole(lake, house)


LONG = """
name: web
preset: apache/combined
source: {path: "landing/long/*.log"}
key: [client]
heal: 2 hours
"""
"""Files without a time in their names, which may touch more hours than a run sees to."""
MANY = 8


def build_long(lake: House) -> None:
    """Land a file of many hours and a file of one of them, and run all."""
    folder = lake.folder / "landing/long"
    folder.mkdir(parents=True)
    (folder / "all.log").write_text("".join(line(1800 * half) + "\n" for half in range(2 * MANY)))
    (folder / "one.log").write_text("".join(line(3600 * 4 + second) + "\n" for second in range(5)))
    lake.run(0, MANY)


def test_an_hour_stays_damaged_until_a_run_takes_its_file_whole(house: Make) -> None:
    lake = house(LONG, "damaged", ready=build_long)
    damaging.missing(lake.root, "events", hour(4))
    marked = mark(lake.spark, lake.stream, lake.root)
    assert (min(marked.hours), max(marked.hours)) == (hour(0), hour(MANY - 1))
    lake.run(4, 5)
    entry = lake.book()[node_of("events", hour(4))]
    assert entry.status == "damaged"
    assert "long/all.log and others, by a run from 2015-05-17T00:00 to 2015-05-17T08:00" in str(entry.cause)
    lake.in_chunks("ingest", 0, MANY)
    lake.assert_same(house(LONG, "whole", ready=build_long))


def test_rows_that_were_changed_get_no_new_digest(house: Make) -> None:
    lake = house(LONG, "damaged", ready=build_long)
    before = lake.book()[node_of("events", hour(4))]
    recomputed = replace(lake.context(4, 5), recompute=True)
    lake._stage("ingest", recomputed)
    same = lake.book()[node_of("events", hour(4))]
    assert (same.status, same.digest) == ("published", before.digest), (
        "what equals its digest is written again"
    )
    damaging.changed(lake.root, "events", hour(4))
    lake._stage("ingest", recomputed)
    entry = lake.book()[node_of("events", hour(4))]
    assert (entry.status, entry.digest) == ("damaged", before.digest)
    assert "rows stand that are not those of the digest" in str(entry.cause)
    lake._stage("ingest", replace(lake.context(0, MANY), recompute=True))
    lake.assert_same(house(LONG, "whole", ready=build_long))
