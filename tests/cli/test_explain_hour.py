"""The explanation of an hour in rare states."""

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.cli.explained_hours import OTHERWISE, Ask, command, explanation
from tests.cli.ledger_by_hand import WEB, Lake, at, file_row
from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import CheckResult, PartitionKey, PartitionState
from transom.features.ingest.expected_inputs import partition_of

SECOND = "  more: {measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}\n"
BY_B = "1 row, by run b, 2015-05-20 12:01"


def put(lake: Lake, node: PartitionKey, minute: int = 0, **changes: object) -> None:
    """Overwrite an entry, as another run would."""
    entry = replace(lake.ledger.snapshot()[node], **changes)
    lake.run(entry.run_id, node.stage, {node: entry}, minute)


def test_files_are_not_examined_for_a_lake_of_try(run: Ask, lake: Lake) -> None:
    path = lake.folder / "landing/web/2015-05-17/access.00.log"
    path.parent.mkdir(parents=True)
    path.write_text("a line\n")
    lake.ingest(range(1), trigger="try")
    reported = explanation(run, lake, "2015-05-17T00:00")
    assert [line for line in reported if line.startswith("  file")] == [
        "  files: not looked at, as `transom try` has made this lake"
    ]
    lake.ingest(range(1), name="b", minute=1)
    reported = explanation(run, lake, "2015-05-17T00:00")
    assert [line for line in reported if line.startswith("  file")] == [
        "  file landing/web/2015-05-17/access.00.log: new, 7 bytes; no run has seen it"
    ]


def granules(number: int) -> PartitionKey:
    return PartitionKey("aggregates", "traffic", "granules", at(number))


def aggregates(number: int) -> PartitionKey:
    return PartitionKey("aggregates", "traffic", "aggregates", at(number))


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        (
            "completeness",
            "what decides whether it is complete has changed: a check, `expected_files`, or a waiver",
        ),
        ("checks", "its checks, or their waivers, have changed since it was quarantined"),
    ],
)
def test_inputs_that_are_no_table_are_named(run: Ask, lake: Lake, name: str, texts: str) -> None:
    lake.ingest(range(1))
    inputs: Mapping[str, str] = lake.ledger.snapshot()[partition_of("events", at(0))].input_hashes or {}
    put(lake, partition_of("events", at(0)), input_hashes={**inputs, name: "other"})
    assert explanation(run, lake, "2015-05-17T00:00")[:2] == [
        "  ingest events: published, stale, 1 row, by run a, 2015-05-20 12:00",
        f"    {texts}",
    ]


def test_table_that_is_no_longer_read_is_named(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    lake.aggregate(range(1))
    inputs: Mapping[str, str] = lake.ledger.snapshot()[granules(0)].input_hashes or {}
    put(lake, granules(0), 1, input_hashes={**inputs, "frames": "some"})
    assert explanation(run, lake, "2015-05-17T00:00")[1:3] == [
        f"  aggregates traffic, granules: published, stale, {BY_B}",
        "    it was computed from the frames, which it does not read now",
    ]


def test_changed_time_from_captures_is_named(run: Ask, lake: Lake) -> None:
    text = WEB.replace("%Y-%m-%d/access.%H*.log", "{day}/access*.log")
    text += "time: {column: [day, time], format: '%Y-%m-%d %H:%M:%S %z'}\n"
    lake.file.write_text(text)
    lake.ingest(range(1))
    lake.file.write_text(text + "extra_fields: keep\n")
    assert explanation(run, lake, "2015-05-17T00:00")[1] == (
        f"    {OTHERWISE}: `source.format`, `source.options`, the captures of `source.path`, the time in "
        "`source.path`, `zone` or `event_time_range`, `columns`, `time`, `extra_fields`, `unique` or a check "
        "or a waiver that decides whether files are complete"
    )


def test_removed_block_is_stale_in_both_commands(run: Ask, lake: Lake) -> None:
    lake.file.write_text(WEB + SECOND)
    lake.ingest(range(1))
    lake.aggregate(range(1))
    more = replace(lake.ledger.snapshot()[granules(0)], run_id="m")
    lake.run("m", "aggregates", {replace(granules(0), block="more"): more}, 2)
    lake.file.write_text(WEB)
    assert explanation(run, lake, "2015-05-17T00:00")[1:] == [
        f"  aggregates traffic, granules: published, {BY_B}",
        f"  aggregates traffic, aggregates: published, {BY_B}",
        "  aggregates more, granules: published, stale, 1 row, by run m, 2015-05-20 12:02",
        "    the stream file no longer has this block",
        "  to run it:",
        command(lake, "2015-05-17T00:00", "2015-05-17T01:00"),
    ]
    assert run("status", "web").exit_code == 1


def test_input_hours_written_since_are_named_and_run(run: Ask, lake: Lake) -> None:
    lake.ingest(range(3))
    lake.aggregate(range(3))
    put(lake, granules(1), 2, digest="2:4", run_id="c 3")
    lines = explanation(run, lake, "2015-05-17T02:00")
    assert lines[3] == "    the granules of 2015-05-17T01:00 have changed since it was computed from them"
    assert lines[-1] == command(lake, "2015-05-17T01:00", "2015-05-17T03:00")


def test_chunk_is_named_by_its_run(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1), "long run")
    node = partition_of("events", at(0))
    chunk = replace(lake.ledger.snapshot()[node], run_id="long run 2")
    lake.ledger.claim("ingest", [node], "long run 2")
    lake.ledger.publish("ingest", {node: chunk}, "long run 2")
    assert explanation(run, lake, "2015-05-17T00:00")[0] == (
        "  ingest events: published, 1 row, by run long run 2, 2015-05-20 12:00"
    )


def test_hour_with_events_of_other_files_is_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    node = partition_of("events", at(5))
    lake.ledger.claim("ingest", [node], "r", unrequested=[node])
    lake.ledger.publish(
        "ingest", {node: PartitionState("published", "r", digest="3:1", rows=3, requested=False)}, "r"
    )
    assert explanation(run, lake, "2015-05-17T05:00")[:2] == [
        "  ingest: not requested, so it counts as empty; files of other hours have put 3 events in it",
        "  aggregates: not requested, so it counts as empty",
    ]


def test_incomplete_hour_is_reported_with_its_cause(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    cause = "files_expected: observed 0, expected at least 1"
    put(lake, partition_of("events", at(0)), complete=False, reason=cause)
    lake.aggregate(range(1))
    put(lake, granules(0), 1, complete=False, reason="incomplete hours, first 2015-05-17T00:00")
    assert explanation(run, lake, "2015-05-17T00:00")[:5] == [
        "  ingest events: published, incomplete, 1 row, by run a, 2015-05-20 12:00",
        f"    something is missing: {cause}",
        f"  aggregates traffic, granules: published, incomplete, {BY_B}",
        "    something is missing: incomplete hours, first 2015-05-17T00:00",
        f"    because ingest events 2015-05-17T00:00 is incomplete: {cause}",
    ]


def test_five_causes_are_listed_and_the_others_counted(run: Ask, lake: Lake) -> None:
    lake.file.write_text(WEB.replace("RANGES 2 HOURS", "RANGES 8 HOURS"))
    lake.ingest(range(8))
    lake.aggregate(range(8))
    for number in range(8):
        put(lake, granules(number), 1, status="quarantined", complete=False, reason=f"sum {number}")
    put(lake, aggregates(7), 1, status="blocked", complete=False, reason="c")
    because = [
        line
        for line in explanation(run, lake, "2015-05-17T07:00")
        if "  and for" in line or "because" in line
    ]
    assert because == [
        *(f"    because aggregates traffic 2015-05-17T0{n}:00 is quarantined: sum {n}" for n in range(5)),
        "    and for 3 further causes",
    ]


def test_running_run_is_reported_before_quarantined_hours(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    node = partition_of("events", at(0))
    put(lake, node, status="quarantined", reason="a.log: few")
    lake.ledger.record_checks(
        "ingest", [CheckResult(node, "fields_known", "warning", 1, "at most 0", False, file="a.log")], "a"
    )
    lake.ledger.claim("aggregates", [granules(0)], "r")
    assert explanation(run, lake, "2015-05-17T00:00") == [
        "  ingest events: quarantined, 1 row, by run a, 2015-05-20 12:00",
        "    quarantined; the rows published before stay: a.log: few",
        "  aggregates traffic, granules: writing, 0 rows, by run r",
        "    a run has begun to write it and has not published it: it is active, or was killed",
        "  aggregates traffic, aggregates: not computed yet; run r is active, or was killed",
        "  nothing is to be done while run r is active; if it was killed, run:",
        command(lake, "2015-05-17T00:00", "2015-05-17T01:00"),
    ]


def test_missing_landing_folder_is_reported(run: Ask, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.ingest(range(1))
    lake.aggregate(range(1))
    monkeypatch.setenv("TRANSOM_LANDING", "nowhere://x")
    assert explanation(run, lake, "2015-05-17T00:00")[3].startswith(
        "  files: not looked at: source.path: nowhere://x/landing/web"
    )


def test_waiting_conflicting_and_differently_read_files_are_named(run: Ask, lake: Lake) -> None:
    lake.ingest(range(3))
    lake.aggregate(range(3))
    when = datetime.fromtimestamp(1e9, UTC)
    folder = "landing/web/2015-05-17/access"
    reported: list[tuple[str, datetime, dict[str, Any]]] = [
        ("00", at(0), {"status": "waiting", "status_reason": "for 02", "hours": (at(2),)}),
        ("01", at(1), {"status": "conflict", "status_reason": "it differs"}),
        ("02", UNKNOWN_HOUR, {"status": "quarantined", "status_reason": "few", "hours": (at(1),)}),
        ("03", at(2), {"status": "missing", "source_id": "s"}),
    ]
    lake.files(file_row(lake, f"{folder}.{name}.log", hour, when, **more) for name, hour, more in reported)
    removed = "gone; the next run forgets it"
    lines = explanation(run, lake, "2015-05-17T02:00")
    assert lines[3:] == [
        f"  file {folder}.00.log: waiting: for 02; {removed}",
        "  to run it:",
        command(lake, "2015-05-17T00:00", "2015-05-17T03:00"),
    ]
    assert explanation(run, lake, "2015-05-17T01:00")[3:] == [
        f"  file {folder}.01.log: conflict: it differs; {removed}",
        f"  file {folder}.02.log: quarantined: few; {removed}",
        "  to run it:",
        command(lake, "2015-05-17T01:00", "2015-05-17T02:00"),
    ]


def test_all_hours_of_a_differently_read_file_are_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(3))
    lake.aggregate(range(3))
    path, when = lake.folder / "landing/web/2015-05-17/access.00.log", datetime.fromtimestamp(1e9, UTC)
    path.parent.mkdir()
    path.write_text("a line\n")
    os.utime(path, (1e9, 1e9))
    name = str(path.relative_to(lake.folder))
    lake.files([file_row(lake, name, at(0), when, status="ingested", source_id="s", hours=(at(0), at(2)))])
    assert explanation(run, lake, "2015-05-17T00:00")[3:] == []
    lake.file.write_text(WEB + "extra_fields: keep\n")
    assert explanation(run, lake, "2015-05-17T00:00")[-1] == command(
        lake, "2015-05-17T00:00", "2015-05-17T03:00"
    )


def test_hour_is_quarantined_as_long_as_one_of_its_files_is_unchanged(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    put(lake, partition_of("events", at(0)), status="quarantined", reason="few")
    when = datetime.fromtimestamp(1e9, UTC)
    path = lake.folder / "landing/web/2015-05-17/access.00.log"
    path.parent.mkdir()
    path.write_text("a line\n")
    os.utime(path, (1e9, 1e9))
    names = [f"landing/web/2015-05-17/access.00{end}.log" for end in ("", ".more")]
    lake.files(file_row(lake, name, at(0), when, status="quarantined", status_reason="few") for name in names)
    assert explanation(run, lake, "2015-05-17T00:00")[-2] == (
        "  fix the data, or accept the value in the stream file, then run:"
    )
    path.write_text("another line\n")
    os.utime(path, (0, 0))
    lines = explanation(run, lake, "2015-05-17T00:00")
    assert (lines[-4].partition("; ")[2], lines[-2]) == (
        "changed, 13 bytes of 1970-01-01 00:00:00 now, 7 of 2001-09-09 01:46:40 when it was read",
        "  to run it:",
    )
