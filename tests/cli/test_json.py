"""`--json` prints one document with the same content as the text."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from typer.testing import Result

from tests.cli.ledger_by_hand import Lake, at
from transom.core.terminal_tables import collected_tables, table
from transom.features.ingest.expected_inputs import partition_of

Run = Callable[..., Result]


def test_check_lists_valid_and_invalid_files(run: Run, lake: Lake) -> None:
    (lake.folder / "streams" / "broken.yaml").write_text("name: broken\nkey: [nothing]\n")
    result = run("check", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    (valid,), (invalid,) = document["valid"], document["invalid"]
    assert (valid["stream"], [*valid["blocks"]["aggregates"]]) == ("web", ["traffic"])
    assert invalid["files"][0].endswith("broken.yaml")
    assert {problem["path"] for problem in invalid["problems"]} >= {"source"}


def test_check_keeps_missing_files_apart_from_invalid_ones(run: Run, lake: Lake) -> None:
    broken = lake.folder / "streams" / "broken.yaml"
    broken.write_text("name: broken\nkey: [nothing]\n")
    result = run("check", broken, "nowhere.yaml", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, len(document["invalid"])) == (2, 1)
    (missing,) = document["missing"]
    assert "nowhere.yaml" in missing


def test_status_of_a_stream_that_never_ran_has_the_same_fields(run: Run, lake: Lake) -> None:
    (nowhere := lake.folder / "nowhere").mkdir()
    (before,) = json.loads(run("status", "web", "--lake", nowhere, "--json").stdout)["streams"]
    lake.ingest(range(1))
    (after,) = json.loads(run("status", "web", "--json").stdout)["streams"]
    assert (before["fresh"], before["stages"], before["findings"]) == (False, [], [])
    assert before.keys() == after.keys() >= {"stream", "lake", "remarks", "accepted", "last_run"}


def test_status_has_stages_and_findings(run: Run, lake: Lake) -> None:
    lake.ingest(range(3))
    entry = lake.ledger.snapshot()[partition_of("events", at(1))]
    lake.run("b", "ingest", {partition_of("events", at(1)): replace(entry, status="quarantined")})
    result = run("status", "web", "--json")
    (state,) = json.loads(result.stdout)["streams"]
    ingest = next(stage for stage in state["stages"] if stage["stage"] == "ingest")
    assert (result.exit_code, state["fresh"], ingest["published"], ingest["quarantined"]) == (1, False, 2, 1)


def test_explain_has_the_command_and_the_reasons(run: Run, lake: Lake) -> None:
    lake.ingest(range(1))
    result = run("explain", "web", "2015-05-17T10:00", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["stream"], document["fresh"]) == (1, "web", False)
    assert "run.py" in document["command"]
    assert any(reason.startswith("aggregates") for reason in document["reasons"])


def test_tables_are_collected_with_their_types(capsys: pytest.CaptureFixture[str]) -> None:
    with collected_tables() as tables:
        table("counts", ("key", "n"), [("a", 1), (None, 2.5)])
    assert tables == {"counts": [{"key": "a", "n": 1}, {"key": None, "n": 2.5}]}
    assert capsys.readouterr().out == ""


def test_rows_that_do_not_fit_a_terminal_are_printed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    path = "/var/log/a-long-folder/another-long-folder/access.log"
    columns = ("file", "first hour", "last hour", "words")
    table("files", columns, [(path, "2024-05-06T07:00", "2024-05-06T08:00", "some words")])
    lines = [line.rstrip() for line in terminal.getvalue().splitlines()]
    assert max(map(len, lines)) <= 80
    assert f"file        {path}" in lines
    assert "first hour  2024-05-06T07:00" in lines
