"""Damaged data is found. After a repair and a run the lake equals one that was never damaged."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.app.damaged_lakes import (
    STREAM,
    Make,
    assert_whole,
    build,
    ledger_damage,
    mark_damage,
    reopened,
    run_reopened,
)
from tests.support import damage as damaging
from tests.support.stream_harness import hour
from transom.app.verify import find
from transom.cli.verify import verify_in
from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey, PartitionState

TABLES = (
    "events", "duplicates", "rejected", "files", "batches", "matches", "episodes", "granules", "aggregates",
    "item_granules", "recurring", "alerts", "open_frames", "frames", "fills", "tuples", "persistent_items",
    "tick_matrices", "cells", "frequencies",
)  # fmt: skip
"""The tables for which the ledger has digests."""
OF_LEDGER = ("ledger", "checks", "runs", "findings")
OF_FILES = (damaging.truncated, damaging.flipped, damaging.missing, damaging.added, damaging.changed)
OF_LOGS = (damaging.without_entry, damaging.without_last_entry)


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


@pytest.mark.full
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
