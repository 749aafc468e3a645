"""Damaged rows: what the ledger says of them, what ingest makes of them, and which files are at fault."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import damaging
from transom import application
from transom.intervals import Interval
from transom.lake.book import EMPTY_DIGEST, Book, Entry
from transom.lake.damage import Damage
from transom.lake.data_files import fault_of, files_of, folder_of, unopenable
from transom.lake.ledger import TOKENS_FROM, Ledger
from transom.lake.publishing import readable
from transom.lake.repairing import set_aside
from transom.lake.staleness import Scope, is_stale
from transom.lake.store import Pins, Store
from transom.stages.decisions import Decisions, decide
from transom.stages.files import File
from transom.stages.losses import LOST, with_losses
from transom.stages.scene import Scene, node_of
from unit.some_files import HOUR, RULES, at, content, listed, one, run, state

DAMAGED = Entry("damaged", "verify", digest="1:5", inputs={"specification": "now"}, cause="damaged: f")


def test_damaged_entry_stays_so_while_a_run_writes_it(tmp_path: Path) -> None:
    ledger, node = Ledger(str(tmp_path)), node_of("events", at(1))
    ledger.claim("ingest", [node], "v")
    ledger.publish("ingest", {node: DAMAGED}, "v")
    ledger.claim("ingest", [node], "killed")
    held = ledger.book()[node]
    assert held.status == "writing"
    assert held.damaged
    assert (held.before().status, held.before().cause) == ("damaged", "damaged: f")


def test_damaged_node_is_stale_and_kept_by_no_write() -> None:
    node = node_of("events", at(1))
    assert is_stale(DAMAGED, {"specification": "now"}, "")
    stands = replace(DAMAGED, status="published")
    book = Book({node: DAMAGED, node_of("events", at(2)): stands, node_of("events", at(3)): stands})
    assert readable(book, {at(1), at(2)}) == [node_of("events", at(2))]


def test_tokens_begin_above_those_of_a_ledger_that_was_lost(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    hours = DeltaTable(f"{tmp_path}/hours")
    hours.alter.set_table_properties({TOKENS_FROM: "500"}, raise_if_not_exists=False)
    assert ledger.claim("ingest", [node_of("events", at(1))], "a") > 500


def test_rows_of_hours_to_read_again_are_taken_from_files_that_are_there() -> None:
    known = one()
    there = {"f": listed("f")}
    again = decide(known, there, {}, {"f"}, RULES, {at(0)})
    assert again.unread == {"f"}
    read = decide(known, there, {"f": content("ab")}, {"f"}, RULES, {at(0)})
    (source,) = read.added
    assert (read.removed, read.added, read.files) == ({source: {at(0)}}, {source: "f"}, {})
    gone = decide(known, {}, {}, {"f"}, RULES, {at(0)})
    assert (gone.added, gone.unread, gone.files["f"].status) == ({}, frozenset(), "gone")


def lossy(known: dict[str, File], entry: Entry) -> Scene:
    """What a run of hour 0 finds, whose events have an entry."""
    book = Book({node_of("events", at(0)): entry})
    chunk = Interval(at(0), at(1))
    scope = Scope.of(chunk, chunk, 2 * HOUR, [at(0)])
    return Scene(book, Pins(Store(cast(Any, None), ""), {}), scope, known, {}, RULES, lambda _: {})


@pytest.mark.parametrize(
    ("entry", "lost"),
    [
        (DAMAGED, True),
        (replace(DAMAGED, rows=1), False),
        (replace(DAMAGED, digest=EMPTY_DIGEST), False),
        (replace(DAMAGED, status="published"), False),
    ],
)
def test_rows_of_a_file_that_is_gone_are_lost_with_their_hour(entry: Entry, lost: bool) -> None:
    known = one()
    decisions = decide(known, {}, {}, {"f"}, RULES, {at(0)})
    after = with_losses(lossy(known, entry), decisions).files["f"]
    assert bool(after.lacks) == lost
    if lost:
        assert after.lacks == f"{LOST}: 2015-05-17T00:00"
        assert state({"f": after}).missing == (f"f: {after.lacks}",)
        back = run({"f": after}, {"f": (listed("f"), content("ab"))})
        assert list(back.added.values()) == ["f"], "it enters anew when it is back"
        assert back.files["f"].lacks is None


def test_rows_that_are_read_again_are_not_lost() -> None:
    known = one()
    decisions = decide(known, {"f": listed("f")}, {"f": content("ab")}, {"f"}, RULES, {at(0)})
    assert with_losses(lossy(known, DAMAGED), decisions) == Decisions(
        {}, decisions.removed, decisions.added, frozenset(), frozenset()
    )


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A lake with one table, of two hours."""
    schema = pa.schema([("hour", pa.timestamp("us", "UTC")), ("x", pa.int64())])
    for number in range(2):
        rows = pa.table({"hour": [at(number)] * 1000, "x": range(1000)}, schema=schema)
        write_deltalake(f"{tmp_path}/t", rows, mode="append", partition_by=["hour"])
    return str(tmp_path)


def faults(root: str) -> dict[datetime | None, str]:
    """What is wrong with files, by their hours."""
    system, folder = folder_of(root, "t")
    seen = {file.hour: fault_of(system, folder, file) for file in files_of(DeltaTable(f"{root}/t"))}
    return {hour: fault for hour, fault in seen.items() if fault}


def test_file_faults(table: str) -> None:
    assert faults(table) == {}
    assert [file.hour for file in files_of(DeltaTable(f"{table}/t"), Interval(at(1), at(2)))] == [at(1)]
    damaging.flipped(table, "t", at(0))
    assert list(faults(table)) == [at(0)]
    assert faults(table)[at(0)].startswith("cannot be decoded: ")
    damaging.truncated(table, "t", at(0))
    assert " bytes, " in faults(table)[at(0)]
    damaging.missing(table, "t", at(1))
    assert faults(table)[at(1)] == "is not there"


def test_table_without_a_log_entry_is_moved_aside(table: str) -> None:
    assert unopenable(table, "t") is None
    assert unopenable(table, "nowhere") is None
    damaging.without_last_entry(table, "t")
    assert unopenable(table, "t") is None, "it is as it was before"
    damaging.without_entry(table, "t")
    assert unopenable(table, "t") is None, "a folder without a log is no table"
    (Path(table) / "t/_delta_log/00000000000000000001.json").write_text("{}")
    assert unopenable(table, "t")
    assert set_aside(table, "t") == f"{table}/.damaged/t-1"
    assert not (Path(table) / "t").exists()
    assert set_aside(table, "t") == ""


def test_damage_in_a_line() -> None:
    hours = (at(1), at(2), at(4))
    damage = Damage("ingest", "events", "events", hours, "unreadable", "hour=1/part", "has 1 bytes")
    assert str(damage) == (
        "unreadable: ingest, events 2015-05-17T01:00 to 2015-05-17T03:00, 2015-05-17T04:00: hour=1/part "
        "has 1 bytes"
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], False),
        (["--recompute"], True),
        (["--recompute", "False"], False),
        (["--recompute", "true"], True),
    ],
)
def test_switch_to_recompute(words: list[str], expected: bool) -> None:
    needed = ["--stream", "s", "--lake", "l", "--from", "a", "--to", "b"]
    assert application.arg_parser("a job").parse_args([*needed, *words]).recompute is expected


def test_switch_that_is_neither_on_nor_off(capsys: pytest.CaptureFixture[str]) -> None:
    needed = ["--stream", "s", "--lake", "l", "--from", "a", "--to", "b"]
    with pytest.raises(SystemExit):
        application.arg_parser("a job").parse_args([*needed, "--recompute", "maybe"])
    assert "must be true or false; got 'maybe'" in capsys.readouterr().err
