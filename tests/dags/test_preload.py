"""What a process of Airflow imports when it starts, and what its forks still import."""

import os
from pathlib import Path

import pytest

from tests.dags.dag_runs import ROOT
from tests.dags.test_stream_files import printed, python

HEAVY = {"deltalake", "numpy", "pandas", "pyarrow", "sqlglot", "transom.engine.gate", "transom.ledger.ledger"}
STAGE = "aggregates"
GATE = """
import json, sys
import airflow
from airflow import plugins_manager
errors = dict(plugins_manager.get_import_errors())
before = set(sys.modules)
from types import SimpleNamespace
import streams
dag = streams.web
params = {"from": "2015-05-17T10:00", "to": "2015-05-17T11:00"}
task = dag.get_task("STAGE_gate")
try:
    type(task).execute.__wrapped__(task, {"params": params, "dag_run": SimpleNamespace(
        data_interval_start=None, data_interval_end=None)})
except airflow.sdk.exceptions.AirflowFailException as error:
    text = str(error)
print(json.dumps([errors, sorted(before), sorted(set(sys.modules) - before), text]))
""".replace("STAGE", STAGE)


def run_gate(folder: Path, lazy: bool) -> tuple[set[str], set[str], str]:
    """Return the modules that Airflow imports by itself, those of a gate in addition, and the gate's text."""
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__LAZY_LOAD_PLUGINS": str(lazy),
        "TRANSOM_LAKE": str(folder / "lake"),
    }
    errors, before, after, text = printed(python(GATE, environment))
    assert errors == {}
    return set(before), set(after), text


@pytest.mark.parametrize("lazy", [False, True])
def test_fork_of_a_process_with_loaded_plugins_imports_nothing_heavy(tmp_path: Path, lazy: bool) -> None:
    before, after, text = run_gate(tmp_path, lazy)
    assert f"{STAGE} skips 2015-05-17T10:00" in text
    assert "pyspark" not in before | after
    if lazy:
        assert before & HEAVY == set()
        assert after >= HEAVY
    else:
        own = {name for name in after if name.startswith(("airflow.", "transom."))}
        assert (own | after & HEAVY) == set()
