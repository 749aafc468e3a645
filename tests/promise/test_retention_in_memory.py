"""State of every stage is dropped after its retention, and recomputed where it is needed. In the lake in
memory, by real steps and reads. No Spark.
"""

from datetime import datetime, timedelta

import pytest

from tests.support.memory_lake import at
from tests.support.memory_pipeline import CHANGED, STREAM, WITHOUT_FRAMES, Pipeline, upstream
from transom.engine import retention
from transom.features.registry import STAGES
from transom.storage.fencing import RunSuperseded


def run_with_retention(lake: Pipeline, start: int, end: int, stage: str) -> None:
    """Run a stage, which drops state, after the stages that it reads."""
    lake.run(start, end, stages=upstream(stage)[:-1])
    lake.run(start, end, retention=3, stages=[stage])


def expired(lake: Pipeline) -> set[tuple[str, datetime]]:
    """Return table and hour of all dropped state."""
    return {
        (node.table, node.hour) for node, entry in lake.ledger.snapshot().items() if entry.status == "expired"
    }


@pytest.mark.parametrize("stage", STAGES[1:])
def test_state_is_dropped_and_recomputed_for_any_split_into_runs(stage: str) -> None:
    hourly, whole, again = Pipeline(), Pipeline(), Pipeline()
    for lake in (hourly, whole, again):
        for number in range(7):
            lake.set_events(number, [number])
    for number in range(7):
        run_with_retention(hourly, number, number + 1, stage)
    run_with_retention(whole, 0, 7, stage)
    hourly.assert_same(whole, "in runs of an hour:")
    states = {step.table.name for step in whole.doubles[stage].stage.steps if step.table.state}
    assert {(table, hour) for table, hour in expired(whole) if hour < at(3)} == {
        (table, at(hour)) for table in states for hour in range(3)
    }
    for lake in (hourly, again):
        lake.set_events(1, [1, 9])
    for number in (1, 3, 5):
        run_with_retention(hourly, number, number + 2, stage)
    run_with_retention(again, 0, 7, stage)
    hourly.assert_same(again, "after late events:")
    other = Pipeline(CHANGED)
    other.take_events(again)
    again.specify(CHANGED)
    for lake in (again, other):
        run_with_retention(lake, 0, 7, stage)
    again.assert_same(other, "under another specification:")
    again.assert_ledger_true()


@pytest.mark.parametrize("stage", STAGES[1:])
def test_state_half_dropped_by_killed_run_is_dropped_by_next_run(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "DEAD_CLAIM_AFTER", timedelta(0))
    never = Pipeline()
    for number in range(6):
        never.set_events(number, [number])
    never.run(0, 6, stages=upstream(stage))
    remaining = [never.copied()]
    never.commits.observer = lambda: remaining.append(never.copied())
    never.run(5, 6, retention=2, stages=[stage])
    for number, lake in enumerate(remaining):
        lake.run(5, 6, retention=2, stages=[stage])
        lake.assert_same(never, f"killed after commit or pin {number}:")
        lake.assert_ledger_true()


def test_state_dropped_by_concurrent_run_does_not_count_as_empty() -> None:
    """A late event makes a run need state of the past, which a concurrent run of the present drops again.
    Windows reach back over state in one stage alone: state of the other stages is read in its own hour only.
    """
    dropped = Pipeline()
    for number in range(6):
        dropped.set_events(number, [number])
    run_with_retention(dropped, 0, 6, "aggregates")
    dropped.set_events(1, [1, 9])
    whole = dropped.recomputed(["aggregates"])
    text = []
    # The commits and pins from the plan of the second table, which recomputes state, to its own rows.
    for point in range(7, 19):
        lake = dropped.copied()

        def others(lake: Pipeline = lake) -> None:
            lake.run(5, 6, repair_window=0, retention=3, stages=["aggregates"])

        with lake.commits.struck(point, "before", others):
            try:
                lake.run(1, 2, stages=["aggregates"])
            except RunSuperseded as overtaken:
                text.append(str(overtaken))
        lake.assert_ledger_true()
        lake.run(0, 6, stages=["aggregates"])
        removed = expired(lake)
        for node, required in whole.state().items():
            assert lake.state()[node].digest == required.digest, (point, node)
            assert lake.rows(node) == whole.rows(node) or (node.table, node.hour) in removed, (point, node)
    assert any("another run expired state that run run " in texts for texts in text)


@pytest.mark.parametrize("stage", ["frames", "fills"])
def test_state_read_by_other_stages_expires_after_they_ran(stage: str) -> None:
    """In one run of 12 hours, granules would otherwise expire before the stages that read them run."""
    stored, dropped = Pipeline(), Pipeline()
    for lake, retained in ((stored, None), (dropped, 8)):
        for number in range(12):
            lake.set_events(number, [number])
        lake.run(0, 12, retention=retained, stages=upstream(stage))
    for node, row in stored.state().items():
        if node.table == f"{stage}s":
            assert dropped.state()[node].digest == row.digest, node


def test_state_expired_before_others_read_it_is_recomputed_or_blocks() -> None:
    """The frames are new, over a block whose old granules have expired."""
    lake = Pipeline(WITHOUT_FRAMES)
    for number in range(12):
        lake.set_events(number, [number])
    lake.run(0, 12, retention=4, stages=["aggregates"])
    lake.specify(STREAM)
    lake.run(6, 12, repair_window=0, retention=4)
    causes = {
        node: entry.reason for node, entry in lake.ledger.snapshot().items() if entry.status == "blocked"
    }
    assert {node.stage for node in causes} == {"frames", "fills"}
    assert any(" has expired: run aggregates over that hour again" in str(cause) for cause in causes.values())
    lake.run(0, 12, retention=4)
    stored = lake.recomputed()
    for node, row in stored.state().items():
        assert lake.state()[node].digest == row.digest, node
        if node.table in ("frames", "fills"):
            assert lake.rows(node) == stored.rows(node), node
