"""The DAGs without a server: what they import, how they are wired, what they submit."""

import importlib
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAGES = ("ingest", "widen", "aggregate", "frame", "fill", "sketch")
STREAMS = sorted(path.stem for path in (ROOT / "schemas" / "streams").glob("*.yaml"))
ARGV = Path(__file__).parent / "argv"


DAGS = [*STREAMS, "together"]


@pytest.fixture(scope="module")
def dags() -> dict[str, Any]:
    from stream_dag import build
    from transom.stream import load

    streams = importlib.import_module("streams")
    web = ROOT / "schemas/streams/web.yaml"
    together = load(web).model_copy(update={"name": "together", "submit": "together"})
    return {name: getattr(streams, name) for name in STREAMS} | {"together": build(together, web)}


def test_parsing_imports_neither_spark_nor_the_lake() -> None:
    code = "import sys, streams, refused; print([m for m in ('pyspark', 'deltalake') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", STREAMS)
def test_no_stage_reaches_the_next_but_through_its_gate(dags: dict[str, Any], name: str) -> None:
    dag = dags[name]
    stages = [task.task_id for task in dag.tasks if task.task_id + "_gate" in dag.task_ids]
    assert stages
    for stage in stages:
        assert dag.get_task(stage).downstream_task_ids == {f"{stage}_gate"}
        assert stage in dag.get_task("report").get_flat_relative_ids(upstream=True)


def test_stages_that_are_submitted_together_keep_their_gates_and_what_they_write(
    dags: dict[str, Any],
) -> None:
    together = dags["together"]
    edges = {(task.task_id, after) for task in together.tasks for after in task.downstream_task_ids}
    assert edges == {("settle", "run"), ("run", "ingest_gate")} | {
        edge
        for branch in (["widen"], ["aggregate", "frame", "fill"], ["sketch"])
        for edge in pairwise(["ingest_gate", *(f"{stage}_gate" for stage in branch), "report"])
    }
    written = {
        name: sorted(outlet.uri.rpartition("/")[2] for task in dags[name].tasks for outlet in task.outlets)
        for name in ("web", "together")
    }
    assert written["together"] == written["web"]
    assert together.get_task("run").outlets
    gates = [together.get_task(f"{stage}_gate") for stage in STAGES]
    assert [(gate.stage, gate.job) for gate in gates] == [(stage, "run") for stage in STAGES]
    assert together.get_task("report").jobs == dict.fromkeys(STAGES, "run")


@pytest.mark.parametrize("name", DAGS)
def test_every_task_keeps_the_house_rules(dags: dict[str, Any], name: str) -> None:
    dag = dags[name]
    assert (dag.max_active_runs, dag.catchup) == (1, False)
    assert "transom" in dag.tags
    for task in dag.tasks:
        assert task.pool == "transom"
        assert task.retries == 2
        assert task.execution_timeout is not None
        assert task.doc_md
        if type(task).__name__ == "SubmitStage":
            assert task._conn_id == "transom_spark"
            assert task._deploy_mode == "client"


def run_of(start: datetime | None, end: datetime | None, kind: str = "manual") -> Any:
    return SimpleNamespace(data_interval_start=start, data_interval_end=end, run_type=kind)


@pytest.mark.parametrize("name", DAGS)
def test_submits_are_as_written_down_and_the_jobs_take_them(dags: dict[str, Any], name: str) -> None:
    run = run_of(datetime(2015, 5, 17, 10, tzinfo=UTC), datetime(2015, 5, 17, 11, tzinfo=UTC), "scheduled")
    context = {"params": {}, "dag_run": run, "run_id": "the-run", "ti": SimpleNamespace(try_number=1)}
    seen = {}
    for task in dags[name].tasks:
        if type(task).__name__ == "SubmitStage":
            environment = dags[name].get_template_env()
            arguments = [
                environment.from_string(text).render({**dags[name].user_defined_macros, **context})
                for text in task.application_args
            ]
            job = importlib.import_module(task.task_id)
            parsed = job.arg_parser().parse_args(arguments)
            assert (parsed.start, parsed.end) == ("2015-05-17T10:00", "2015-05-17T11:00")
            home = str(ROOT)
            seen[task.task_id] = [text.replace(home, "HOME") for text in [task.application, *arguments]]
    expected = ARGV / f"{name}.json"
    if os.environ.get("TRANSOM_WRITE_ARGV"):
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(json.dumps(seen, indent=2) + "\n")
    assert seen == json.loads(expected.read_text())


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "from and to: a run by hand has no interval of its own; give both"),
        ({"from": "2015-05-17T10:00"}, "from and to: must be given together"),
        ({"from": "2015-05-17T10:30", "to": "2015-05-17T12:00"}, "from: must be on the hour"),
        ({"from": "2015-05-17T12:00", "to": "2015-05-17T10:00"}, "from: must be before to"),
        ({"from": "today", "to": "2015-05-17T10:00"}, "from: must be a time"),
        ({"from": "2015-05-17T12:00", "to": "2999-01-01T00:00"}, "to: must not lie in the future"),
    ],
)
def test_an_interval_that_is_none_is_refused_with_place_rule_and_value(params: Any, words: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from transom_operators import interval_of

    with pytest.raises(AirflowFailException, match=words):
        interval_of(params, None, None)


@pytest.mark.parametrize("name", DAGS)
def test_the_form_takes_hours_alone(dags: dict[str, Any], name: str) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    for side in ("from", "to"):
        param = dags[name].params.get_param(side)
        for good in (None, "2015-05-17T10:00", "2015-05-17 10:00:00Z", "2015-05-17T10:00+02:00"):
            assert param.resolve(good) == good
        for bad in ("2015-05-17", "2015-05-17T10:30", "now", 3):
            with pytest.raises(ParamValidationError):
                param.resolve(bad)


@pytest.mark.parametrize(("path", "found"), [("jobs", STREAMS), ("tests", [])])
def test_an_airflow_with_what_the_readme_names_imports_the_dags(
    tmp_path: Path, path: str, found: list[str]
) -> None:
    words = "`dags` as its DAGs folder, `plugins` as its plugins folder, `jobs` on its `PYTHONPATH`"
    assert words in " ".join((ROOT / "README.md").read_text().split())
    code = (
        "import json, pathlib; from airflow.dag_processing.dagbag import BundleDagBag;"
        f"dags = pathlib.Path({str(ROOT / 'dags')!r});"
        "print(json.dumps(sorted(BundleDagBag(dags, bundle_path=dags).dag_ids)))"
    )
    environment = {name: text for name, text in os.environ.items() if not name.startswith("TRANSOM_")}
    environment |= {
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "PYTHONPATH": str(ROOT / path),
    }
    shown = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(shown.stdout.strip().splitlines()[-1]) == found


def test_gates_look_as_far_around_as_the_stream_heals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from stream_dag import build
    from transom.lake.book import Entry, Node
    from transom.lake.ledger import Ledger
    from transom.stream import load

    hours = [datetime(2015, 5, day, 10, tzinfo=UTC) for day in (12, 17)]
    bad, good = (Node("ingest", "events", "events", hour) for hour in hours)
    ledger = Ledger(str(tmp_path / "web"))
    ledger.claim("ingest", [bad, good], "a")
    withheld = Entry("quarantined", "a", complete=False, cause="f: rejected_share")
    ledger.publish("ingest", {bad: withheld, good: Entry("published", "a")}, "a")
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path))
    context = {"params": {}, "dag_run": run_of(hours[1], hours[1] + timedelta(hours=1))}
    file = ROOT / "schemas/streams/web.yaml"
    for heal, warned in ((timedelta(days=7), 1), (timedelta(days=1), 0)):
        dag = build(
            load(file).model_copy(update={"heal": heal, "aggregate": {}, "frames": {}, "fills": {}}), file
        )
        for name in ("ingest_gate", "report"):
            caplog.clear()
            task: Any = dag.get_task(name)
            # As the task runner calls it, which a test has none of.
            type(task).execute.__wrapped__(task, context)
            assert sum("2015-05-12T10:00: f: rejected_share" in text for text in caplog.messages) == warned


def test_the_report_tells_what_was_found_in_the_interval_the_worst_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stream_dag import build
    from transom.lake.book import Entry, Node
    from transom.lake.findings import publish
    from transom.lake.ledger import Ledger
    from transom.stream import load

    hours = [datetime(2015, 5, 17, hour, tzinfo=UTC) for hour in (8, 10, 11)]
    nodes = [Node("ingest", "events", "events", hour) for hour in hours]
    ledger = Ledger(str(tmp_path / "web"))
    ledger.claim("ingest", nodes, "a")
    partial = Entry("published", "a", complete=False, cause="landing/f.log: cut")
    withheld = Entry("quarantined", "a", complete=False, cause="landing/g.log: junk")
    ledger.publish("ingest", dict(zip(nodes, (withheld, partial, withheld), strict=True)), "a")
    publish(ledger, "web", "ingest", {})
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path))
    file = ROOT / "schemas/streams/web.yaml"
    none: dict[str, Any] = {
        stage: {} for stage in ("aggregate", "patterns", "frames", "fills", "persistence", "frequency")
    }
    dag = build(load(file).model_copy(update=none), file)
    task: Any = dag.get_task("report")
    context = {"params": {}, "dag_run": run_of(hours[1], hours[1] + timedelta(hours=2))}
    # As the task runner calls it, which a test has none of.
    assert type(task).execute.__wrapped__(task, context) == [
        "ingest web [2015-05-17T10:00, 2015-05-17T12:00): 1 of 2 hours published (1 of them incomplete), "
        "2 warnings",
        "high gate: web: events, 2015-05-17T11:00, are withheld: landing/g.log: junk",
        "medium incomplete: web: events, 2015-05-17T10:00, are incomplete: landing/f.log: cut",
    ]


@pytest.mark.parametrize("name", STREAMS)
def test_every_stage_has_findings(dags: dict[str, Any], name: str) -> None:
    for task in dags[name].tasks:
        if type(task).__name__ == "SubmitStage":
            assert f"transom://{name}/findings" in {asset.uri for asset in task.outlets}


def imported(folder: Path) -> tuple[list[str], str]:
    """The ids of the DAGs that the stream files of a folder give, and the import error beside them."""
    environment = {**os.environ, "TRANSOM_STREAMS": str(folder)}
    ids = "sorted(dag.dag_id for dag in vars(streams).values() if isinstance(dag, streams.DAG))"
    good, bad = (
        subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        for code in (f"import json, streams; print(json.dumps({ids}))", "import refused")
    )
    assert not good.returncode, good.stderr
    return json.loads(good.stdout.strip().splitlines()[-1]), bad.stderr if bad.returncode else ""


def test_a_wrong_stream_file_is_shown_and_takes_no_other_away(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text((ROOT / "schemas/streams/web.yaml").read_text())
    assert imported(tmp_path) == (["web"], "")
    (tmp_path / "bad.yaml").write_text("name: bad\npreset: apache/combind\nsource: {path: 'landing/x.log'}\n")
    found, error = imported(tmp_path)
    assert found == ["web"]
    assert f"{tmp_path}/bad.yaml: " in error
    assert "apache/combind" in error


def test_files_that_declare_one_name_are_named_and_none_is_run(tmp_path: Path) -> None:
    for stream in ("conn", "web"):
        (tmp_path / f"{stream}.yaml").write_text((ROOT / f"schemas/streams/{stream}.yaml").read_text())
    (tmp_path / "copy.yaml").write_text((ROOT / "schemas/streams/web.yaml").read_text())
    found, error = imported(tmp_path)
    assert found == ["conn"]
    both = f"{tmp_path}/copy.yaml, {tmp_path}/web.yaml"
    assert f"{both}: name: must be that of one stream alone; got 'web'" in error


def test_a_stream_may_be_called_as_something_in_the_code_is(tmp_path: Path) -> None:
    text = (ROOT / "schemas/streams/web.yaml").read_text()
    names = ["build", "globals", "streams", "web"]
    for name in names:
        (tmp_path / f"{name}.yaml").write_text(text.replace("name: web", f"name: {name}"))
    assert imported(tmp_path) == (names, "")


def test_a_stream_of_the_past_has_no_latest_hour(dags: dict[str, Any]) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    settle = dags["web"].get_task("settle")
    now = datetime(2026, 5, 17, 10, tzinfo=UTC)
    context = {"dag": dags["web"], "dag_run": run_of(now, now + timedelta(hours=1)), "params": {}}
    words = "from and to: the latest hour, 2026-05-17T10:00, is not one that the stream schedules"
    with pytest.raises(AirflowFailException, match=words):
        settle.execute(context)
    asked = {"from": "2015-05-20T21:00", "to": "2015-05-20T23:00"}
    assert settle.execute({**context, "params": asked}) == "[2015-05-20T21:00, 2015-05-20T23:00)"
    last = datetime(2015, 5, 20, 21, tzinfo=UTC)
    assert settle.execute({**context, "dag_run": run_of(last, last + timedelta(hours=1))})
