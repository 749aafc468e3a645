"""A connection to a Spark Connect server: the same tasks run their jobs in Python against it."""

import json
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.exceptions import AirflowException

import sample_logs
import spark_server
from tests.dags.dag_runs import STREAMS, WEB
from transom.ledger.ledger import Ledger


@pytest.mark.parametrize(
    ("connection", "url"),
    [
        ({"conn_type": "spark", "host": "sc://spark"}, "sc://spark"),
        ({"conn_type": "spark", "host": "sc://spark", "port": 15002, "extra": {"deploy-mode": "client"}},
         "sc://spark:15002"),
        ({"conn_type": "spark_connect", "host": "spark", "port": 15002, "password": "a secret"},
         "sc://spark:15002/;token=a%20secret"),
        # The provider looks for names of cluster managers anywhere in a host.
        ({"conn_type": "spark", "host": "sc://yarn-k8s:15002"}, "sc://yarn-k8s:15002"),
    ],
)  # fmt: skip
def test_job_runs_in_python_with_the_url_in_its_environment(
    dags: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    connection: dict[str, object],
    url: str,
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_TRANSOM_SPARK", json.dumps(connection))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    for name in (*STREAMS, "together"):
        for task in dags[name].tasks:
            if type(task).__name__ == "SubmitStage":
                hook = task._get_hook()
                with caplog.at_level(logging.INFO):
                    command = hook._build_spark_submit_command(task.application)
                assert command[1:] == [task.application, *task.application_args]
                assert command[0] == task.env_vars["PYSPARK_PYTHON"]
                assert hook._env == {**task.env_vars, "SPARK_REMOTE": url}
                assert not hook._should_track_driver_status
    assert "secret" not in caplog.text


def test_other_connections_use_spark_submit(dags: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_TRANSOM_SPARK", json.dumps({"conn_type": "spark", "host": "local[*]"}))
    (task,) = (task for task in dags["together"].tasks if type(task).__name__ == "SubmitStage")
    command = task._get_hook()._build_spark_submit_command(task.application)
    assert command[:3] == ["spark-submit", "--master", "local[*]"]
    assert command[-len(task.application_args) - 1 :] == [task.application, *task.application_args]


def submit(task: Any) -> None:
    hook = task._get_hook()
    try:
        hook.submit(task.application)
    finally:
        hook._submit_sp.stdout.close()  # the provider leaves it open


@pytest.mark.full
def test_task_runs_its_job_on_a_server_and_fails_without_it(
    dags: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow (half a minute): it starts a server, and every stage runs."""
    first = datetime(2015, 5, 17, 10, tzinfo=UTC)
    sample_logs.land(tmp_path, sample_logs.WEB, first, sample_logs.apache()[first])
    monkeypatch.setenv("TRANSOM_LANDING", str(tmp_path))
    (task,) = (task for task in dags["together"].tasks if type(task).__name__ == "SubmitStage")
    hours = ["--from", "2015-05-17T10:00", "--to", "2015-05-17T11:00"]
    monkeypatch.setattr(
        task, "application_args", ["--stream", str(WEB), "--lake", str(tmp_path / "lake"), *hours]
    )
    with spark_server.running(tmp_path / "server") as url:
        monkeypatch.setenv("AIRFLOW_CONN_TRANSOM_SPARK", json.dumps({"conn_type": "spark", "host": url}))
        submit(task)
    states = Ledger(str(tmp_path / "lake" / "web")).snapshot()
    assert {state.status for partition, state in states.items() if partition.hour == first} == {"published"}
    # Fresh hours need no server.
    task.application_args.extend(["--recompute", "true"])
    with pytest.raises(AirflowException, match=r"run: SPARK_REMOTE: there is no server at "):
        submit(task)
