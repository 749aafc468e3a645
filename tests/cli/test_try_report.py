"""The output of `transom try` on stages that did not run, and its names of files."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.ledger_factories import WITHHELD, at, junk, node
from tests.support.stream_factories import changed
from transom.cli.try_report import print_results
from transom.core.intervals import HOUR, Interval
from transom.engine.gate import GateResult
from transom.findings.store import sync_ledger_findings
from transom.ledger.ledger import Ledger, Run
from transom.stream import parse


def test_stages_that_did_not_run_are_reported_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a failed gate of ingest, no episode, frame or item has been searched for."""
    item = {"item": ["user"], "slot": "1 hour", "window": "2 days", "alpha": 0.5, "epsilon": 0.25}
    steps = [{"id": "one", "where": "status = 200"}]
    often = {"item": ["user"], "window": "2 hours", "tick": "1 hour", "epsilon": 0.1, "delta": 0.1}
    stream = parse(
        changed(
            patterns={"attack": {"key": ["user"], "within": "1 hour", "steps": steps}},
            frames={"busy": {"source": "load", "kind": "threshold", "where": "n > 9"}},
            fills={"bytes": {"frame": "busy", "source": "load", "measures": {"most": "max(n)"}}},
            persistence={"regulars": item},
            frequency={"often": often},
        ),
        "app.yaml",
    )
    ledger = Ledger(str(tmp_path))
    ledger.claim("ingest", [node(1)], "a")
    ledger.record_checks("ingest", [replace(junk(1), file="landing/1-access.log")], "a")
    ledger.publish("ingest", {node(1): WITHHELD}, "a")
    now = datetime(2015, 5, 20, tzinfo=UTC)
    ledger.record_run(Run("a", "try", "ingest", at(1), at(2), 0, None, 1, 0, {"total": 1.0}, 1, "v", now))
    sync_ledger_findings(ledger, "app", "ingest", {})
    closed = GateResult(("withheld",), (), "")
    print_results(
        stream, str(tmp_path), Interval(at(1), at(1) + HOUR), [closed],
        lambda text: text.replace("landing/1-access.log", "/var/log/access.log"),
    )  # fmt: skip
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert lines[-6:] == [
        "attack: not run, as stage patterns did not",
        "load: not run, as stage aggregates did not",
        "busy: not run, as stage frames did not",
        "bytes: not run, as stage fills did not",
        "regulars: not run, as stage persistence did not",
        "often: not run, as stage frequency did not",
    ]
    assert not any("no episode" in line or "no frame" in line or ": no user" in line for line in lines)
    assert any("/var/log/access.log: observed" in line for line in lines)
    assert not any("landing/" in line for line in lines)
