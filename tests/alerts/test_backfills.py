"""Findings of old hours: one summary of a run, and of a backfill of many runs."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.support.alert_lake import EVERYTHING, AlertLake, Killed, Receiver
from tests.support.ledger_factories import at
from transom.alerts import store
from transom.alerts.comparison import THE_PAGE


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


def backfilled(lake: AlertLake, receiver: Receiver, hours: Iterable[int], **of: Any) -> None:
    """Land a late file in each of some old hours, run the hour and deliver; other runs follow."""
    for hour in hours:
        lake.landing |= {f"late{hour}": (hour, 12), f"quiet{hour}": (hour + 1, 0)}
        lake.run([hour, hour + 1])
        lake.deliver(receiver, f"backfill {hour}", is_last=False, **of)


def test_old_findings_of_a_backfill_of_many_runs_are_one_summary_of_the_last(lake: AlertLake) -> None:
    receiver, page = Receiver(), lake.courier("page", is_last=False)
    lake.landing |= {"recent": (100, 12), "last": (101, 0)}
    lake.run([100, 101])
    lake.deliver(receiver, "before")
    receiver.messages.clear()
    backfilled(lake, receiver, range(10, 18, 2))
    # One that a later run of the backfill invalidates is not sent at all.
    backfilled(lake, receiver, [20])
    lake.landing["late20"] = (20, 0)
    lake.run([20])
    # What is recent does not wait.
    lake.landing |= {"next": (103, 12), "end": (104, 0)}
    lake.run([103, 104])
    lake.deliver(receiver, "hourly", is_last=False)
    assert page.deliver(THE_PAGE).sent == len(lake.findings()) == 7
    assert [message["state"] for message in receiver.messages] == ["raised"]
    for run in ("last", "after"):
        lake.deliver(receiver, run)
    summary = receiver.messages[-1]
    assert (len(receiver.messages), summary["state"], summary["number"]) == (2, "summary", 4)
    # Its findings are withdrawn in one summary, too.
    lake.landing |= {f"late{hour}": (hour, 0) for hour in range(10, 18, 2)}
    for hour in range(10, 18, 2):
        lake.run([hour])
        lake.deliver(receiver, f"again {hour}", is_last=hour == 16)
    summary = receiver.messages[-1]
    assert (len(receiver.messages), summary["state"], summary["number"]) == (3, "summary", 4)
    assert {row["state"] for row in summary["findings"]} == {"withdrawn"}


def test_summary_of_a_backfill_whose_last_run_was_killed_has_the_same_key(lake: AlertLake) -> None:
    receiver = Receiver()
    lake.landing["last"] = (100, 0)
    lake.run([100])
    backfilled(lake, receiver, [10, 12])
    receiver.kill_after = 1
    with pytest.raises(Killed):
        lake.deliver(receiver, "last")
    lake.deliver(receiver, "next")
    first, second = receiver.messages
    assert first == second
    assert first["number"] == 3


def test_old_findings_that_wait_leave_room_for_recent_ones(
    lake: AlertLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_ROWS", 1)
    receiver = Receiver()
    lake.landing |= {"recent": (100, 12), "last": (101, 0)}
    lake.run([100, 101])
    backfilled(lake, receiver, range(10, 18, 2))
    assert [message["findings"][0]["start_time"] for message in receiver.messages] == [at(100).isoformat()]
