"""The sample streams as DAGs, their runs, and the execution of a task without a server."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.support import sample_streams

ROOT = Path(__file__).resolve().parents[2]
STREAMS = sample_streams.NAMES
DAGS = [*STREAMS, "together"]
WEB = sample_streams.FOLDER / "web.yaml"


def web_dag(**changes: object) -> Any:
    """Return the DAG of the stream `web` with fields changed."""
    from stream_dag import build
    from transom.stream import load

    return build(load(WEB).model_copy(update=changes), WEB)


def run_of(start: datetime | None, end: datetime | None, kind: str = "manual") -> Any:
    return SimpleNamespace(data_interval_start=start, data_interval_end=end, run_type=kind)


def execute(task: Any, context: Mapping[str, object]) -> Any:
    """Execute a task as the task runner calls it; a test has no runner."""
    return type(task).execute.__wrapped__(task, context)
