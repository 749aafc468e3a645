"""The explanation of an hour in any state, and the command that repairs it."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from typer.testing import Result

from tests.cli.ledger_by_hand import WEB, Lake, at, file_row
from transom.cli.explain import WHY
from transom.core.partitions import CheckResult, PartitionKey, PartitionState
from transom.core.reasons import Reason
from transom.features.aggregates.stage import VERSION
from transom.features.ingest.expected_inputs import ExpectedInputs, partition_of

Ask = Callable[..., Result]
OTHERWISE = "the stream file has changed since it was computed"


def explanation(run: Ask, lake: Lake, hour: str) -> list[str]:
    """Return the lines after the first, which names stream, hour and lake: first the reasons, then the files
    and the command that stand before them.
    """
    result = run("explain", "web", hour)
    first, *lines = result.stdout.splitlines()
    assert first == f"web {hour}, in {lake.uri}"
    why = f"  {WHY}"
    helps = lines[: lines.index(why)] if why in lines else []
    assert result.exit_code == int("--from" in "".join(helps[-1:]))
    return [*lines[len(helps) + (why in lines) :], *helps]


def command(lake: Lake, start: str, end: str) -> str:
    job = f"{lake.folder}/jobs/run.py --stream {lake.file} --lake {lake.uri}"
    return f"    spark-submit {job} --from {start} --to {end}"


def test_fresh_hour_is_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(3))
    lake.aggregate(range(3))
    assert explanation(run, lake, "2015-05-17T02:00") == [
        "  ingest events: published, 1 row, by run a, 2015-05-20 12:00",
        "  aggregates traffic, granules: published, 1 row, by run b, 2015-05-20 12:01",
        "  aggregates traffic, aggregates: published, 1 row, by run b, 2015-05-20 12:01",
    ]


def test_hour_not_requested_is_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    assert explanation(run, lake, "2015-05-18T00:00") == [
        "  ingest: not requested, so it counts as empty",
        "  aggregates: not requested, so it counts as empty",
        "  to run it:",
        command(lake, "2015-05-18T00:00", "2015-05-18T01:00"),
    ]


def test_hour_stopped_by_a_gate_is_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    assert explanation(run, lake, "2015-05-17T00:00") == [
        "  ingest events: published, 1 row, by run a, 2015-05-20 12:00",
        "  aggregates: stale: it was requested from ingest, and aggregates has not run since",
        "  to run it:",
        command(lake, "2015-05-17T00:00", "2015-05-17T01:00"),
    ]


def test_explaining_a_stream_without_runs_creates_no_ledger(run: Ask, lake: Lake) -> None:
    lake.file.write_text(WEB.replace("name: web", "name: other"))
    result = run("explain", lake.file, "2015-05-18T00:00")
    assert (result.exit_code, result.stdout.splitlines()[1:]) == (
        1,
        [
            "  not requested: no run of other is in this lake",
            "  to run it:",
            command(lake, "2015-05-18T00:00", "2015-05-18T01:00"),
        ],
    )
    assert not (lake.folder / "lake" / "other").exists()


def test_changed_rows_are_named_with_their_hours(run: Ask, lake: Lake) -> None:
    lake.ingest(range(4))
    lake.aggregate(range(4))
    lake.ingest([1], "c", 2, digest="2:9")
    assert explanation(run, lake, "2015-05-17T01:00")[1:-2] == [
        "  aggregates traffic, granules: published, stale, 1 row, by run b, 2015-05-20 12:01",
        "    the events of 2015-05-17T01:00 have changed since it was computed from them",
        "  aggregates traffic, aggregates: published, stale, 1 row, by run b, 2015-05-20 12:01",
        "    the granules that it is computed from are stale",
    ]


def test_changed_specification_or_version_is_named(
    run: Ask, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.ingest(range(2))
    lake.aggregate(range(2))
    lake.file.write_text(WEB.replace("n: count", "m: count"))
    monkeypatch.setattr("transom.features.aggregates.stage.VERSION", 99)
    lines = explanation(run, lake, "2015-05-17T01:00")
    assert lines[2:4] == [
        f"    {OTHERWISE}: `key`, `where`, `measures`, the finest step of `levels` or the type or resolution "
        "of a column",
        f"    transom computes it otherwise since: version {VERSION} then, 99 now",
    ]
    assert lines[-2:] == ["  to run it:", command(lake, "2015-05-17T01:00", "2015-05-17T02:00")]


@pytest.mark.parametrize(
    ("old", "new", "granules", "aggregates"),
    [
        (
            "n: count}",
            "n: count}\n    where: status = 200",
            "`where`, the finest step of `levels` or the type or resolution of a column",
            None,
        ),
        (
            "2 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR",
            "2 HOURS SLIDES 1 HOUR",
            None,
            "`levels`, `fit`, `aging` or the type or resolution of a column",
        ),
    ],
)
def test_changed_block_names_changed_fields_and_its_aggregates_are_stale(
    run: Ask, lake: Lake, old: str, new: str, granules: str | None, aggregates: str | None
) -> None:
    lake.ingest(range(2))
    lake.aggregate(range(2))
    lake.file.write_text(WEB.replace(old, new))
    by = "1 row, by run b, 2015-05-20 12:01"
    stale = "published, stale" if granules else "published"
    state = "the granules of 2015-05-17T00:00 to 2015-05-17T02:00 that it is computed from are stale"
    reason = f"{OTHERWISE}: {aggregates}" if aggregates else state
    assert explanation(run, lake, "2015-05-17T01:00")[1:-2] == [
        f"  aggregates traffic, granules: {stale}, {by}",
        *([f"    {OTHERWISE}: {granules}"] if granules else []),
        f"  aggregates traffic, aggregates: published, stale, {by}",
        f"    {reason}",
    ]


def test_changed_rules_of_reading_files_are_named(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    lake.file.write_text(WEB + "extra_fields: keep\n")
    assert explanation(run, lake, "2015-05-17T00:00")[1] == (
        f"    {OTHERWISE}: `source.format`, `source.options`, the captures of `source.path`, the time in "
        "`source.path`, `zone` or `event_time_range`, `columns`, `time`, `extra_fields`, `unique` or a check "
        "or a waiver that decides whether files are complete"
    )


def test_hour_being_written_is_explained(run: Ask, lake: Lake) -> None:
    hours = ["2015-05-17T00:00", "2015-05-17T01:00"]
    waits = [
        "  nothing is to be done while run {} is active; if it was killed, run:",
        command(lake, *hours),
    ]
    node = partition_of("events", at(0))
    lake.ledger.claim("ingest", [node], "r ingest")
    assert explanation(run, lake, hours[0])[1:] == [
        "    a run has begun to write it and has not published it: it is active, or was killed",
        "  aggregates: not computed yet; run r ingest is active, or was killed",
        waits[0].format("r ingest"),
        waits[1],
    ]
    lake.ingest(range(1))
    granules = PartitionKey("aggregates", "traffic", "granules", at(0))
    lake.ledger.claim("aggregates", [granules], "r aggregate")
    assert explanation(run, lake, hours[0])[3:] == [
        "  aggregates traffic, aggregates: not computed yet; run r aggregate is active, or was killed",
        waits[0].format("r aggregate"),
        waits[1],
    ]
    # Nothing is being written between its two tables.
    finished = PartitionState("published", "r aggregate", digest="1:3", input_hashes={}, rows=1)
    lake.ledger.publish("aggregates", {granules: finished}, "r aggregate")
    assert explanation(run, lake, hours[0])[-3:] == [
        "  aggregates traffic, aggregates: not computed yet; run r aggregate is active, or was killed",
        waits[0].format("r aggregate"),
        waits[1],
    ]


def test_hour_with_state_alone_is_explained(run: Ask, lake: Lake) -> None:
    """The state is for windows that read it; the hour's other blocks are reported as missing."""
    lake.ingest(range(3))
    lake.aggregate([1])
    granules = PartitionKey("aggregates", "traffic", "granules", at(0))
    lake.run("b", "aggregates", {granules: replace(lake.ledger.snapshot()[replace(granules, hour=at(1))])})
    assert "  aggregates traffic, aggregates: stale: it has not been computed" in explanation(
        run, lake, "2015-05-17T00:00"
    )


def test_missing_input_of_a_window_is_named(run: Ask, lake: Lake) -> None:
    lake.ingest([1])
    lake.aggregate([1])
    lake.ingest([0], "c", 2)
    assert explanation(run, lake, "2015-05-17T01:00")[3:-2] == [
        "    the granules of 2015-05-17T00:00, which it reads, have not been computed"
    ]


def test_block_added_later_is_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    lake.aggregate(range(1))
    lake.file.write_text(WEB + "  more: {measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}\n")
    stale = "stale: the block was added after the hour was computed"
    assert explanation(run, lake, "2015-05-17T00:00")[2:] == [
        f"  aggregates more, granules: {stale}",
        "  aggregates traffic, aggregates: published, 1 row, by run b, 2015-05-20 12:01",
        f"  aggregates more, aggregates: {stale}",
        "  to run it:",
        command(lake, "2015-05-17T00:00", "2015-05-17T01:00"),
    ]


def test_removed_files_are_named(run: Ask, lake: Lake) -> None:
    """An hour is quarantined because of a removed file as long as the file is the one that was read."""
    cause = "rejected_share: observed 0.5, expected at most 0.05"
    lake.ingest(range(2))
    folder = lake.folder / "landing/web/2015-05-17"
    folder.mkdir()
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
    lacks = f"{names[0]}: quarantined, see the finding of 2015-05-17T01:00 says why"
    entry = lake.ledger.snapshot()[partition_of("events", at(0))]
    lake.run("a", "ingest", {partition_of("events", at(1)): bad})
    lake.run("a", "ingest", {partition_of("events", at(0)): replace(entry, complete=False, reason=lacks)})
    lake.aggregate(range(2))

    def files_and_advice(hour: int) -> list[str]:
        lines = explanation(run, lake, f"2015-05-17T0{hour}:00")
        return [line.strip() for line in lines if line.startswith("  file") or line.endswith(":")]

    mend = "fix the data, or accept the value in the stream file, then run:"
    quarantined = f"file {names[0]}: quarantined: {cause}"
    assert files_and_advice(0) == files_and_advice(1) == [quarantined, mend]
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


def test_hour_of_several_specifications_is_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(2))
    node = partition_of("events", at(1))
    lake.run("a", "ingest", {node: replace(lake.ledger.snapshot()[node], input_hashes=None)})
    assert explanation(run, lake, "2015-05-17T01:00")[:2] == [
        "  ingest events: published, stale, 1 row, by run a, 2015-05-20 12:00",
        "    its inputs are unknown: rows of several specifications, or of a killed run",
    ]


def test_quarantined_hour_and_blocked_hours_are_explained(run: Ask, lake: Lake) -> None:
    lake.ingest([0, 2])
    node = partition_of("events", at(1))
    lake.ledger.claim("ingest", [node], "bad")
    sample = ("line 3: no_match: junk",)
    lake.ledger.record_checks(
        "ingest",
        [
            CheckResult(
                node,
                "rejected_share",
                "error",
                0.512,
                "at most 0.05",
                False,
                file="a.log",
                failing_rows=sample,
            )
        ],
        "bad",
    )
    cause = "a.log: rejected_share: observed 0.512, expected at most 0.05"
    lake.run(
        "bad", "ingest", {node: PartitionState("quarantined", "bad", False, input_hashes={}, reason=cause)}
    )
    texts = f"ingest events 2015-05-17T01:00 is quarantined: {cause}"
    blocked = {
        PartitionKey("aggregates", "traffic", table, at(n)): PartitionState(
            "blocked", "b", False, reason=texts
        )
        for n, table in [(1, "granules"), (1, "aggregates"), (2, "aggregates")]
    }
    lake.run("b", "aggregates", blocked)
    fresh = replace(PartitionState("published", "b"), digest="1:3", rows=1)
    lake.run("b", "aggregates", {PartitionKey("aggregates", "traffic", "granules", at(2)): fresh})
    lines = explanation(run, lake, "2015-05-17T02:00")
    assert lines[-5:] == [
        "  aggregates traffic, aggregates: blocked, 0 rows, by run b, 2015-05-20 12:00",
        f"    not computed: {texts}",
        f"    because {texts}",
        "  fix the data, or accept the value in the stream file, then run:",
        command(lake, "2015-05-17T01:00", "2015-05-17T03:00"),
    ]
    missed = {"hour": "2015-05-17T01:00", "stage": "ingest", "check": "rejected_share", "observed": 0.51}
    lake.file.write_text(WEB + f"waivers: [{json.dumps(missed | {'who': 'ops', 'why': 'a bad release'})}]\n")
    lines = explanation(run, lake, "2015-05-17T01:00")
    assert (
        "    your file says 0.51 for rejected_share of 2015-05-17T01:00, and the check saw 0.512: `observed` "
        "must have every digit"
    ) in lines
    assert (
        "    to accept it, add this to waivers in the stream file: - {hour: 2015-05-17T01:00, stage: ingest, "
        "check: rejected_share, observed: 0.512, who: NAME, why: REASON}"
    ) in lines
    assert [line for line in lines if "withheld" in line or "line 3" in line or "observed" in line][:3] == [
        f"    quarantined; the rows published before stay: {cause}",
        "    2015-05-17T01:00 events: rejected_share in a.log: observed 0.512, expected at most 0.05",
        "        line 3: no_match: junk",
    ]


def test_incomplete_hours_and_killed_runs_are_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(2))
    node = partition_of("events", at(0))
    stored = lake.ledger.snapshot()[node]
    missing = replace(stored, complete=False, reason="files_expected: observed 0, expected at least 1")
    lake.run("a", "ingest", {node: missing})
    assert "    something is missing: files_expected: observed 0, expected at least 1" in explanation(
        run, lake, "2015-05-17T00:00"
    )
    lake.ledger.claim("ingest", [node], "killed")
    assert explanation(run, lake, "2015-05-17T00:00")[:2] == [
        "  ingest events: writing, 1 row, by run killed",
        "    a run has begun to write it and has not published it: it is active, or was killed",
    ]


def test_block_that_reads_other_hours_is_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(2))
    lake.aggregate(range(2))
    lake.file.write_text(WEB.replace("RANGES 2", "RANGES 3"))
    assert explanation(run, lake, "2015-05-17T01:00")[3] == (
        f"    {OTHERWISE}: `levels`, `fit`, `aging` or the type or resolution of a column"
    )


def test_control_characters_of_a_log_are_escaped(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    node = partition_of("events", at(0))
    missing = replace(lake.ledger.snapshot()[node], complete=False, reason="a\x1b[31m.log: cut")
    lake.run("a", "ingest", {node: missing})
    assert "    something is missing: a\\x1b[31m.log: cut" in explanation(run, lake, "2015-05-17T00:00")


def test_new_file_of_the_hour_is_named(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    lake.aggregate(range(1))
    folder = lake.folder / "landing/web/2015-05-17"
    folder.mkdir()
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
    folder = lake.folder / "landing/web/2015-05-17"
    folder.mkdir()
    missing = "  file landing/web/2015-05-17/{host}.02*.log: expected, {} of 2 are there"
    assert missing.replace("{}", "0") in explanation(run, lake, "2015-05-17T00:00")
    (folder / "a.02.log").write_text("a line\n")
    assert missing.replace("{}", "1") in explanation(run, lake, "2015-05-17T00:00")
    (folder / "b.02.log").write_text("a line\n")
    assert not any("expected, " in said_line for said_line in explanation(run, lake, "2015-05-17T00:00"))
    lake.file.write_text(berlin.replace("expected_files: 2", "expected_files: 1"))
    assert "  file landing/web/2015-05-17/{host}.03*.log: expected, not there" in explanation(
        run, lake, "2015-05-17T01:00"
    )
    lake.file.write_text(berlin + "until: 2015-05-17T01:00\n")
    assert not any("expected, " in said_line for said_line in explanation(run, lake, "2015-05-17T01:00"))


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
        "    if it never comes, add this to waivers in the stream file: - {hour: 2015-05-17T01:00, "
        "stage: ingest, check: files_expected, observed: 0, who: NAME, why: REASON}"
    ) in lines
    assert lines[-3:] == [
        "  file landing/web/2015-05-17/access.01*.log: expected, not there",
        "  a run changes nothing before the file is there; then run:",
        command(lake, "2015-05-17T01:00", "2015-05-17T02:00"),
    ]
    folder = lake.folder / "landing/web/2015-05-17"
    folder.mkdir()
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


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (("web", "noon"), "Invalid value for HOUR: must be a time such as 2015-05-17T10:00; got 'noon'"),
        (("web", "2015-05-17T10:30"), "must be on the hour, in UTC; got '2015-05-17T10:30'"),
        (("wbe", "2015-05-17T10:00"), "Invalid value for STREAM: no stream 'wbe' in "),
        (("no.yaml", "2015-05-17T10:00"), "Invalid value for STREAM: no stream file 'no.yaml'"),
    ],
)
def test_invalid_arguments_are_refused(run: Ask, lake: Lake, arguments: tuple[str, str], texts: str) -> None:
    result = run("explain", *arguments)
    assert result.exit_code == 2
    assert texts in " ".join(result.stderr.split())


def test_misspelled_name_gets_a_suggestion(run: Ask, lake: Lake) -> None:
    assert "; nearest: web" in " ".join(run("explain", "wbe", "2015-05-17T10:00").stderr.split())


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
        "2015-05-17T02:00, holds events of 2015-05-17T01:00; if names say the end of what a file covers: "
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
    for name in ("0020", "0040"):
        path = lake.folder / f"landing/web/2015-05-17/access.{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    missing = "file landing/web/2015-05-17/access.0100*.log: expected, not there; of 00:40 to 01:00"
    assert f"  {missing}" in explanation(run, lake, "2015-05-17T00:00")


def test_advice_is_first_and_each_cause_is_reported_once(run: Ask, lake: Lake) -> None:
    lake.ingest(range(2))
    lake.aggregate(range(2))
    node = partition_of("events", at(1))
    cause = "files_expected: observed 0, expected at least 1"
    for one in [
        node,
        *(PartitionKey("aggregates", "traffic", table, at(1)) for table in ("granules", "aggregates")),
    ]:
        entry = replace(lake.ledger.snapshot()[one], complete=False, reason=cause)
        lake.run(entry.run_id, one.stage, {one: entry})
    lines = run("explain", "web", "2015-05-17T01:00").stdout.splitlines()
    assert lines[1:4] == [
        "  to run it:", command(lake, "2015-05-17T01:00", "2015-05-17T02:00"), f"  {WHY}",
    ]  # fmt: skip
    # Once in its own hour, and once as the cause of the others.
    assert [line.strip() for line in lines if cause in line] == [
        f"something is missing: {cause}",
        f"because ingest events 2015-05-17T01:00 is incomplete: {cause}",
    ]
    assert lines[-1] == "    and as above"
    assert [line[:33].rstrip() for line in lines if "  aggregates traffic" in line] == [
        "  aggregates traffic, granules: p", "  aggregates traffic, aggregates:",
    ]  # fmt: skip


def test_hours_computed_from_stale_hours_are_stale_with_the_reason(run: Ask, lake: Lake) -> None:
    """The events must be read again; the aggregates match the published events."""
    lake.ingest(range(3))
    lake.aggregate(range(3))
    lake.file.write_text(WEB + "extra_fields: keep\n")
    lines = run("explain", "web", "2015-05-17T01:00").stdout.splitlines()
    (at_granules,) = [number for number, line in enumerate(lines) if ", granules: " in line]
    assert lines[at_granules].startswith("  aggregates traffic, granules: published, stale, ")
    assert lines[at_granules + 1] == (
        "    computed from what is stale in turn: ingest events (events) of 2015-05-17T01:00 is out of date"
    )


def test_hours_computed_from_damaged_hours_are_stale_because_of_them(run: Ask, lake: Lake) -> None:
    lake.ingest(range(3))
    lake.aggregate(range(3))
    lake.mark(partition_of("events", at(1)))
    result = run("explain", "web", "2015-05-17T02:00")
    assert result.exit_code == 1
    why = "computed from what is stale in turn: ingest events (events) of 2015-05-17T01:00 is damaged"
    assert f"    {why}" in result.stdout.splitlines()


def test_run_that_reads_a_whole_file_is_advised_for_a_damaged_hour(run: Ask, lake: Lake) -> None:
    lake.ingest(range(3))
    lake.files(
        [file_row(lake, "f", at(0), at(0), status="ingested", source_id="s", hours=(at(0), at(1), at(2)))]
    )
    lake.mark(partition_of("events", at(1)))
    lines = run("explain", "web", "2015-05-17T01:00").stdout.splitlines()
    assert command(lake, "2015-05-17T00:00", "2015-05-17T03:00") in lines
