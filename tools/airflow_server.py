"""A real Airflow on loopback in a folder of its own, ended with every process that it started."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


class ServerError(RuntimeError):
    """Airflow could not be started or asked; the text is one line for a person."""


def free_port() -> int:
    """A port of the loopback address that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Airflow:
    """A running Airflow.

    Attributes:
        environment: of every process and command.
        log: what its components print.
    """

    home: Path
    port: int
    environment: Mapping[str, str]
    log: Path

    @property
    def url(self) -> str:
        """Where the UI is."""
        return f"http://127.0.0.1:{self.port}"

    def command(self, *arguments: str) -> str:
        """Runs an `airflow` command and returns what it prints.

        Raises:
            ServerError: it failed.
        """
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *arguments],
            env=dict(self.environment), capture_output=True, text=True, check=False, cwd=self.home,
        )  # fmt: skip
        if done.returncode:
            raise ServerError(
                f"airflow {' '.join(arguments)}: {(done.stderr or done.stdout).strip()[-2000:]}"
            )
        return done.stdout

    def trigger(self, dag: str, run: str, **conf: str) -> None:
        """Triggers a DAG by hand, as the UI's form does."""
        self.command("dags", "trigger", dag, "--run-id", run, "--conf", json.dumps(conf))

    def states(self, dag: str, run: str) -> dict[str, str]:
        """The state of each task of a run."""
        shown = self.command("tasks", "states-for-dag-run", dag, run, "-o", "json")
        rows: list[dict[str, Any]] = json.loads(shown[shown.index("[") :])
        return {row["task_id"]: row["state"] or "" for row in rows}

    def wait(self, dag: str, run: str, seconds: float) -> dict[str, str]:
        """Waits until every task of a run has ended.

        Raises:
            ServerError: it takes longer.
        """
        end = time.monotonic() + seconds
        over = {"success", "failed", "upstream_failed", "skipped", "removed"}
        while time.monotonic() < end:
            states = self.states(dag, run)
            if states and set(states.values()) <= over:
                return states
            time.sleep(2)
        raise ServerError(f"{dag} {run}: not done after {seconds:.0f} s: {self.states(dag, run)}")

    def task_log(self, dag: str, run: str, task: str) -> str:
        """What a task logged, all tries."""
        folder = self.home / "logs" / f"dag_id={dag}" / f"run_id={run}" / f"task_id={task}"
        return "".join(file.read_text() for file in sorted(folder.rglob("*.log")))


@contextmanager
def running(home: Path, **environment: str) -> Iterator[Airflow]:
    """A real Airflow in `home`, with the pool and the connection of transom.

    Raises:
        ServerError: it does not come up.
    """
    home.mkdir(parents=True, exist_ok=True)
    port = free_port()
    cores = os.cpu_count() or 2
    settings = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__PARALLELISM": "8",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "10",
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
        "AIRFLOW_CONN_TRANSOM_SPARK": "spark://local[*]?deploy-mode=client",
        "PYTHONPATH": f"{ROOT / 'jobs'}:{ROOT / 'dags'}",
        **environment,
    }
    settings["AIRFLOW_CONN_TRANSOM_SPARK"] = json.dumps(
        {"conn_type": "spark", "host": "local[*]", "extra": {"deploy-mode": "client"}}
    )
    server = Airflow(home, port, settings, home / "airflow.log")
    server.command("db", "migrate")
    server.command("pools", "set", "transom", str(max(cores // 2, 1)), "spark-submits side by side")
    with server.log.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "airflow", "standalone"],
            env=settings, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, cwd=home,
        )  # fmt: skip
        try:
            _wait_until_up(process, server)
            yield server
        finally:
            _end(process)


def _wait_until_up(process: "subprocess.Popen[bytes]", server: Airflow) -> None:
    end = time.monotonic() + 180
    while time.monotonic() < end:
        if process.poll() is not None:
            raise ServerError(f"Airflow ended at once, see {server.log}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", server.port)) == 0:
                return
        time.sleep(0.5)
    raise ServerError(f"Airflow did not come up within three minutes, see {server.log}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends the whole session of the server: on its own it leaves children behind."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        members = _session(process.pid)
        for member in members:
            try:
                os.kill(member, sign)
            except ProcessLookupError:
                continue
        end = time.monotonic() + 10
        while time.monotonic() < end and _session(process.pid):
            process.poll()
            time.sleep(0.2)
    process.wait()


def _session(leader: int) -> list[int]:
    """Every living process of a session; components make process groups of their own."""
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                members.append(int(entry.name))
    return members
