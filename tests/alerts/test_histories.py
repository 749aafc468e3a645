"""Random histories: whatever runs, late files, kills and failures, recipients know the same in the end."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.support.alert_lake import EVERYTHING, AlertLake, Killed, Receiver, picture
from tests.support.ledger_factories import HOUR, at
from transom.alerts import store
from transom.alerts.comparison import Recipient
from transom.alerts.store import deliveries
from transom.findings.from_ledger import Finding

HOURS = range(6)
hours = st.sampled_from(HOURS)
land = st.tuples(st.just("land"), hours, st.sampled_from("ab"), st.sampled_from([0, 12, 25]))
run = st.tuples(st.just("run"), hours, st.sampled_from([1, 3, 6]))
disturb = st.tuples(st.sampled_from(["writing", "quarantined"]), hours)
notify = st.tuples(st.just("notify"), st.sampled_from(["", "down", "twin"]), st.booleans())
kill = st.tuples(st.just("kill"), st.integers(1, 6), st.booleans())
Steps = list[tuple[Any, ...]]
FIRST: Steps = [("land", 1, "a", 12), ("land", 4, "a", 12), ("run", 0, 6)]
CHANGED: Steps = [*FIRST, ("notify", "", True), ("land", 1, "a", 0), ("land", 4, "a", 25), ("run", 0, 6)]
LOST: Steps = [
    ("land", 1, "b", 12), ("run", 5, 1), ("run", 3, 1), ("notify", "", False), ("land", 5, "b", 12),
    ("land", 4, "a", 25), ("run", 5, 1), ("writing", 4), ("notify", "down", True),
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
                    lake.sync(absent=partial(covers, at(of[0])))
            case "notify":
                deliver(lake, receiver, f"run {number}", *of)
            case "kill":
                lake.now += HOUR if of[1] else HOUR / 60
                with killed_at(of[0], receiver) as send, suppress(Killed):
                    lake.courier(f"run {number}").deliver(EVERYTHING, send)


def covers(hour: datetime, finding: Finding) -> bool:
    return finding.first_hour is not None and finding.first_hour <= hour <= finding.hour


def deliver(lake: AlertLake, receiver: Receiver, run_id: str, how: str, late: bool) -> None:
    """Deliver once; the receiver may be down, or another run may deliver at the same time."""
    lake.now += HOUR if late else HOUR / 60
    receiver.is_down = how == "down"
    with pytest.MonkeyPatch.context() as patch:
        if how == "twin":
            commit = store.claim

            def claim(*of: Any) -> None:
                patch.setattr(store, "claim", commit)
                lake.courier(f"{run_id} twin").deliver(EVERYTHING, receiver)
                commit(*of)

            patch.setattr(store, "claim", claim)
        lake.courier(run_id).deliver(EVERYTHING, receiver)
    receiver.is_down = False


def check(steps: Steps, is_healthy: bool) -> None:
    """Play a history to its end, and check what the receiver got."""
    with tempfile.TemporaryDirectory() as folder:
        lake, receiver = AlertLake(folder), Receiver()
        play(lake, receiver, steps)
        lake.run(HOURS)
        for number in range(3):
            lake.deliver(receiver, f"end {number}")
        lake.now += HOUR
        assert lake.deliver(receiver, "idle").sent == 0

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
                assert row["state"] != "withdrawn" or "file f" in row["reason"] or "part of" in row["reason"]
                latest[row["finding_id"]] = row
        rows = deliveries(lake.ledger, "recipient = 'ops'")
        assert {row.status for row in rows} <= {"sent"}
        assert len(rows) == sum(row["sequence"] for row in latest.values())


LONG_EXAMPLES = settings(
    max_examples=8,
    phases=[Phase.explicit, Phase.generate],
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
"""The settings of tests whose examples are histories, each of seconds."""


@LONG_EXAMPLES
@given(histories(notify))
@example(AGAIN)
@example(LOST)
def test_healthy_runs_send_each_message_once(steps: Steps) -> None:
    check(steps, is_healthy=True)


@LONG_EXAMPLES
@given(histories(st.one_of(notify, kill, kill)))
@example([*FIRST, ("kill", 2, True)])
@example([*FIRST, ("kill", 4, True), *CHANGED, ("kill", 4, False), *AGAIN, ("kill", 5, True)])
def test_killed_runs_send_each_message_at_least_once(steps: Steps) -> None:
    check(steps, is_healthy=False)
