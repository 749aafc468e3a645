"""Run a real Airflow on loopback in its own folder, and end it with all processes that it started."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO

from airflow_api import Airflow
from processes import ServerError, alone, end, free_port, taken, until_interrupted

ROOT = Path(__file__).resolve().parents[1]
# Not `airflow standalone`: its log servers listen on all addresses of the machine, at fixed ports.
COMPONENTS = (("api-server",), ("scheduler", "--skip-serve-logs"), ("dag-processor",))
FORKING = ("scheduler", "dag-processor")
"""Components that fork a process for each task or file; they import what those need when they start."""


@contextmanager
def running(
    home: Path, environment: Mapping[str, str], port: int = 0, lock: IO[str] | None = None
) -> Iterator[Airflow]:
    """Run Airflow in the folder `home`, with transom's pool and connection.

    Args:
        environment: variables to add to those of this process.
        port: the port of UI and API on loopback; 0 selects a free one.
        lock: the lock of a folder around `home`, if the caller has it.

    Raises:
        ServerError: the port or the folder is in use, or Airflow does not start.
    """
    if port and taken(port):
        raise ServerError(f"port {port} is in use on this machine; choose another (PORT=...)")
    port = port or free_port()
    home.mkdir(parents=True, exist_ok=True)
    # Two schedulers on one database each consider the other's tasks lost.
    with alone(home, "Airflow") if lock is None else nullcontext(lock) as own_lock:
        yield from _running(home, environment, port, own_lock)


def _running(home: Path, environment: Mapping[str, str], port: int, lock: IO[str]) -> Iterator[Airflow]:
    cores = os.cpu_count() or 2
    settings = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        # SQLite has one writer at a time. Creating a backfill takes longer than the default timeout of 5 s.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db?timeout=60",
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
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
        "AIRFLOW_CONN_TRANSOM_SPARK": json.dumps(
            {
                "conn_type": "spark",
                "host": {**os.environ, **environment}.get("SPARK_REMOTE") or "local[*]",
                "extra": {"deploy-mode": "client"},
            }
        ),
        **environment,
    }
    server = Airflow(home, port, settings, home / "airflow.log")
    server.command("db", "migrate")
    server.command("pools", "set", "transom", str(max(cores // 2, 1)), "spark-submits side by side")
    with server.log.open("w") as log:
        components = _Components(home, settings, log, lock)
        try:
            components.start()
            _wait_until_up(components, server)
            yield server
        finally:
            server.close()
            components.end()


class _Components(threading.Thread):
    """Airflow's processes, each in its own session; restarts a process that ends.

    SQLite has one writer at a time, so a scheduler ends if it conflicts with another writer.
    """

    def __init__(self, home: Path, environment: Mapping[str, str], log: IO[str], lock: IO[str]) -> None:
        super().__init__(daemon=True)
        self._home, self._environment, self._log = home, environment, log
        # Processes inherit the lock: it lasts while one of them lives, even if this process is killed.
        self._held = (lock.fileno(),)
        self._ended = threading.Event()
        self.started = [self._launched(component) for component in COMPONENTS]

    def _launched(self, component: tuple[str, ...]) -> "subprocess.Popen[bytes]":
        preload = {"AIRFLOW__CORE__LAZY_LOAD_PLUGINS": str(component[0] not in FORKING)}
        return subprocess.Popen(
            [sys.executable, "-m", "airflow", *component],
            cwd=self._home, env={**preload, **self._environment}, stdout=self._log, stderr=self._log,
            start_new_session=True, pass_fds=self._held,
        )  # fmt: skip

    def run(self) -> None:
        """Restart processes that end, until `end` is called."""
        alive = dict(zip(COMPONENTS, self.started, strict=True))
        while not self._ended.wait(2):
            for component, process in alive.items():
                if process.poll() is not None:
                    print(f"airflow: {component[0]} ended; it is started again", flush=True)
                    alive[component] = self._launched(component)
                    self.started.append(alive[component])

    def end(self) -> None:
        """End all processes of all components, also children that would outlive them."""
        self._ended.set()
        if self.is_alive():
            self.join()
        end(self.started)


def _wait_until_up(components: _Components, server: Airflow) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        if len(components.started) > 3 * len(COMPONENTS):
            raise ServerError(f"Airflow's components end again and again, see {server.log}")
        if taken(server.port):
            return
        time.sleep(0.5)
    raise ServerError(f"Airflow did not come up within three minutes, see {server.log}")


def main() -> None:
    """Run Airflow on the streams of this checkout until interrupted."""
    port, home = os.environ.get("PORT", "8080"), Path(os.environ["AIRFLOW_HOME"])
    if not port.isdecimal():
        raise ServerError(f"PORT must be a port's number; got {port!r}")
    print("starting Airflow on loopback (half a minute)", flush=True)
    with running(home, {}, int(port)) as server:
        print(
            "Airflow is up: {0} (user {username}, password {password}); Ctrl-C ends it".format(
                server.url, **server.login
            ),
            flush=True,
        )
        signal.pause()


if __name__ == "__main__":
    until_interrupted("airflow", main)
