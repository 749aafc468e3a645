"""A missing or unreadable lake: one line, and an exit code of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from tests.cli.ledger_by_hand import Lake

Ask = Callable[..., Result]
RULE = "must be a lake, the folder that holds those of streams"
COMMANDS = (("status", "web"), ("explain", "web", "2015-05-17T10:00"))


def refused(run: Ask, *arguments: object) -> str:
    """Return the error of each command that reads a lake."""
    values = set()
    for command in COMMANDS:
        result = run(*command, *arguments)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
        values.add(result.stderr)
    (texts,) = values
    return texts.removeprefix("transom: ").rstrip()


def test_folder_without_a_lake_is_refused(run: Ask, lake: Lake, tmp_path: Path) -> None:
    file, other = tmp_path / "file", tmp_path / "other"
    file.touch()
    for name in "abcd":
        (other / name).mkdir(parents=True)
    assert refused(run, "--lake", tmp_path / "lkae") == f"--lake: there is no {tmp_path}/lkae; nearest: lake"
    assert refused(run, "--lake", f"file://{tmp_path}/x") == f"--lake: there is no {tmp_path}/x"
    assert refused(run, "--lake", file) == f"--lake: {RULE}; {file} is a file"
    assert (
        refused(run, "--lake", other) == f"--lake: {RULE}; {other} holds a, b, c, ... and no stream's hours"
    )
    inside = f"{lake.uri}/web"
    assert refused(run, "--lake", inside) == f"--lake: {RULE}; {inside} is that of a stream, take {lake.uri}"


def test_lake_of_the_environment_is_named_as_such(
    run: Ask, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path / "none"))
    assert refused(run) == f"TRANSOM_LAKE: there is no {tmp_path}/none"


def test_default_lake_may_be_missing(
    run: Ask, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRANSOM_LAKE")
    result = run("status")
    assert (result.exit_code, result.stdout) == (1, f"\nweb: no run yet in {tmp_path}/.transom/lake\n")


def test_lake_without_permissions_is_refused(run: Ask, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "iterdir", denied)
    assert refused(run, "--lake", lake.uri) == f"--lake: cannot read {lake.uri}: Permission denied"


def test_unreadable_table_is_reported(run: Ask, lake: Lake) -> None:
    hours = lake.folder / "lake/web/ledger/_delta_log/00000000000000000000.json"
    hours.write_text("junk")
    text = refused(run, "--lake", lake.uri)
    assert text.startswith(f"lake: {lake.uri}/web cannot be read: ")
    assert text.endswith("whilst parsing value")


def test_missing_data_files_are_reported(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    for rows in (lake.folder / "lake/web/runs").rglob("*.parquet"):
        rows.unlink()
    assert refused(run, "--lake", lake.uri).startswith(f"lake: {lake.uri}/web cannot be read: ")


def test_unknown_scheme_is_refused(run: Ask, lake: Lake) -> None:
    text = refused(run, "--lake", "s4://logs")
    assert text.startswith("lake: s4://logs/web cannot be read: Unknown scheme: s4. Known schemes: ")
