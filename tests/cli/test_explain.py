"""The explanation of an hour in any state, and the command that repairs it."""

import json
from dataclasses import replace

import pytest

from tests.cli.explained_hours import Ask, command, explanation
from tests.cli.ledger_by_hand import WEB, Lake, at
from transom.cli.explain import WHY
from transom.core.partitions import CheckResult, PartitionKey, PartitionState
from transom.features.ingest.expected_inputs import partition_of


def test_fresh_hour_is_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(3))
    lake.aggregate(range(3))
    assert explanation(run, lake, "2015-05-17T02:00") == [
        "  ingest events: published, 1 row, by run a, 2015-05-20 12:00",
        "  aggregates traffic, granules: published, 1 row, by run b, 2015-05-20 12:01",
        "  aggregates traffic, aggregates: published, 1 row, by run b, 2015-05-20 12:01",
    ]


def test_hour_not_requested_is_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    assert explanation(run, lake, "2015-05-18T00:00") == [
        "  ingest: not requested, so it counts as empty",
        "  aggregates: not requested, so it counts as empty",
        "  to run it:",
        command(lake, "2015-05-18T00:00", "2015-05-18T01:00"),
    ]


def test_hour_stopped_by_a_gate_is_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    assert explanation(run, lake, "2015-05-17T00:00") == [
        "  ingest events: published, 1 row, by run a, 2015-05-20 12:00",
        "  aggregates: stale: it was requested from ingest, and aggregates has not run since",
        "  to run it:",
        command(lake, "2015-05-17T00:00", "2015-05-17T01:00"),
    ]


def test_explaining_a_stream_without_runs_creates_no_ledger(run: Ask, lake: Lake) -> None:
    lake.file.write_text(WEB.replace("name: web", "name: other"))
    result = run("explain", lake.file, "2015-05-18T00:00")
    assert (result.exit_code, result.stdout.splitlines()[1:]) == (
        1,
        [
            "  not requested: no run of other is in this lake",
            "  to run it:",
            command(lake, "2015-05-18T00:00", "2015-05-18T01:00"),
        ],
    )
    assert not (lake.folder / "lake" / "other").exists()


def test_hour_being_written_is_explained(run: Ask, lake: Lake) -> None:
    hours = ["2015-05-17T00:00", "2015-05-17T01:00"]
    waits = [
        "  nothing is to be done while run {} is active; if it was killed, run:",
        command(lake, *hours),
    ]
    node = partition_of("events", at(0))
    lake.ledger.claim("ingest", [node], "r ingest")
    assert explanation(run, lake, hours[0])[1:] == [
        "    a run has begun to write it and has not published it: it is active, or was killed",
        "  aggregates: not computed yet; run r ingest is active, or was killed",
        waits[0].format("r ingest"),
        waits[1],
    ]
    lake.ingest(range(1))
    granules = PartitionKey("aggregates", "traffic", "granules", at(0))
    lake.ledger.claim("aggregates", [granules], "r aggregate")
    assert explanation(run, lake, hours[0])[3:] == [
        "  aggregates traffic, aggregates: not computed yet; run r aggregate is active, or was killed",
        waits[0].format("r aggregate"),
        waits[1],
    ]
    # Nothing is being written between its two tables.
    finished = PartitionState("published", "r aggregate", digest="1:3", input_hashes={}, rows=1)
    lake.ledger.publish("aggregates", {granules: finished}, "r aggregate")
    assert explanation(run, lake, hours[0])[-3:] == [
        "  aggregates traffic, aggregates: not computed yet; run r aggregate is active, or was killed",
        waits[0].format("r aggregate"),
        waits[1],
    ]


def test_hour_with_state_alone_is_explained(run: Ask, lake: Lake) -> None:
    """The state is for windows that read it; the hour's other blocks are reported as missing."""
    lake.ingest(range(3))
    lake.aggregate([1])
    granules = PartitionKey("aggregates", "traffic", "granules", at(0))
    lake.run("b", "aggregates", {granules: replace(lake.ledger.snapshot()[replace(granules, hour=at(1))])})
    assert "  aggregates traffic, aggregates: stale: it has not been computed" in explanation(
        run, lake, "2015-05-17T00:00"
    )


def test_quarantined_hour_and_blocked_hours_are_explained(run: Ask, lake: Lake) -> None:
    lake.ingest([0, 2])
    node = partition_of("events", at(1))
    lake.ledger.claim("ingest", [node], "bad")
    sample = ("line 3: no_match: junk",)
    lake.ledger.record_checks(
        "ingest",
        [
            CheckResult(
                node,
                "rejected_share",
                "error",
                0.512,
                "at most 0.05",
                False,
                file="a.log",
                failing_rows=sample,
            )
        ],
        "bad",
    )
    cause = "a.log: rejected_share: observed 0.512, expected at most 0.05"
    lake.run(
        "bad", "ingest", {node: PartitionState("quarantined", "bad", False, input_hashes={}, reason=cause)}
    )
    texts = f"ingest events 2015-05-17T01:00 is quarantined: {cause}"
    blocked = {
        PartitionKey("aggregates", "traffic", table, at(n)): PartitionState(
            "blocked", "b", False, reason=texts
        )
        for n, table in [(1, "granules"), (1, "aggregates"), (2, "aggregates")]
    }
    lake.run("b", "aggregates", blocked)
    fresh = replace(PartitionState("published", "b"), digest="1:3", rows=1)
    lake.run("b", "aggregates", {PartitionKey("aggregates", "traffic", "granules", at(2)): fresh})
    lines = explanation(run, lake, "2015-05-17T02:00")
    assert lines[-5:] == [
        "  aggregates traffic, aggregates: blocked, 0 rows, by run b, 2015-05-20 12:00",
        f"    not computed: {texts}",
        f"    because {texts}",
        "  fix the data, or accept the value in the stream file, then run:",
        command(lake, "2015-05-17T01:00", "2015-05-17T03:00"),
    ]
    missed = {"hour": "2015-05-17T01:00", "stage": "ingest", "check": "rejected_share", "observed": 0.51}
    lake.file.write_text(WEB + f"waivers: [{json.dumps(missed | {'who': 'ops', 'why': 'a bad release'})}]\n")
    lines = explanation(run, lake, "2015-05-17T01:00")
    assert (
        "    your file has 0.51 for rejected_share of 2015-05-17T01:00, and the check observed 0.512: "
        "`observed` must have every digit"
    ) in lines
    assert (
        "    to accept it, add this to waivers in the stream file: - {hour: 2015-05-17T01:00, stage: ingest, "
        "check: rejected_share, observed: 0.512, who: NAME, why: REASON}"
    ) in lines
    assert [line for line in lines if "withheld" in line or "line 3" in line or "observed" in line][:3] == [
        f"    quarantined; the rows published before stay: {cause}",
        "    2015-05-17T01:00 events: rejected_share in a.log: observed 0.512, expected at most 0.05",
        "        line 3: no_match: junk",
    ]


def test_incomplete_hours_and_killed_runs_are_explained(run: Ask, lake: Lake) -> None:
    lake.ingest(range(2))
    node = partition_of("events", at(0))
    stored = lake.ledger.snapshot()[node]
    missing = replace(stored, complete=False, reason="files_expected: observed 0, expected at least 1")
    lake.run("a", "ingest", {node: missing})
    assert "    something is missing: files_expected: observed 0, expected at least 1" in explanation(
        run, lake, "2015-05-17T00:00"
    )
    lake.ledger.claim("ingest", [node], "killed")
    assert explanation(run, lake, "2015-05-17T00:00")[:2] == [
        "  ingest events: writing, 1 row, by run killed",
        "    a run has begun to write it and has not published it: it is active, or was killed",
    ]


def test_control_characters_of_a_log_are_escaped(run: Ask, lake: Lake) -> None:
    lake.ingest(range(1))
    node = partition_of("events", at(0))
    missing = replace(lake.ledger.snapshot()[node], complete=False, reason="a\x1b[31m.log: cut")
    lake.run("a", "ingest", {node: missing})
    assert "    something is missing: a\\x1b[31m.log: cut" in explanation(run, lake, "2015-05-17T00:00")


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (("web", "noon"), "Invalid value for HOUR: must be a time such as 2015-05-17T10:00; got 'noon'"),
        (("web", "2015-05-17T10:30"), "must be on the hour, in UTC; got '2015-05-17T10:30'"),
        (("wbe", "2015-05-17T10:00"), "Invalid value for STREAM: no stream 'wbe' in "),
        (("no.yaml", "2015-05-17T10:00"), "Invalid value for STREAM: no stream file 'no.yaml'"),
    ],
)
def test_invalid_arguments_are_refused(run: Ask, lake: Lake, arguments: tuple[str, str], texts: str) -> None:
    result = run("explain", *arguments)
    assert result.exit_code == 2
    assert texts in " ".join(result.stderr.split())


def test_misspelled_name_gets_a_suggestion(run: Ask, lake: Lake) -> None:
    assert "; nearest: web" in " ".join(run("explain", "wbe", "2015-05-17T10:00").stderr.split())


def test_advice_is_first_and_each_cause_is_reported_once(run: Ask, lake: Lake) -> None:
    lake.ingest(range(2))
    lake.aggregate(range(2))
    node = partition_of("events", at(1))
    cause = "files_expected: observed 0, expected at least 1"
    for one in [
        node,
        *(PartitionKey("aggregates", "traffic", table, at(1)) for table in ("granules", "aggregates")),
    ]:
        entry = replace(lake.ledger.snapshot()[one], complete=False, reason=cause)
        lake.run(entry.run_id, one.stage, {one: entry})
    lines = run("explain", "web", "2015-05-17T01:00").stdout.splitlines()
    assert lines[1:4] == [
        "  to run it:", command(lake, "2015-05-17T01:00", "2015-05-17T02:00"), f"  {WHY}",
    ]  # fmt: skip
    # Once in its own hour, and once as the cause of the others.
    assert [line.strip() for line in lines if cause in line] == [
        f"something is missing: {cause}",
        f"because ingest events 2015-05-17T01:00 is incomplete: {cause}",
    ]
    assert lines[-1] == "    and as above"
    assert [line[:33].rstrip() for line in lines if "  aggregates traffic" in line] == [
        "  aggregates traffic, granules: p", "  aggregates traffic, aggregates:",
    ]  # fmt: skip
