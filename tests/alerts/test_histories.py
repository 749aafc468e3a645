"""Random histories: whatever runs, late files, kills and failures, recipients know the same in the end."""

import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.support.alert_lake import AlertLake, Killed, Receiver, picture
from tests.support.ledger_factories import HOUR, at
from transom.alerts import store
from transom.alerts.comparison import Recipient
from transom.alerts.deliver import LEASE
from transom.alerts.store import deliveries
from transom.findings.store import to_arrow

HOURS = range(6)
OPS = Recipient("ops", summary_after=2 * HOUR, at_most=20)
"""A recipient to which the first of these hours are soon old."""
hours = st.sampled_from(HOURS)
land = st.tuples(st.just("land"), hours, st.sampled_from("ab"), st.sampled_from([0, 12, 25]))
run = st.tuples(st.just("run"), hours, st.sampled_from([1, 3, 6]))
disturb = st.tuples(st.sampled_from(["writing", "quarantined"]), hours)
notify = st.tuples(st.just("notify"), st.sampled_from(["", "down", "twin"]), st.booleans())
kill = st.tuples(st.just("kill"), st.integers(1, 6), st.booleans())
backfill = st.tuples(st.just("backfill"), st.integers(0, 3), st.integers(1, 3), st.booleans())
Steps = list[tuple[Any, ...]]
FIRST: Steps = [("land", 1, "a", 12), ("land", 4, "a", 12), ("run", 0, 6)]
CHANGED: Steps = [*FIRST, ("notify", "", True), ("land", 1, "a", 0), ("land", 4, "a", 25), ("run", 0, 6)]
LOST: Steps = [
    ("land", 1, "b", 12), ("run", 5, 1), ("run", 3, 1), ("notify", "", False), ("land", 5, "b", 12),
    ("land", 4, "a", 25), ("run", 5, 1), ("writing", 4), ("notify", "down", True),
]  # fmt: skip
BACKFILLED: Steps = [
    ("run", 5, 1), ("land", 0, "a", 12), ("land", 1, "a", 0), ("land", 2, "a", 25), ("backfill", 0, 3, True),
    ("land", 2, "a", 0), ("backfill", 1, 3, False), ("land", 0, "b", 25), ("notify", "down", True),
]  # fmt: skip
GROWN: Steps = [
    ("land", 4, "b", 12), ("land", 2, "a", 25), ("run", 2, 6), ("notify", "down", False),
    ("land", 5, "a", 25), ("run", 2, 6), ("quarantined", 5), ("notify", "down", False),
]  # fmt: skip
AGAIN: Steps = [*CHANGED, ("notify", "", True), ("land", 1, "a", 12)]


def histories(deliver: st.SearchStrategy[tuple[Any, ...]]) -> st.SearchStrategy[Steps]:
    """Return rounds of late files, runs, perhaps a disturbance, and a delivery."""
    round_ = st.tuples(land, land, run, st.one_of(run, run, disturb), deliver)
    return st.lists(round_, min_size=1, max_size=4).map(lambda rounds: [step for of in rounds for step in of])


@contextmanager
def killed_at(point: int, receiver: Receiver) -> Iterator[Callable[[Any], None]]:
    """Within the context, a process ends at one of the points before and after each step of a delivery."""
    passed = 0

    def step(function: Callable[..., None]) -> Callable[..., None]:
        def stepped(*of: Any) -> None:
            tick()
            function(*of)
            tick()

        return stepped

    def tick() -> None:
        nonlocal passed
        passed += 1
        if passed == point:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "claim", step(store.claim))
        patch.setattr(store, "record", step(store.record))
        yield step(receiver)


def play(lake: AlertLake, receiver: Receiver, steps: Steps) -> None:
    """Play a history; each delivery is an hour after the last one, or a minute."""
    for number, (what, *of) in enumerate(steps):
        match what:
            case "land":
                lake.landing[f"f{of[0]}{of[1]}"] = (of[0], of[2])
            case "run":
                lake.run(hour for hour in range(of[0], of[0] + of[1]) if hour in HOURS)
            case "writing" | "quarantined":
                lake.set_states([of[0]], what)
                if what == "quarantined":
                    withhold(lake, at(of[0]))
            case "notify":
                deliver(lake, receiver, f"run {number}", *of)
            case "backfill":
                backfill_hours(lake, receiver, f"run {number}", *of)
            case "kill":
                lake.now += HOUR if of[1] else HOUR / 60
                with killed_at(of[0], receiver) as send, suppress(Killed):
                    lake.courier(f"run {number}").deliver(OPS, send)


def backfill_hours(
    lake: AlertLake, receiver: Receiver, run_id: str, start: int, number: int, is_finished: bool
) -> None:
    """Run some hours one by one, and deliver after each. Findings of old hours are a summary of the last
    run, if the backfill is finished."""
    unsent = {row.message for row in deliveries(lake.ledger) if row.status != "sent"}
    known = len(receiver.messages)
    for hour in range(start, start + number):
        lake.run([hour])
        lake.now += HOUR
        lake.courier(f"{run_id} {hour}", is_last=False).deliver(OPS, receiver)
    new = [message for message in receiver.messages[known:] if message["message"] not in unsent]
    assert all(message["state"] != "summary" for message in new)
    if is_finished:
        known = len(receiver.messages)
        deliver(lake, receiver, f"{run_id} {start + number}", "", late=True)
        new = [message for message in receiver.messages[known:] if message["message"] not in unsent]
        assert sum(message["state"] == "summary" for message in new) <= 1


def withhold(lake: AlertLake, hour: datetime) -> None:
    """Write the findings without the rows of an hour: what began before it goes on up to it."""
    present = []
    for finding in lake.findings():
        if not (finding.first_hour and finding.first_hour <= hour <= finding.hour):
            present.append(finding)
        elif finding.first_hour < hour:
            present.append(replace(finding, hour=hour - HOUR, end_time=hour, ongoing=True))
    write_deltalake(lake.ledger.open("findings"), to_arrow(present), mode="overwrite")


def deliver(lake: AlertLake, receiver: Receiver, run_id: str, how: str, late: bool) -> None:
    """Deliver once; the receiver may be down, or another run may deliver at the same time."""
    lake.now += HOUR if late else HOUR / 60
    receiver.is_down = how == "down"
    with pytest.MonkeyPatch.context() as patch:
        if how == "twin":
            commit = store.claim

            def claim(*of: Any) -> None:
                patch.setattr(store, "claim", commit)
                lake.courier(f"{run_id} twin").deliver(OPS, receiver)
                commit(*of)

            patch.setattr(store, "claim", claim)
        lake.courier(run_id).deliver(OPS, receiver)
    receiver.is_down = False


def check(steps: Steps, is_healthy: bool) -> None:
    """Play a history to its end, and check what the receiver got."""
    with tempfile.TemporaryDirectory() as folder:
        lake, receiver = AlertLake(folder), Receiver()
        play(lake, receiver, steps)
        lake.run(HOURS)
        for number in range(3):
            lake.deliver(receiver, f"end {number}", OPS)
        lake.now += HOUR
        assert lake.deliver(receiver, "idle", OPS).sent == 0

        # It knows what somebody knows who gets the messages of one final run.
        final = Receiver()
        lake.deliver(final, "final", Recipient("final"))
        assert picture(receiver.messages) == picture(final.messages)
        assert {message["state"] for message in final.messages} <= {"raised"}

        # Each row arrived, in order, with a valid state.
        keys = [message["message"] for message in receiver.messages]
        if is_healthy:
            assert len(set(keys)) == len(keys)
        latest: dict[str, Any] = {}
        seen = set()
        for message in receiver.messages:
            if message["message"] in seen:
                continue
            seen.add(message["message"])
            for row in message["findings"]:
                before = latest.get(row["finding_id"])
                assert row["sequence"] == (before["sequence"] + 1 if before else 1)
                is_new = before is None or before["state"] == "withdrawn"
                assert (row["state"] == "raised") == is_new
                # Only files change in these histories.
                names_file = re.search("(file|content of) f", row["reason"] or "")
                assert row["state"] != "withdrawn" or names_file or "part of" in row["reason"]
                latest[row["finding_id"]] = row
        rows = deliveries(lake.ledger, "recipient = 'ops'")
        assert {row.status for row in rows} <= {"sent"}
        assert len(rows) == sum(row["sequence"] for row in latest.values())


LONG_EXAMPLES = settings(
    max_examples=max(4, settings.default.max_examples // 3),
    phases=[Phase.explicit, Phase.generate],
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
"""The settings of tests whose examples are histories, each of seconds."""


@LONG_EXAMPLES
@given(histories(st.one_of(notify, backfill)))
@example(AGAIN)
@example(BACKFILLED)
@example(GROWN)
@example(LOST)
def test_healthy_runs_send_each_message_once(steps: Steps) -> None:
    """Slow (20 seconds): each history is a dozen deliveries, with real tables."""
    check(steps, is_healthy=True)


@pytest.mark.full
@LONG_EXAMPLES
@given(histories(st.one_of(notify, backfill, kill, kill)))
@example([*FIRST, ("kill", 2, True)])
@example([*FIRST, ("kill", 4, True), *CHANGED, ("kill", 4, False), *AGAIN, ("kill", 5, True)])
def test_killed_runs_send_each_message_at_least_once(steps: Steps) -> None:
    """Slow (20 seconds): as above."""
    check(steps, is_healthy=False)


@pytest.mark.parametrize("point", range(1, 7))
def test_interval_run_three_times_and_killed_once_is_one_alert(tmp_path: Path, point: int) -> None:
    """The kill is before or after the claim, the message, or its record."""
    lake, receiver = AlertLake(str(tmp_path)), Receiver()
    play(lake, receiver, [*FIRST[:1], ("run", 0, 6), ("kill", point, True)])
    for run_id in ("two", "three"):
        lake.run(HOURS)
        lake.deliver(receiver, run_id, OPS)
    messages = {message["message"]: message for message in receiver.messages}
    assert [(message["state"], message["number"]) for message in messages.values()] == [("summary", 1)]
    # The one that may arrive twice was sent, and not recorded.
    assert len(receiver.messages) == (2 if point in (4, 5) else 1)


KILLED = """
import json, os, signal, sys
from tests.support.alert_lake import EVERYTHING, alert_stream
from transom.alerts.deliver import Courier
from transom.ledger.ledger import Ledger

def send(message):
    print(json.dumps(message), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

Courier(Ledger(sys.argv[1]), alert_stream(), "one").deliver(EVERYTHING, send)
"""


def test_message_of_a_process_that_is_killed_is_sent_again_with_the_same_key(lake: AlertLake) -> None:
    command = [sys.executable, "-c", KILLED, lake.root]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == -signal.SIGKILL, process.stderr
    receiver = Receiver()
    # It was killed later than the lake's own clock.
    lake.now = datetime.now(UTC) + 2 * LEASE
    lake.deliver(receiver, "two")
    lake.deliver(receiver, "three")
    assert receiver.messages == [json.loads(process.stdout)]
