"""Progressive Window Widening: its properties over whole streams."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.support.instances import instances, minimal_instances
from tests.support.widening_factories import (
    CASE,
    ENDS,
    OVER,
    ROWS,
    Detector,
    Record,
    bounds,
    everywhere,
    records_of,
    widenings,
)
from transom.features.patterns.algorithm.pattern import EventPattern
from transom.features.patterns.algorithm.reference import KeyWidening, LevelMatch, Work, widen
from transom.features.patterns.algorithm.widening import Widening


def in_order(result: list[LevelMatch[Record]]) -> list[LevelMatch[Record]]:
    return sorted(result, key=lambda one: (one.level, one.end, one.records))


@CASE
@given(case=widenings(), rows=ROWS, every=st.booleans())
def test_every_instance_is_found_once_at_any_place_and_nothing_else(
    case: tuple[EventPattern, Widening], rows: list[tuple[int, int]], every: bool
) -> None:
    # Not only minimal ones: theorem 1 holds for any pattern that a detector may search.
    pattern, widening = case
    detector = Detector(pattern, instances if every else minimal_instances)
    records = records_of(rows)
    result = widen(records, widening, detector)
    assert sorted(one.records for one in result) == sorted(everywhere(detector, widening, records))
    for one in result:
        first, last = one.records[0].time, one.records[-1].time
        windows = [
            (level, end)
            for level in range(widening.levels)
            for end in range(0, OVER, widening.length(level))
            if end - 2 * widening.length(level) <= first and last < end
        ]
        assert (one.level, one.end) == min(windows)


@given(batch=st.integers(1, 50), times=st.integers(1, 3000), first=st.integers(0, 10**6))
def test_number_of_levels_suffices(batch: int, times: int, first: int) -> None:
    longest = batch * times // 3 + batch
    widening = Widening(batch, longest, 1)
    below = widening.top // 2
    assert below < longest <= widening.top == batch * 2 ** (widening.levels - 1) or (
        widening.levels == 1 and longest == batch
    )
    # The top level has instances beginning anywhere; without it, those that begin just before a window are
    # lost.
    assert 0 <= widening.level_of(first, first + longest) < widening.levels
    if widening.levels > 1:
        edge = (first // widening.top + 1) * widening.top - 1
        assert widening.level_of(edge, edge + longest) == widening.levels - 1


@CASE
@given(case=widenings(), rows=ROWS)
def test_work_is_within_its_bound(case: tuple[EventPattern, Widening], rows: list[tuple[int, int]]) -> None:
    _, widening = case
    records, work, lengths = records_of(rows), Work(), []

    def detect(window: Sequence[Record]) -> list[tuple[int, ...]]:
        lengths.append(len(window))
        return []

    widen(records, widening, detect, work)
    assert (work.calls, work.records_shown) == (len(lengths), sum(lengths))
    assert sum(length > 4 * widening.max_records for length in lengths) <= 2 * work.oversized
    windows = {
        (level, one.time // widening.length(level) + later)
        for one in records
        for level in range(widening.levels)
        for later in (0, 1)
    }
    assert work.calls == len(windows)
    number = [one.time // widening.batch for one in records]
    assert work.oversized == sum(number.count(one) > 2 * widening.max_records for one in set(number))


@CASE
@given(case=widenings(), rows=ROWS, ends=ENDS)
def test_several_runs_equal_one_run(
    case: tuple[EventPattern, Widening], rows: list[tuple[int, int]], ends: list[int]
) -> None:
    pattern, widening = case
    records, detector = records_of(rows), Detector(pattern)
    at_once, by_runs = Work(), Work()
    expected = widen(records, widening, detector, at_once)
    run, result = KeyWidening(widening, detector, 0, by_runs), []
    for begin, until in pairwise(bounds(widening, ends)):
        some = run.advance([one for one in records if begin <= one.time < until], until)
        assert all(begin < one.end <= until for one in some)
        assert all(len(batch) <= 2 * widening.max_records for batch in run.ended[1:])
        result += some
    assert in_order(result) == in_order(expected)
    assert (by_runs.calls, by_runs.records_shown, by_runs.oversized) == (
        at_once.calls,
        at_once.records_shown,
        at_once.oversized,
    )
