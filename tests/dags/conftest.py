"""A separate Airflow home, set before any import of Airflow, and the DAGs of the checkout."""

import importlib
import os
import tempfile
from typing import Any

import pytest

from tests.dags.dag_runs import ROOT, STREAMS, web_dag

os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="airflow-")
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "false"
os.environ["AIRFLOW__CORE__PLUGINS_FOLDER"] = str(ROOT / "plugins")


@pytest.fixture(scope="session")
def dags() -> dict[str, Any]:
    """Return the DAG of each stream, and one whose stages are submitted together."""
    streams = importlib.import_module("streams")
    together = web_dag(name="together", submit="single")
    return {name: getattr(streams, name) for name in STREAMS} | {"together": together}
