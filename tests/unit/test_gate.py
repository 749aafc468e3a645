"""What a gate says of a ledger, without Spark: what is red, what is a warning, and in which words."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from transom.intervals import NO_HOUR, Interval
from transom.lake.book import Entry, Node, Verdict
from transom.lake.findings import publish
from transom.lake.gate import judge
from transom.lake.ledger import Ledger

HOUR = timedelta(hours=1)
DAY = datetime(2015, 5, 17, tzinfo=UTC)


def node(number: int) -> Node:
    return Node("ingest", "events", "events", DAY + number * HOUR)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(str(tmp_path))


def published(run: str) -> Entry:
    return Entry("published", run, digest="1:5", inputs={"specification": "s"}, rows=1)


def test_a_gate_is_red_for_what_did_not_run_and_for_what_is_being_written(ledger: Ledger) -> None:
    interval = Interval(DAY, DAY + 2 * HOUR)
    ledger.claim("ingest", [node(0)], "a")
    failures = judge(ledger, "ingest", "web", interval, "run --from {from} --to {to}").failures
    assert [text.split(":")[0] for text in failures] == [
        "writing",
        "ingest has not run for 2015-05-17T01",
    ]
    assert "run --from 2015-05-17T01:00 --to 2015-05-17T02:00" in failures[1]


def test_gate_is_red_for_files_without_hour_whatever_its_interval(ledger: Ledger) -> None:
    for of, entry in (
        (node(0), published("a")),
        (replace(node(0), hour=NO_HOUR), replace(published("a"), status="quarantined", cause="junk")),
    ):
        ledger.claim("ingest", [of], "a")
        ledger.publish("ingest", {of: entry}, "a")
    judged = judge(ledger, "ingest", "web", Interval(DAY, DAY + HOUR), "run --from {from} --to {to}")
    assert [text.splitlines()[0] for text in judged.failures] == [
        "quarantined: ingest events, files without an hour: junk"
    ]


def test_the_gate_of_a_later_stage_is_red_for_what_is_not_made_and_for_what_it_leaves_out(
    ledger: Ledger,
) -> None:
    """State that other hours reach is not all of an hour."""
    claimed = {node(n): published("a") for n in range(3)}
    ledger.claim("ingest", claimed, "a")
    ledger.publish("ingest", claimed, "a")
    made = {
        Node("aggregate", "site", table, DAY + n * HOUR): published("b")
        for table, n in (("granules", 0), ("granules", 1), ("aggregates", 1))
    }
    ledger.claim("aggregate", made, "b")
    ledger.publish("aggregate", made, "b")
    judged = judge(ledger, "aggregate", "web", Interval(DAY, DAY + 4 * HOUR), "run --from {from} --to {to}")
    assert judged.failures == (
        "aggregate leaves out 2015-05-17T03:00, which ingest has not been asked for; jobs/run.py over these "
        "hours runs them all",
        "aggregate has not run for 2015-05-17T00:00, 2015-05-17T02:00; "
        "run --from 2015-05-17T00:00 --to 2015-05-17T03:00",
    )
    assert "1 of 4 hours published, 0 warnings" in judged.summary


def test_a_stage_that_has_made_state_alone_has_not_run(ledger: Ledger) -> None:
    for of in (node(0), Node("aggregate", "site", "granules", DAY)):
        ledger.claim(of.stage, [of], "a")
        ledger.publish(of.stage, {of: published("a")}, "a")
    judged = judge(ledger, "aggregate", "web", Interval(DAY, DAY + HOUR), "run it")
    assert judged.failures == ("aggregate has not run for 2015-05-17T00:00; run it",)


def test_a_gate_warns_of_many_stretches_in_short(ledger: Ledger) -> None:
    left = {Node("aggregate", "site", "aggregates", DAY + 2 * n * HOUR): None for n in range(7)}
    publish(ledger, "web", "aggregate", left)
    warnings = judge(ledger, "aggregate", "web", Interval(DAY, DAY + HOUR), "").warnings
    assert warnings[4:] == (
        "stale since 2015-05-17T08:00: ",
        "stale in 2 more stretches; `transom status` tells all",
    )


def test_a_gate_warns_of_each_stretch_that_its_stage_has_left_stale(ledger: Ledger) -> None:
    claimed = {node(n): published("a") for n in range(9)}
    ledger.claim("ingest", claimed, "a")
    ledger.publish("ingest", claimed, "a")
    for stage, hours in (("ingest", (8,)), ("aggregate", (1, 2, 5))):
        left = {Node(stage, "site", "aggregates", DAY + n * HOUR): None for n in hours}
        publish(ledger, "web", stage, left)
    warnings = judge(
        ledger, "aggregate", "web", Interval(DAY, DAY + HOUR), "--from {from} --to {to}"
    ).warnings
    assert warnings == (
        "stale since 2015-05-17T01:00: --from 2015-05-17T01:00 --to 2015-05-17T03:00",
        "stale since 2015-05-17T05:00: --from 2015-05-17T05:00 --to 2015-05-17T06:00",
    )


def test_a_gate_counts_what_is_incomplete(ledger: Ledger) -> None:
    results = {node(0): published("a"), node(1): replace(published("a"), complete=False, cause="f: cut")}
    ledger.claim("ingest", results, "a")
    ledger.publish("ingest", results, "a")
    interval = Interval(DAY, DAY + 2 * HOUR)
    assert judge(ledger, "ingest", "web", interval, "").summary == (
        f"ingest web {interval}: 2 of 2 hours published (1 of them incomplete), 1 warnings"
    )


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (None, "keys_not_null: observed 2, expected 0"),
        ("user", "keys_not_null, column user: observed 2, expected 0"),
        ("site, user", "keys_not_null, columns site, user: observed 2, expected 0"),
    ],
)
def test_a_gate_says_the_column(ledger: Ledger, column: str | None, words: str) -> None:
    ledger.claim("ingest", [node(0)], "a")
    ledger.record_checks("ingest", [Verdict(node(0), "keys_not_null", "error", 2, "0", False, column)], "a")
    ledger.publish("ingest", {node(0): replace(published("a"), status="quarantined")}, "a")
    (failure,) = judge(ledger, "ingest", "web", Interval(DAY, DAY + HOUR), "").failures
    assert f"2015-05-17T00:00 events: {words}" in failure


def test_what_is_to_be_mended_is_the_detector_where_that_has_raised(ledger: Ledger) -> None:
    for check, mend in (
        ("rejected_share", "mend the data (or accept the value)"),
        ("detector_ran", "mend the detector"),
    ):
        ledger.claim("ingest", [node(0)], check)
        ledger.record_checks("ingest", [Verdict(node(0), check, "error", 2, "0", False)], check)
        ledger.publish("ingest", {node(0): replace(published(check), status="quarantined")}, check)
        (failure,) = judge(ledger, "ingest", "web", Interval(DAY, DAY + HOUR), "run").failures
        assert f"\n  what was published before stays; {mend}, then:\n  run" in failure


def test_a_gate_prints_lines_of_a_log_that_do_nothing_to_a_terminal(ledger: Ledger) -> None:
    cause = "in/a\x1bb.log: rejected_share"
    verdict = Verdict(
        node(0),
        "rejected_share",
        "error",
        1,
        "0",
        False,
        subject="in/a\x1bb.log",
        sample=("line 1: \x1b[31mRED\x07",),
    )
    ledger.claim("ingest", [node(0), node(1)], "a")
    ledger.record_checks("ingest", [verdict], "a")
    wrong = replace(published("a"), status="quarantined", cause=cause)
    ledger.publish(
        "ingest", {node(0): wrong, node(1): replace(published("a"), complete=False, cause=cause)}, "a"
    )
    judged = judge(ledger, "ingest", "web", Interval(DAY, DAY + 2 * HOUR), "")
    said = "\n".join([*judged.failures, *judged.warnings])
    assert "    line 1: \\x1b[31mRED\\x07" in said
    assert said.count("in/a\\x1bb.log") == 3
    assert said.replace("\n", "").isprintable()


@pytest.mark.parametrize("apart", [1, 3 * 24, -3 * 24])
def test_a_gate_warns_of_hours_that_a_run_mends_outside_its_interval(ledger: Ledger, apart: int) -> None:
    ledger.claim("ingest", [node(0), node(apart)], "a")
    bad = Entry("quarantined", "a", complete=False, cause="f: rejected_share")
    ledger.publish("ingest", {node(0): bad, node(apart): published("a")}, "a")
    interval = Interval(DAY + apart * HOUR, DAY + (apart + 1) * HOUR)
    judgement = judge(ledger, "ingest", "web", interval, "", heal=abs(apart) * HOUR)
    assert judgement.passed
    assert "quarantined: ingest events, 2015-05-17T00:00: f: rejected_share" in judgement.warnings[0]
    assert judge(ledger, "ingest", "web", interval, "", heal=(abs(apart) - 1) * HOUR).warnings == ()
