"""Printed commands run unchanged in a shell, in another folder."""

import os
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from transom.app.command_lines import cli_command, submit
from transom.cli.__main__ import app

ARGUMENTS = ["--stream", "{here}/my streams/web.yaml", "--lake", "{here}/lake", "--from", "a", "--to", "b"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a process without a set-up, with a `spark-submit` that prints its arguments."""
    for name in ("PYSPARK_SUBMIT_ARGS", "TRANSOM_SPARK_PROPERTIES", "TRANSOM_LANDING"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRANSOM_HOME", f"{tmp_path}/the checkout")
    monkeypatch.chdir(tmp_path)
    tools = tmp_path / "the checkout" / ".transom" / "tools"
    tools.mkdir(parents=True)
    program = tools / "spark-submit"
    program.write_text('#!/bin/sh\necho "$TRANSOM_LANDING"\nfor a do echo "$a"; done\n')
    program.chmod(0o755)
    return tmp_path


def shown(command: str, path: str) -> list[str]:
    """Return a job's landing folder, then its arguments."""
    command = command.replace("{from}", "a").replace("{to}", "b")
    environment = {"PATH": f"{path}:{os.defpath}"}
    finished = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=True, cwd="/", env=environment
    )
    return finished.stdout.splitlines()


def job_arguments(here: Path, *before: str, landing: str = "") -> list[str]:
    arguments = [text.replace("{here}", str(here)) for text in ARGUMENTS]
    return [landing, *before, f"{here}/the checkout/jobs/run.py", *arguments]


def test_command_of_a_job_without_settings_runs(here: Path) -> None:
    command = submit("run", Path("my streams/web.yaml"), "lake")
    assert shown(command, f"{here}/the checkout/.transom/tools") == job_arguments(here)


def test_command_of_a_job_with_all_settings_runs(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = here / "the checkout" / ".transom"
    (checkout / "env").write_text(
        f"export PATH='{checkout}/tools':\"$PATH\"\nexport TRANSOM_LANDING=/wrong\n"
    )
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    monkeypatch.setenv("TRANSOM_SPARK_PROPERTIES", "my own.properties")
    monkeypatch.setenv("TRANSOM_LANDING", "my logs")
    command = submit("run", "my streams/web.yaml", "lake")
    settings = ("--properties-file", f"{here}/my own.properties")
    assert shown(command, "/nowhere") == job_arguments(here, *settings, landing=f"{here}/my logs")


def test_command_in_a_container_uses_its_own_environment(here: Path) -> None:
    (here / "the checkout/.transom/env").write_text("exit 1\n")
    assert not submit("run", "web.yaml", "lake").startswith(".")


def test_landing_folder_defaults_to_that_of_this_process(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRANSOM_HOME")
    root = Path(__file__).resolve().parents[2]
    texts = f"TRANSOM_LANDING={here} spark-submit {root}/jobs/ingest.py --stream {here}/web.yaml --lake s3://logs/lake"
    assert submit("ingest", "web.yaml", "s3://logs/lake") == f"{texts} --from {{from}} --to {{to}}"


@pytest.mark.parametrize(
    ("path", "argv", "texts"),
    [
        ("elsewhere", "bin/transom", "bin/transom try 'a b' x.log"),
        ("bin", "bin/transom", "transom try 'a b' x.log"),
        ("bin", "x/transom/cli/__main__.py", "python -m transom.cli try 'a b' x.log"),
    ],
)
def test_command_line_is_printed_under_the_name_it_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, argv: str, texts: str
) -> None:
    for folder in ("bin", "elsewhere"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "transom").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/{path}")
    monkeypatch.setattr("sys.argv", [argv])
    assert cli_command("try", "a b", Path("x.log")) == texts


def test_draft_names_the_next_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["transom"])
    monkeypatch.chdir(tmp_path)
    Path("my log.csv").write_text("time,n\n2024-05-01T10:00:00Z,1\n2024-05-01T10:00:01Z,2\n")
    result = CliRunner().invoke(app, ["init", "my log.csv", "--output", "my.yaml"])
    assert result.stdout.splitlines() == [
        "my.yaml: written. Look at its question marks, then:",
        "  transom check my.yaml",
        "  transom try my.yaml 'my log.csv'",
    ]


def test_command_of_a_job_on_a_server_runs_without_the_token(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://spark:15002/;token=secret")
    program = here / "the checkout/.transom/tools/python"
    program.write_text('#!/bin/sh\necho "$SPARK_REMOTE"\nfor a do echo "$a"; done\n')
    program.chmod(0o755)
    command = submit("run", "my streams/web.yaml", "lake")
    assert shown(command, str(program.parent)) == job_arguments(here, landing="sc://spark:15002")
