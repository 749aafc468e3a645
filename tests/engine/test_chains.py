"""Tables that read their own earlier hours, and tables that retain rows of their own. For any history of
runs, the rows that the ledger calls fresh equal those of one run over everything. No Spark.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.memory_histories import EventChange, HistoryRun, Strike, event_changes, runs, strikes
from tests.support.memory_lake import HOUR, Killed, at, digest
from tests.support.toy_lake import BACK, Lake, Toy
from transom.core.partitions import PartitionKey
from transom.engine.run_outcome import Outcome
from transom.ledger.freshness import Freshness
from transom.ledger.stale_reason import StaleReason
from transom.storage.fencing import RunSuperseded

HOURS = 14


@dataclass(frozen=True)
class Turn:
    events: Sequence[EventChange]
    shape: int
    run: HistoryRun
    strike: Strike | None


EVENTS = event_changes(HOURS)
RUNS = runs(HOURS, [1, 2, 5, 100], [4, 7])
TURNS = st.builds(
    Turn, st.lists(EVENTS, max_size=8), st.sampled_from([0] * 8 + [1]), RUNS, strikes(24, EVENTS | RUNS)
)


def apply_turn(lake: Lake, turn: Turn) -> Outcome | None:
    """Apply a turn to a lake. Return None if the run did not end."""
    for events in turn.events:
        events.happen(lake)
    lake.toy = Toy(turn.shape)

    def happen(what: EventChange | HistoryRun) -> None:
        if isinstance(what, HistoryRun):
            lake.run(*what.arguments)
        else:
            what.happen(lake)

    if turn.strike is not None:
        with turn.strike.during(lake, happen):
            lake.run(*turn.run.arguments)
        return None
    outcome = lake.run(*turn.run.arguments)
    if turn.run.chunk >= turn.run.hours:
        assert len(lake.toy.computed) == len(set(lake.toy.computed)), "computed twice"
    return outcome


def assert_kept(lake: Lake, run: HistoryRun | None = None, outcome: Outcome | None = None) -> None:
    """Assert that fresh hours equal those of one run over everything. Other hours are too far from the run
    and are reported, or wait for quarantined ones.
    """
    truth = lake.recomputed()
    snapshot, true = lake.ledger.snapshot(), truth.ledger.snapshot()
    freshness = Freshness(snapshot, [lake.toy.stage()], ())
    assert all(node.hour in snapshot.required_hours for node in snapshot if node.stage == "toy")
    for node, entry in snapshot.items():
        if entry.status not in ("writing", "expired"):
            # A quarantined hour still has its old rows.
            assert entry.digest == digest(lake.rows(node)), node
    for node in (node for node in true if node.stage == "toy"):
        expected, entry = true[node], snapshot.get(node)
        if entry is not None and node.hour not in freshness.outdated_hours(*node.series):
            status = "published" if entry.status == "expired" else entry.status
            result = (status, entry.complete, entry.reason, entry.input_hashes)
            required = (expected.status, expected.complete, expected.reason, expected.input_hashes)
            assert result == required, node
            if status == "published":
                assert entry.digest == expected.digest, node
                assert lake.rows(node) == (truth.rows(node) if entry.status != "expired" else []), node
        elif run is not None and outcome is not None:
            if run.out_of_reach(node.hour):
                assert node in outcome.stale, node
            else:
                assert entry is not None, node
                assert (entry.status, entry.reason) == (expected.status, expected.reason), node
                assert entry.status == "blocked", node


def assert_settled(lake: Lake, run: HistoryRun) -> None:
    """Assert that a second run has nothing to do."""
    version, finished = lake.ledger.version, len(lake.toy.computed)
    lake.run(*run.arguments)
    assert (lake.ledger.version, lake.toy.computed[finished:]) == (version, [])


# Half as many examples as elsewhere, as one costs a sixth of a second, and histories of real steps are drawn
# in `tests.promise.test_histories_in_memory`. Shrinking takes minutes, and a long history shows nearly as
# much.
@settings(max_examples=settings.default.max_examples // 2, phases=[Phase.generate])
@given(st.lists(TURNS, min_size=1, max_size=6), RUNS)
def test_any_history_of_runs_equals_one_run(turns: list[Turn], last: HistoryRun) -> None:
    lake = Lake(Toy())
    for turn in turns:
        outcome = apply_turn(lake, turn)
        assert_kept(lake, turn.run, outcome)
        if outcome is not None and turn.run.retention is None:
            assert_settled(lake, turn.run)
    lake.toy = Toy(most=1000)
    for number in range(HOURS):
        lake.set_events(number, [number])
    lake.run(0, HOURS, 0, last.chunk)
    truth = lake.recomputed()
    expired = {node for node, entry in lake.ledger.snapshot().items() if entry.status == "expired"}
    for node, entry in truth.ledger.snapshot().items():
        held = lake.ledger.snapshot()[node].state_before_claim()
        assert (held.digest, held.complete, held.reason, held.input_hashes) == (
            entry.digest, entry.complete, entry.reason, entry.input_hashes
        )  # fmt: skip
        assert lake.rows(node) == ([] if node in expired else truth.rows(node))


def of(number: int, table: str = "chain", block: str = "one") -> PartitionKey:
    return PartitionKey("toy", block, table, at(number))


def day(values: Sequence[int], toy: Toy | None = None) -> Lake:
    """Return a lake of some hours, each with one value."""
    lake = Lake(toy or Toy())
    for number, value in enumerate(values):
        lake.set_events(number, [value])
    return lake


def causes(lake: Lake, block: str = "one") -> list[str | None]:
    """Return the cause of each hour of a chain; None for an hour that is published without one."""
    result = lake.ledger.snapshot().series("toy", block, "chain")
    return [result[hour].reason for hour in sorted(result)]


def computed_hours(lake: Lake, block: str = "one") -> list[int]:
    """Return the computed hours of a chain, in order."""
    return [(h - at(0)) // HOUR for table, of, h in lake.toy.computed if (table, of) == ("chain", block)]


def test_chain_is_incomplete_only_in_hours_that_reach_the_gap() -> None:
    """The sums of hours 0 to 3 lack the events of hour 0. The chain reads the sums of one hour before, and
    two hours of its own.
    """
    lake = day([9] * 9)
    lake.set_events(0, [9], complete=False)
    lake.run(0, 9)
    others = [
        "1 incomplete hours, first 2015-05-17T00:00",
        "2 incomplete hours, first 2015-05-17T00:00; 1 earlier incomplete hours, first 2015-05-17T00:00",
        "2 incomplete hours, first 2015-05-17T01:00; 2 earlier incomplete hours, first 2015-05-17T00:00",
        "2 incomplete hours, first 2015-05-17T02:00; 2 earlier incomplete hours, first 2015-05-17T01:00",
        "1 incomplete hours, first 2015-05-17T03:00; 2 earlier incomplete hours, first 2015-05-17T02:00",
    ]
    own = [
        "2 earlier incomplete hours, first 2015-05-17T03:00",
        "1 earlier incomplete hours, first 2015-05-17T04:00",
    ]
    assert causes(lake) == [*others, *own, None, None]
    snapshot = lake.ledger.snapshot()
    assert [snapshot[of(n)].complete for n in range(9)] == [False] * 7 + [True] * 2
    assert [snapshot[of(n)].has_own_gap for n in range(9)] == [True] * 5 + [False] * 4


def test_hour_incomplete_itself_has_other_dependents_than_hour_after_one() -> None:
    """Hour 5 is incomplete before and after, with the same rows. Hour 7 depends only on the second state."""
    lake = day([9] * 9)
    lake.set_events(0, [9], complete=False)
    lake.run(0, 9)
    lake.set_events(0, [9])
    lake.set_events(1, [9], complete=False)
    # Hour 7 is after this run, and is out of date now.
    lake.run(0, 7, repair_window=0)
    assert_kept(lake)
    lake.run(0, 9)
    assert causes(lake)[5:] == [
        "1 incomplete hours, first 2015-05-17T04:00; 2 earlier incomplete hours, first 2015-05-17T03:00",
        "2 earlier incomplete hours, first 2015-05-17T04:00",
        "1 earlier incomplete hours, first 2015-05-17T05:00",
        None,
    ]
    assert_kept(lake)


def test_incomplete_hour_that_is_quarantined_blocks_later_hours() -> None:
    lake = day([9] * 3)
    lake.set_events(0, [9], complete=False)
    lake.run(0, 3)
    lake.set_events(0, [9], quarantined=True)
    lake.run(0, 3)
    assert causes(lake) == ["ingest events 2015-05-17T00:00 is quarantined: bad"] * 3


def test_hour_quarantined_in_a_pass_blocks_later_hours_and_published_rows_stay() -> None:
    lake = day([9, 9, 9, 9, 9])
    lake.run(0, 5)
    previous = [lake.rows(of(n)) for n in range(5)]
    lake.set_events(1, [99])
    lake.run(0, 5)
    # 99 and a third of 9, and half of 9 of the hour before, rounded down.
    cause = "many: observed 106, expected at most 30"
    # A later hour reads hour 1, or an hour that hour 1 blocks.
    blocked = [f"toy one 2015-05-17T01:00 is quarantined: {cause}"] * 3
    assert causes(lake) == [None, cause, *blocked]
    assert [lake.rows(of(n)) for n in range(5)] == previous
    evaluated = {
        v.partition
        for run, v in lake.ledger.verdicts
        if run.startswith("run 2") and v.partition.block == "one"
    }
    assert evaluated == {of(1)}
    assert_settled(lake, HistoryRun(0, 5, 0, 100, None))
    # Single hours give the same result.
    hourly = day([9, 99, 9, 9, 9])
    for number in range(5):
        hourly.run(number, number + 1, repair_window=0)
    assert causes(hourly) == causes(lake)
    lake.set_events(1, [9])
    lake.run(4, 5, repair_window=0)
    assert (causes(lake), [lake.rows(of(n)) for n in range(5)]) == ([None] * 5, previous)


def test_change_is_followed_until_a_result_stays_the_same() -> None:
    lake = day([9] * 12, Toy(views=0))
    lake.run(0, 12)
    lake.set_events(1, [9, 1])
    lake.toy.computed.clear()
    outcome = lake.run(1, 2, repair_window=4)
    # The sums of hours 1 to 4 differ. The chain is computed from hour 5 on, with the same result.
    assert computed_hours(lake) == [1, 2, 3, 4, 5]
    assert outcome.stale == {}
    assert_kept(lake, HistoryRun(1, 1, 4, 100, None), outcome)


def test_stale_earlier_hours_are_computed_first_at_any_distance() -> None:
    lake = day([9] * 9)
    lake.run(0, 9)
    lake.toy = Toy(shape=1, views=0)
    lake.set_events(9, [9])
    outcome = lake.run(9, 10, repair_window=0)
    assert computed_hours(lake) == list(range(10))
    assert {node.table for node in outcome.stale} == {"views"}
    # Hours that are not required are not waited for.
    lake = day([], Toy(views=0))
    for number in (0, 1, 2, 6, 7):
        lake.set_events(number, [9])
    lake.run(7, 8, repair_window=0)
    assert computed_hours(lake) == [6, 7]
    assert computed_hours(lake, "two") == [6, 7]


def test_hours_after_the_run_wait_for_its_last_chunk() -> None:
    lake = day([9] * 8)
    lake.run(0, 8)
    lake.toy = Toy(shape=1)
    lake.run(0, 6, repair_window=6, chunk=2)
    passes = [hours for table, block, hours in lake.toy.passes if (table, block) == ("chain", "one")]
    assert passes == [[at(0), at(1)], [at(2), at(3)], [at(4), at(5), at(6), at(7)]]


def test_hour_is_out_of_date_with_the_last_hour_that_it_reads() -> None:
    lake = day([], Toy(views=0))
    for number in (0, 2, 5):
        lake.set_events(number, [9])
    lake.run(0, 6)
    # Hour 2 depends on hour 0, which a killed run left as being written. Hour 5 depends on neither.
    lake.ledger.claim("toy", [of(0)], "killed")
    result = Freshness(lake.ledger.snapshot(), [lake.toy.stage()], ())
    assert [result.why_not(of(n)) for n in (0, 2, 5)] == [
        (StaleReason("writing"),), (StaleReason("state_stale", (of(0),)),), (),
    ]  # fmt: skip
    assert [result.state_to_compute(of(n)) for n in (0, 2, 5)] == [[], [], []]
    lake.toy.computed.clear()
    lake.run(5, 6, repair_window=0)
    assert computed_hours(lake) == []
    lake.run(2, 3, repair_window=0)
    assert computed_hours(lake) == [0, 2]


@pytest.mark.parametrize("commit", range(1, 20))
def test_rows_replaced_by_a_killed_run_are_restored_in_a_blocked_hour(commit: int) -> None:
    lake = day([9] * 5)
    lake.run(0, 5)

    def kill() -> None:
        raise Killed

    lake.set_events(2, [10])
    with suppress(Killed), lake.commits.struck(commit, "after", kill):
        lake.run(2, 3, repair_window=0)
    lake.set_events(1, [99])
    lake.run(0, 5)
    snapshot = lake.ledger.snapshot()
    assert [snapshot[of(n)].status for n in range(5)] == ["published", "quarantined", *["blocked"] * 3]
    # The ledger describes the published rows.
    assert_kept(lake)


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("point", range(1, 12))
def test_change_during_planning_is_noticed(point: int, side: str) -> None:
    lake = day([9] * 5)
    lake.run(0, 4)

    def others() -> None:
        lake.set_events(0, [2])
        lake.run(0, 4, repair_window=0)

    with suppress(RunSuperseded), lake.commits.struck(point, side, others):
        lake.run(4, 5, repair_window=0)
    assert_kept(lake)


def test_state_that_a_chain_reads_of_itself_does_not_expire() -> None:
    lake = day([], Toy(views=0))
    for number in range(8):
        lake.set_events(number, [9])
        lake.run(number, number + 1, repair_window=0, retention=1)
    assert computed_hours(lake) == list(range(8))
    assert computed_hours(lake, "two") == list(range(8))
    snapshot = lake.ledger.snapshot()
    removed = {node for node, entry in snapshot.items() if entry.status == "expired"}
    expired = {block: [n for n in range(8) if of(n, "chain", block) in removed] for block in BACK}
    assert expired == {"one": [0, 1, 2, 3, 4], "two": [0, 1, 2, 3]}
    # A late event of the past: everything is recomputed from the beginning.
    lake.toy.computed.clear()
    lake.set_events(2, [9, 1])
    lake.run(2, 3, repair_window=8, retention=1)
    assert computed_hours(lake)[:3] == [0, 1, 2]
    assert_kept(lake)
