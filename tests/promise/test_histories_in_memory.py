"""Every stage after ingest, by its real steps and reads, in the lake in memory. For any history of runs, the
rows that the ledger calls fresh equal those of one run over everything. No Spark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.memory_histories import (
    EventChange,
    HistoryRun,
    Strike,
    event_changes,
    runs,
    seldom,
    strikes,
)
from tests.support.memory_pipeline import CHANGED, OUTSIDE, STREAM, Pipeline, upstream
from transom.engine.run_outcome import Outcome
from transom.features.registry import STAGES

HOURS = 6


@dataclass(frozen=True)
class Turn:
    events: Sequence[EventChange]
    changed: bool
    strict: bool
    run: HistoryRun
    strike: Strike | None


EVENTS = event_changes(HOURS, OUTSIDE)
RUNS = runs(HOURS, [1, 2, 100], [3, 5], alone=seldom)
TURNS = st.builds(Turn, st.lists(EVENTS, max_size=6), st.booleans(), seldom, RUNS, strikes(30, EVENTS | RUNS))


def apply_turn(lake: Pipeline, turn: Turn, stages: Sequence[str]) -> Mapping[str, Outcome] | None:
    """Apply a turn to a lake. Return None if its run did not end."""
    for events in turn.events:
        events.happen(lake)
    lake.specify(CHANGED if turn.changed else STREAM, *((90, 10) if turn.strict else ()))

    def run_stages(run: HistoryRun) -> Mapping[str, Outcome]:
        result: dict[str, Outcome] = {}
        for stage in stages[-1:] if run.alone else stages:
            result |= lake.run(*run.arguments, [stage])
        return result

    def happen(what: EventChange | HistoryRun) -> None:
        if isinstance(what, HistoryRun):
            run_stages(what)
        else:
            what.happen(lake)

    if turn.strike is None:
        return run_stages(turn.run)
    with turn.strike.during(lake, happen):
        run_stages(turn.run)
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
            if turn.run.out_of_reach(node.hour):
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
