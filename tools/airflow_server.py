"""A real Airflow on loopback in a folder of its own, ended with every process that it started."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import httpx

ROOT = Path(__file__).resolve().parents[1]
# Not `airflow standalone`: its log servers listen on every address of the machine, at fixed ports.
COMPONENTS = (("api-server",), ("scheduler", "--skip-serve-logs"), ("dag-processor",))
OVER = frozenset({"success", "failed", "upstream_failed", "skipped", "removed"})


class ServerError(RuntimeError):
    """Airflow could not be started or asked; the text is one line for a person."""


def taken(port: int) -> bool:
    """Whether somebody listens on a port of the loopback address."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port of the loopback address that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Airflow:
    """A running Airflow, asked through its own API.

    Attributes:
        environment: of every process and command.
        log: what its components print.
    """

    home: Path
    port: int
    environment: Mapping[str, str]
    log: Path
    _headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where the UI is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def login(self) -> dict[str, str]:
        """User and password of the UI."""
        held: dict[str, str] = json.loads(
            (self.home / "simple_auth_manager_passwords.json.generated").read_text()
        )
        user, password = next(iter(held.items()))
        return {"username": user, "password": password}

    @cached_property
    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    def close(self) -> None:
        """Ends the connection to the API."""
        self._client.close()

    def ask(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        """Asks Airflow's API; `path` begins after `/api/v2`.

        Raises:
            ServerError: it refuses, with its own words.
        """
        for _ in range(2):
            answer = self._client.request(method, f"/api/v2{path}", headers=self._headers, json=body or None)
            if answer.status_code != httpx.codes.UNAUTHORIZED:
                break
            token = self._client.post("/auth/token", json=self.login).raise_for_status().json()
            self._headers["Authorization"] = f"Bearer {token['access_token']}"
        if answer.is_error:
            raise ServerError(f"{method} {path}: {answer.status_code} {answer.text[:2000]}")
        found: dict[str, Any] = answer.json() if answer.content else {}
        return found

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

    def pause(self, dag: str, paused: bool, seconds: float = 120) -> None:
        """Pauses or unpauses a DAG, as soon as Airflow has read its file.

        Raises:
            ServerError: Airflow does not know it after so many seconds.
        """
        end = time.monotonic() + seconds
        while True:
            try:
                self.ask("PATCH", f"/dags/{dag}", is_paused=paused)
                return
            except ServerError as error:
                if time.monotonic() > end:
                    wrong = self.ask("GET", "/importErrors")["import_errors"]
                    said = "".join(f"\n{one['filename']}: {one['stack_trace']}" for one in wrong)
                    raise ServerError(f"{error}{said}") from None
                time.sleep(0.5)

    def trigger(self, dag: str, run: str, **conf: str) -> None:
        """Triggers a DAG by hand, as the UI's form does."""
        self.ask("POST", f"/dags/{dag}/dagRuns", dag_run_id=run, logical_date=None, conf=conf)

    def backfill(self, dag: str, first: datetime, last: datetime) -> None:
        """Creates a backfill of the hours `first .. last`, each a run, one after the other.

        Raises:
            ServerError: Airflow refuses it.
        """
        form = "%Y-%m-%dT%H:%M:%S+00:00"
        command = ["backfill", "create", "--dag-id", dag, "--max-active-runs", "1"]
        command += ["--reprocess-behavior", "completed"]
        command += ["--from-date", first.strftime(form), "--to-date", last.strftime(form)]
        self.command(*command)

    def clear(self, dag: str, run: str, task: str) -> None:
        """Clears a task of a run and those behind it, as a person does after mending the data."""
        self.ask(
            "POST", f"/dags/{dag}/clearTaskInstances",
            dry_run=False, dag_run_id=run, task_ids=[task], include_downstream=True, only_failed=False,
        )  # fmt: skip

    def runs(self, dag: str) -> dict[str, str]:
        """The state of each run of a DAG."""
        found: list[dict[str, Any]] = []
        while True:
            # Airflow gives a hundred at most.
            page = self.ask("GET", f"/dags/{dag}/dagRuns?limit=100&offset={len(found)}")
            found += page["dag_runs"]
            if len(found) >= page["total_entries"] or not page["dag_runs"]:
                return {run["dag_run_id"]: run["state"] for run in found}

    def states(self, dag: str, run: str) -> dict[str, str]:
        """The state of each task of a run."""
        rows = self.ask("GET", f"/dags/{dag}/dagRuns/{run}/taskInstances")["task_instances"]
        return {row["task_id"]: row["state"] or "" for row in rows}

    def follow(self, dag: str, run: str, seconds: float = 1200) -> Iterator[dict[str, str]]:
        """The states of a run's tasks, a second apart, until every one has ended, and the run with them.

        The run ends a moment after its last task; one that is cleared in between is taken for ended, and
        never runs again.

        Raises:
            ServerError: it takes longer.
        """
        end = time.monotonic() + seconds
        while True:
            states = self.states(dag, run)
            yield states
            if (
                states
                and set(states.values()) <= OVER
                and self.ask("GET", f"/dags/{dag}/dagRuns/{run}")["state"] in OVER
            ):
                return
            if time.monotonic() > end:
                raise ServerError(f"{dag} {run}: not done after {seconds:.0f} s: {states}")
            time.sleep(1)

    def wait(self, dag: str, run: str, seconds: float) -> dict[str, str]:
        """Waits until every task of a run has ended.

        Raises:
            ServerError: it takes longer.
        """
        states: dict[str, str] = {}
        for states in self.follow(dag, run, seconds):  # noqa: B007
            pass
        return states

    def task_log(self, dag: str, run: str, task: str) -> str:
        """What a task logged, all tries."""
        folder = self.home / "logs" / f"dag_id={dag}" / f"run_id={run}" / f"task_id={task}"
        return "".join(file.read_text() for file in sorted(folder.rglob("*.log")))


@contextmanager
def running(
    home: Path, environment: Mapping[str, str], port: int = 0, lock: IO[str] | None = None
) -> Iterator[Airflow]:
    """A real Airflow in `home`, with the pool and the connection of transom.

    Args:
        environment: what its processes are to have beside this one's.
        port: of its UI and API, on loopback; 0 for any that is free.
        lock: of a folder around `home` that is held already.

    Raises:
        ServerError: the port or the folder is in use, or Airflow does not come up.
    """
    if port and taken(port):
        raise ServerError(f"port {port} is in use on this machine; choose another (PORT=...)")
    port = port or free_port()
    home.mkdir(parents=True, exist_ok=True)
    with alone(home) if lock is None else nullcontext(lock) as held:
        yield from _running(home, environment, port, held)


@contextmanager
def alone(folder: Path) -> Iterator[IO[str]]:
    """Holds a folder against every other Airflow: two schedulers on one database take each other's tasks for
    lost. What inherits the lock, which lies beside the folder, holds it as well.

    Raises:
        ServerError: it is held.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ServerError(f"another Airflow runs in {folder}; end it first") from None
        yield lock


def _running(home: Path, environment: Mapping[str, str], port: int, lock: IO[str]) -> Iterator[Airflow]:
    cores = os.cpu_count() or 2
    settings = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        # SQLite has one writer at a time; the default patience of 5 s is less than a backfill's creation.
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
        "PYTHONPATH": os.pathsep.join(
            str(ROOT / name) for name in ("jobs", "dags", "plugins", "tools/sqlite")
        ),
        "AIRFLOW_CONN_TRANSOM_SPARK": json.dumps(
            {"conn_type": "spark", "host": "local[*]", "extra": {"deploy-mode": "client"}}
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
    """Airflow's processes, each in a session of its own; one that ends is started again.

    SQLite has one writer at a time: a scheduler that meets another one at the wrong moment gives up.
    """

    def __init__(self, home: Path, environment: Mapping[str, str], log: IO[str], lock: IO[str]) -> None:
        super().__init__(daemon=True)
        self._home, self._environment, self._log = home, environment, log
        # As long as one of them lives, the folder is in use, also when this process was killed.
        self._held = (lock.fileno(),)
        self._ended = threading.Event()
        self.started = [self._launched(component) for component in COMPONENTS]

    def _launched(self, component: tuple[str, ...]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", "airflow", *component],
            cwd=self._home, env=self._environment, stdout=self._log, stderr=self._log,
            start_new_session=True, pass_fds=self._held,
        )  # fmt: skip

    def run(self) -> None:
        """Starts again what has ended, until `end`."""
        alive = dict(zip(COMPONENTS, self.started, strict=True))
        while not self._ended.wait(2):
            for component, process in alive.items():
                if process.poll() is not None:
                    print(f"airflow: {component[0]} ended; it is started again", flush=True)
                    alive[component] = self._launched(component)
                    self.started.append(alive[component])

    def end(self) -> None:
        """Ends every process of every component: on their own they leave children behind."""
        self._ended.set()
        if self.is_alive():
            self.join()
        _end(self.started)


def _wait_until_up(components: _Components, server: Airflow) -> None:
    end = time.monotonic() + 180
    while time.monotonic() < end:
        if len(components.started) > 3 * len(COMPONENTS):
            raise ServerError(f"Airflow's components end again and again, see {server.log}")
        if taken(server.port):
            return
        time.sleep(0.5)
    raise ServerError(f"Airflow did not come up within three minutes, see {server.log}")


def _end(processes: "Sequence[subprocess.Popen[bytes]]") -> None:
    """Ends the whole session of each process."""
    leaders = {process.pid for process in processes}
    for sign in (signal.SIGTERM, signal.SIGKILL):
        for member in _members(leaders):
            try:
                os.kill(member, sign)
            except ProcessLookupError:
                continue
        end = time.monotonic() + 10
        while time.monotonic() < end and _members(leaders):
            for process in processes:
                process.poll()
            time.sleep(0.2)
    for process in processes:
        process.wait()


def _members(leaders: Collection[int]) -> list[int]:
    """Every living process of some sessions; components make process groups of their own."""
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) in leaders and fields[0] != "Z":
                members.append(int(entry.name))
    return members


def main() -> None:
    """Airflow on the streams of this checkout, until it is interrupted."""
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


def until_interrupted(name: str, main: Callable[[], None]) -> None:
    """Runs a tool that Ctrl-C or an end from outside ends well, with all that it has started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        print(f"{name}: ended, with every process that it started")
    except ServerError as error:
        sys.exit(f"{name}: {error}")


if __name__ == "__main__":
    until_interrupted("airflow", main)
