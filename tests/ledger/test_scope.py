"""Which hours a run requests, and which are within its reach."""

from datetime import datetime
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.support.ledger_factories import HOUR, at, between
from transom.core.partitions import PartitionKey, PartitionState
from transom.ledger.scope import Scope
from transom.ledger.snapshot import LedgerSnapshot

REPAIR_WINDOW = 3 * HOUR


@given(st.integers(0, 20), st.integers(1, 10), st.integers(1, 12), st.integers(-10, 40))
def test_every_hour_is_in_one_chunk_or_in_none(start: int, hours: int, size: int, hour: int) -> None:
    period = between(start, start + hours)
    scopes = [Scope.of(chunk, period, REPAIR_WINDOW, ()) for chunk in period.chunks(size * HOUR)]
    observed = sum(scope.covers(at(hour)) for scope in scopes)
    assert {scope.out_of_reach(at(hour)) for scope in scopes} == {not observed}
    if at(hour) in period:
        assert observed == 1


def test_gap_is_requested_only_if_shorter_than_repair_window() -> None:
    assert Scope.of(between(5, 6), between(5, 6), REPAIR_WINDOW, {at(2)}).requested == {at(3), at(4), at(5)}
    assert Scope.of(between(6, 7), between(6, 7), REPAIR_WINDOW, {at(2)}).requested == {at(6)}
    assert Scope.of(between(6, 7), between(6, 7), REPAIR_WINDOW, {at(9)}).requested == {at(6), at(7), at(8)}
    assert Scope.of(between(6, 7), between(6, 7), REPAIR_WINDOW, {at(10)}).requested == {at(6)}
    # The hours of a later chunk are no gap.
    assert Scope.of(between(6, 7), between(6, 8), REPAIR_WINDOW, {at(9)}).requested == {at(6)}


def test_gap_created_by_another_run_next_to_this_one_is_noticed() -> None:
    def snapshot(*numbers: int, stage: str = "sum") -> LedgerSnapshot:
        return LedgerSnapshot(
            {PartitionKey(stage, "b", "result", at(n)): PartitionState("published", "a") for n in numbers}
        )

    scope = Scope.of(between(5, 6), between(5, 6), REPAIR_WINDOW, {at(2)})
    # The run's own claim, that of a run without a gap next to it, and that of another stage leave no gap.
    for later in (
        snapshot(2),
        snapshot(2, 3, 4, 5),
        snapshot(2, 6),
        snapshot(2, 20),
        {**snapshot(2), **snapshot(7, stage="other")},
    ):
        assert scope.still_valid(LedgerSnapshot(later), "sum")
    assert not scope.still_valid(snapshot(2, 7), "sum")
    # A gap that has become shorter is the same gap.
    assert scope.still_valid(snapshot(2, 3), "sum")
    assert not Scope.of(between(5, 6), between(5, 6), REPAIR_WINDOW, ()).still_valid(snapshot(3), "sum")


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 5)), min_size=1, max_size=6),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_requested_hours_do_not_depend_on_order(runs: list[tuple[int, int]], size: int, rng: Random) -> None:
    def requested_hours(order: list[tuple[int, int]]) -> set[datetime]:
        known: set[datetime] = set()
        for start, hours in order:
            period = between(start, start + hours)
            for chunk in period.chunks(size * HOUR):
                known |= Scope.of(chunk, period, REPAIR_WINDOW, known).requested
        return known

    assert requested_hours([*rng.sample(runs, len(runs)), rng.choice(runs)]) == requested_hours(runs)
