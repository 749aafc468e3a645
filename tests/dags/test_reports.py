"""Texts of a run in Airflow: its gates, its report and its asset events."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.dags.dag_runs import WEB, execute, run_of, web_dag
from transom.core.intervals import HOUR
from transom.core.partitions import CheckResult, PartitionKey, PartitionState
from transom.features.registry import STAGES
from transom.findings.store import sync_ledger_findings
from transom.ledger.ledger import Ledger, Run
from transom.ledger.run_details import FileRead, Written

# With the DAGs imported before: Airflow removes the existing log handlers on import.
pytestmark = pytest.mark.usefixtures("dags")

INGEST_ALONE: dict[str, object] = {stage: {} for stage in STAGES if stage != "ingest"}


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Return the context of a run of an incomplete and a quarantined hour, in a lake with their findings.

    An hour before them and one after them are quarantined, too.
    """
    hours = [datetime(2015, 5, 17, hour, tzinfo=UTC) for hour in (8, 10, 11, 13)]
    nodes = [PartitionKey("ingest", "events", "events", hour) for hour in hours]
    ledger = Ledger(str(tmp_path / "web"))
    ledger.claim("ingest", nodes, "a")
    quarantined = PartitionState("quarantined", "a", complete=False, reason="landing/g.log: junk")
    incomplete = PartitionState("published", "a", complete=False, reason="landing/f.log: cut")
    ledger.publish("ingest", dict.fromkeys(nodes, quarantined) | {nodes[1]: incomplete}, "a")
    sync_ledger_findings(ledger, "web", "ingest", {})
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path))
    return {"params": {}, "run_id": "r", "dag_run": run_of(hours[1], hours[2] + timedelta(hours=1))}


def test_gates_cover_the_repair_window_of_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hours = [datetime(2015, 5, day, 10, tzinfo=UTC) for day in (12, 17)]
    bad, good = (PartitionKey("ingest", "events", "events", hour) for hour in hours)
    ledger = Ledger(str(tmp_path / "web"))
    ledger.claim("ingest", [bad, good], "a")
    quarantined = PartitionState("quarantined", "a", complete=False, reason="f: rejected_share")
    ledger.publish("ingest", {bad: quarantined, good: PartitionState("published", "a")}, "a")
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path))
    context = {"params": {}, "run_id": "r", "dag_run": run_of(hours[1], hours[1] + timedelta(hours=1))}
    for repair_window, warned in ((timedelta(days=7), 1), (timedelta(days=1), 0)):
        dag = web_dag(repair_window=repair_window, aggregates={}, frames={}, fills={})
        for name in ("ingest_gate", "report"):
            caplog.clear()
            execute(dag.get_task(name), context)
            assert sum("2015-05-12T10:00: f: rejected_share" in text for text in caplog.messages) == warned


def test_report_lists_findings_of_the_interval_the_worst_first(context: dict[str, object]) -> None:
    task = web_dag(**INGEST_ALONE).get_task("report")
    assert execute(task, context) == [
        "ingest web [2015-05-17T10:00, 2015-05-17T12:00): 1 of 2 hours published (1 of them incomplete), "
        # Its inputs are not known.
        "1 of them stale, as ingest events (events) of 2015-05-17T10:00 is out of date, 3 warnings",
        "high check_failed: web: events, 2015-05-17T11:00, are quarantined: landing/g.log: junk",
        "medium incomplete: web: events, 2015-05-17T10:00, are incomplete: landing/f.log: cut",
    ]


def test_report_counts_silenced_findings_of_the_interval(context: dict[str, object], tmp_path: Path) -> None:
    from stream_dag import build
    from transom.stream import load

    file = tmp_path / "web.yaml"
    silence = "silence: [{kind: check_failed, who: ann, why: known, until: DAY}]\n"
    reports = {}
    for day in ("9999-12-31", "2015-05-18"):
        file.write_text(WEB.read_text() + silence.replace("DAY", day))
        lines = execute(build(load(file), file).get_task("report"), context)
        reports[day] = [line for line in lines if line.startswith("silenced")]
        assert sum(line.startswith("high check_failed") for line in lines) == 1
    assert reports == {
        "9999-12-31": ["silenced: 1 finding, of which no message is sent"],
        "2015-05-18": [],
    }


def test_report_reads_stream_file_and_ledger_once_for_all_gates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transom import stream

    load, opened, read = stream.load, [], []
    monkeypatch.setattr(stream, "load", lambda file: read.append(file) or load(file))
    create = Ledger.__init__
    monkeypatch.setattr(Ledger, "__init__", lambda self, root: opened.append(root) or create(self, root))
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path))
    hour = datetime(2015, 5, 17, 10, tzinfo=UTC)
    context = {"params": {}, "run_id": "r", "dag_run": run_of(hour, hour + timedelta(hours=1))}
    report = web_dag().get_task("report")
    read.clear()
    lines = execute(report, context)
    assert [line.split()[0] for line in lines[: len(STAGES)]] == list(STAGES)
    assert len(read) == 1
    # The gates, and the summary of the run.
    assert len(opened) == 2


def test_report_summarises_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It names files read, late files, repaired hours, and waivers."""

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
    files = [
        FileRead(f"landing/{name}.log", hour, hour, hour + HOUR, "ingested", False, 9, 9, 0, name == "late")
        for name, hour in (("early", hours[1]), ("late", hours[1]), ("of-a-new-hour", hours[2]))
    ]
    for name, start, end, wrote, read, work in (
        (other, hours[0], hours[2], hours[:2], files[:1], {"files_read": 9}),
        (mine, hours[2], hours[2] + HOUR, hours[1:], files[1:], {"files_read": 2, "lines_rejected": 1}),
    ):
        written = [Written("events", "events", "published", True, hour, hour + HOUR, 5) for hour in wrote]
        ledger.record_run(
            Run(
                name, "trigger", "ingest", start, end, 1, None, 10, 10, {}, 1,
                "v", datetime(2015, 5, 17, 12, tzinfo=UTC), work, written=written, files=read,
            )
        )  # fmt: skip
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path))
    # The entries have no inputs, which decide whether an hour is fresh.
    monkeypatch.setattr("transom.app.freshness.stale_hours_of", lambda *of: {})
    task = web_dag(**INGEST_ALONE).get_task("report")
    context = {
        "params": {}, "run_id": "manual", "dag_run": run_of(hours[2], hours[2] + timedelta(hours=1))
    }  # fmt: skip
    caplog.set_level("INFO")
    assert execute(task.dag.get_task("ingest_gate"), context).endswith("1 accepted")
    accepted = (
        "accepted: ingest events, 2015-05-17T10:00: few_errors: observed 0.97, expected at least 0.99, by "
        "ops: a bad release"
    )
    assert caplog.messages.count(accepted) == 1
    assert execute(task, context) == [
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
    context = {"params": {}, "dag_run": run, "outlet_events": events, "run_id": "r"}
    dags["web"].get_task("ingest").post_execute(context | {"ti": SimpleNamespace(try_number=1)})
    interval = {"from": "2015-05-17T10:00", "to": "2015-05-17T13:00"}
    assert events[Asset("transom://web/events")].extra == {
        **interval, "hours_published": 2, "hours_withheld": 1, "rows": 10
    }  # fmt: skip
    assert events[Asset("transom://web/findings")].extra == {**interval, "findings": 0}
