"""Waivers of the stream file before the next run: what `explain` advises, and what `check` lists."""

import json
from typing import Any

import pytest

from tests.cli.explained_hours import Ask, command, explanation
from tests.cli.ledger_by_hand import WEB, Lake, at
from transom.core.partitions import CheckResult, PartitionKey, PartitionState
from transom.features.ingest.expected_inputs import partition_of

REJECTED = {"hour": "2015-05-17T01:00", "stage": "ingest", "check": "rejected_share", "observed": 0.512}
NULL_KEYS = {"hour": "2015-05-17T01:00", "stage": "ingest", "check": "keys_not_null", "observed": 2}


def with_waivers(*items: dict[str, Any]) -> str:
    return WEB + f"waivers: {json.dumps([item | {'who': 'nora', 'why': 'a test'} for item in items])}\n"


@pytest.fixture
def quarantined(lake: Lake) -> Lake:
    """Return a lake with an hour that two checks quarantine, and a later hour that it blocks."""
    lake.ingest([0, 2])
    bad = partition_of("events", at(1))
    failed = [
        CheckResult(bad, "rejected_share", "error", 0.512, "at most 0.05", False, file="a.log"),
        CheckResult(bad, "keys_not_null", "error", 2, "0", False),
    ]
    lake.ledger.claim("ingest", [bad], "bad")
    lake.ledger.record_checks("ingest", failed, "bad")
    lake.run("bad", "ingest", {bad: PartitionState("quarantined", "bad", False, input_hashes={}, reason="2")})
    waits = PartitionState("blocked", "b", False, reason="ingest events 2015-05-17T01:00 is quarantined: 2")
    partitions = {("granules", 1): waits, ("aggregates", 1): waits, ("aggregates", 2): waits}
    partitions["granules", 2] = PartitionState("published", "b", rows=1, digest="1:3")
    of_block = {
        PartitionKey("aggregates", "traffic", table, at(n)): s for (table, n), s in partitions.items()
    }
    lake.run("b", "aggregates", of_block)
    return lake


@pytest.mark.parametrize(
    ("hour", "end"), [("2015-05-17T01:00", "2015-05-17T02:00"), ("2015-05-17T02:00", "2015-05-17T03:00")]
)
def test_explain_advises_to_run_if_the_stream_file_accepts_all_failed_checks(
    run: Ask, quarantined: Lake, hour: str, end: str
) -> None:
    quarantined.file.write_text(with_waivers(REJECTED, NULL_KEYS))
    lines = explanation(run, quarantined, hour)
    assert lines[-2:] == [
        "  the stream file accepts it (keys_not_null, by nora: a test; rejected_share, by nora: a test); "
        "run:",
        command(quarantined, "2015-05-17T01:00", end),
    ]
    assert "add this to waivers" not in "".join(lines)


def test_explain_prints_the_entry_of_the_check_without_waiver_only(run: Ask, quarantined: Lake) -> None:
    quarantined.file.write_text(with_waivers(REJECTED))
    lines = [line.strip() for line in explanation(run, quarantined, "2015-05-17T01:00")]
    assert "the stream file accepts it (rejected_share, by nora: a test)" in lines
    entries = [line for line in lines if "add this to waivers" in line]
    assert [entry.partition("check: ")[2].partition(",")[0] for entry in entries] == ["keys_not_null"]
    assert "fix the data, or accept the value in the stream file, then run:" in lines


def test_check_lists_what_each_waiver_accepts(run: Ask, lake: Lake) -> None:
    lake.file.write_text(with_waivers(REJECTED, NULL_KEYS | {"hour": "1970-01-01T00:00"}))
    accepted = [
        "rejected_share of ingest, 2015-05-17T01:00: observed 0.512, by nora: a test",
        "keys_not_null of ingest, files without an hour: observed 2, by nora: a test",
    ]
    lines = run("check", "web").stdout.splitlines()
    assert lines[-2:] == [f"  waivers[{index}] accepts {text}" for index, text in enumerate(accepted)]
    assert json.loads(run("check", "web", "--json").stdout)["valid"][0]["waivers"] == accepted
