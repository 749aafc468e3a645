"""Receivers that refuse messages, are down, or do not answer: what waits for what, and how long."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.support.alert_lake import EVERYTHING, AlertLake, Receiver
from tests.support.ledger_factories import at
from transom.alerts.attempts import Attempts
from transom.alerts.deliver import BUDGET, LEASE, ROUND
from transom.alerts.store import deliveries
from transom.findings.from_ledger import Finding


class LakeOfKeys(AlertLake):
    """A lake whose findings have a key each, and so a message each."""

    def findings(self) -> list[Finding]:
        return [replace(finding, key=f"{finding.start_time}") for finding in super().findings()]


@pytest.fixture
def three(tmp_path: Path) -> AlertLake:
    """Return a lake with three findings of different keys."""
    lake = LakeOfKeys(str(tmp_path))
    lake.landing = {f"h{hour}": (hour, 12) for hour in (8, 10, 12)} | {"quiet": (13, 0)}
    lake.run(range(14))
    return lake


class Refusing(Receiver):
    """Refuses the messages about some keys, and notes the key of each attempt."""

    def __init__(self, *keys: str) -> None:
        super().__init__()
        self.keys = set(keys)
        self.attempts: list[str] = []

    def __call__(self, message: Mapping[str, Any]) -> None:
        key = message["findings"][0]["key"]
        self.attempts.append(key)
        if key in self.keys:
            raise ConnectionError("refused")
        super().__call__(message)


def test_refused_message_is_tried_once_and_after_the_others_from_then_on(three: AlertLake) -> None:
    receiver = Refusing(*(f"{at(hour)}" for hour in (8, 10, 12)))
    courier = three.courier("one")
    result = courier.deliver(EVERYTHING, receiver)
    assert (result.pending, len(result.errors), len(receiver.attempts)) == (3, 3, 3)
    receiver.keys = {receiver.attempts[0]}
    three.now += timedelta(minutes=1)
    result = courier.deliver(EVERYTHING, receiver)
    assert (result.sent, result.pending, result.errors) == (2, 1, ["ConnectionError: refused"])
    # A new message goes first.
    three.landing["x"] = (20, 12)
    three.run([20])
    receiver.attempts.clear()
    three.deliver(receiver, "two")
    assert len(receiver.attempts) == 2
    assert receiver.attempts[-1] in receiver.keys
    assert receiver.attempts[0] not in receiver.keys


def test_receiver_that_is_down_gets_its_messages_from_the_next_run_in_order(lake: AlertLake) -> None:
    receiver = Receiver()
    receiver.is_down = True
    result = lake.deliver(receiver, "one")
    assert (result.sent, result.pending, result.errors) == (0, 1, ["ConnectionError: refused"])
    lake.landing |= {"b": (1, 0), "c": (2, 0)}
    lake.run([1, 2])
    result = lake.deliver(receiver, "two")
    # The withdrawal waits for what it withdraws.
    assert (result.pending, len(result.errors)) == (2, 1)
    receiver.is_down = False
    lake.deliver(receiver, "three")
    lake.deliver(receiver, "four")
    assert [message["state"] for message in receiver.messages] == ["raised", "withdrawn"]


def test_message_without_an_answer_costs_its_own_time_and_the_rest_comes_after_it(three: AlertLake) -> None:
    """The run waits again for the first attempt, so that a slow receiver gets the message once."""
    receiver, answer, hanging = Refusing(), Event(), list[str]()

    def send(message: Mapping[str, Any]) -> None:
        if not hanging:
            hanging.append(message["message"])
            answer.wait()
        receiver(message)

    courier = three.courier("one", attempts=Attempts(timedelta(seconds=1)))
    result = courier.deliver(EVERYTHING, send)
    assert (result.sent, result.pending, result.errors) == (0, 3, ["no answer within 1 seconds"])
    three.now += timedelta(minutes=1)
    result = courier.deliver(EVERYTHING, send)
    assert (result.sent, result.pending, result.errors) == (2, 1, ["no answer within 1 seconds"])
    answer.set()
    three.now += timedelta(minutes=1)
    result = courier.deliver(EVERYTHING, send)
    assert (result.sent, result.pending, result.errors) == (1, 0, [])
    keys = [message["message"] for message in receiver.messages]
    assert len(keys) == len(set(keys)) == 3
    assert keys[-1:] == hanging


@pytest.mark.parametrize(("limit", "again"), [(ROUND, 1), (BUDGET, 0)])
def test_run_sends_to_a_recipient_for_a_limited_time(lake: AlertLake, limit: timedelta, again: int) -> None:
    """After a round, the other recipients have their turn; after the budget, other runs."""
    receiver = Receiver()
    receiver.is_down = True
    lake.deliver(receiver, "one")
    lake.landing |= {"x": (10, 12), "y": (11, 0)}
    lake.run([10, 11])

    def slow(message: Mapping[str, Any]) -> None:
        lake.now += limit
        receiver(message)

    receiver.is_down = False
    lake.now += timedelta(hours=1)
    courier = lake.courier("two")
    # The message of the first run, and that of the second one.
    result = courier.deliver(EVERYTHING, slow)
    assert (result.sent, result.pending, result.errors) == (1, 1, [])
    assert courier.deliver(EVERYTHING, receiver).sent == again
    lake.deliver(receiver, "three")
    assert len({message["finding_id"] for message in receiver.messages}) == len(receiver.messages) == 2


def test_limits_of_a_run_end_before_another_run_sends_its_messages() -> None:
    assert ROUND < BUDGET
    assert BUDGET + Attempts()._limit < LEASE


def test_message_that_arrives_after_the_lease_is_sent_although_another_run_failed(lake: AlertLake) -> None:
    receiver, down = Receiver(), Receiver()
    down.is_down = True

    def slow(message: Mapping[str, Any]) -> None:
        lake.now += LEASE + timedelta(seconds=1)
        assert lake.courier("two").deliver(EVERYTHING, down).pending == 1
        receiver(message)

    lake.deliver(slow, "one")
    lake.deliver(receiver, "three")
    assert len(receiver.messages) == 1


def test_message_that_fails_after_the_lease_stays_with_the_run_that_sends_it_again(lake: AlertLake) -> None:
    receiver, slow_fails, has_failed, runs = Receiver(), Event(), Event(), list[Thread]()

    def other(message: Mapping[str, Any]) -> None:
        receiver(message)
        # The first run fails meanwhile, and a third one begins.
        slow_fails.set()
        assert has_failed.wait(60)
        assert lake.courier("three").deliver(EVERYTHING, receiver).sent == 0

    def slow(message: Mapping[str, Any]) -> None:
        lake.now += LEASE + timedelta(seconds=1)
        runs.append(Thread(target=lake.courier("two").deliver, args=(EVERYTHING, other)))
        runs[0].start()
        assert slow_fails.wait(60)
        raise ConnectionError("refused")

    lake.deliver(slow, "one")
    has_failed.set()
    runs[0].join()
    assert len(receiver.messages) == 1
    assert {row.status for row in deliveries(lake.ledger)} == {"sent"}
