"""A gate's text on a failed check contains a waiver. Pasted into the stream file, it lets the check pass."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.core.intervals import Interval
from transom.core.partitions import CheckResult, PartitionKey, PartitionState
from transom.engine.check_builders import waivers_of
from transom.engine.gate import evaluate_gate
from transom.features.ingest.file_checks import _marked
from transom.features.ingest.file_records import FileContent
from transom.ledger.check import format_exact
from transom.ledger.ledger import Ledger
from transom.ledger.waivers import accept
from transom.spec.yaml_file import parse_mapping
from transom.stream import parse

HOUR = datetime(2015, 5, 17, 10, tzinfo=UTC)
NODE = PartitionKey("ingest", "events", "events", HOUR)
STREAM = """
name: app
source: {path: "in/%Y-%m-%dT%H.json", format: json}
columns: {user: who}
time: {column: at}
waivers:
  - {hour: "2015-05-17T10:00", stage: ingest, check: rejected_share, observed: OBSERVED, who: a, why: b}
"""


def failed(observed: float) -> CheckResult:
    return CheckResult(NODE, "rejected_share", "error", observed, "at most 0.05", False)


def passes(verdict: CheckResult, text: str) -> bool:
    stream = parse(parse_mapping(STREAM.replace("OBSERVED", text), "app.yaml"))
    return accept(verdict, waivers_of(stream)).success


@pytest.mark.parametrize(
    ("observed", "text"),
    [
        (3 / 13, "0.23076923076923078"),
        (0.5, "0.5"),
        (1.0, "1"),
        (0.0, "0"),
        (-2.0, "-2"),
        (1_234_567.0, "1234567"),
        (1e-6, "1e-06"),
        (1e22, "1e+22"),
        (None, "nothing"),
    ],
)
def test_value_is_written_in_full(observed: float | None, text: str) -> None:
    assert format_exact(observed) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_written_value_reads_back_unchanged(observed: float) -> None:
    assert passes(failed(observed), format_exact(observed))
    assert not passes(
        replace(failed(observed), observed=observed + max(1.0, abs(observed))), format_exact(observed)
    )


def test_printed_waiver_can_be_pasted(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    ledger.claim("ingest", [NODE], "a")
    ledger.record_checks("ingest", [failed(3 / 13)], "a")
    ledger.publish("ingest", {NODE: PartitionState("quarantined", "a", complete=False, reason="f")}, "a")
    (failure,) = evaluate_gate(
        ledger, "ingest", "app", Interval(HOUR, HOUR + timedelta(hours=1)), ""
    ).failures
    shown = re.search(r"observed (\S+), expected at most 0\.05", failure)
    assert shown is not None
    assert passes(failed(3 / 13), shown[1])


def test_printed_waiver_of_a_quarantined_file_can_be_pasted() -> None:
    content = FileContent("", "", 0, 0, 0, 0, 0, None, None, (), (), {})
    assert _marked(content, failed(3 / 13)).failed == (
        "rejected_share: observed 0.23076923076923078, expected at most 0.05"
    )
