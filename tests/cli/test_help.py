"""The commands in the help texts work as printed."""

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from tests.cli.examples import logs
from transom import __version__
from transom.cli import try_command as trying
from transom.cli.__main__ import HELP

Ask = Callable[..., Result]


def test_every_command_is_described_in_one_full_line(run: Ask) -> None:
    listed = run("--help").stdout.partition("Commands:\n")[2].splitlines()
    commands = ["init", "check", "try", "status", "explain", "report", "verify", "setup"]
    assert [text.split()[0] for text in listed] == commands
    assert not [text for text in listed if text.endswith("...")]


def test_version_is_printed(run: Ask) -> None:
    printed = run("--version")
    assert (printed.exit_code, printed.stdout, printed.stderr) == (0, f"transom {__version__}\n", "")


def test_commands_of_the_help_work_in_sequence(
    run: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRANSOM_HOME", str(tmp_path))
    monkeypatch.setenv("TRANSOM_STREAMS", str(tmp_path / "schemas" / "streams"))
    monkeypatch.delenv("TRANSOM_LANDING", raising=False)
    monkeypatch.delenv("TRANSOM_LAKE", raising=False)
    Path("schemas/streams").mkdir(parents=True)
    shutil.copy(logs("nginx")[0], "access.log")
    tried: list[tuple[Path, list[Path]]] = []
    monkeypatch.setattr(trying, "require_spark", lambda: None)
    monkeypatch.setattr(
        trying, "try_in", lambda folder, root, file, files, hours, html: tried.append((file, files)) or True
    )
    commands = [
        shlex.split(text.strip().partition("   ")[0])[1:]
        for text in HELP.splitlines()
        if text.startswith("  transom ")
    ]
    assert [(command[0], run(*command).exit_code) for command in commands] == [
        ("init", 0),
        ("try", 0),
        ("status", 1),
        ("explain", 1),
        ("report", 1),
        ("verify", 1),
    ]
    assert tried == [(tmp_path / "schemas/streams/site.yaml", [Path("access.log")])]


def test_kept_lake_is_reported_only_if_it_exists(
    run: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tried(folder: Path, root: str, file: Path, files: list[Path], **_: object) -> bool:
        assert (root, file, files) == (str(lake), stream, [log])
        lake.mkdir()
        return True

    lake, log = tmp_path / "lake", tmp_path / "empty.log"
    log.touch()
    stream = tmp_path / "site.yaml"
    stream.write_text("name: site\npreset: apache/combined\nsource: {path: 'access*.log'}\n")
    monkeypatch.setattr(trying, "require_spark", lambda: None)
    none = run("try", stream, log, "--lake", lake)
    assert (none.exit_code, none.stderr) == (2, f"transom: {log}: must hold a line; it is empty\n")
    monkeypatch.setattr(trying, "try_in", tried)
    some = run("try", stream, log, "--lake", lake)
    assert (some.exit_code, some.stderr) == (0, f"kept: {lake}\n")


def test_exit_codes_distinguish_problems_from_failures(
    run: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 if a command could look and found problems, 2 if it could not look."""
    monkeypatch.setenv("TRANSOM_HOME", str(tmp_path))
    monkeypatch.setenv("TRANSOM_STREAMS", str(tmp_path))
    monkeypatch.delenv("TRANSOM_LAKE", raising=False)
    monkeypatch.setattr(trying, "require_spark", lambda: None)
    (tmp_path / "site.yaml").write_text("name: site\npreset: apache/combined\nsource: {path: 'a*.log'}\n")
    (tmp_path / "wrong.yaml").write_text("name: wrong\npreset: apache/combind\nsource: {path: 'a*.log'}\n")
    junk, hour = tmp_path / "a.log", "2024-05-06T07:00"
    junk.write_text("no request at all\n" * 20)
    removed = tmp_path / "gone.log"
    for code, commands in {
        1: (("try", "site", junk), ("check", "wrong"), ("status", "site"), ("explain", "site", hour)),
        2: (
            ("init", removed), ("try", "site", removed), ("try", "nobody", junk), ("try", "wrong", junk),
            ("try", "site", junk, "--from", hour), ("try", "site", junk, "--from", hour, "--to", hour),
            ("check", "nobody"), ("status", "nobody"), ("status", "wrong"),
            ("status", "site", "--lake", tmp_path / "none"), ("explain", "nobody", hour),
            ("explain", "wrong", hour), ("explain", "site", "never"),
        ),
    }.items():  # fmt: skip
        for command in commands:
            assert run(*command).exit_code == code, command
