"""The command line as a person runs it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from transom.cli.__main__ import app
from unit.cli.by_hand import Lake


@pytest.fixture
def run() -> Callable[..., Result]:
    """Runs a command."""
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake, its stream file found by its name."""
    monkeypatch.setenv("TRANSOM_HOME", str(tmp_path))
    monkeypatch.delenv("TRANSOM_LANDING", raising=False)
    monkeypatch.delenv("TRANSOM_SPARK_PROPERTIES", raising=False)
    monkeypatch.setenv("TRANSOM_STREAMS", str(tmp_path / "streams"))
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path / "lake"))
    return Lake(tmp_path)
