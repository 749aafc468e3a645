"""Messages about findings, in the real tables: each once, after kills, late files and silences."""

from datetime import timedelta
from typing import Any

import pytest
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
from transom.alerts.deliver import LEASE
from transom.alerts.store import deliveries


def test_each_finding_is_sent_once_whatever_runs(lake: AlertLake) -> None:
    receiver = Receiver()
    for run in ("one", "two", "three"):
        lake.run(range(4))
        lake.deliver(receiver, run)
    (message,) = receiver.messages
    assert (message["state"], message["severity"], message["number"]) == ("raised", "low", 1)
    assert message["text"].startswith("raised: low episode: web: busy of 10.0.0.1")


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
