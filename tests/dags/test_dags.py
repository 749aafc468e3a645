"""The DAG of a stream, without a server: its tasks and their order, what they submit, and its page."""

import importlib
import json
import os
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.dags.dag_runs import DAGS, ROOT, STREAMS, WEB, run_of
from transom.features.registry import STAGES

ARGV = Path(__file__).parent / "argv"


@pytest.mark.parametrize("name", STREAMS)
def test_each_stage_reaches_the_next_only_through_its_gate(dags: dict[str, Any], name: str) -> None:
    dag = dags[name]
    stages = [task.task_id for task in dag.tasks if task.task_id + "_gate" in dag.task_ids]
    assert stages
    for stage in stages:
        assert dag.get_task(stage).downstream_task_ids == {f"{stage}_gate"}
        assert stage in dag.get_task("report").get_flat_relative_ids(upstream=True)


def test_stages_submitted_together_keep_their_gates_and_assets(
    dags: dict[str, Any],
) -> None:
    together = dags["together"]
    edges = {(task.task_id, after) for task in together.tasks for after in task.downstream_task_ids}
    assert edges == {("settle", "run"), ("run", "ingest_gate")} | {
        edge
        for branch in (["patterns"], ["aggregates", "frames", "fills"], ["persistence"], ["frequency"])
        for before in ("report", "notify")
        for edge in pairwise(["ingest_gate", *(f"{stage}_gate" for stage in branch), before])
    } | {("report", "notify")}
    written = {
        name: sorted(outlet.uri.rpartition("/")[2] for task in dags[name].tasks for outlet in task.outlets)
        for name in ("web", "together")
    }
    assert written["together"] == written["web"]
    assert together.get_task("run").outlets
    gates = [together.get_task(f"{stage}_gate") for stage in STAGES]
    assert tuple(gate.stage for gate in gates) == together.get_task("report").stages == tuple(STAGES)


@pytest.mark.parametrize("name", DAGS)
def test_every_task_follows_the_common_rules(dags: dict[str, Any], name: str) -> None:
    dag = dags[name]
    assert (dag.max_active_runs, dag.catchup) == (1, False)
    assert "transom" in dag.tags
    for task in dag.tasks:
        is_application = type(task).__name__ == "SubmitStage"
        # A slot is for a Spark application. A gate that takes one waits for one, or makes one wait.
        assert task.pool == ("transom" if is_application else "default_pool")
        assert task.retries == 2
        assert task.execution_timeout is not None
        assert task.doc_md
        if is_application:
            assert task._conn_id == "transom_spark"
            assert task._deploy_mode == "client"


@pytest.mark.parametrize("name", DAGS)
def test_submits_match_the_recorded_arguments_and_jobs_accept_them(dags: dict[str, Any], name: str) -> None:
    run = run_of(datetime(2015, 5, 17, 10, tzinfo=UTC), datetime(2015, 5, 17, 11, tzinfo=UTC), "scheduled")
    params = {"recompute": False}
    context = {"params": params, "dag_run": run, "run_id": "the-run", "ti": SimpleNamespace(try_number=1)}
    observed = {}
    for task in dags[name].tasks:
        if type(task).__name__ == "SubmitStage":
            environment = dags[name].get_template_env()
            arguments = [
                environment.from_string(text).render({**dags[name].user_defined_macros, **context})
                for text in task.application_args
            ]
            job = importlib.import_module(task.task_id)
            parsed = job.JOB.arg_parser().parse_args(arguments)
            assert (parsed.start, parsed.end) == ("2015-05-17T10:00", "2015-05-17T11:00")
            home = str(ROOT)
            observed[task.task_id] = [text.replace(home, "HOME") for text in [task.application, *arguments]]
    expected = ARGV / f"{name}.json"
    if os.environ.get("TRANSOM_WRITE_ARGV"):
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(json.dumps(observed, indent=2) + "\n")
    assert observed == json.loads(expected.read_text())


def test_page_of_a_dag_describes_its_stream() -> None:
    from stream_dag import build
    from transom.stream import load, parse

    stream = load(WEB)
    dag = build(stream, WEB)
    assert dag.description == stream.title
    assert "up to 2 days around" in dag.doc_md
    assert "0:00:00" not in dag.doc_md
    plain = parse(
        {
            "name": "plain",
            "source": {"path": "landing/p/%Y-%m-%dT%H.json", "format": "json"},
            "columns": {"user": {}, "bytes": {"type": "integer"}},
            "time": {"column": "at"},
            "key": ["user"],
            "aggregates": {
                "load": {
                    "measures": {"n": "count"},
                    "levels": "RANGES 2 HOURS SLIDES 1 HOUR",
                    "fit": "1 hour",
                    "alert": {"many": "n > 9 or n < 2"},
                }
            },
            "frequency": {
                "users": {
                    "item": ["user"],
                    "window": "2 hours",
                    "tick": "1 hour",
                    "epsilon": 0.1,
                    "delta": 0.1,
                }
            },
        },
        "plain.yaml",
    )
    dag = build(plain, WEB)
    assert dag.description == "Aggregates and findings from landing/p/%Y-%m-%dT%H.json"
    assert "fit: lines of each mean against time by 1 hour; alert many: `n > 9 or n < 2`" in dag.doc_md
    described = plain.model_copy(update={"description": "What it is.\nMore of it."})
    assert build(described, WEB).description == "What it is."
    # An asset of each table that the stream declares, and no other.
    tables = {asset.uri.rpartition("/")[2] for task in dag.tasks for asset in task.outlets}
    assert {"frequencies", "alerts"} <= tables
    assert not tables & {"persistent_items", "recurring", "matches", "frames"}


def test_feature_of_the_tests_has_its_own_task_after_the_gate_of_ingest() -> None:
    from stream_dag import build
    from tests.support import toy_feature, toy_job
    from transom.spec import loader

    dag = build(loader.parse(toy_feature.STREAM, toy_feature.ToyStream), ROOT / "toy.yaml")
    task = dag.get_task("crowds")
    assert task.upstream_task_ids == {"ingest_gate"}
    assert task.downstream_task_ids == {"crowds_gate"}
    assert task.application == str(ROOT / "tests/support/toy_job.py")
    assert {asset.uri for asset in task.outlets} == {"transom://toy/crowds", "transom://toy/findings"}
    assert "many" in dag.doc_md
    assert toy_job.JOB.stream_type is toy_feature.ToyStream


@pytest.mark.parametrize("name", STREAMS)
def test_every_stage_has_findings(dags: dict[str, Any], name: str) -> None:
    for task in dags[name].tasks:
        if type(task).__name__ == "SubmitStage":
            assert f"transom://{name}/findings" in {asset.uri for asset in task.outlets}
