"""Damaged rows: the ledger's state, how ingest treats them, and which files are at fault."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.cli.ledger_by_hand import Lake
from tests.support import damage as damaging
from tests.support.file_factories import HOUR, RULES, after, at, content, listed, missing, one, run
from transom.app import main as application
from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.core.partitions import EMPTY_DIGEST, PartitionState, format_digest
from transom.engine.damage_marks import set_aside
from transom.engine.ledger_repair import examine
from transom.engine.publisher import partitions_with_rows
from transom.features.ingest.damaged_rows import (
    LOST,
    cause_of,
    differing,
    hours_with_kept_rows,
    waiting_partitions,
    with_losses,
)
from transom.features.ingest.expected_inputs import partition_of
from transom.features.ingest.file_decisions import Decisions, decide
from transom.features.ingest.file_records import FileRecord, ListedFile
from transom.features.ingest.hour_plan import IngestDecision
from transom.features.ingest.snapshot import IngestSnapshot
from transom.ledger.damage import Damage
from transom.ledger.input_hashes import is_stale
from transom.ledger.ledger import Ledger
from transom.ledger.partition_states import TOKENS_FROM
from transom.ledger.scope import Scope
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.file_faults import fault_of, files_of, open_or_fault
from transom.storage.filesystem import resolve_filesystem
from transom.storage.store import PinnedTables, Store
from transom.storage.tables import in_hours_sql, read_rows

DAMAGED = PartitionState(
    "damaged", "verify", digest="1:5", input_hashes={"specification": "now"}, reason="damaged: f"
)


def test_damaged_entry_stays_damaged_while_a_run_writes_it(tmp_path: Path) -> None:
    ledger, node = Ledger(str(tmp_path)), partition_of("events", at(1))
    ledger.claim("ingest", [node], "v")
    ledger.publish("ingest", {node: DAMAGED}, "v")
    ledger.claim("ingest", [node], "killed")
    retained = ledger.snapshot()[node]
    assert retained.status == "writing"
    assert retained.damaged
    assert (retained.state_before_claim().status, retained.state_before_claim().reason) == (
        "damaged",
        "damaged: f",
    )


def test_damaged_partition_is_stale_and_its_rows_are_not_retained() -> None:
    node = partition_of("events", at(1))
    assert is_stale(DAMAGED, {"specification": "now"}, "")
    is_published = replace(DAMAGED, status="published")
    snapshot = LedgerSnapshot(
        {
            node: DAMAGED,
            partition_of("events", at(2)): is_published,
            partition_of("events", at(3)): is_published,
        }
    )
    assert partitions_with_rows(snapshot, {at(1), at(2)}) == [partition_of("events", at(2))]


def test_tokens_begin_above_those_of_a_lost_ledger(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    hours = DeltaTable(f"{tmp_path}/ledger")
    hours.alter.set_table_properties({TOKENS_FROM: "500"}, raise_if_not_exists=False)
    assert ledger.claim("ingest", [partition_of("events", at(1))], "a").token > 500


def test_rows_of_hours_to_read_again_come_from_existing_files() -> None:
    known = one()
    there = {"f": listed("f")}
    again = decide(known, there, {}, {"f"}, RULES, {at(0)})
    assert again.unread == {"f"}
    read = decide(known, there, {"f": content("ab")}, {"f"}, RULES, {at(0)})
    (source,) = read.added
    assert (read.removed, read.added, read.files) == ({source: {at(0)}}, {source: "f"}, {})
    removed = decide(known, {}, {}, {"f"}, RULES, {at(0)})
    assert (removed.added, removed.unread, removed.files["f"].status) == ({}, frozenset(), "missing")


def lossy(known: dict[str, FileRecord], entry: PartitionState) -> IngestSnapshot:
    """Return the snapshot of a run of hour 0 that has lost rows of events."""
    snapshot = LedgerSnapshot({partition_of("events", at(0)): entry})
    chunk = Interval(at(0), at(1))
    scope = Scope.of(chunk, chunk, 2 * HOUR, [at(0)])
    return IngestSnapshot(
        snapshot, PinnedTables(Store(cast(Any, None), ""), {}), scope, known, {}, RULES, lambda _: {}
    )


@pytest.mark.parametrize(
    ("entry", "lost"),
    [
        (DAMAGED, True),
        (replace(DAMAGED, rows=1), False),
        (replace(DAMAGED, digest=EMPTY_DIGEST), False),
        (replace(DAMAGED, status="published"), False),
    ],
)
def test_rows_of_a_removed_file_are_lost_with_their_hour(entry: PartitionState, lost: bool) -> None:
    known = one()
    decisions = decide(known, {}, {}, {"f"}, RULES, {at(0)})
    after = with_losses(lossy(known, entry), decisions).files["f"]
    assert bool(after.incomplete_reason) == lost
    if lost:
        assert after.incomplete_reason == f"{LOST}: 2015-05-17T00:00"
        assert missing({"f": after}) == (f"f: {after.incomplete_reason}",)
        back = run({"f": after}, {"f": (listed("f"), content("ab"))})
        assert list(back.added.values()) == ["f"], "it enters anew when it is back"
        assert back.files["f"].incomplete_reason is None


def later(text: str, *hours: int) -> dict[str, FileRecord]:
    """Return the record of a file g, which belongs to the first of its hours."""
    return after({}, run({}, {"g": (listed("g", hours[0]), content(text, hours))}))


def within(
    known: dict[str, FileRecord], there: dict[str, ListedFile], start: int, end: int, *lost: int
) -> IngestSnapshot:
    """Return the snapshot of a run of some hours, with two hours around them and lost events of some."""
    hours = {hour for file in known.values() for hour in file.hours}
    snapshot = LedgerSnapshot(
        {
            partition_of("events", hour): replace(
                DAMAGED, status="damaged" if hour in map(at, lost) else "published"
            )
            for hour in hours
        }
    )
    chunk = Interval(at(start), at(end))
    scope = Scope.of(chunk, chunk, 2 * HOUR, hours)
    rules = replace(
        RULES, permitted=lambda hour: hour == UNKNOWN_HOUR or scope.may_publish(hour, hour in hours)
    )
    return IngestSnapshot(
        snapshot, PinnedTables(Store(cast(Any, None), ""), {}), scope, known, there, rules, lambda _: {}
    )


def test_hour_waits_for_a_file_with_hours_outside_the_run() -> None:
    known = one(hours=range(10))
    there = {"f": listed("f", None)}
    result = within(known, there, 5, 6, 5)
    (cause,) = waiting_partitions(result).values()
    assert (
        cause == "damaged: f; its rows come back with f, by a run from 2015-05-17T00:00 to 2015-05-17T10:00"
    )
    retained = result.keep_damage(waiting_partitions(result))
    assert retained.kept_hours == {at(5)}
    assert (retained.to_reread, retained.lost("events")) == (frozenset(), frozenset())
    assert not retained.rules.permitted(at(5)), "no other file puts rows in it, either"
    assert retained.rules.permitted(at(6))
    again = replace(retained.ledger_state[partition_of("events", at(5))], reason=cause)
    once_more = replace(
        result, ledger_state=result.ledger_state.updated({partition_of("events", at(5)): again})
    )
    assert list(waiting_partitions(once_more).values()) == [cause]
    assert waiting_partitions(within(known, there, 0, 10, 5)) == {}, "a run over all its hours takes it"
    assert waiting_partitions(within(known, {}, 5, 6, 5)) == {}, "one that is gone is lost"


def test_hour_waits_for_a_file_with_an_hour_that_waits() -> None:
    known = one(hours=range(10)) | later("cd", 4, 5)
    there = {"f": listed("f", None), "g": listed("g", None)}
    result = within(known, there, 5, 6, 4)
    assert result.keep_damage(waiting_partitions(result)).kept_hours == {at(4)}
    known = one(hours=range(5, 12)) | later("cd", 4, 5)
    result = within(known, there, 5, 6, 4, 5)
    assert result.keep_damage(waiting_partitions(result)).kept_hours == {at(4), at(5)}


def test_rows_read_again_do_not_count_as_lost() -> None:
    known = one()
    decisions = decide(known, {"f": listed("f")}, {"f": content("ab")}, {"f"}, RULES, {at(0)})
    assert with_losses(lossy(known, DAMAGED), decisions) == Decisions(
        {}, decisions.removed, decisions.added, frozenset(), frozenset()
    )


def test_rows_of_files_not_read_again_are_compared_in_a_recomputed_hour() -> None:
    known = one(hours=range(10)) | later("cd", 5)
    there = {"f": listed("f", None), "g": listed("g", None)}
    result = replace(within(known, there, 5, 6), recompute=frozenset([at(5)]))
    decisions = decide(known, there, {"g": content("cd", (5,))}, there, result.rules, result.to_reread)
    assert list(decisions.added.values()) == ["g"]
    stays = hours_with_kept_rows(result, IngestDecision(decisions, known, {}, {}, ()))
    assert {hour: [file.path for file in files] for hour, files in stays.items()} == {at(5): ["f"]}
    assert cause_of(stays[at(5)], result).endswith(
        "ledger; its rows come back with f, by a run from 2015-05-17T00:00 to 2015-05-17T10:00"
    )
    assert cause_of(stays[at(5)], replace(result, listed={})).endswith(
        "ledger; f has changed or is gone, so they cannot be read again"
    )
    usual = within(known, there, 5, 6)
    assert hours_with_kept_rows(usual, IngestDecision(decisions, known, {}, {}, ())) == {}, (
        "of no hour that is not recomputed"
    )


@pytest.mark.parametrize(
    ("table", "made_by", "digest", "stored", "wrong"),
    [
        ("events", "now", format_digest(1, 5), (1, 5), False),
        ("events", "now", format_digest(1, 5), (1, 6), True),
        ("events", "then", format_digest(1, 5), (1, 6), False),
        ("events", "then", format_digest(1, 5), (2, 6), True),
        ("rejected", "then", format_digest(1, 5), (1, 6), True),
        # Of an earlier version of transom, which defines digests otherwise.
        ("rejected", "now", "1:5", (1, 6), False),
        ("rejected", "now", "1:5", (2, 6), True),
    ],
)
def test_stored_rows_that_differ_from_their_digest_are_damaged(
    table: str, made_by: str, digest: str, stored: tuple[int, int], wrong: bool
) -> None:
    result = replace(within(one(), {}, 0, 1), expected=lambda _: {"specification": "now"})
    node = partition_of(table, at(0))
    inputs = {"specification": made_by}
    entry = replace(DAMAGED, status="published", rows=1, digest=digest, input_hashes=inputs)
    values = {node: {"count": stored[0], "digest": format_digest(*stored)}}
    assert differing(result, {node: entry}, values) == ([node] if wrong else [])


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a lake with one table of two hours."""
    schema = pa.schema([("hour", pa.timestamp("us", "UTC")), ("x", pa.int64())])
    for number in range(2):
        rows = pa.table({"hour": [at(number)] * 1000, "x": range(1000)}, schema=schema)
        write_deltalake(f"{tmp_path}/t", rows, mode="append", partition_by=["hour"])
    return str(tmp_path)


def faults(root: str) -> dict[datetime | None, str]:
    """Return the faults of files, by hour."""
    system, folder = resolve_filesystem(f"{root}/t")
    observed = {file.hour: fault_of(system, folder, file) for file in files_of(DeltaTable(f"{root}/t"))}
    return {hour: fault for hour, fault in observed.items() if fault}


def test_changed_rows_of_equal_size_are_no_fault_of_the_file(table: str) -> None:
    damaging.changed(table, "t", at(0))
    assert faults(table) == {}
    retained = sorted(row["x"] for row in read_rows(DeltaTable(f"{table}/t"), in_hours_sql([at(0)])))
    assert retained == sorted([*range(1, 1000), 1])


def test_truncated_missing_and_flipped_files_are_faults(table: str) -> None:
    assert faults(table) == {}
    assert [file.hour for file in files_of(DeltaTable(f"{table}/t"), Interval(at(1), at(2)))] == [at(1)]
    damaging.flipped(table, "t", at(0))
    assert list(faults(table)) == [at(0)]
    assert faults(table)[at(0)].startswith("cannot be decoded: ")
    damaging.truncated(table, "t", at(0))
    assert " bytes, " in faults(table)[at(0)]
    damaging.missing(table, "t", at(1))
    assert faults(table)[at(1)] == "is not there"


def test_table_with_a_missing_log_entry_is_moved_aside(table: str) -> None:
    assert isinstance(open_or_fault(table, "t"), DeltaTable)
    assert open_or_fault(table, "nowhere") is None
    damaging.without_last_entry(table, "t")
    assert isinstance(open_or_fault(table, "t"), DeltaTable), "it is as it was before"
    damaging.without_entry(table, "t")
    assert open_or_fault(table, "t") is None, "a folder without a log is no table"
    (Path(table) / "t/_delta_log/00000000000000000001.json").write_text("{}")
    assert isinstance(open_or_fault(table, "t"), str)
    assert set_aside(table, "t") == f"{table}/.damaged/t-1"
    assert not (Path(table) / "t").exists()
    assert set_aside(table, "t") == ""


def test_damage_is_described_in_one_line() -> None:
    hours = (at(1), at(2), at(4))
    damage = Damage("ingest", "events", "events", hours, "unreadable", "hour=1/part", "has 1 bytes")
    assert str(damage) == (
        "unreadable: ingest, events 2015-05-17T01:00 to 2015-05-17T03:00, 2015-05-17T04:00: hour=1/part "
        "has 1 bytes"
    )


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], False),
        (["--recompute"], True),
        (["--recompute", "False"], False),
        (["--recompute", "true"], True),
    ],
)
def test_recompute_switch_marks_hours(texts: list[str], expected: bool) -> None:
    needed = ["--stream", "s", "--lake", "l", "--from", "a", "--to", "b"]
    assert application.arg_parser("a job").parse_args([*needed, *texts]).recompute is expected


def test_invalid_switch_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    needed = ["--stream", "s", "--lake", "l", "--from", "a", "--to", "b"]
    with pytest.raises(SystemExit):
        application.arg_parser("a job").parse_args([*needed, "--recompute", "maybe"])
    assert "must be true or false; got 'maybe'" in capsys.readouterr().err


def test_duplicate_row_of_runs_is_damage_and_equal_name_is_not(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.ingest(range(1), name="by-hand", minute=1)
    lake.ingest(range(1), name="by-hand", minute=2)
    root = lake.ledger.root
    assert examine(root, ["ingest"], []).damages == []
    damaging.added(root, "runs")
    (damage,) = examine(root, ["ingest"], []).damages
    assert damage.table == "runs"
    assert damage.detail == "2 rows of stage ingest: written by no run, or there twice"
