"""Every stage after ingest, by its real steps and reads, in the lake in memory. A run that is killed or
overtaken between any two commits leaves nothing that the next run does not repair. No Spark.

A new stage is covered once `transom.features.registry.FEATURES` has it and `EVERY_FEATURE` has a block for
each of its tables.
"""

import pytest

from tests.support.memory_lake import at
from tests.support.memory_pipeline import CHANGED, OUTSIDE, STREAM, Pipeline, initial, upstream
from transom.app.definitions import all_definitions
from transom.features.registry import STAGES
from transom.storage.fencing import RunSuperseded

SIDES = ["before", pytest.param("after", marks=pytest.mark.full)]


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
