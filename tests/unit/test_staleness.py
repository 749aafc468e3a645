"""Which hours a run sees to, and what it computes of them: arithmetic on the ledger."""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from transom.intervals import Interval
from transom.lake.acceptance import Accepted
from transom.lake.book import Book, Entry, Node
from transom.lake.quality import Check
from transom.lake.stage import Computed, Part, Reads, Request, Step
from transom.lake.staleness import Plan, Scope, completeness, expected_inputs, plan
from transom.lake.tables import Table

HOUR = timedelta(hours=1)
DAY = datetime(2015, 5, 17, tzinfo=UTC)
HEAL = 3 * HOUR


def at(number: int) -> datetime:
    return DAY + number * HOUR


def between(start: int, end: int) -> Interval:
    return Interval(at(start), at(end))


def never(request: Request) -> Computed:
    raise NotImplementedError


def step(*blocks: str, back: int = 2, checks: tuple[Check, ...] = ()) -> Step:
    """A result table of some blocks that reads their state, some hours back."""
    parts = {b: Part((Reads("sum", b, "state", back=back),), "shape", ("hour",)) for b in blocks}
    return Step(Table("result", {"hour": "timestamp"}, (), frozenset()), parts, never, checks)


def state(hours: Collection[int], *blocks: str) -> dict[Node, Entry]:
    return {Node("sum", b, "state", at(n)): Entry("published", "a") for b in blocks for n in hours}


def results(book: Book, of: Step, hours: Collection[int]) -> Book:
    """The ledger after a run over some hours."""
    entries = {}
    for block, part in of.parts.items():
        for number in hours:
            decided = completeness("sum", of.checks, (), at(number))
            inputs = expected_inputs(part, 1, at(number), book, decided)
            entries[Node("sum", block, "result", at(number))] = Entry("published", "a", inputs=inputs)
    return book.updated(entries)


def planned(of: Step, book: Book, chunk: Interval, stretch: Interval | None = None) -> Plan:
    scope = Scope.of(chunk, stretch or chunk, HEAL, book.hours("sum"))
    return plan("sum", 1, of, book, scope, ())


def targets(found: Plan, block: str = "one") -> list[int]:
    return [(hour - DAY) // HOUR for hour in found.targets.get(block, ())]


@given(st.integers(0, 20), st.integers(1, 10), st.integers(1, 12), st.integers(-10, 40))
def test_every_hour_is_seen_to_by_a_chunk_or_left_by_all(
    start: int, hours: int, size: int, hour: int
) -> None:
    stretch = between(start, start + hours)
    scopes = [Scope.of(chunk, stretch, HEAL, ()) for chunk in stretch.chunks(size * HOUR)]
    seen = sum(scope.sees_to(at(hour)) for scope in scopes)
    assert {scope.leaves(at(hour)) for scope in scopes} == {not seen}
    if at(hour) in stretch:
        assert seen == 1


@given(st.integers(1, 10), st.integers(1, 12), st.lists(st.integers(-6, 15), min_size=1, max_size=4))
def test_the_last_chunk_takes_a_file_that_the_whole_stretch_would_take(
    hours: int, size: int, touched: list[int]
) -> None:
    stretch = between(0, hours)
    scopes = [Scope.of(chunk, stretch, HEAL, ()) for chunk in stretch.chunks(size * HOUR)]
    whole = Scope.of(stretch, stretch, HEAL, ())
    assert all(scopes[-1].may_publish(at(n), False) for n in touched) == all(
        whole.may_publish(at(n), False) for n in touched
    )


def test_a_gap_shorter_than_healing_is_asked_for_and_a_longer_one_is_not() -> None:
    assert Scope.of(between(5, 6), between(5, 6), HEAL, {at(2)}).asked == {at(3), at(4), at(5)}
    assert Scope.of(between(6, 7), between(6, 7), HEAL, {at(2)}).asked == {at(6)}


def test_a_block_that_has_come_since_is_stale_in_every_hour_that_was_asked_for() -> None:
    of = step("one", "new")
    book = results(Book(state(range(6), "one", "new")), step("one"), range(6))
    found = planned(of, book, between(5, 6))
    assert (targets(found), targets(found, "new")) == ([], [2, 3, 4, 5])
    assert found.stale_since == at(0)


def test_state_of_a_block_that_has_come_since_is_made_first_however_far_back() -> None:
    of = step("one", "new", back=5)
    book = results(Book(state(range(6), "one")), step("one", back=5), range(6))
    found = planned(of, book, between(5, 6))
    assert {node.hour for node in found.needed} == {at(n) for n in range(6)}
    assert {node.block for node in found.needed} == {"new"}


def test_what_another_stage_has_not_made_of_an_hour_blocks() -> None:
    other = Step(
        Table("late", {"hour": "timestamp"}, (), frozenset()),
        {"one": Part((Reads("sum", "one", "result", back=1),), "shape", ("hour",))},
        never,
    )
    book = Book({Node("sum", "else", "result", at(4)): Entry("published", "a")})
    scope = Scope.of(between(4, 6), between(4, 6), HEAL, ())
    found = plan("later", 1, other, book, scope, ())
    # Nobody has asked for hour 5: it is empty, and only hour 4 is waited for.
    assert set(found.blocked.values()) == {"sum one 2015-05-17T04:00 has not been computed"}
    assert len(found.blocked) == 2


def test_what_decides_completeness_is_an_input_and_other_checks_are_not() -> None:
    enough = Check("enough", "rows", "incomplete", at_least=2)
    plain, checked = step("one"), step("one", checks=(enough,))
    book = results(Book(state(range(3), "one")), plain, range(3))
    strict = replace(enough, severity="error")
    assert targets(planned(step("one", checks=(strict,)), book, between(2, 3))) == []
    assert targets(planned(checked, book, between(2, 3))) == [0, 1, 2]
    book = results(Book(state(range(3), "one")), checked, range(3))
    passed = Accepted(at(1), "sum", "enough", 1.0, "ops", "a holiday")
    scope = Scope.of(between(2, 3), between(2, 3), HEAL, ())
    assert targets(plan("sum", 1, checked, book, scope, (passed,))) == [1]
    assert targets(plan("sum", 1, checked, book, scope, (replace(passed, check="other"),))) == []
