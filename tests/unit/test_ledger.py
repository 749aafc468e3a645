"""The ledger without Spark: claims, fencing tokens, and who may call rows fresh."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from transom.intervals import Interval
from transom.lake.book import Entry, Node, Verdict
from transom.lake.gate import judge
from transom.lake.ledger import Ledger, Overtaken
from transom.lake.tables import Table, TableMismatch, create

HOUR = timedelta(hours=1)
DAY = datetime(2015, 5, 17, tzinfo=UTC)


def node(number: int, stage: str = "ingest") -> Node:
    return Node(stage, "events", "events", DAY + number * HOUR)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(str(tmp_path))


def published(run: str, digest: str = "1:5") -> Entry:
    return Entry("published", run, digest=digest, inputs={"specification": "s"}, rows=1)


def test_a_claim_is_published_and_tokens_grow(ledger: Ledger) -> None:
    first = ledger.claim("ingest", [node(0), node(1)], "a")
    assert {entry.status for entry in ledger.book().values()} == {"writing"}
    ledger.publish("ingest", {node(0): published("a"), node(1): published("a")}, "a")
    assert ledger.book()[node(0)] == published("a")
    assert ledger.claim("ingest", [node(0)], "b") > first


def test_a_run_that_was_overtaken_publishes_nothing(ledger: Ledger) -> None:
    ledger.claim("ingest", [node(0), node(1)], "a")
    ledger.claim("ingest", [node(1)], "b")
    with pytest.raises(Overtaken, match=r"2015-05-17T01:00: run a was overtaken by run b \(writing\)"):
        ledger.publish("ingest", {node(0): published("a"), node(1): published("a")}, "a")
    assert ledger.book()[node(0)].status == "writing"
    ledger.publish("ingest", {node(1): published("b")}, "b")
    assert ledger.book()[node(1)] == published("b")


def test_a_claim_on_what_has_changed_since_it_was_read_is_refused(ledger: Ledger) -> None:
    seen = ledger.book()
    ledger.claim("ingest", [node(0)], "a")
    with pytest.raises(Overtaken, match="run a came in between; run b wrote nothing"):
        ledger.claim("ingest", [node(0), node(1)], "b", seen)
    ledger.claim("ingest", [node(0)], "b", ledger.book())
    assert ledger.book()[node(0)].run_id == "b"


def test_a_claim_says_where_what_it_replaces_stands(ledger: Ledger) -> None:
    ledger.claim("ingest", [node(0)], "a", versions={"events": 3})
    ledger.publish("ingest", {node(0): published("a")}, "a")
    assert ledger.book()[node(0)].stood_at is None
    # Two runs are killed one after the other; what was published stands where the first one saw it.
    for run, version in (("b", 7), ("c", 8)):
        ledger.claim("ingest", [node(0), node(1)], run, ledger.book(), versions={"events": version})
    assert {n.hour.hour: e.stood_at for n, e in ledger.book().items()} == {0: 7, 1: 7}
    assert ledger.book()[node(0)].digest == published("a").digest


@pytest.mark.parametrize(
    "stood",
    [
        replace(published("a"), status="quarantined", complete=False, cause="f: rejected_share"),
        replace(published("a"), complete=False, cause="f: truncated"),
        replace(published("a"), inputs=None),
    ],
)
def test_what_a_node_was_is_known_when_the_runs_that_replaced_it_were_killed(
    ledger: Ledger, stood: Entry
) -> None:
    ledger.claim("ingest", [node(0)], "a")
    ledger.publish("ingest", {node(0): stood}, "a")
    for run in ("b", "c"):
        ledger.claim("ingest", [node(0)], run, ledger.book(), versions={"events": 7})
    entry = ledger.book()[node(0)]
    assert (entry.status, entry.before()) == ("writing", stood)
    assert stood.before() is stood


def test_an_hour_is_asked_for_once_and_for_all(ledger: Ledger) -> None:
    ledger.claim("ingest", [node(0), node(1)], "a", unasked={node(1)})
    assert ledger.book().hours("ingest") == {DAY}
    ledger.publish("ingest", {node(n): replace(published("a"), asked=n == 0) for n in (0, 1)}, "a")
    assert ledger.book().hours("ingest") == {DAY}
    ledger.claim("ingest", [node(0), node(1)], "b", unasked={node(0)})
    assert ledger.book().hours("ingest") == {DAY, DAY + HOUR}


def test_a_ledger_that_remembers_reads_what_another_reads(ledger: Ledger) -> None:
    rival = Ledger(ledger.root)
    for number, run in enumerate(["a", "b", "a"]):
        own, other = (ledger, rival) if run == "a" else (rival, ledger)
        own.claim("ingest", [node(0), node(number)], run, own.book(), {"events": number})
        assert other.book() == own.book() == Ledger(ledger.root).book()
        result = {
            node(0): None if number == 1 else published(run),
            node(number): published(run, f"1:{number}"),
        }
        own.publish("ingest", result, run)
        own.claim("aggregate", [node(number, "aggregate")], run)
        for stages in (None, ["ingest"], ["aggregate"], ["aggregate", "ingest"]):
            assert other.book(stages) == own.book(stages) == Ledger(ledger.root).book(stages)


def test_a_commit_that_meets_another_is_tried_again(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: Callable[[str], object] = ledger._open
    rivals = iter([True, False])

    def open_and_be_overtaken(name: str) -> object:
        table = opened(name)
        if name == "hours" and next(rivals, False):
            Ledger(ledger.root).claim("ingest", [node(7)], "rival")
        return table

    monkeypatch.setattr(ledger, "_open", open_and_be_overtaken)
    ledger.claim("ingest", [node(0)], "a")
    assert {n.hour.hour: e.run_id for n, e in ledger.book().items()} == {0: "a", 7: "rival"}


def test_checks_count_under_the_run_that_a_node_stands_by(ledger: Ledger) -> None:
    def verdict(observed: float) -> Verdict:
        return Verdict(node(0), "rejected_share", "error", observed, "at most 0.05", False)

    for run, observed in (("a", 0.5), ("b", 0.7)):
        ledger.claim("ingest", [node(0)], run)
        ledger.record_checks("ingest", [verdict(observed)], run)
        ledger.publish("ingest", {node(0): replace(published(run), status="quarantined")}, run)
    assert [v.observed for v in ledger.checks(ledger.book(), "ingest", {DAY})] == [0.7]


def test_a_gate_is_red_for_what_did_not_run_and_for_what_is_being_written(ledger: Ledger) -> None:
    interval = Interval(DAY, DAY + 2 * HOUR)
    ledger.claim("ingest", [node(0)], "a")
    failures = judge(ledger, "ingest", "web", interval, "run --from {from} --to {to}").failures
    assert [text.split(":")[0] for text in failures] == [
        "writing",
        "ingest has not run for 2015-05-17T01",
    ]
    assert "run --from 2015-05-17T01:00 --to 2015-05-17T02:00" in failures[1]


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


def test_a_table_gains_columns_and_refuses_another_type(tmp_path: Path) -> None:
    table = Table.load("events")
    create(str(tmp_path), table.declare(columns={"client": "string"}))
    create(str(tmp_path), table.declare(columns={"client": "string", "bytes": "bigint"}))
    with pytest.raises(TableMismatch, match=r"column client is .*string.* in the lake and .*long"):
        create(str(tmp_path), table.declare(columns={"client": "bigint"}))


def test_no_version_in_which_rows_stand_is_cleaned_up(tmp_path: Path) -> None:
    Ledger(str(tmp_path))
    kept = DeltaTable(f"{tmp_path}/hours").metadata().configuration
    assert kept["delta.enableExpiredLogCleanup"] == "false"
