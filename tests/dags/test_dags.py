"""The DAGs without a server: their imports, their wiring, and what they submit."""

import importlib
import json
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from transom.features.registry import STAGES

ROOT = Path(__file__).resolve().parents[2]
STREAMS = sorted(path.stem for path in (ROOT / "schemas" / "streams").glob("*.yaml"))
ARGV = Path(__file__).parent / "argv"


DAGS = [*STREAMS, "together"]


@pytest.fixture(scope="module")
def dags() -> dict[str, Any]:
    from stream_dag import build
    from transom.stream import load

    streams = importlib.import_module("streams")
    web = ROOT / "schemas/streams/web.yaml"
    together = load(web).model_copy(update={"name": "together", "submit": "single"})
    return {name: getattr(streams, name) for name in STREAMS} | {"together": build(together, web)}


def test_parsing_imports_neither_spark_nor_storage() -> None:
    code = "import sys, streams, refused; print([m for m in ('pyspark', 'deltalake') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip().splitlines()[-1] == "[]"


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
        for edge in pairwise(["ingest_gate", *(f"{stage}_gate" for stage in branch), "report"])
    }
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


@pytest.mark.parametrize(
    ("params", "texts"),
    [
        ({}, "from and to: a run by hand has no interval of its own; give both"),
        ({"from": "2015-05-17T10:00"}, "from and to: must be given together"),
        ({"from": "2015-05-17T10:30", "to": "2015-05-17T12:00"}, "from: must be on the hour"),
        ({"from": "2015-05-17T12:00", "to": "2015-05-17T10:00"}, "from: must be before to"),
        ({"from": "today", "to": "2015-05-17T10:00"}, "from: must be a time"),
        ({"from": "2015-05-17T12:00", "to": "2999-01-01T00:00"}, "to: must not lie in the future"),
    ],
)
def test_invalid_interval_is_refused_with_place_rule_and_value(params: Any, texts: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from transom_operators import interval_of

    with pytest.raises(AirflowFailException, match=texts):
        interval_of(params, None, None)


@pytest.mark.parametrize("name", DAGS)
def test_form_describes_its_fields(dags: dict[str, Any], name: str) -> None:
    for side, texts in (("from", "First hour to run"), ("to", "End of the hours to run")):
        param = dags[name].params.get_param(side)
        assert "pattern" not in param.schema
        assert param.schema["title"].endswith("(UTC)")
        assert param.description.startswith(texts)
        assert "2015-05-17T1" in param.description
        why = "has no schedule" if name == "conn" else "has ended"
        assert param.description.endswith(f"Fill in both: the stream {why}.")
        assert param.resolve(None) is None


def test_form_of_a_current_stream_may_stay_empty() -> None:
    from stream_dag import build
    from transom.stream import load

    file = ROOT / "schemas/streams/web.yaml"
    dag = build(load(file).model_copy(update={"until": None}), file)
    assert dag.params.get_param("to").description.endswith("Leave both empty for the last full hour.")


@pytest.mark.parametrize(
    ("params", "first"),
    [
        (
            {"from": "2015-05-20T12:00", "to": "2015-05-20T10:00"},
            "from: must be before to, which is exclusive; got from 2015-05-20T12:00 to 2015-05-20T10:00",
        ),
        (
            {"to": "2015-05-20T10:00"},
            "from and to: must be given together; got from None, to '2015-05-20T10:00'",
        ),
        (
            {"from": "2015-05-20T10:00", "to": "2015-05-20T12:00"},
            "interval [2015-05-20T10:00, 2015-05-20T12:00) UTC, the `from` and `to` of the trigger",
        ),
        ({}, "interval [2015-05-20T09:00, 2015-05-20T10:00) UTC, the run's own hours"),
    ],
)
def test_first_log_line_names_the_interval_or_its_error(
    dags: dict[str, Any], caplog: pytest.LogCaptureFixture, params: dict[str, str], first: str
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    settle = dags["web"].get_task("settle")
    start = datetime(2015, 5, 20, 9, tzinfo=UTC)
    context = {"dag": dags["web"], "dag_run": run_of(start, start + timedelta(hours=1)), "params": params}
    caplog.set_level("INFO")
    caplog.clear()
    wrong = first.startswith("from")
    with pytest.raises(AirflowFailException, match=re.escape(first)) if wrong else nullcontext():
        type(settle).execute.__wrapped__(settle, context)
    assert [record.getMessage() for record in caplog.records if record.name == "transom_operators"] == [first]


def test_airflow_set_up_as_documented_imports_the_dags(tmp_path: Path) -> None:
    guide = (ROOT / "docs/how-to/your-own-airflow.md").read_text()
    assert [folder for folder in ("dags", "plugins", "jobs") if f"- `{folder}` " not in guide] == []
    code = (
        "import json, pathlib; from airflow.dag_processing.dagbag import BundleDagBag;"
        f"dags = pathlib.Path({str(ROOT / 'dags')!r});"
        "print(json.dumps(sorted(BundleDagBag(dags, bundle_path=dags).dag_ids)))"
    )
    environment = {name: text for name, text in os.environ.items() if not name.startswith("TRANSOM_")}
    environment |= {
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "PYTHONPATH": str(ROOT / "jobs"),
    }
    shown = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(shown.stdout.strip().splitlines()[-1]) == STREAMS


def test_gates_cover_the_repair_window_of_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from stream_dag import build
    from transom.core.partitions import PartitionKey, PartitionState
    from transom.ledger.ledger import Ledger
    from transom.stream import load

    hours = [datetime(2015, 5, day, 10, tzinfo=UTC) for day in (12, 17)]
    bad, good = (PartitionKey("ingest", "events", "events", hour) for hour in hours)
    ledger = Ledger(str(tmp_path / "web"))
    ledger.claim("ingest", [bad, good], "a")
    quarantined = PartitionState("quarantined", "a", complete=False, reason="f: rejected_share")
    ledger.publish("ingest", {bad: quarantined, good: PartitionState("published", "a")}, "a")
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path))
    context = {"params": {}, "run_id": "r", "dag_run": run_of(hours[1], hours[1] + timedelta(hours=1))}
    file = ROOT / "schemas/streams/web.yaml"
    for repair_window, warned in ((timedelta(days=7), 1), (timedelta(days=1), 0)):
        dag = build(
            load(file).model_copy(
                update={"repair_window": repair_window, "aggregates": {}, "frames": {}, "fills": {}}
            ),
            file,
        )
        for name in ("ingest_gate", "report"):
            caplog.clear()
            task: Any = dag.get_task(name)
            # As the task runner calls it; a test has no runner.
            type(task).execute.__wrapped__(task, context)
            assert sum("2015-05-12T10:00: f: rejected_share" in text for text in caplog.messages) == warned


def test_report_lists_findings_of_the_interval_the_worst_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stream_dag import build
    from transom.core.partitions import PartitionKey, PartitionState
    from transom.findings.store import sync_ledger_findings
    from transom.ledger.ledger import Ledger
    from transom.stream import load

    hours = [datetime(2015, 5, 17, hour, tzinfo=UTC) for hour in (8, 10, 11)]
    nodes = [PartitionKey("ingest", "events", "events", hour) for hour in hours]
    ledger = Ledger(str(tmp_path / "web"))
    ledger.claim("ingest", nodes, "a")
    partial = PartitionState("published", "a", complete=False, reason="landing/f.log: cut")
    quarantined = PartitionState("quarantined", "a", complete=False, reason="landing/g.log: junk")
    ledger.publish("ingest", dict(zip(nodes, (quarantined, partial, quarantined), strict=True)), "a")
    sync_ledger_findings(ledger, "web", "ingest", {})
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path))
    file = ROOT / "schemas/streams/web.yaml"
    none: dict[str, Any] = {
        stage: {} for stage in ("aggregates", "patterns", "frames", "fills", "persistence", "frequency")
    }
    dag = build(load(file).model_copy(update=none), file)
    task: Any = dag.get_task("report")
    context = {"params": {}, "run_id": "r", "dag_run": run_of(hours[1], hours[1] + timedelta(hours=2))}
    # As the task runner calls it; a test has no runner.
    assert type(task).execute.__wrapped__(task, context) == [
        "ingest web [2015-05-17T10:00, 2015-05-17T12:00): 1 of 2 hours published (1 of them incomplete), "
        # Its inputs are not known.
        "1 of them stale, as ingest events (events) of 2015-05-17T10:00 is out of date, 3 warnings",
        "high check_failed: web: events, 2015-05-17T11:00, are quarantined: landing/g.log: junk",
        "medium incomplete: web: events, 2015-05-17T10:00, are incomplete: landing/f.log: cut",
    ]


@pytest.mark.usefixtures("dags")
def test_report_summarises_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It names files read, late files, repaired hours, and waivers.

    With the DAGs imported before: Airflow removes the existing log handlers on import.
    """
    import pyarrow as pa
    from deltalake import write_deltalake

    from stream_dag import build
    from transom.core.partitions import CheckResult, PartitionKey, PartitionState
    from transom.ledger.ledger import Ledger, Run
    from transom.storage.tables import Table
    from transom.stream import load

    hours = [datetime(2015, 5, 17, hour, tzinfo=UTC) for hour in (7, 8, 10)]
    nodes = [PartitionKey("ingest", "events", "events", hour) for hour in hours]
    ledger = Ledger(str(tmp_path / "web"))
    mine, other = "manual ingest 1 0a", "manual2 ingest 1 0b"
    for name, of in ((other, nodes[:1]), (mine, nodes[1:])):
        ledger.claim("ingest", of, name)
        ledger.publish("ingest", dict.fromkeys(of, PartitionState("published", name, rows=5)), name)
    passed = CheckResult(
        nodes[2], "few_errors", "error", 0.97, "at least 0.99", True, accepted="ops: a bad release"
    )
    ledger.record_checks("ingest", [passed], mine)
    for name, work in ((other, {"files_read": 9}), (mine, {"files_read": 2, "lines_rejected": 1})):
        ledger.record_run(
            Run(
                name, "trigger", "ingest", hours[2], hours[2] + timedelta(hours=1), 1, None, 10, 10, {}, 1,
                "v", datetime(2015, 5, 17, 12, tzinfo=UTC), work,
            )
        )  # fmt: skip
    late, early = ({"path": f"landing/{name}.log", "hour": hours[1]} for name in ("late", "early"))
    rows = [
        {**late, "modified": hours[1] + timedelta(hours=3)},
        {**early, "modified": hours[1] + timedelta(hours=1)},
        {"path": "landing/of-another-run.log", "hour": hours[0], "modified": hours[2]},
    ]
    files = pa.Table.from_pylist(rows, Table.load("files").arrow_schema())
    write_deltalake(str(tmp_path / "web" / "files"), files)
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path))
    # The entries have no inputs, which decide whether an hour is fresh.
    monkeypatch.setattr("transom.app.freshness.stale_hours", lambda *of: {})
    file = ROOT / "schemas/streams/web.yaml"
    none: dict[str, Any] = {
        stage: {} for stage in ("aggregates", "patterns", "frames", "fills", "persistence", "frequency")
    }
    task: Any = build(load(file).model_copy(update=none), file).get_task("report")
    context = {
        "params": {}, "run_id": "manual", "dag_run": run_of(hours[2], hours[2] + timedelta(hours=1))
    }  # fmt: skip
    gate: Any = task.dag.get_task("ingest_gate")
    caplog.set_level("INFO")
    assert type(gate).execute.__wrapped__(gate, context).endswith("1 accepted")
    accepted = (
        "accepted: ingest events, 2015-05-17T10:00: few_errors: observed 0.97, expected at least 0.99, by "
        "ops: a bad release"
    )
    assert caplog.messages.count(accepted) == 1
    assert type(task).execute.__wrapped__(task, context) == [
        "ingest web [2015-05-17T10:00, 2015-05-17T11:00): 1 of 1 hour published, 0 warnings, 1 accepted",
        accepted,
        "run ingest: 2 files read, 1 line rejected, 10 rows written; repaired outside the interval: "
        "2015-05-17T08:00",
        "late files: 1: landing/late.log",
    ]


def test_asset_events_carry_the_interval_and_its_published_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dags: dict[str, Any]
) -> None:
    from airflow.sdk import Asset
    from airflow.sdk.execution_time.context import OutletEventAccessors

    from transom.core.partitions import PartitionKey, PartitionState
    from transom.ledger.ledger import Ledger

    hours = [datetime(2015, 5, 17, hour, tzinfo=UTC) for hour in (9, 10, 11, 12)]
    nodes = [PartitionKey("ingest", "events", "events", hour) for hour in hours]
    ledger = Ledger(str(tmp_path / "web"))
    ledger.claim("ingest", nodes, "a")
    good, bad = (
        PartitionState("published", "a", rows=5),
        PartitionState("quarantined", "a", complete=False, reason="f: junk"),
    )
    ledger.publish("ingest", dict(zip(nodes, (good, good, good, bad), strict=True)), "a")
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path))
    events = OutletEventAccessors()
    run = run_of(hours[1], hours[1] + timedelta(hours=3))
    dags["web"].get_task("ingest").post_execute({"params": {}, "dag_run": run, "outlet_events": events})
    interval = {"from": "2015-05-17T10:00", "to": "2015-05-17T13:00"}
    assert events[Asset("transom://web/events")].extra == {
        **interval, "hours_published": 2, "hours_withheld": 1, "rows": 10
    }  # fmt: skip
    assert events[Asset("transom://web/findings")].extra == {**interval, "findings": 0}


def test_page_of_a_dag_describes_its_stream() -> None:
    from stream_dag import build
    from transom.stream import load, parse

    file = ROOT / "schemas/streams/web.yaml"
    stream = load(file)
    dag = build(stream, file)
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
    dag = build(plain, file)
    assert dag.description == "Figures and findings from landing/p/%Y-%m-%dT%H.json"
    assert "fit: lines of each mean against time by 1 hour; alert many: `n > 9 or n < 2`" in dag.doc_md
    described = plain.model_copy(update={"description": "What it is.\nMore of it."})
    assert build(described, file).description == "What it is."
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


def imported(folder: Path) -> tuple[list[str], str]:
    """Return the ids of the DAGs from the stream files of a folder, with the import errors."""
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


def test_invalid_stream_file_is_shown_and_other_streams_are_imported(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text((ROOT / "schemas/streams/web.yaml").read_text())
    assert imported(tmp_path) == (["web"], "")
    (tmp_path / "bad.yaml").write_text("name: bad\npreset: apache/combind\nsource: {path: 'landing/x.log'}\n")
    result, error = imported(tmp_path)
    assert result == ["web"]
    assert f"stream bad: {tmp_path}/bad.yaml: " in error
    assert "apache/combind" in error


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ("name: site", "site"),
        ("name: 'site'  # ours", "site"),
        # An invalid name is shown unchanged, and differs from that of another stream.
        ("name: web-site", "web-site"),
        ("name: [web]", "bad"),
        ("name:", "bad"),
        ("{name: web", "bad"),
    ],
)
def test_import_error_names_the_stream(tmp_path: Path, output: str, name: str) -> None:
    from transom.stream_files import names_of, streams

    (tmp_path / "web.yaml").write_text((ROOT / "schemas/streams/web.yaml").read_text())
    (tmp_path / "bad.yaml").write_text(
        f"{output}\npreset: apache/combind\nsource: {{path: 'landing/x.log'}}\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSOM_STREAMS", str(tmp_path))
        (error,) = streams()[1]
    assert names_of(error) == [name]


def test_airflow_lists_an_import_error_under_the_name_of_the_stream(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "name: site\npreset: apache/combind\nsource: {path: 'landing/x.log'}\n"
    )
    code = (
        "import json, pathlib; from airflow.dag_processing.dagbag import BundleDagBag;"
        f"dags = pathlib.Path({str(ROOT / 'dags')!r});"
        "print(json.dumps(BundleDagBag(dags, bundle_path=dags).import_errors))"
    )
    environment = {**os.environ, "TRANSOM_STREAMS": str(tmp_path), "AIRFLOW_HOME": str(tmp_path)}
    environment |= {"AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins")}
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    (entry,) = json.loads(shown.stdout.strip().splitlines()[-1]).values()
    last = entry.strip().splitlines()[-1]
    assert last.startswith(
        f"ValueError: stream site: {tmp_path}/bad.yaml: preset: no preset 'apache/combind'"
    )


def test_task_of_a_stream_with_an_invalid_file_logs_the_error(tmp_path: Path) -> None:
    """A worker that finds no DAG postpones the task. Its log has the parsing error of the file."""
    (tmp_path / "web.yaml").write_text((ROOT / "schemas/streams/web.yaml").read_text())
    (tmp_path / "other.yaml").write_text(
        "name: site\npreset: apache/combind\nsource: {path: 'landing/x.log'}\n"
    )
    code = (
        "import logging; logging.basicConfig()\n"
        "from airflow.sdk.definitions._internal import dag_parsing_context as parsing\n"
        "with parsing._airflow_parsing_context_manager({!r}, 'settle'): import streams"
    )
    output = {}
    for requested in ("web", "site"):
        shown = subprocess.run(
            [sys.executable, "-c", code.format(requested)],
            env={**os.environ, "TRANSOM_STREAMS": str(tmp_path)}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        output[requested] = shown.stdout + shown.stderr
    assert "its file is wrong" not in output["web"]
    assert "stream site: its file is wrong, and its tasks wait until it is put right: " in output["site"]
    assert "apache/combind" in output["site"]


def test_files_with_one_stream_name_are_reported_and_none_is_run(tmp_path: Path) -> None:
    for stream in ("conn", "web"):
        (tmp_path / f"{stream}.yaml").write_text((ROOT / f"schemas/streams/{stream}.yaml").read_text())
    (tmp_path / "copy.yaml").write_text((ROOT / "schemas/streams/web.yaml").read_text())
    result, error = imported(tmp_path)
    assert result == ["conn"]
    both = f"{tmp_path}/copy.yaml, {tmp_path}/web.yaml"
    assert f"{both}: name: must be that of one stream alone; got 'web'" in error


def test_stream_may_have_the_name_of_a_symbol_in_the_code(tmp_path: Path) -> None:
    text = (ROOT / "schemas/streams/web.yaml").read_text()
    names = ["build", "globals", "streams", "web"]
    for name in names:
        (tmp_path / f"{name}.yaml").write_text(text.replace("name: web", f"name: {name}"))
    assert imported(tmp_path) == (names, "")


def test_stream_of_the_past_has_no_latest_hour(dags: dict[str, Any]) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    settle = dags["web"].get_task("settle")
    now = datetime(2026, 5, 17, 10, tzinfo=UTC)
    context = {"dag": dags["web"], "dag_run": run_of(now, now + timedelta(hours=1)), "params": {}}
    texts = "from and to: the latest hour, 2026-05-17T10:00, is not one that the stream schedules"
    with pytest.raises(AirflowFailException, match=texts):
        settle.execute(context)
    requested = {"from": "2015-05-20T21:00", "to": "2015-05-20T23:00"}
    assert settle.execute({**context, "params": requested}) == "[2015-05-20T21:00, 2015-05-20T23:00)"
    last = datetime(2015, 5, 20, 21, tzinfo=UTC)
    assert settle.execute({**context, "dag_run": run_of(last, last + timedelta(hours=1))})
