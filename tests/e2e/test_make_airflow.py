"""`make airflow`: Airflow on the checkout's own streams, at a chosen port, stopped by Ctrl-C."""

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest

import airflow_server
from processes import free_port

SCRIPT = Path(airflow_server.__file__)
pytestmark = [pytest.mark.full, pytest.mark.xdist_group("airflow")]
ENVIRONMENT = SCRIPT.parents[1] / ".transom" / "env"
GUIDE = (SCRIPT.parents[1] / "docs/tutorial/airflow.md").read_text()


def start(home: Path, port: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, SCRIPT],
        env={**os.environ, "AIRFLOW_HOME": str(home), "PORT": str(port)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def children(home: Path) -> dict[int, str]:
    """Return the processes that work in this home. Their environment does not identify them: some write their
    title over it.
    """
    result = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cwd").readlink() == home:
                    result[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
    return result


@pytest.fixture(autouse=True)
def _nothing_stays(tmp_path: Path) -> Iterator[None]:
    """Ensure that a failed test leaves no process either."""
    yield
    while remaining := children(tmp_path):
        for number in remaining:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)


def shell(home: Path, command: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as in a new shell, with the environment of set-up alone."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
    return subprocess.run(
        ["bash", "-c", f'. "$0" && export AIRFLOW_HOME="$1" && {command}', ENVIRONMENT, home],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def run_tutorial_commands(home: Path) -> None:
    """Trigger an interval and create a backfill with the tutorial's commands, while a scheduler writes."""
    (trigger,) = re.findall(r"^(airflow dags trigger .*)$", GUIDE, re.MULTILINE)
    (backfill,) = re.findall(r"^(airflow backfill create .*\\\n.*)$", GUIDE, re.MULTILINE)
    for command in (backfill, trigger):
        for _ in range(60):
            finished = shell(home, command)
            # The DAG exists once its file has been parsed.
            if "Could not find dag" not in finished.stderr:
                break
            time.sleep(1)
        assert finished.returncode == 0, finished.stderr
    with closing(sqlite3.connect(home / "airflow.db")) as database:
        runs = database.execute("SELECT run_type, count(*) FROM dag_run WHERE dag_id = 'web' GROUP BY 1")
        assert dict(runs.fetchall()) == {"backfill": 86, "manual": 1}


def test_airflow_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    """Slow (half a minute): Airflow starts, and two of its commands."""
    port = free_port()
    process = start(tmp_path, port)
    assert process.stdout is not None
    line = next(line for line in process.stdout if "is up" in line)
    assert f"http://127.0.0.1:{port} " in line
    health = httpx.get(f"http://127.0.0.1:{port}/api/v2/monitor/health", trust_env=False).json()
    assert health["metadatabase"]["status"] == "healthy"
    assert children(tmp_path)
    _, output = start(tmp_path, free_port()).communicate(timeout=60)
    assert output == f"airflow: another Airflow runs in {tmp_path}; end it first\n"
    run_tutorial_commands(tmp_path)
    process.send_signal(signal.SIGINT)
    reported, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "ended, with every process" in reported
    assert children(tmp_path) == {}


def test_components_that_outlive_airflow_lock_their_folder(tmp_path: Path) -> None:
    """Slow (20 seconds): Airflow is started again, as it is killed."""
    process = start(tmp_path, free_port())
    assert process.stdout is not None
    assert next(line for line in process.stdout if "is up" in line)
    process.kill()
    process.communicate(timeout=60)
    assert children(tmp_path)
    _, output = start(tmp_path, free_port()).communicate(timeout=60)
    assert output == f"airflow: another Airflow runs in {tmp_path}; end it first\n"


@pytest.mark.parametrize(
    ("port", "texts"),
    [
        ("http", "PORT must be a port's number; got 'http'"),
        (None, "is in use on this machine; choose another"),
    ],
)
def test_unavailable_port_is_refused(tmp_path: Path, port: str | None, texts: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stored:
        process = start(tmp_path, port or stored.getsockname()[1])
        _, output = process.communicate(timeout=60)
    assert process.returncode == 1
    (line,) = output.splitlines()
    assert line.startswith("airflow: ")
    assert texts in line
