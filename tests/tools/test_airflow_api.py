"""Queries of a running Airflow that need several responses."""

from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlparse

from airflow_api import Airflow


def test_every_run_is_found_with_a_hundred_per_response() -> None:
    runs = [{"dag_run_id": f"run {number}", "state": "success"} for number in range(250)]

    def ask(self: Airflow, method: str, path: str) -> dict[str, Any]:
        requested = {name: int(values[0]) for name, values in parse_qs(urlparse(path).query).items()}
        first = requested["offset"]
        return {"dag_runs": runs[first : first + min(requested["limit"], 100)], "total_entries": len(runs)}

    with patch.object(Airflow, "ask", ask):
        assert len(Airflow(Path(), 0, {}, Path()).runs("web")) == 250
