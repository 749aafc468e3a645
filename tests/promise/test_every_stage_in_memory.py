"""Every stage after ingest, by its real steps and reads, in the lake in memory. For any history of runs, the
rows that the ledger calls fresh equal those of one run over everything. No Spark.

A new stage is covered once `transom.features.registry.FEATURES` has it and `EVERY_FEATURE` has a block for
each of its tables.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.memory_lake import HOUR, Killed, at
from tests.support.memory_pipeline import CHANGED, STREAM, WITHOUT_FRAMES, Pipeline, upstream
from transom.app.definitions import all_definitions
from transom.core.intervals import Interval
from transom.engine import retention
from transom.engine.runner import Outcome
from transom.features.registry import STAGES
from transom.ledger.scope import Scope
from transom.storage.fencing import RunSuperseded

OUTSIDE = ("/outside/history", "/outside/known", "copy")
HOURS = 6
SIDES = ["before", pytest.param("after", marks=pytest.mark.full)]


def initial(lake: Pipeline) -> None:
    """Build the first lake: some hours, one of them incomplete, and rows of an external source."""
    for number in range(3):
        lake.set_events(number, [number, 7], complete=number != 1)
    for name in OUTSIDE:
        lake.outside[name] = {at(number): number for number in range(3)}


def change(lake: Pipeline) -> None:
    """Change that lake: one more hour, late events, other external rows, and another specification whose
    checks quarantine some hours.
    """
    lake.set_events(1, [1, 7, 8])
    lake.set_events(3, [4])
    lake.outside["copy"][at(3)] = lake.outside["/outside/known"][at(0)] = 9
    lake.specify(CHANGED, at_most=90, at_least=10)


def prepared(stage: str, again: bool) -> tuple[Pipeline, tuple[int, int]]:
    """Return a lake before a run of a stage, and the hours of that run."""
    lake = Pipeline()
    initial(lake)
    if again:
        lake.run(0, 3, stages=upstream(stage))
        change(lake)
    hours = (2, 4) if again else (0, 3)
    lake.run(*hours, stages=upstream(stage)[:-1])
    return lake, hours


def test_stream_has_block_for_each_table_of_each_stage() -> None:
    assert STREAM.stages == CHANGED.stages == STAGES
    for stream in (STREAM, CHANGED):
        tables = {
            step.table.name: step.outputs for of in all_definitions(stream).values() for step in of.steps
        }
        assert [name for name, parts in tables.items() if not parts] == []
    fillers = {filler.name for of in all_definitions(STREAM).values() for filler in of.fillers}
    assert fillers == set(OUTSIDE)


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
@pytest.mark.parametrize("stage", STAGES[1:])
def test_run_killed_between_any_two_commits_is_repaired_by_next_run(stage: str, again: bool) -> None:
    never, hours = prepared(stage, again)
    remaining = [never.copied()]

    def copy() -> None:
        existing = remaining[-1]
        # A pin changes nothing.
        if never.ledger.version != existing.ledger.version or never.store.tokens != existing.store.tokens:
            remaining.append(never.copied())

    never.commits.observer = copy
    never.run(*hours, stages=[stage])
    never.assert_ledger_true()
    # Each table has a claim, rows and a result.
    assert len(remaining) > 3
    for number, lake in enumerate(remaining):
        lake.run(*hours, stages=[stage])
        lake.assert_same(never, f"killed after commit {number}:")
        lake.assert_ledger_true()
        lake.assert_settled(hours, [stage])
    # Nothing of the earlier events and specification remains.
    never.run(0, 4, stages=upstream(stage))
    never.assert_same(never.recomputed(upstream(stage)), "after a run over everything:")


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("stage", STAGES[1:])
def test_run_overtaken_at_any_commit_leaves_rows_of_one_of_both_runs(stage: str, side: str) -> None:
    """At each commit and pin of one run, another complete run takes place, over changed events."""
    stages = upstream(stage)
    old, hours = prepared(stage, True)

    def others(lake: Pipeline) -> None:
        lake.set_events(1, [5])
        lake.set_events(3, [4, 4])
        lake.outside["copy"][at(3)] = 4
        lake.run(0, 4, stages=stages)

    new, alone = old.copied(), old.copied()
    others(new)
    alone.run(*hours, stages=[stage])
    points = range(1, alone.commits.count - old.commits.count + 1)
    overtaken = 0
    for point in points:
        lake = old.copied()
        with lake.commits.struck(point, side, lambda lake=lake: others(lake)):
            try:
                lake.run(*hours, stages=[stage])
            except RunSuperseded:
                overtaken += 1
        lake.assert_ledger_true()
        for node, entry in lake.ledger.snapshot().items():
            if node.stage == stage and entry.status == "published":
                assert lake.rows(node) in (alone.rows(node), new.rows(node)), (point, node)
        lake.run(0, 4, stages=stages)
        lake.assert_same(new, f"overtaken {side} commit {point}:")
    # At each point except before its first claim and after its last commit.
    assert overtaken


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
    assert any("another run has let state expire that run run " in texts for texts in text)


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


@dataclass(frozen=True)
class Events:
    """What ingest computes for an hour, or how an external hour changes."""

    hour: int
    values: Sequence[int]
    complete: bool = True
    quarantined: bool = False
    requested: bool = True
    outside: str | None = None

    def happen(self, lake: Pipeline) -> None:
        if self.outside is None:
            lake.set_events(self.hour, self.values, self.complete, self.quarantined, self.requested)
        else:
            lake.outside.setdefault(self.outside, {})[at(self.hour)] = sum(self.values)


@dataclass(frozen=True)
class Run:
    start: int
    hours: int
    repair_window: int
    chunk: int
    retention: int | None
    alone: bool
    """Whether the stage runs without the stages that it reads."""

    def happen(self, lake: Pipeline, stages: Sequence[str]) -> Mapping[str, Outcome]:
        result: dict[str, Outcome] = {}
        for stage in stages[-1:] if self.alone else stages:
            end = self.start + self.hours
            result |= lake.run(self.start, end, self.repair_window, self.chunk, self.retention, [stage])
        return result


@dataclass(frozen=True)
class Strike:
    """An event at one commit of a run: a kill, or something else that happens meanwhile."""

    by: Literal["kill", "others"]
    commit: int
    side: str
    meanwhile: Sequence[Events | Run]


@dataclass(frozen=True)
class Turn:
    events: Sequence[Events]
    changed: bool
    strict: bool
    run: Run
    strike: Strike | None


hours = st.integers(0, HOURS - 1)
mostly = st.sampled_from([True] * 6 + [False])
seldom = mostly.map(lambda fine: not fine)
EVENTS = st.builds(
    Events, hours, st.lists(st.integers(0, 12), max_size=2), mostly, seldom, mostly,
    st.sampled_from([None, None, None, *OUTSIDE]),
)  # fmt: skip
RUNS = st.builds(
    Run, hours, st.integers(1, HOURS), st.integers(0, 3), st.sampled_from([1, 2, 100]),
    st.sampled_from([None, None, 3, 5]), seldom,
)  # fmt: skip
STRIKES = st.none() | st.builds(
    Strike, st.sampled_from(["kill", "others"]), st.integers(1, 30), st.sampled_from(["before", "after"]),
    st.lists(EVENTS | RUNS, max_size=3),
)  # fmt: skip
TURNS = st.builds(Turn, st.lists(EVENTS, max_size=6), st.booleans(), seldom, RUNS, STRIKES)


def apply_turn(lake: Pipeline, turn: Turn, stages: Sequence[str]) -> Mapping[str, Outcome] | None:
    """Apply a turn to a lake. Return None if its run did not end."""
    for events in turn.events:
        events.happen(lake)
    lake.specify(CHANGED if turn.changed else STREAM, *((90, 10) if turn.strict else ()))
    strike = turn.strike
    if strike is None:
        return turn.run.happen(lake, stages)

    def befall() -> None:
        for what in strike.meanwhile:
            if isinstance(what, Run):
                what.happen(lake, stages)
            else:
                what.happen(lake)
        if strike.by == "kill":
            raise Killed

    with suppress(Killed, RunSuperseded), lake.commits.struck(strike.commit, strike.side, befall):
        turn.run.happen(lake, stages)
    return None


def assert_kept(
    lake: Pipeline, turn: Turn, outcomes: Mapping[str, Outcome] | None, stages: Sequence[str]
) -> None:
    """Assert that fresh rows equal those of one run over everything. Other hours are too far from the run,
    which reports them, or wait for quarantined ones.
    """
    truth = lake.recomputed(stages)
    expected, result = truth.state(), lake.state()
    fresh, stale = lake.fresh(), lake.stale()
    lake.assert_ledger_true()
    for node in (node for node in expected if node.stage in stages):
        required, existing = expected[node], result.get(node)
        if node in fresh:
            assert existing is not None
            status = "published" if existing.status == "expired" else existing.status
            values = (status, existing.complete, existing.cause, existing.inputs)
            assert values == (required.status, required.complete, required.cause, required.inputs), node
            if status == "published":
                assert existing.digest == required.digest, node
                assert lake.rows(node) == (truth.rows(node) if existing.status != "expired" else []), node
        elif outcomes is not None and node in stale and not turn.run.alone:
            run = turn.run
            period = Interval(at(run.start), at(run.start + run.hours))
            if Scope.within(period, period, run.repair_window * HOUR).out_of_reach(node.hour):
                assert node in outcomes[node.stage].stale, node
            else:
                assert existing is not None, node
                assert existing.status == "blocked", node


# An example costs a tenth of a second or more, as its lake is compared with another one after each run.
# Shrinking takes minutes, and a long history shows nearly as much.
@settings(max_examples=max(4, settings.default.max_examples // 6), phases=[Phase.generate], database=None)
@pytest.mark.parametrize("stage", STAGES[1:])
@given(turns=st.lists(TURNS, min_size=1, max_size=4), last=st.sampled_from([1, 2, 100]))
def test_any_history_equals_one_run(stage: str, turns: list[Turn], last: int) -> None:
    stages = upstream(stage)
    lake = Pipeline()
    for turn in turns:
        outcomes = apply_turn(lake, turn, stages)
        assert_kept(lake, turn, outcomes, stages)
    lake.specify(STREAM)
    for number in range(HOURS):
        lake.set_events(number, [number])
    lake.run(0, HOURS, 0, last, stages=stages)
    truth = lake.recomputed(stages)
    for node, required in truth.ledger.snapshot().items():
        entry = lake.ledger.snapshot()[node]
        existing = entry.state_before_claim()
        assert (existing.digest, existing.complete, existing.reason, existing.input_hashes) == (
            required.digest, required.complete, required.reason, required.input_hashes
        ), node  # fmt: skip
        assert lake.rows(node) == ([] if entry.status == "expired" else truth.rows(node)), node
