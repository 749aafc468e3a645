"""The installed package works outside the checkout."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "tests/data/examples/auditd.log"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside the checkout with the package, a log, and what `transom setup` brings."""
    folder = tmp_path_factory.mktemp("outside")
    subprocess.run(
        [sys.executable, "-m", "uv", "pip", "install", "-q", "--no-deps", "--no-build-isolation",
         "--target", folder / "site", ROOT],
        check=True, capture_output=True,
    )  # fmt: skip
    data = folder / "data" / "transom"
    data.mkdir(parents=True)
    settings = Path(os.environ["TRANSOM_SPARK_PROPERTIES"])
    names = (
        "JAVA_HOME",
        "SPARK_HOME",
        "PYSPARK_SUBMIT_ARGS",
        "PYSPARK_PYTHON",
        "PYSPARK_DRIVER_PYTHON",
        "TZ",
    )
    values = {name: os.environ[name] for name in names}
    (data / "environment.json").write_text(json.dumps({**values, "TRANSOM_SPARK_PROPERTIES": str(settings)}))
    shutil.copy(LOG, folder)
    return folder


def transom(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.defpath, "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"),
        "PYTHONPATH": str(folder / "site"),
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "transom.cli", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_its_data_is_in_it(folder: Path) -> None:
    package = folder / "site" / "transom"
    for name in ("py.typed", "scripts/run.py", "spec/presets/zeek/conn.yaml", "ledger/tables/ledger.yaml"):
        assert (package / name).is_file()
    assert (folder / "site" / "bin" / "transom").is_file()


@pytest.fixture(scope="module")
def drafted(folder: Path) -> Path:
    """Return the folder, with the draft of the log's stream file."""
    done = transom(folder, "init", "auditd.log", "--output", "audit.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_draft_is_valid(drafted: Path) -> None:
    done = transom(drafted, "check", "audit.yaml")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.full
def test_draft_is_tried(drafted: Path) -> None:
    """Slow (half a minute): Spark starts."""
    done = transom(drafted, "try", "audit.yaml", "auditd.log")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^auditd\.log +61 +0 +61 +0 ", done.stdout, re.MULTILINE)


def test_commands_for_a_shell_name_scripts_of_the_package(drafted: Path) -> None:
    done = transom(drafted, "explain", "audit.yaml", "2023-04-10T20:00")
    assert done.returncode == 1
    (script,) = re.findall(r"\S+/run\.py", done.stdout)
    assert script == str(drafted / "site/transom/scripts/run.py")
