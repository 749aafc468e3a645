"""A running Airflow, asked and told through its own API and its own commands."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from processes import ServerError

OVER = frozenset({"success", "failed", "upstream_failed", "skipped", "removed"})


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
        *_, last = self.follow(dag, run, seconds)
        return last

    def task_log(self, dag: str, run: str, task: str) -> str:
        """What a task logged, all tries."""
        folder = self.home / "logs" / f"dag_id={dag}" / f"run_id={run}" / f"task_id={task}"
        return "".join(file.read_text() for file in sorted(folder.rglob("*.log")))
