"""Published hours, counted from the ledger alone; and valid stream files."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import Result

from tests.cli.ledger_by_hand import WEB, Lake, at
from transom.core.partitions import CheckResult, PartitionKey, PartitionState
from transom.features.ingest.expected_inputs import partition_of
from transom.findings.store import sync_ledger_findings
from transom.ledger.ledger import Ledger

Ask = Callable[..., Result]
COLUMNS = (
    "stream stage requested published incomplete quarantined blocked writing damaged stale last run seconds "
    "trigger"
)


def rows(result: Result) -> list[list[str]]:
    """Return the rows of the table, without heading and line."""
    lines = result.stdout.splitlines()
    head = next(index for index, line in enumerate(lines) if line.split() == COLUMNS.split())
    return [line.split() for line in lines[head + 2 :]]


def test_hours_are_counted_by_their_worst_state(run: Ask, lake: Lake) -> None:
    lake.ingest(range(6))
    lake.aggregate(range(6))
    stored = lake.ledger.snapshot()[partition_of("events", at(1))]
    lake.run("a", "ingest", {partition_of("events", at(1)): replace(stored, complete=False)})
    lake.run("a", "ingest", {partition_of("events", at(2)): replace(stored, status="quarantined")})
    lake.ledger.claim("ingest", [partition_of("files", at(3))], "killed")
    blocked = PartitionState("blocked", "b", False, reason="c")
    lake.run("b", "aggregates", {PartitionKey("aggregates", "traffic", "aggregates", at(2)): blocked}, 3)
    result = run("status", "web")
    assert result.exit_code == 1
    # Of the hours with changed events: their granules, and the windows that read them.
    assert rows(result) == [
        ["web", "ingest", "6", "3", "1", "1", "0", "1", "0", "0", "2015-05-20T12:00", "7.5", "schedule"],
        ["web", "aggregates", "6", "5", "0", "0", "1", "0", "0", "1", "2015-05-20T12:03", "7.5", "schedule"],
    ]


def test_requested_hour_counts_once_by_its_worst_state(run: Ask, lake: Lake) -> None:
    lake.ingest(range(5))

    def put(number: int, **tables: dict[str, object]) -> None:
        for name, changes in tables.items():
            node = partition_of(name, at(number))
            lake.run("a", "ingest", {node: replace(lake.ledger.snapshot()[node], **changes)})

    blocked, quarantined, missing = {"status": "blocked"}, {"status": "quarantined"}, {"complete": False}
    put(0, events=quarantined, rejected=blocked, files=missing)
    put(1, rejected=blocked, files=missing)
    put(2, events={"status": "expired"}, rejected={"status": "expired"}, files={"status": "expired"})
    put(3, events=quarantined, files=blocked)
    lake.ledger.claim("ingest", [partition_of("rejected", at(3))], "killed")
    unasked = partition_of("events", at(7))
    lake.ledger.claim("ingest", [unasked], "u", unrequested=[unasked])
    assert rows(run("status", "web"))[0][:8] == ["web", "ingest", "5", "2", "0", "1", "1", "1"]


def test_hours_stopped_by_a_gate_are_requested_and_stale(run: Ask, lake: Lake) -> None:
    lake.ingest(range(3))
    result = run("status", "web")
    assert result.exit_code == 1
    assert rows(result)[1] == ["web", "aggregates", "3", "0", "0", "0", "0", "0", "0", "3", "-", "-", "-"]
    lake.aggregate(range(2))
    assert rows(run("status", "web"))[1][2:10] == ["3", "2", "0", "0", "0", "0", "0", "1"]


def test_some_findings_of_each_block_are_shown_and_the_others_counted(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    quarantined = {
        partition_of("events", at(2 * number)): PartitionState(
            "quarantined", "c", False, reason=f"a.log: {number}"
        )
        for number in range(23)
    }
    lake.run("c", "ingest", quarantined, 7)
    sync_ledger_findings(lake.ledger, "web", "ingest", {})
    lines = run("status", "web").stdout.splitlines()
    assert len([line for line in lines if line.startswith("  high check_failed: ")]) == 3
    assert lines[-1] == "  ... and 20 more in the table findings: 20 check_failed of events"


def test_accepted_failures_are_shown_and_are_no_problem(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    lake.aggregate(range(1))
    node = partition_of("events", at(0))
    passed = CheckResult(node, "few", "error", 0.5, "at least 0.9", True, accepted="ops: a bad release")
    lake.ledger.record_checks("ingest", [passed], "a")
    result = run("status", "web")
    texts = "accepted: ingest events, 2015-05-17T00:00: few: observed 0.5, expected at least 0.9, by ops: "
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, f"  {texts}a bad release")
    explained = run("explain", "web", "2015-05-17T00:00")
    assert (explained.exit_code, explained.stdout.splitlines()[2]) == (0, f"    {texts}a bad release")


def test_entries_that_have_ended_or_soon_will_are_shown(run: Ask, lake: Lake) -> None:
    entry = "- {{stage: aggregates, block: traffic, until: {}, who: ops, why: a test}}"
    ends = ("2015-05-17T02:00", "2015-05-17T03:00", "2015-05-24T02:00", "2015-05-24T03:00")
    lake.file.write_text("\n".join([lake.file.read_text(), "suppress:", *map(entry.format, ends)]))
    lake.ingest(range(2))
    lake.aggregate(range(2))
    lines = [text for text in run("status", "web").stdout.splitlines() if "suppress" in text]
    # By the end of the last requested hour, 02:00, and seven days later.
    assert lines == [
        "  suppress[0] ended at 2015-05-17T02:00 (ops: a test)",
        "  suppress[1] ends at 2015-05-17T03:00 (ops: a test)",
        "  suppress[2] ends at 2015-05-24T02:00 (ops: a test)",
    ]
    (last,) = [text for text in run("check", "web").stdout.splitlines() if "[3]" in text]
    assert last == "  suppress[3] ends at 2015-05-24T03:00 (ops: a test)"


def test_findings_are_those_of_the_last_run(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    quarantined = PartitionState("quarantined", "c", False, reason="a.log: few")
    lake.run("c", "ingest", {partition_of("events", at(0)): quarantined}, 7)
    sync_ledger_findings(lake.ledger, "web", "ingest", {})
    assert run("status", "web").stdout.splitlines()[-2:] == [
        "  found as of the last run (2015-05-20T12:07); `explain` also looks at files that arrived since:",
        "  high check_failed: web: events, 2015-05-17T00:00, are quarantined: a.log: few",
    ]


def test_streams_without_a_file_are_named(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    lake.aggregate(range(1))
    (lake.folder / "lake/no_stream").mkdir()
    before = run("status").stdout
    for name in ("other", "more"):
        Ledger(f"{lake.uri}/{name}")
    also = f"\nalso in {lake.uri}, without a stream file that can be used in {lake.file.parent}: "
    also += "more, other\n"
    assert run("status").stdout == before + also
    assert run("status", "web").stdout == before


def test_changed_stream_file_makes_its_tables_stale(run: Ask, lake: Lake) -> None:
    lake.ingest(range(3))
    lake.aggregate(range(3))
    assert run("status").exit_code == 0
    lake.file.write_text(WEB.replace("n: count", "m: count"))
    result = run("status")
    assert (result.exit_code, [row[9] for row in rows(result)]) == (1, ["0", "3"])


def test_invalid_stream_file_is_named_after_the_valid_ones(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    lake.aggregate(range(1))
    before = run("status")
    bad = lake.file.with_name("bad.yaml")
    bad.write_text(WEB.replace("name: web", "nmae: bad"))
    result = run("status")
    assert (before.exit_code, result.exit_code, result.stdout) == (0, 2, before.stdout)
    assert result.stderr == f"{bad}: unknown field 'nmae'; nearest: name\n"


def test_status_of_a_stream_without_runs_creates_no_ledger(run: Ask, lake: Lake) -> None:
    lake.file.with_name("other.yaml").write_text(WEB.replace("name: web", "name: other"))
    result = run("status", "other")
    assert (result.exit_code, result.stdout) == (1, f"\nother: no run yet in {lake.uri}\n")
    assert not (lake.folder / "lake" / "other").exists()


def test_check_lists_declarations_and_all_errors(run: Ask, lake: Lake) -> None:
    sound = run("check")
    assert (sound.exit_code, sound.stdout) == (
        0,
        f"{lake.file}: stream web, apache/combined, 11 columns, from landing/web/%Y-%m-%d/access.%H*.log\n"
        "  aggregate traffic: n by client, 2 hours, 1 hour\n",
    )
    bad = lake.file.with_name("bad.yaml")
    bad.write_text(WEB.replace("name: web", "nmae: bad").replace("n: count", "n: suum(bytes)"))
    for arguments in ((), ("web", bad)):
        result = run("check", *arguments)
        assert (result.exit_code, result.stdout) == (1, sound.stdout)
        assert result.stderr == (
            f"{bad}: 2 problems\n"
            "  unknown field 'nmae'; nearest: name\n"
            "  aggregates.traffic.measures.n: unknown function 'suum' in 'suum(bytes)'; nearest: sum\n"
            "1 of 2 cannot be used\n"
        )


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        (WEB + "nmae: x\n", "unknown field 'nmae'; nearest: name"),
        (WEB + "tags: [a\n", "line 11, column 1: expected ',' or ']', but got '<stream end>'"),
    ],
)
def test_invalid_file_is_named_as_given(
    run: Ask, lake: Lake, monkeypatch: pytest.MonkeyPatch, text: str, texts: str
) -> None:
    lake.file.write_text(text)
    monkeypatch.chdir(lake.folder)
    for given in ("streams/web.yaml", lake.file):
        assert run("check", given).stderr == f"{given}: {texts}\n"
        for command in (("status", given), ("explain", given, "2015-05-17T10:00")):
            result = run(*command)
            assert (result.exit_code, result.stderr) == (2, f"transom: {given}: {texts}\n")


def test_check_continues_after_a_missing_stream(run: Ask, lake: Lake) -> None:
    result = run("check", "wbe", "gone.yaml", "web")
    assert (result.exit_code, result.stdout) == (2, run("check").stdout)
    assert result.stderr == (
        f"no stream 'wbe' in {lake.file.parent}; nearest: web\n"
        "no stream file 'gone.yaml'\n"
        "2 of 3 cannot be used\n"
    )
    alone = run("check", "gone.yaml")
    assert (alone.exit_code, alone.stdout, alone.stderr) == (2, "", "no stream file 'gone.yaml'\n")


def test_all_streams_with_one_file_name_are_listed(run: Ask, lake: Lake, tmp_path: Path) -> None:
    other = tmp_path / "web.yaml"
    other.write_text(WEB.replace("name: web", "name: other"))
    output = run("check", lake.file, other).stdout.splitlines()
    assert [line.partition(",")[0] for line in output[::2]] == [
        f"{lake.file}: stream web",
        f"{other}: stream other",
    ]


HEAVY = {"pyspark", "airflow", "great_expectations"}


def loaded_by(*commands: list[str]) -> set[str]:
    """Return the heavy packages that commands load, in a separate process."""
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom transom.cli.__main__ import app\n"
        f"for command in {commands}:\n"
        "    result = CliRunner().invoke(app, command)\n"
        "    assert result.exit_code == 0, result.output\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert finished.stderr == ""
    return HEAVY & {*finished.stdout.split()}


def test_help_and_commands_without_spark_do_not_load_it(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    log.write_text("time,host,n\n2024-05-01T10:00:00Z,a,1\n2024-05-01T10:00:01Z,b,2\n")
    assert loaded_by(["--help"], ["init", str(log)], ["check"], ["try", "--help"]) == set()


def test_reports_on_a_lake_need_no_spark(lake: Lake) -> None:
    lake.ingest(range(3))
    lake.aggregate(range(3))
    assert loaded_by(["status", "web"], ["explain", "web", "2015-05-17T01:00"]) == set()


def test_stage_waiting_for_a_stream_that_never_ran_is_reported(run: Ask, lake: Lake) -> None:
    lake.file.write_text(
        WEB
        + """
frames: {busy: {source: traffic, kind: threshold, where: n > 5}}
fills:
  rain:
    frame: busy
    source: {stream: weather, columns: {rain: {type: number, resolution: 0.1}}}
    join_on: []
    measures: {rain: sum(rain)}
"""
    )
    lake.ingest(range(2))
    lake.aggregate(range(2))
    result = run("status", "web")
    assert result.exit_code == 1
    assert [row[1:4] for row in rows(result)[:4]] == [
        ["ingest", "2", "2"], ["aggregates", "2", "2"], ["frames", "2", "0"], ["fills", "2", "0"],
    ]  # fmt: skip
    waits = (
        "fills.rain.source: it waits for the stream weather, of which no run is in this lake: "
        "run its ingest, then fill again. Stages before fill do not wait"
    )
    assert waits in " ".join(result.stdout.split())


def test_hours_computed_from_stale_hours_are_stale_with_the_reason(run: Ask, lake: Lake) -> None:
    """The events must be read again; the aggregates match the published events."""
    lake.ingest(range(3))
    lake.aggregate(range(3))
    assert run("status", "web").exit_code == 0
    lake.file.write_text(WEB + "extra_fields: keep\n")
    result = run("status", "web")
    assert (result.exit_code, [row[9] for row in rows(result)[:2]]) == (1, ["3", "3"])
    reason = "ingest events (events) of 2015-05-17T00:00 to 2015-05-17T03:00 is out of date"
    hours = "2015-05-17T00:00 to 2015-05-17T03:00"
    assert f"  stale: aggregates of {hours}, as {reason}" in result.stdout.splitlines()


def test_damaged_hours_and_their_dependents_are_stale(run: Ask, lake: Lake) -> None:
    lake.ingest(range(3))
    lake.aggregate(range(3))
    lake.mark(partition_of("events", at(1)))
    result = run("status", "web")
    assert (result.exit_code, [row[8:10] for row in rows(result)[:2]]) == (1, [["1", "1"], ["0", "2"]])
    assert "as ingest events (events) of 2015-05-17T01:00 is damaged" in result.stdout
    assert "2015-05-17T01:00: a run over these hours, and over all that their files touch," in result.stdout


def test_damage_of_a_table_without_dependents_is_stale_alone(run: Ask, lake: Lake) -> None:
    lake.ingest(range(3))
    lake.aggregate(range(3))
    lake.mark(partition_of("files", at(1)))
    result = run("status", "web")
    assert (result.exit_code, [row[9] for row in rows(result)[:2]]) == (1, ["1", "0"])


def test_damage_of_an_hour_not_requested_is_a_problem(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    lake.aggregate(range(1))
    entry = replace(lake.ledger.snapshot()[partition_of("events", at(0))], requested=False)
    lake.run("a", "ingest", {partition_of("events", at(5)): entry})
    assert run("status", "web").exit_code == 0
    lake.mark(partition_of("events", at(5)))
    assert run("status", "web").exit_code == 1
