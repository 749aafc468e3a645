"""Messages about findings, in the real tables: each once, after kills, late files and silences."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from deltalake.exceptions import CommitFailedError

from tests.support.alert_lake import (
    EVERYTHING,
    START,
    AlertLake,
    Killed,
    Receiver,
)
from transom.alerts import store
from transom.alerts.comparison import THE_PAGE, Recipient
from transom.alerts.deliver import BUDGET, LEASE
from transom.alerts.store import deliveries
from transom.findings.store import to_arrow


def test_each_finding_is_sent_once_whatever_runs(lake: AlertLake) -> None:
    receiver = Receiver()
    for run in ("one", "two", "three"):
        lake.run(range(4))
        lake.deliver(receiver, run)
    (message,) = receiver.messages
    assert (message["state"], message["severity"], message["number"]) == ("raised", "low", 1)
    assert message["text"].startswith("raised: low episode: web: busy of 10.0.0.1")


def test_after_a_message_that_failed_the_others_are_tried_once(lake: AlertLake) -> None:
    lake.landing |= {f"h{hour}": (hour, 12) for hour in (10, 12)}
    lake.run(range(14))
    # Each finding has a message of its own.
    rows = to_arrow(replace(finding, key=finding.finding_id) for finding in lake.findings())
    write_deltalake(lake.ledger.open("findings"), rows, mode="overwrite")
    calls, pauses = [], list[float]()

    def refuse(message: Any) -> None:
        calls.append(message)
        raise ConnectionError("refused")

    result = lake.courier("one", pause=pauses.append).deliver(EVERYTHING, refuse)
    assert (result.pending, len(calls)) == (3, 5)
    assert pauses == [1.0, 3.0]


def test_episode_that_continues_is_no_news_until_it_ends(lake: AlertLake) -> None:
    receiver = Receiver()
    for hour in range(4, 8):
        lake.landing[f"e{hour}"] = (hour, 11)
        lake.run([hour])
        lake.deliver(receiver, f"run {hour}")
    lake.landing["f"] = (8, 1)
    lake.run([8])
    lake.deliver(receiver, "last")
    assert [(row["state"], row["ongoing"]) for m in receiver.messages for row in m["findings"]] == [
        ("raised", False), ("raised", True), ("ended", False),
    ]  # fmt: skip
    lake.landing["e5"] = (5, 30)
    lake.run([5])
    lake.deliver(receiver, "after")
    assert [(m["state"], m["severity"]) for m in receiver.messages][-1] == ("updated", "high")


@pytest.mark.parametrize("retried", [True, False])
def test_kill_after_sending_sends_again_with_the_same_key(lake: AlertLake, retried: bool) -> None:
    receiver = Receiver()
    receiver.kill_after = 1
    with pytest.raises(Killed):
        lake.deliver(receiver, "one")
    # The next try of the same run knows that the first one is dead; another run waits for the lease.
    if retried:
        lake.courier("one").deliver(EVERYTHING, receiver)
    else:
        lake.courier("two").deliver(EVERYTHING, receiver)
        assert len(receiver.messages) == 1
        lake.now += LEASE + timedelta(seconds=1)
        lake.courier("two").deliver(EVERYTHING, receiver)
    first, second = receiver.messages
    assert first == second
    lake.deliver(receiver, "three")
    assert len(receiver.messages) == 2


def test_two_runs_at_once_send_once(lake: AlertLake, monkeypatch: pytest.MonkeyPatch) -> None:
    receiver, claims = Receiver(), []
    commit = store.claim

    def claim(*of: Any) -> None:
        claims.append(of)
        if len(claims) == 1:
            lake.courier("other").deliver(EVERYTHING, receiver)
        commit(*of)

    monkeypatch.setattr(store, "claim", claim)
    lake.deliver(receiver, "one")
    assert len(receiver.messages) == 1
    assert len(claims) == 2
    assert {row.run_id for row in deliveries(lake.ledger)} == {"other"}


def test_claim_after_any_other_commit_is_refused(lake: AlertLake) -> None:
    lake.deliver(Receiver(), "one")
    table = lake.ledger.open(store.NAME)
    (row,) = deliveries(lake.courier()._ledger)
    lake.courier("two").deliver(THE_PAGE)
    with pytest.raises(CommitFailedError):
        store.claim(table, "ops", [row])


def test_message_of_another_run_is_neither_taken_nor_overtaken(lake: AlertLake) -> None:
    receiver = Receiver()
    receiver.kill_after = 1
    with pytest.raises(Killed):
        lake.deliver(receiver, "one")
    lake.landing |= {"b": (1, 0), "c": (2, 0)}
    lake.run([1, 2])
    # It is due, but the first run may still be sending what comes before.
    assert lake.courier("two").deliver(EVERYTHING, receiver).sent == 0
    assert [state for state, _ in receiver.rows] == ["raised"]
    lake.deliver(receiver, "three")
    assert [state for state, _ in receiver.rows] == ["raised", "withdrawn"]


def test_receiver_that_is_down_gets_its_messages_from_the_next_run_in_order(lake: AlertLake) -> None:
    receiver, pauses = Receiver(), list[float]()
    receiver.is_down = True
    result = lake.courier("one", pause=pauses.append).deliver(EVERYTHING, receiver)
    assert (result.sent, result.pending, result.errors) == (0, 1, ["ConnectionError: refused"])
    assert pauses == [1.0, 3.0]
    lake.landing |= {"b": (1, 0), "c": (2, 0)}
    lake.run([1, 2])
    result = lake.deliver(receiver, "two")
    # The withdrawal waits for what it withdraws.
    assert (result.pending, len(result.errors)) == (2, 1)
    receiver.is_down = False
    lake.deliver(receiver, "three")
    lake.deliver(receiver, "four")
    assert [message["state"] for message in receiver.messages] == ["raised", "withdrawn"]


def test_notifier_that_fails_once_is_tried_again_by_the_same_run(lake: AlertLake) -> None:
    receiver, calls = Receiver(), []

    def send(message: Any) -> None:
        calls.append(message)
        if len(calls) == 1:
            raise RuntimeError("busy")
        receiver(message)

    result = lake.deliver(send)
    assert (result.sent, result.pending, result.errors) == (1, 0, [])


def test_run_sends_to_a_recipient_for_a_limited_time(lake: AlertLake) -> None:
    receiver = Receiver()
    receiver.is_down = True
    lake.deliver(receiver, "one")
    lake.landing |= {"x": (10, 12), "y": (11, 0)}
    lake.run([10, 11])

    def slow(message: Any) -> None:
        lake.now += BUDGET
        receiver(message)

    receiver.is_down = False
    # The message of the first run, and that of the second one.
    result = lake.deliver(slow, "two")
    assert (result.sent, result.pending, result.errors) == (1, 1, [])
    lake.deliver(receiver, "three")
    assert len({message["finding_id"] for message in receiver.messages}) == len(receiver.messages) == 2


def test_old_findings_of_a_backfill_are_one_summary(lake: AlertLake) -> None:
    receiver = Receiver()
    for hour in range(10, 100, 2):
        lake.landing[f"h{hour}"] = (hour, 12)
    lake.landing["last"] = (100, 0)
    lake.run(range(101))
    lake.deliver(receiver, "one", EVERYTHING)
    summary = next(message for message in receiver.messages if message["state"] == "summary")
    # Of the last two days, hours 52 to 98.
    assert summary["number"] == 22
    assert "21 more" not in summary["text"]
    assert "and 2 more findings in the table findings" in summary["text"]
    # The others share a key.
    assert [(m["state"], m["number"]) for m in receiver.messages if m is not summary] == [("raised", 24)]
    lake.deliver(receiver, "two")
    assert len(receiver.messages) == 2


def test_number_of_findings_of_a_commit_is_limited(lake: AlertLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_ROWS", 2)
    lake.landing |= {f"h{hour}": (hour, 12 + hour % 4 * 5) for hour in range(10, 20, 2)}
    lake.run(range(21))
    assert len(lake.findings()) == 6
    assert lake.courier().deliver(THE_PAGE).sent == 6
    # Those that a recipient does not take leave room for those that it takes.
    receiver, high = Receiver(), Recipient("ops", frozenset(["high"]))
    for number in range(4):
        lake.deliver(receiver, f"run {number}", high)
    assert len(receiver.rows) == sum(finding.severity == "high" for finding in lake.findings()) > 2
    # All of them change at once, and then disappear.
    lake.landing = {path: (hour, 31 - count) for path, (hour, count) in lake.landing.items()}
    lake.run(range(21))
    lake.courier().deliver(THE_PAGE)
    lake.landing = {path: (hour, 0) for path, (hour, _) in lake.landing.items()}
    lake.run(range(21))
    lake.courier().deliver(THE_PAGE)
    rows = deliveries(lake.ledger, "recipient = 'page'")
    ids = {row.finding_id for row in rows}
    assert {row.finding_id for row in rows if row.state == "withdrawn"} == ids


def test_page_records_without_sending(lake: AlertLake) -> None:
    assert lake.courier().deliver(THE_PAGE).sent == 1
    assert lake.courier().deliver(THE_PAGE).sent == 0
    (row,) = deliveries(lake.ledger, "recipient = 'page'")
    assert (row.state, row.status, row.time) == ("raised", "sent", START)


def test_silenced_finding_is_recorded_and_never_sent(tmp_path: Path) -> None:
    silence = {"key": "10.0.0.1", "who": "ann", "why": "a scan", "until": "2026-11-28"}
    lake = AlertLake(str(tmp_path), silence=[silence])
    lake.landing = {"b": (1, 12), "c": (2, 1)}
    lake.run(range(3))
    receiver = Receiver()
    result = lake.deliver(receiver, "one")
    assert (result.sent, result.silenced) == (0, 1)
    assert lake.courier().deliver(THE_PAGE).silenced == 1
    # The silence has ended: nothing old is sent, and no change of it either.
    lake.now = START + timedelta(days=1)
    lake.landing["b"] = (1, 30)
    lake.run([1])
    assert lake.deliver(receiver, "two").silenced == 1
    lake.landing |= {"d": (10, 12), "e": (11, 0)}
    lake.run([10, 11])
    lake.deliver(receiver, "three")
    assert [message["state"] for message in receiver.messages] == ["raised"]
    assert [row.status for row in deliveries(lake.ledger, "recipient = 'ops'")].count("silenced") == 2


def test_withdrawal_of_a_sent_finding_passes_a_silence(lake: AlertLake) -> None:
    receiver = Receiver()
    lake.deliver(receiver, "one")
    silence = {"block": "busy", "who": "ann", "why": "a scan", "until": "2026-12-28"}
    lake.stream = AlertLake(f"{lake.root}/other", silence=[silence]).stream
    lake.landing["b"] = (1, 30)
    lake.run([1])
    lake.deliver(receiver, "two")
    assert len(receiver.messages) == 1
    lake.landing |= {"b": (1, 0), "c": (2, 0)}
    lake.run([1, 2])
    lake.deliver(receiver, "three")
    assert [message["state"] for message in receiver.messages] == ["raised", "withdrawn"]


def test_files_of_a_recipient_are_merged(lake: AlertLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SCATTERED", 3)
    receiver = Receiver()
    for hour in range(10, 20, 2):
        lake.landing |= {f"h{hour}": (hour, 12), f"i{hour}": (hour + 1, 0)}
        lake.run([hour, hour + 1])
        lake.deliver(receiver, f"run {hour}")
    assert len(lake.ledger.open(store.NAME).file_uris()) <= 4
    lake.deliver(receiver, "last")
    assert len(receiver.messages) == 5
