"""A snapshot of stored partitions equals one of Python objects, and builds few objects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.drawn_ledgers import (
    BOOKS,
    CHANGES,
    EVENTS,
    SERIES,
    STAGE,
    STEPS,
    TABLE,
    fresh,
    stored,
)
from tests.support.memory_lake import at
from transom.core.hour_sets import HourSet
from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.ledger import columnar_state
from transom.ledger.check import Check
from transom.ledger.freshness import Freshness
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockOutput, InputRange, Stage, TableStep
from transom.ledger.waivers import Waiver
from transom.storage.tables import Table


def assert_same(result: LedgerSnapshot, expected: LedgerSnapshot) -> None:
    assert dict(result) == dict(expected)
    assert len(result) == len(expected)
    assert result == expected
    assert sorted(result.troubled()) == sorted(expected.troubled())
    for statuses in (["published"], ["writing", "expired"]):
        for before in (None, at(4)):
            requested = (statuses, ["views"], before)
            assert sorted(result.having(*requested)) == sorted(expected.having(*requested))
    of = Interval(at(2), at(5))
    assert sorted(result.within(of)) == sorted(expected.within(of))
    assert sorted(result.by_run("sum", "a")) == sorted(expected.by_run("sum", "a"))
    assert sorted(result.within(of)) == sorted((n, e) for n, e in expected.items() if n.hour in of)
    assert result.names == expected.names == {(n.stage, n.block, n.table) for n in expected}
    for stage in ("ingest", "sum"):
        hours = {n.hour for n, e in expected.items() if n.stage == stage and e.requested}
        assert set(result.hours(stage)) == hours == set(expected.hours(stage))
        assert list(result.hours(stage)) == sorted(hours)
    for series in SERIES:
        own = {n.hour: e for n, e in expected.items() if (n.stage, n.block, n.table) == series}
        assert dict(result.series(*series)) == own
        assert set(result.hours_of(*series)) == set(own)
        assert result.incomplete(*series) == expected.incomplete(*series)
        for mine in (True, False):
            args = (series, at(1), at(7), mine)
            assert result.range_hash(*args) == expected.range_hash(*args)
        like = {at(n): {"specification": "x"} if n % 2 else {} for n in range(10)} | {UNKNOWN_HOUR: {}}
        wrong = sorted(hour for hour, e in own.items() if e.input_hashes != like[hour])
        same = result.recorded_as(*series, {"specification": "x"})
        assert all(own[hour].input_hashes == {"specification": "x"} for hour in same)
        known = HourSet.of(hour for hour in same if like[hour] == {"specification": "x"})
        assert result.unlike(*series, like.__getitem__, known) == wrong
        assert expected.unlike(*series, like.__getitem__, HourSet()) == wrong
    stale, required = (Freshness(snapshot, [STAGE], ()) for snapshot in (result, expected))
    for step in STEPS:
        for block in step.outputs:
            table = (STAGE.name, block, step.table.name)
            assert stale.outdated_hours(*table) == required.outdated_hours(*table)


@given(BOOKS, CHANGES, st.booleans(), st.integers(1, 4))
def test_stored_snapshot_equals_snapshot_of_objects(
    entries: dict[PartitionKey, PartitionState],
    changes: dict[PartitionKey, PartitionState | None],
    right: bool,
    count: int,
) -> None:
    if right:
        entries = fresh(entries)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar_state, "AT_A_TIME", count)
        result, expected = stored(entries), LedgerSnapshot(entries)
        assert_same(result, expected)
        assert_same(result.updated(changes), expected.updated(changes))
        assert_same(result, expected)


def test_waiver_of_an_incomplete_check_makes_its_hour_stale() -> None:
    table = Table("views", TABLE.columns, ("hour",), frozenset())
    part = BlockOutput((InputRange(*EVENTS),), "s", ())
    stage = Stage("sum", 1, (TableStep(table, {"one": part}, checks=(Check("few", "n", "incomplete", 1),)),))
    states = {PartitionKey(*EVENTS, at(n)): PartitionState("published", "a", digest="1:1") for n in range(5)}
    freshness = Freshness(LedgerSnapshot(states), [stage], ())
    for number in range(5):
        key = PartitionKey("sum", "one", "views", at(number))
        states[key] = PartitionState("published", "a", False, input_hashes=freshness.inputs(key))
    waiver = Waiver(at(3), "sum", "few", 0, "ops", "known")
    for snapshot in (LedgerSnapshot(states), stored(states)):
        for waivers, hours in (((), []), ([waiver], [at(3)])):
            assert Freshness(snapshot, [stage], waivers).outdated_hours("sum", "one", "views") == hours


YEAR = 1500
"""A number of hours so large that objects of all of them would be slow."""


def test_snapshot_of_a_year_builds_objects_of_requested_hours_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computed: list[object] = []
    entry_of = columnar_state._state
    monkeypatch.setattr(columnar_state, "_state", lambda row: computed.append(row) or entry_of(row))
    nodes = [PartitionKey(*series, at(n)) for series in SERIES for n in range(YEAR)]
    snapshot = stored(
        fresh(dict.fromkeys(nodes, PartitionState("published", "a", digest="1:1", input_hashes={})))
    )
    assert len(snapshot) == 4 * YEAR
    assert (
        len(snapshot.required_hours),
        list(snapshot.troubled()),
        len(snapshot.required_hours.intervals),
    ) == (
        YEAR,
        [],
        1,
    )
    fresh_hours = snapshot.recorded_as(*SERIES[0], {})
    assert fresh_hours == snapshot.required_hours
    assert snapshot.unlike(*SERIES[0], lambda hour: {}, fresh_hours) == []
    freshness = Freshness(snapshot, [STAGE], ())
    assert [freshness.outdated_hours(STAGE.name, "one", table) for table in ("state", "views")] == [[], []]
    assert snapshot.range_hash(SERIES[0], at(0), at(YEAR - 1)) == snapshot.range_hash(
        SERIES[0], at(-5), at(9000)
    )
    assert computed == []
    assert snapshot[nodes[100]].digest == "1:1"
    assert len(computed) == columnar_state.AT_A_TIME
    later = Freshness(
        snapshot.updated({nodes[600]: PartitionState("published", "b", digest="1:2")}), [STAGE], ()
    )
    # What reads the hour, and the later hours of the chain.
    assert later.outdated_hours(STAGE.name, "one", "state") == [at(n) for n in range(599, YEAR)]
    assert len(computed) <= 4 * columnar_state.AT_A_TIME


@given(st.sets(st.integers(-5, 20)), st.sets(st.integers(-5, 20)), st.integers(-6, 22), st.integers(1, 20))
def test_hour_set_behaves_as_a_set(some: set[int], others: set[int], number: int, length: int) -> None:
    mine, theirs = HourSet.of(map(at, some)), HourSet.of(map(at, others))
    moment = at(number)
    assert mine == set(map(at, some))
    assert (moment in mine, len(mine), list(mine)) == (number in some, len(some), sorted(map(at, some)))
    assert mine.last == max(map(at, some), default=None)
    assert mine.last_before(moment) == max((at(n) for n in some if n < number), default=None)
    assert mine.first_from(moment) == min((at(n) for n in some if n >= number), default=None)
    assert mine.since(moment) == {at(n) for n in some if n >= number}
    interval = Interval(moment, at(number + length))
    assert mine.within(interval) == {at(n) for n in some if number <= n < number + length}
    assert mine.minus(theirs) == {at(n) for n in some - others}
    assert mine & set(map(at, others)) == set(map(at, others)) & mine == {at(n) for n in some & others}
