"""Which hours a run computes, and what is an input of an hour: arithmetic on the ledger."""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.ledger_factories import DAY, HOUR, at, between
from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey, PartitionState, Status
from transom.core.reasons import Reason
from transom.engine.outcomes import resolve_outcomes
from transom.engine.planner import Plan, left_stale, plan, stale_partitions
from transom.ledger.check import Check
from transom.ledger.input_hashes import checks_fingerprint, completeness, expected_inputs, recorded_inputs
from transom.ledger.scope import Scope
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockOutput, InputRange, Stage, StepRequest, StepResult, TableStep
from transom.ledger.waivers import Waiver
from transom.storage.tables import Table

REPAIR_WINDOW = 3 * HOUR


def never(request: StepRequest) -> StepResult:
    raise NotImplementedError


def step(*blocks: str, back: int = 2, checks: tuple[Check, ...] = ()) -> TableStep:
    """Return a result table of some blocks that reads their state, some hours back."""
    parts = {b: BlockOutput((InputRange("sum", b, "state", back=back),), "shape", ("hour",)) for b in blocks}
    return TableStep(Table("result", {"hour": "timestamp"}, (), frozenset()), parts, never, checks)


def state_of(step: TableStep, shape: str = "shape") -> TableStep:
    """Return the state that the blocks of a step read, computed from another stage's events."""
    parts = {
        block: BlockOutput((InputRange("ingest", "events", "events"),), shape, ("hour",))
        for block in step.outputs
    }
    return TableStep(Table("state", {"hour": "timestamp"}, (), frozenset()), parts, never)


def events(hours: Collection[int]) -> dict[PartitionKey, PartitionState]:
    """Return the events of some requested hours, published by ingest."""
    return {of_events(n): PartitionState("published", "i", digest=f"1:{n}", rows=1) for n in hours}


def state(hours: Collection[int], *blocks: str) -> dict[PartitionKey, PartitionState]:
    """Return some hours' state, and the events from which it is computed."""
    of = state_of(step(*blocks))
    return events(hours) | dict(_computed(LedgerSnapshot(events(hours)), of, hours))


def results(snapshot: LedgerSnapshot, of: TableStep, hours: Collection[int]) -> LedgerSnapshot:
    """Return the ledger after a run over some hours."""
    return snapshot.updated(dict(_computed(snapshot, of, hours)))


def _computed(
    snapshot: LedgerSnapshot, of: TableStep, hours: Collection[int]
) -> Iterator[tuple[PartitionKey, PartitionState]]:
    for block, part in of.outputs.items():
        for number in hours:
            decided = completeness("sum", of.checks, (), at(number))
            inputs = expected_inputs(part, 1, at(number), snapshot, decided)
            yield (
                PartitionKey("sum", block, of.table.name, at(number)),
                PartitionState("published", "a", input_hashes=inputs),
            )


def planned(
    of: TableStep,
    snapshot: LedgerSnapshot,
    chunk: Interval,
    shape: str = "shape",
    again: Collection[PartitionKey] = (),
) -> Plan:
    scope = Scope.within(chunk, chunk, REPAIR_WINDOW)
    return plan(Stage("sum", 1, (state_of(of, shape), of)), of, snapshot, scope, (), again)


def targets(result: Plan, block: str = "one") -> list[int]:
    return [(hour - DAY) // HOUR for hour in result.targets.get(block, ())]


def test_state_of_another_specification_is_computed_first_at_any_distance() -> None:
    of = step("one", back=5)
    snapshot = results(LedgerSnapshot(state(range(7), "one")), of, range(6))
    result = planned(of, snapshot, between(6, 7), shape="changed")
    # Hours in the repair window are computed from it, too.
    assert targets(result) == [3, 4, 5, 6]
    assert {node.hour for node in result.needed} == {at(n) for n in range(7)}
    assert planned(of, snapshot, between(6, 7)).needed == frozenset()


def test_new_block_is_stale_in_every_requested_hour() -> None:
    of = step("one", "new")
    snapshot = results(LedgerSnapshot(state(range(6), "one", "new")), step("one"), range(6))
    result = planned(of, snapshot, between(5, 6))
    assert (targets(result), targets(result, "new")) == ([], [2, 3, 4, 5])
    scope = Scope.within(between(5, 6), between(5, 6), REPAIR_WINDOW)
    remaining = left_stale(
        stale_partitions(Stage("sum", 1, (state_of(of), of)), snapshot, ()), snapshot, scope
    )
    assert remaining == {PartitionKey("sum", "new", "result", at(n)): None for n in (0, 1)}


def test_state_of_a_new_block_is_computed_first_at_any_distance() -> None:
    of = step("one", "new", back=5)
    snapshot = results(LedgerSnapshot(state(range(6), "one")), step("one", back=5), range(6))
    result = planned(of, snapshot, between(5, 6))
    assert {node.hour for node in result.needed} == {at(n) for n in range(6)}
    assert {node.block for node in result.needed} == {"new"}


def test_hours_requested_of_ingest_are_required() -> None:
    """This holds where a gate has stopped the other stages too: such an hour's events count as empty
    nowhere.
    """
    of = step("one", back=5)
    beside = {of_events(6): PartitionState("published", "i", digest="1:6", requested=False)}
    snapshot = LedgerSnapshot(events(range(6)) | beside)
    # Other hours are not computed; files of these may have put rows there.
    result = planned(of, snapshot, between(5, 9))
    assert targets(result) == [2, 3, 4, 5]
    assert result.needed == {PartitionKey("sum", "one", "state", at(n)) for n in range(6)}
    stage = Stage("sum", 1, (state_of(of), of))
    scope = Scope.within(between(5, 9), between(5, 9), REPAIR_WINDOW)
    tables = [name for name in ("state", "result") for _ in range(2)]
    far = {
        PartitionKey("sum", "one", name, at(n)): None for name, n in zip(tables, [0, 1, 0, 1], strict=True)
    }
    assert left_stale(stale_partitions(stage, snapshot, ()), snapshot, scope) == far
    # Hours computed before the previous hours were requested have other inputs now.
    part = of.outputs["one"]
    nobody, all_hours = (
        expected_inputs(part, 1, at(5), known, "") for known in (LedgerSnapshot({}), snapshot)
    )
    assert {name for name in nobody if nobody[name] != all_hours[name]} == {"state"}


def test_rows_computed_from_changed_state_are_out_of_date() -> None:
    """At any distance: otherwise they would be called fresh, and be computed from changed state."""
    of = step("one", back=5)
    snapshot = results(LedgerSnapshot(state(range(9), "one")), of, range(9))
    snapshot = snapshot.updated({of_events(1): replace(snapshot[of_events(1)], digest="1:9")})
    result = planned(of, snapshot, between(6, 7))
    # Hours 7 and 8 do not depend on it.
    assert (targets(result), result.needed) == ([3, 4, 5, 6], {of_state(1)})
    stage = Stage("sum", 1, (state_of(of), of))
    scope = Scope.within(between(6, 7), between(6, 7), REPAIR_WINDOW)
    remaining = left_stale(stale_partitions(stage, snapshot, ()), snapshot, scope)
    assert sorted(remaining) == [of_result(1), of_result(2), of_state(1)]
    # They depend on its new state too.
    computed = {node: replace(entry, digest="1:9") for node, entry in _computed(snapshot, state_of(of), [1])}
    result = planned(of, snapshot.updated(computed), between(6, 7))
    assert (targets(result), result.needed) == ([3, 4, 5, 6], frozenset())


contents = st.lists(st.tuples(st.sampled_from(["0:0", "1:2", "2:2"]), st.booleans()), min_size=9, max_size=9)


@given(contents, contents, st.integers(0, 8), st.integers(0, 8))
def test_hours_with_equal_inputs_have_equal_hashes(
    one: list[tuple[str, bool]], other: list[tuple[str, bool]], first: int, more: int
) -> None:
    def range_hash(hours: list[tuple[str, bool]]) -> int:
        entries = [PartitionState("published", "i", complete, digest) for digest, complete in hours]
        snapshot = LedgerSnapshot({of_events(n): entry for n, entry in enumerate(entries)})
        return snapshot.range_hash(("ingest", "events", "events"), at(first), at(last))

    last = min(first + more, 8)
    assert (range_hash(one) == range_hash(other)) == (one[first : last + 1] == other[first : last + 1])


@pytest.mark.parametrize(
    "own",
    [
        [InputRange("sum", "one", "chain", back=1)],
        [InputRange("sum", "one", "chain", back=0, forward=-1)],
        [InputRange("sum", "two", "chain", back=1, forward=-1)],
        [InputRange("other", "one", "chain", back=1, forward=-1)],
        [InputRange("sum", "one", "chain", back=number, forward=-1) for number in (1, 2)],
    ],
)
def test_table_may_read_earlier_hours_of_itself_only(own: list[InputRange]) -> None:
    of = TableStep(
        Table("chain", {"hour": "timestamp"}, (), frozenset()),
        {"one": BlockOutput(tuple(own), "shape", ("hour",))},
        never,
    )
    expected = (
        "stage sum: chain of one may read of itself the hours before one, once and of its own block "
        f"(back at least 1, forward -1), not {own[0]}"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        Stage("sum", 1, (of,))


def test_hour_counted_as_empty_equals_an_empty_hour() -> None:
    def range_hash(snapshot: dict[PartitionKey, PartitionState], table: str = "state") -> int:
        return LedgerSnapshot(snapshot).range_hash(("sum", "one", table), at(0), at(1))

    empty = {of_state(n): PartitionState("published", "a") for n in (0, 1)}
    assert range_hash(empty) == range_hash({}) == 0
    # Hour 0 is required and has not been computed.
    assert range_hash(events([0])) not in (0, range_hash(events([1])))
    assert range_hash(events([0]) | empty) == 0
    assert range_hash(events([0]) | {of_state(0): PartitionState("published", "a", complete=False)}) != 0
    # Hour 0 was not requested, although files of other hours have rows there.
    some = {
        PartitionKey("ingest", "events", "events", at(0)): PartitionState(
            "published", "a", digest="1:5", requested=False
        )
    }
    snapshot = LedgerSnapshot(some)
    assert snapshot.range_hash(("ingest", "events", "events"), at(0), at(1)) == 0
    snapshot = snapshot.updated({node: replace(entry, requested=True) for node, entry in some.items()})
    assert snapshot.range_hash(("ingest", "events", "events"), at(0), at(1)) != 0


def test_hour_missing_in_another_stage_blocks() -> None:
    other = TableStep(
        Table("late", {"hour": "timestamp"}, (), frozenset()),
        {"one": BlockOutput((InputRange("sum", "one", "result", back=1),), "shape", ("hour",))},
        never,
    )
    stage, four, five = (
        Stage("later", 1, (other,)),
        *(PartitionKey("later", "one", "late", at(n)) for n in (4, 5)),
    )
    snapshot = LedgerSnapshot(
        events([4, 5]) | {PartitionKey("sum", "else", "result", at(4)): PartitionState("published", "a")}
    )
    scope = Scope.within(between(4, 6), between(4, 6), REPAIR_WINDOW)
    result = plan(stage, other, snapshot, scope, ())
    # Hour 3 is not requested: it is empty, and only hour 4 is waited for.
    computed = PartitionKey("sum", "one", "result", at(4))
    cause = Reason("waits", "sum one 2015-05-17T04:00 has not been computed", computed.key)
    assert result.reasons == {four: cause, five: cause}
    snapshot = snapshot.updated({computed: PartitionState("published", "a")})
    result = plan(stage, other, snapshot, scope, ())
    assert {of: cause.text for of, cause in result.reasons.items()} == {
        five: "sum one 2015-05-17T05:00 has not been computed"
    }
    assert targets(result) == [4]


def test_completeness_checks_are_inputs_and_other_checks_are_not() -> None:
    enough = Check("enough", "rows", "incomplete", at_least=2)
    plain, checked = step("one"), step("one", checks=(enough,))
    snapshot = results(LedgerSnapshot(state(range(3), "one")), plain, range(3))
    strict = replace(enough, severity="error")
    assert targets(planned(step("one", checks=(strict,)), snapshot, between(2, 3))) == []
    assert targets(planned(checked, snapshot, between(2, 3))) == [0, 1, 2]
    snapshot = results(LedgerSnapshot(state(range(3), "one")), checked, range(3))
    passed = Waiver(at(1), "sum", "enough", 1.0, "ops", "a holiday")
    scope = Scope.of(between(2, 3), between(2, 3), REPAIR_WINDOW, ())
    stage = Stage("sum", 1, (state_of(checked), checked))
    assert targets(plan(stage, checked, snapshot, scope, (passed,))) == [1]
    assert targets(plan(stage, checked, snapshot, scope, (replace(passed, check="other"),))) == []


RULES = checks_fingerprint((), ())


def of_events(number: int) -> PartitionKey:
    return PartitionKey("ingest", "events", "events", at(number))


def of_state(number: int) -> PartitionKey:
    return PartitionKey("sum", "one", "state", at(number))


def of_result(number: int) -> PartitionKey:
    return PartitionKey("sum", "one", "result", at(number))


@pytest.mark.parametrize("change", [{"digest": "1:9"}, {"complete": False}])
def test_rows_and_completeness_of_upstream_hours_are_inputs(change: dict[str, Any]) -> None:
    of = step("one")
    snapshot = results(LedgerSnapshot(state(range(5), "one")), of, range(5))
    changed = snapshot.updated({of_state(1): replace(snapshot[of_state(1)], **change)})
    assert targets(planned(of, snapshot, between(4, 5))) == []
    assert targets(planned(of, changed, between(4, 5))) == [1, 2, 3]
    # Hours 0 and 4 do not depend on it. An hour requested once more, as required state, is computed.
    assert targets(planned(of, changed, between(4, 5), again=[of_result(4)])) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("status", "checks", "stale"),
    [
        ("published", None, False),
        ("expired", None, False),
        # The state of hours of a killed run, and of hours that could not be computed, is unknown.
        ("writing", None, True),
        ("blocked", None, True),
        # A quarantined hour is evaluated again when its checks have changed.
        ("quarantined", RULES, False),
        ("quarantined", "others", True),
    ],
)
def test_status_decides_whether_an_hour_is_recomputed(
    status: Status, checks: str | None, stale: bool
) -> None:
    of = step("one")
    snapshot = results(LedgerSnapshot(state(range(3), "one")), of, range(3))
    inputs = recorded_inputs(status, snapshot[of_result(1)].input_hashes or {}, checks or "")
    stored = replace(snapshot[of_result(1)], status=status, input_hashes=inputs)
    assert targets(planned(of, snapshot.updated({of_result(1): stored}), between(2, 3))) == [1] * stale


def test_expired_state_is_recomputed_for_its_readers() -> None:
    of = step("one")
    snapshot = results(LedgerSnapshot(state(range(3), "one")), of, range(3))
    snapshot = snapshot.updated(
        {of_state(n): replace(snapshot[of_state(n)], status="expired", rows=0) for n in (0, 1)}
    )
    assert planned(of, snapshot, between(2, 3)).needed == frozenset()
    snapshot = snapshot.updated(events([3]))
    snapshot = snapshot.updated(dict(_computed(snapshot, state_of(of), [3])))
    assert planned(of, snapshot, between(3, 4)).needed == {of_state(1)}


def test_hour_blocked_by_the_same_cause_is_not_written_again() -> None:
    of = step("one")
    snapshot = results(LedgerSnapshot(state(range(4), "one")), of, range(4))
    cause = Reason("waits", "sum one 2015-05-17T01:00 is quarantined: too many", of_state(1).key)
    quarantined = replace(snapshot[of_state(1)], status="quarantined", complete=False, reason="too many")
    blocked = replace(
        snapshot[of_result(1)], status="blocked", complete=False, reason=cause.text, reasons=(cause,)
    )
    snapshot = snapshot.updated(
        {
            of_state(1): quarantined,
            of_result(1): blocked,
            of_result(2): replace(blocked, reasons=(Reason("waits", "another"),)),
            of_result(3): replace(snapshot[of_result(3)], input_hashes={}),
        }
    )
    result = planned(of, snapshot, between(3, 4))
    assert result.reasons == {of_result(n): cause for n in (1, 2, 3)}
    settled = resolve_outcomes("sum", of, result, snapshot, {}, (), RULES, "b")
    assert settled == {
        node: PartitionState("blocked", "b", complete=False, reason=cause.text, reasons=(cause,))
        for node in (of_result(2), of_result(3))
    }
