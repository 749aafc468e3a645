"""Silences: what they hold back, what passes them, and what is sent when they end."""

from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from tests.support.alert_lake import EVERYTHING, START, AlertLake, Receiver, alert_stream
from tests.support.ledger_factories import at
from transom.alerts import store
from transom.alerts.comparison import THE_PAGE, Recipient
from transom.alerts.silences import count_silenced, silent_sql
from transom.alerts.store import deliveries
from transom.core.intervals import Interval
from transom.spec.notify import SilenceSpec

SILENCE = {"key": "10.0.0.1", "who": "ann", "why": "a scan", "until": "2026-11-28"}


@pytest.fixture
def silent(tmp_path: Path) -> AlertLake:
    """Return a lake whose findings are silenced until the next day."""
    return AlertLake(str(tmp_path / "silent"), silence=[SILENCE])


def test_silenced_finding_that_has_ended_is_recorded_and_never_sent(silent: AlertLake) -> None:
    lake = silent
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


@pytest.mark.parametrize("removed", [True, False])
def test_finding_that_goes_on_after_a_silence_is_raised_once(silent: AlertLake, removed: bool) -> None:
    """The silence has ended, or is no longer in the stream file."""
    lake, receiver = silent, Receiver()
    lake.landing = {"b": (1, 12), "c": (2, 12)}
    lake.run(range(3))
    for run in ("one", "two"):
        lake.deliver(receiver, run)
    if removed:
        lake.stream = alert_stream()
    else:
        lake.now = START + timedelta(days=1)
    for run in ("three", "four"):
        lake.deliver(receiver, run)
        lake.courier(run).deliver(THE_PAGE)
    (message,) = receiver.messages
    assert (message["state"], message["findings"][0]["ongoing"]) == ("raised", True)
    rows = sorted(deliveries(lake.ledger, "recipient = 'ops'"), key=lambda row: row.sequence)
    assert [(row.state, row.status, row.muted) for row in rows] == [
        ("raised", "silenced", True),
        ("raised", "sent", False),
    ]
    # From then on, it is a finding like others.
    lake.landing["d"] = (3, 0)
    lake.run([3])
    lake.deliver(receiver, "five")
    assert [message["state"] for message in receiver.messages] == ["raised", "ended"]


def test_findings_that_stay_silenced_leave_room_for_others(silent: AlertLake) -> None:
    """They are no differences, of which a commit has a limited number."""
    lake = silent
    lake.landing = {"b": (1, 12)}
    lake.run(range(2))
    lake.deliver(Receiver(), "one")
    tables = (lake.ledger.open(name) for name in (store.NAME, "findings"))
    compare = partial(store.differences, *tables, EVERYTHING)
    assert compare(silent_sql(lake.stream.silence, lake.now, "l")).present == []
    assert compare(silent_sql(lake.stream.silence, lake.now + timedelta(days=1), "l")).present != []


def test_recipient_is_not_raised_a_finding_that_it_does_not_take_after_a_silence(silent: AlertLake) -> None:
    lake, receiver, high = silent, Receiver(), Recipient("ops", frozenset(["high"]))
    lake.landing = {"b": (1, 30)}
    lake.run(range(2))
    lake.deliver(receiver, "one", high)
    lake.landing["b"] = (1, 12)
    lake.run(range(2))
    lake.now = START + timedelta(days=1)
    for run in ("two", "three"):
        lake.deliver(receiver, run, high)
    assert receiver.messages == []


def test_change_that_a_silence_held_back_is_sent_once_if_the_finding_goes_on(lake: AlertLake) -> None:
    receiver = Receiver()
    lake.landing = {"b": (1, 12)}
    lake.run(range(4))
    lake.deliver(receiver, "one")
    lake.stream = alert_stream(silence=[SILENCE])
    lake.landing["b"] = (1, 30)
    lake.run([1])
    lake.deliver(receiver, "two")
    lake.now = START + timedelta(days=1)
    for run in ("three", "four"):
        lake.deliver(receiver, run)
    assert [(message["state"], message["severity"]) for message in receiver.messages] == [
        ("raised", "low"), ("updated", "high"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"key": "10.0.0.1"}, 2),
        ({"kind": "episode", "block": "busy"}, 2),
        ({"key": "10.0.0.1", "kind": "alert"}, 0),
        ({"key": "it's"}, 0),
        ({"block": "busy", "until": "2026-11-27"}, 0),
    ],
)
def test_silenced_findings_of_an_interval_are_counted(
    lake: AlertLake, fields: dict[str, str], expected: int
) -> None:
    lake.landing |= {"x": (10, 12), "y": (11, 0), "z": (20, 12)}
    lake.run([10, 11, 20])
    silence = SilenceSpec.model_validate({"who": "ann", "why": "a scan", "until": "2026-12-28", **fields})
    assert count_silenced(lake.root, [silence], START, Interval(at(0), at(12))) == expected
