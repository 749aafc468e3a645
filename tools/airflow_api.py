"""Client of a running Airflow, through its REST API and its commands."""

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
    """A running Airflow.

    Attributes:
        environment: the environment of each process and command.
        log: the file with the output of all components.
    """

    home: Path
    port: int
    environment: Mapping[str, str]
    log: Path
    _headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The address of the UI."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def login(self) -> dict[str, str]:
        """User name and password of the UI."""
        passwords: dict[str, str] = json.loads(
            (self.home / "simple_auth_manager_passwords.json.generated").read_text()
        )
        user, password = next(iter(passwords.items()))
        return {"username": user, "password": password}

    @cached_property
    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    def close(self) -> None:
        """Close the connection to the API."""
        self._client.close()

    def ask(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        """Send a request to Airflow's API; `path` is relative to `/api/v2`.

        Raises:
            ServerError: Airflow responds with an error, which the message contains.
        """
        for _ in range(2):
            answer = self._client.request(method, f"/api/v2{path}", headers=self._headers, json=body or None)
            if answer.status_code != httpx.codes.UNAUTHORIZED:
                break
            token = self._client.post("/auth/token", json=self.login).raise_for_status().json()
            self._headers["Authorization"] = f"Bearer {token['access_token']}"
        if answer.is_error:
            raise ServerError(f"{method} {path}: {answer.status_code} {answer.text[:2000]}")
        content: dict[str, Any] = answer.json() if answer.content else {}
        return content

    def command(self, *arguments: str) -> str:
        """Run an `airflow` command and return its output.

        Raises:
            ServerError: the command fails.
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
        """Pause or unpause a DAG, as soon as Airflow has parsed its file.

        Raises:
            ServerError: Airflow does not know the DAG after `seconds`.
        """
        end = time.monotonic() + seconds
        while True:
            try:
                self.ask("PATCH", f"/dags/{dag}", is_paused=paused)
                return
            except ServerError as error:
                if time.monotonic() > end:
                    wrong = self.ask("GET", "/importErrors")["import_errors"]
                    reasons = "".join(f"\n{one['filename']}: {one['stack_trace']}" for one in wrong)
                    raise ServerError(f"{error}{reasons}") from None
                time.sleep(0.5)

    def trigger(self, dag: str, run: str, **conf: str) -> None:
        """Trigger a DAG, as the form of the UI does."""
        self.ask("POST", f"/dags/{dag}/dagRuns", dag_run_id=run, logical_date=None, conf=conf)

    def backfill(self, dag: str, first: datetime, last: datetime) -> None:
        """Create a backfill of the hours `first` to `last` (inclusive), with one run per hour, in sequence.

        Raises:
            ServerError: Airflow rejects the backfill.
        """
        form = "%Y-%m-%dT%H:%M:%S+00:00"
        command = ["backfill", "create", "--dag-id", dag, "--max-active-runs", "1"]
        command += ["--reprocess-behavior", "completed"]
        command += ["--from-date", first.strftime(form), "--to-date", last.strftime(form)]
        self.command(*command)

    def clear(self, dag: str, run: str, task: str) -> None:
        """Clear a task of a run and all downstream tasks, as an operator does after fixing the data."""
        self.ask(
            "POST", f"/dags/{dag}/clearTaskInstances",
            dry_run=False, dag_run_id=run, task_ids=[task], include_downstream=True, only_failed=False,
        )  # fmt: skip

    def runs(self, dag: str) -> dict[str, str]:
        """Return the state of each run of a DAG, by run id."""
        found: list[dict[str, Any]] = []
        while True:
            # Airflow returns at most 100 runs at once.
            page = self.ask("GET", f"/dags/{dag}/dagRuns?limit=100&offset={len(found)}")
            found += page["dag_runs"]
            if len(found) >= page["total_entries"] or not page["dag_runs"]:
                return {run["dag_run_id"]: run["state"] for run in found}

    def states(self, dag: str, run: str) -> dict[str, str]:
        """Return the state of each task of a run, by task id."""
        rows = self.ask("GET", f"/dags/{dag}/dagRuns/{run}/taskInstances")["task_instances"]
        return {row["task_id"]: row["state"] or "" for row in rows}

    def follow(self, dag: str, run: str, seconds: float = 1200) -> Iterator[dict[str, str]]:
        """Yield the states of a run's tasks every second, until all tasks and the run have ended.

        The run ends shortly after its last task. If a task is cleared in between, Airflow ends the run anyway
        and never runs the task again.

        Raises:
            ServerError: the run takes longer than `seconds`.
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
        """Wait until all tasks of a run have ended, and return their states.

        Raises:
            ServerError: the run takes longer than `seconds`.
        """
        *_, last = self.follow(dag, run, seconds)
        return last

    def task_log(self, dag: str, run: str, task: str) -> str:
        """Return the logs of all tries of a task."""
        folder = self.home / "logs" / f"dag_id={dag}" / f"run_id={run}" / f"task_id={task}"
        return "".join(file.read_text() for file in sorted(folder.rglob("*.log")))
