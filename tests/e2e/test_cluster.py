"""A real Spark cluster runs the jobs, and leaves the tables of one machine."""

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import cluster
import sample_logs
from processes import members
from sample_logs import HOUR, WEB, land
from transom.app.pipeline import run_stages
from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.ledger.ledger import Ledger
from transom.stream import load

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "schemas/streams/web.yaml"
FIRST = datetime(2015, 5, 17, 10, tzinfo=UTC)
HOURS = Interval(FIRST, FIRST + 4 * HOUR)
OF_SET_UP = ("TRANSOM_", "PYTHONPATH", "PYSPARK_SUBMIT_ARGS")
"""Environment variables that a job on a cluster must not need."""


def states_of(lake: Path) -> dict[PartitionKey, tuple[object, ...]]:
    def comparable(entry: PartitionState) -> tuple[object, ...]:
        return entry.status, entry.complete, entry.digest, entry.rows, entry.input_hashes

    return {node: comparable(entry) for node, entry in Ledger(str(lake / "web")).snapshot().items()}


@pytest.mark.full
def test_cluster_leaves_the_tables_of_one_machine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow (a minute): it starts a master, two workers and two applications, one with all rows in tasks."""
    logs = sample_logs.apache()
    for hour in HOURS.hours():
        land(tmp_path, WEB, hour, logs[hour])
    environment = {name: text for name, text in os.environ.items() if not name.startswith(OF_SET_UP)}
    with cluster.running(tmp_path / "cluster") as standalone:
        # The executors work in other folders: paths relative to the driver's folder.
        ways = {"tasks": (ROOT / "tools/bench/by_spark.py", "run"), "far": (ROOT / "jobs/run.py",)}
        in_tasks, finished = (
            subprocess.run(
                ["spark-submit", "--properties-file", standalone.properties, *job,
                 "--stream", FILE, "--lake", lake, "--from", "2015-05-17T10:00", "--to", "2015-05-17T14:00"],
                cwd=tmp_path, env={**environment, "TRANSOM_LANDING": "."},
                capture_output=True, text=True, check=False,
            )
            for lake, job in ways.items()
        )  # fmt: skip
        assert in_tasks.returncode == 0, in_tasks.stdout + in_tasks.stderr
        assert finished.returncode == 0, finished.stderr
        assert len(list(standalone.work.glob("*/*/transom.zip"))) == len(ways) * cluster.WORKERS
        assert members(standalone.leaders)
    assert members(standalone.leaders) == []

    monkeypatch.setenv("TRANSOM_LANDING", str(tmp_path))
    evaluated = run_stages(spark, load(FILE), HOURS, lake=str(tmp_path / "near"), command="again")
    # Two stages print at once.
    summaries = {judgement.summary for judgement in evaluated}
    assert summaries <= set(finished.stdout.splitlines())
    assert len(finished.stdout.splitlines()) == 2 * len(evaluated)
    near = states_of(tmp_path / "near")
    assert states_of(tmp_path / "far") == states_of(tmp_path / "tasks") == near
    assert {node.hour for node in near} == set(HOURS.hours())
    assert {status for status, *_ in near.values()} == {"published"}
