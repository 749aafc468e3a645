"""The files that the explanation of an hour names: new, removed, missing, and with remarks."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tests.cli.explained_hours import Ask, command, explanation
from tests.cli.ledger_by_hand import WEB, Lake, at, file_row
from transom.core.partitions import CheckResult, PartitionState
from transom.core.reasons import Reason
from transom.features.ingest.expected_inputs import ExpectedInputs, partition_of


def day_folder(lake: Lake) -> Path:
    """Make the landing folder of the day."""
    folder = lake.folder / "landing/web/2015-05-17"
    folder.mkdir()
    return folder


def test_removed_files_are_named(run: Ask, lake: Lake) -> None:
    """An hour is quarantined because of a removed file as long as the file is the one that was read."""
    cause = "rejected_share: observed 0.5, expected at most 0.05"
    lake.ingest(range(2))
    folder = day_folder(lake)
    paths = [folder / "access.01.log", folder / "access.00.log"]
    names = [str(path.relative_to(lake.folder)) for path in paths]
    for path in paths:
        path.write_text("a line\n")
        os.utime(path, (1e9, 1e9))
    when = datetime.fromtimestamp(1e9, UTC)
    known = [
        file_row(
            lake, names[0], at(1), when, status="quarantined", status_reason=cause, hours=(at(0), at(1))
        ),
        file_row(lake, names[1], at(0), when, status="ingested", source_id="s", hours=(at(0),)),
    ]
    lake.files(known)
    bad = PartitionState(
        "quarantined",
        "a",
        False,
        input_hashes=ExpectedInputs(lake.stream).expected(at(1)),
        reason=f"{names[0]}: {cause}",
    )
    lacks = f"{names[0]}: quarantined, see the finding of 2015-05-17T01:00"
    entry = lake.ledger.snapshot()[partition_of("events", at(0))]
    lake.run("a", "ingest", {partition_of("events", at(1)): bad})
    lake.run("a", "ingest", {partition_of("events", at(0)): replace(entry, complete=False, reason=lacks)})
    lake.aggregate(range(2))

    def files_and_advice(hour: int) -> list[str]:
        lines = explanation(run, lake, f"2015-05-17T0{hour}:00")
        return [line.strip() for line in lines if line.startswith("  file") or line.endswith(":")]

    advice = "fix the data, or accept the value in the stream file, then run:"
    quarantined = f"file {names[0]}: quarantined: {cause}"
    assert files_and_advice(0) == files_and_advice(1) == [quarantined, advice]
    os.utime(paths[0], (0, 0))
    changed = f"{quarantined}; changed, 7 bytes of 1970-01-01 00:00:00 now, 7 of {when:%Y-%m-%d %H:%M:%S}"
    assert files_and_advice(1) == [f"{changed} when it was read", "to run it:"]
    for path in paths:
        path.unlink()
    removed = f"{quarantined}; gone; the next run forgets it"
    assert files_and_advice(1) == [removed, "to run it:"]
    assert files_and_advice(0) == [f"file {names[1]}: gone; its rows stay", removed, "to run it:"]
    assert explanation(run, lake, "2015-05-17T00:00")[-1] == command(
        lake, "2015-05-17T00:00", "2015-05-17T02:00"
    )


def test_new_file_of_the_hour_is_named(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    lake.aggregate(range(1))
    folder = day_folder(lake)
    (folder / "access.00.log").write_text("a line\n")
    (folder / "access.01.log").write_text("a line of another hour\n")
    lines = explanation(run, lake, "2015-05-17T00:00")
    assert lines[3:] == [
        "  file landing/web/2015-05-17/access.00.log: new, 7 bytes; no run has seen it",
        "  to run it:",
        command(lake, "2015-05-17T00:00", "2015-05-17T01:00"),
    ]


def test_expected_missing_files_are_named(run: Ask, lake: Lake) -> None:
    """By their name in the zone of the path."""
    berlin = WEB.replace('access.%H*.log"', '{host}.%H*.log", zone: Europe/Berlin, expected_files: 2')
    lake.file.write_text(berlin)
    lake.ingest(range(1))
    lake.aggregate(range(1))
    folder = day_folder(lake)
    missing = "  file landing/web/2015-05-17/{host}.02*.log: expected, {} of 2 are there"
    assert missing.replace("{}", "0") in explanation(run, lake, "2015-05-17T00:00")
    (folder / "a.02.log").write_text("a line\n")
    assert missing.replace("{}", "1") in explanation(run, lake, "2015-05-17T00:00")
    (folder / "b.02.log").write_text("a line\n")
    assert not any("expected, " in line for line in explanation(run, lake, "2015-05-17T00:00"))
    lake.file.write_text(berlin.replace("expected_files: 2", "expected_files: 1"))
    assert "  file landing/web/2015-05-17/{host}.03*.log: expected, not there" in explanation(
        run, lake, "2015-05-17T01:00"
    )
    lake.file.write_text(berlin + "until: 2015-05-17T01:00\n")
    assert not any("expected, " in line for line in explanation(run, lake, "2015-05-17T01:00"))


def test_run_is_advised_only_once_the_missing_file_exists(run: Ask, lake: Lake) -> None:
    lake.file.write_text(WEB.replace('access.%H*.log"', 'access.%H*.log", expected_files: 1'))
    lake.ingest(range(2))
    lake.aggregate(range(2))
    node = partition_of("events", at(1))
    stored = lake.ledger.snapshot()[node]
    missing = CheckResult(node, "files_expected", "incomplete", 0.0, "at least 1", False)
    lake.ledger.record_checks("ingest", [missing], "late")
    cause = "files_expected: observed 0, expected at least 1"
    causes = (Reason("check", cause, "files_expected"),)
    lacking = replace(stored, run_id="late", complete=False, reason=cause, reasons=causes)
    lake.run("late", "ingest", {node: lacking})
    lake.aggregate(range(2))
    lines = explanation(run, lake, "2015-05-17T01:00")
    assert f"    something is missing: {cause}" in lines
    assert (
        "    if it never arrives, add this to waivers in the stream file: - {hour: 2015-05-17T01:00, "
        "stage: ingest, check: files_expected, observed: 0, who: NAME, why: REASON}"
    ) in lines
    assert lines[-3:] == [
        "  file landing/web/2015-05-17/access.01*.log: expected, not there",
        "  a run changes nothing before the file is there; then run:",
        command(lake, "2015-05-17T01:00", "2015-05-17T02:00"),
    ]
    folder = day_folder(lake)
    (folder / "access.01.log").write_text("a line\n")
    assert explanation(run, lake, "2015-05-17T01:00")[-2] == "  to run it:"


def test_new_file_without_an_hour_in_its_name_is_named(run: Ask, lake: Lake) -> None:
    lake.file.write_text(WEB.replace("%Y-%m-%d/access.%H*.log", "access*.log"))
    lake.ingest(range(1))
    lake.aggregate(range(1))
    (lake.folder / "landing/web/access.log.1").write_text("a line of another log\n")
    (lake.folder / "landing/web/access.1.log").write_text("a line\n")
    assert explanation(run, lake, "2015-05-17T00:00")[3:] == [
        "  file landing/web/access.1.log: new, no run has seen it; its hours are known when it is read",
        "  to run it:",
        command(lake, "2015-05-17T00:00", "2015-05-17T01:00"),
    ]


def test_files_with_remarks_are_reported_and_hours_stay_fresh(run: Ask, lake: Lake) -> None:
    lake.ingest(range(3))
    lake.aggregate(range(3))
    when = datetime(2015, 5, 20, tzinfo=UTC)
    folder = "landing/web/2015-05-17/access"
    rows = []
    for name, hours in ((".01a", (1,)), (".01b", (1,)), (".02", (1, 2))):
        content, source = ("c", f"s{name}") if name != ".02" else ("d", "s")
        row = file_row(
            lake, f"{folder}{name}.log", at(max(hours)), when,
            status="ingested", source_id=source, hours=tuple(map(at, hours)),
        )  # fmt: skip
        rows.append(replace(row, content_sha256=content))
        path = lake.folder / row.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"1234567")
        os.utime(path, (when.timestamp(), when.timestamp()))
    lake.files(rows)
    equal = f"{folder}.01b.log holds the same bytes as {folder}.01a.log; both count"
    # Hour 2 may get files named after hour 3; hour 1 has all its files.
    early = (
        f"it may count as complete before all files are there, as {folder}.02.log, named for "
        "2015-05-17T02:00, holds events of 2015-05-17T01:00; if names give the end of what a file covers: "
        "`source: {name_time: end, covers: ...}`"
    )
    for hour, remarks in (("00", []), ("01", [equal]), ("02", [early])):
        lines = explanation(run, lake, f"2015-05-17T{hour}:00")
        assert [line for line in lines if line.startswith("  files: ")] == [
            f"  files: {of}" for of in remarks
        ]
    reported = run("status", "web")
    assert reported.exit_code == 0
    shown = " ".join(reported.stdout.split())
    assert f"1 file holds the same bytes as another one: {equal}" in shown
    assert "1 hour may count as complete before all files are there" in shown
    # A waiting file makes its hour stale.
    waits = replace(
        rows[2], status="waiting", status_reason="touches 01 to 02", source_id=None, path=f"{folder}.02w.log"
    )
    lake.files([*rows, waits])
    shown = " ".join(run("status", "web").stdout.split())
    assert f"1 file waits for a run of other hours: {folder}.02w.log (touches 01 to 02)" in shown


def test_missing_file_of_a_period_is_named(run: Ask, lake: Lake) -> None:
    text = WEB.replace("access.%H*.log", "access.%H%M*.log").replace(
        '.log"}', '.log", covers: 20 minutes, name_time: end}'
    )
    lake.file.write_text(text)
    lake.ingest(range(2))
    lake.aggregate(range(2))
    folder = day_folder(lake)
    for name in ("0020", "0040"):
        (folder / f"access.{name}.log").write_text("")
    missing = "file landing/web/2015-05-17/access.0100*.log: expected, not there; of 00:40 to 01:00"
    assert f"  {missing}" in explanation(run, lake, "2015-05-17T00:00")


def test_run_that_reads_a_whole_file_is_advised_for_a_damaged_hour(run: Ask, lake: Lake) -> None:
    lake.ingest(range(3))
    lake.files(
        [file_row(lake, "f", at(0), at(0), status="ingested", source_id="s", hours=(at(0), at(1), at(2)))]
    )
    lake.mark(partition_of("events", at(1)))
    lines = run("explain", "web", "2015-05-17T01:00").stdout.splitlines()
    assert command(lake, "2015-05-17T00:00", "2015-05-17T03:00") in lines
