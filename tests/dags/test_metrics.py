"""Metrics through Airflow's own: sent as datagrams of StatsD, off with Airflow's, never a failed task."""

import importlib.util
import socket
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.dags.dag_runs import execute, run_of, web_dag
from transom.core.partitions import PartitionKey, PartitionState
from transom.features.registry import FEATURES
from transom.findings.store import sync_ledger_findings
from transom.ledger.freshness import Freshness
from transom.ledger.ledger import Ledger, Run

pytestmark = pytest.mark.usefixtures("dags")

INGEST_ALONE: dict[str, object] = {feature.name: {} for feature in FEATURES}
START = datetime(2015, 5, 17, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


class StatsClient:
    """The part of the package `statsd` that Airflow calls, where it is not installed."""

    def __init__(self, host: str, port: int, prefix: str, ipv6: bool) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._address, self._prefix = (host, port), prefix

    def _send(self, stat: str, text: str) -> None:
        self._socket.sendto(f"{self._prefix}.{stat}:{text}".encode(), self._address)

    def incr(self, stat: str, count: int, rate: float) -> None:
        self._send(stat, f"{count}|c")

    def gauge(self, stat: str, value: float, rate: float, delta: bool) -> None:
        self._send(stat, f"{value}|g")

    def timing(self, stat: str, delta: timedelta) -> None:
        self._send(stat, f"{delta.total_seconds() * 1000:0.6f}|ms")


class Server:
    """A socket that receives metrics."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.2)

    def received(self) -> list[str]:
        """Return the metrics since the last call, sorted."""
        texts: list[str] = []
        try:
            while True:
                texts += self.socket.recv(65_536).decode().splitlines()
        except TimeoutError:
            return sorted(texts)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Turn Airflow's metrics on, as the process of a task does, with a socket that receives them."""
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics import stats_utils

    if importlib.util.find_spec("statsd") is None:
        package: Any = ModuleType("statsd")
        package.StatsClient = StatsClient
        monkeypatch.setitem(sys.modules, "statsd", package)
    server = Server()
    for name, value in (("ON", "True"), ("HOST", "127.0.0.1"), ("PORT", server.socket.getsockname()[1])):
        monkeypatch.setenv(f"AIRFLOW__METRICS__STATSD_{name}", str(value))
    stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)
    yield server
    monkeypatch.undo()
    stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)
    server.socket.close()


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Return the ledger of two runs over three hours, of which one is quarantined and one stale."""
    ledger = Ledger(str(tmp_path / "web"))
    nodes = [PartitionKey("ingest", "events", "events", START + number * HOUR) for number in range(3)]
    ledger.claim("ingest", nodes, "mine ingest 1 0a")
    good, bad = (
        PartitionState("published", "mine ingest 1 0a", rows=5),
        PartitionState("quarantined", "mine ingest 1 0a", complete=False, reason="f: junk"),
    )
    ledger.publish("ingest", dict(zip(nodes, (good, good, bad), strict=True)), "mine ingest 1 0a")
    sync_ledger_findings(ledger, "web", "ingest", {})
    for name, rows, seconds in (("mine ingest 1 0a", 10, 7.5), ("mine ingest 2 0b", 99, 9.0)):
        ledger.record_run(
            Run(
                name, "trigger", "ingest", START, START + HOUR, 0, None, 12, rows, {"total": seconds}, 1, "v",
                START + 9 * HOUR,
            )
        )  # fmt: skip
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path))
    return ledger


def context(**more: object) -> dict[str, Any]:
    run = run_of(START, START + 3 * HOUR)
    return {"params": {}, "run_id": "mine", "dag_run": run, "ti": SimpleNamespace(try_number=1), **more}


def submitted(task: str = "ingest") -> None:
    from airflow.sdk.execution_time.context import OutletEventAccessors

    web_dag(**INGEST_ALONE).get_task(task).post_execute(context(outlet_events=OutletEventAccessors()))


RUN = [
    "airflow.transom.duration.web.ingest:7500.000000|ms",
    "airflow.transom.findings.web.ingest.high:1|g",
    "airflow.transom.findings.web.ingest.low:0|g",
    "airflow.transom.findings.web.ingest.medium:0|g",
    "airflow.transom.rows.web.ingest:10|c",
    "airflow.transom.runs.web.ingest:1|c",
]


@pytest.mark.usefixtures("ledger")
def test_job_sends_its_runs_rows_seconds_and_findings(server: Server) -> None:
    submitted()
    assert server.received() == RUN


@pytest.mark.usefixtures("ledger")
def test_tags_are_sent_where_airflow_sends_them(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics import stats_utils

    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED", "True")
    stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)
    submitted()
    assert server.received()[1:3] == [
        "airflow.transom.findings,stream=web,stage=ingest,severity=high:1|g",
        "airflow.transom.findings,stream=web,stage=ingest,severity=low:0|g",
    ]


@pytest.mark.usefixtures("ledger")
def test_failing_gate_sends_the_hours_of_every_stage(server: Server) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    aggregates = web_dag(**{name: {} for name in INGEST_ALONE if name != "aggregates"})
    with pytest.raises(AirflowFailException, match="f: junk"):
        execute(aggregates.get_task("ingest_gate"), context())
    # The hours have no recorded inputs, and `aggregates` has none at all.
    assert server.received() == [
        "airflow.transom.quarantined_hours.web.aggregates:0|g",
        "airflow.transom.quarantined_hours.web.ingest:1|g",
        "airflow.transom.stale_hours.web.aggregates:3|g",
        "airflow.transom.stale_hours.web.ingest:3|g",
    ]


@pytest.mark.usefixtures("ledger")
def test_passing_gate_sends_the_hours_of_its_stage(server: Server) -> None:
    gate = web_dag(**{name: {} for name in INGEST_ALONE if name != "aggregates"}).get_task("ingest_gate")
    first = run_of(START, START + HOUR)
    assert execute(gate, context(dag_run=first)).startswith("ingest web [2015-05-17T10:00")
    assert [text.split(":")[0] for text in server.received()] == [
        "airflow.transom.quarantined_hours.web.ingest", "airflow.transom.stale_hours.web.ingest"
    ]  # fmt: skip


@pytest.mark.usefixtures("ledger", "server")
def test_passing_gate_computes_freshness_once(monkeypatch: pytest.MonkeyPatch) -> None:
    computed, create = [], Freshness.__init__
    monkeypatch.setattr(Freshness, "__init__", lambda self, *of: computed.append(self) or create(self, *of))
    gate = web_dag(**INGEST_ALONE).get_task("ingest_gate")
    assert execute(gate, context(dag_run=run_of(START, START + HOUR)))
    assert len(computed) == 1


@pytest.mark.usefixtures("ledger")
def test_nothing_is_sent_or_read_while_airflows_metrics_are_off(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transom_metrics

    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "False")
    monkeypatch.setattr(transom_metrics, "_emit", lambda *of: pytest.fail("sent"))
    monkeypatch.setattr(Ledger, "runs", lambda *of: pytest.fail("read"))
    submitted()
    assert server.received() == []


def test_building_a_dag_sends_nothing(server: Server) -> None:
    web_dag()
    assert server.received() == []


@pytest.mark.usefixtures("ledger", "server")
def test_failing_backend_fails_no_task(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from airflow.sdk.observability import stats

    def refused() -> Any:
        raise ConnectionRefusedError("nobody listens")

    stats.initialize(factory=refused, export_legacy_names=False)
    submitted()
    gate = web_dag(**INGEST_ALONE).get_task("ingest_gate")
    assert execute(gate, context(dag_run=run_of(START, START + HOUR)))
    assert caplog.messages.count("metrics were not sent: nobody listens") == 2
