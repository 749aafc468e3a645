"""Frames of many keys at once, compared with the framing function."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import rare_case
from tests.support.frame_factories import HOURS, KINDS, framings, readings
from transom.arrays.column_batch import MISSING
from transom.core.intervals import HOUR_LENGTH
from transom.features.frames.algorithm.params import Aggregate, FrameSpec, Threshold, Trend
from transom.features.frames.algorithm.readings import OpenFrameState, Readings
from transom.features.frames.algorithm.reference import FrameReport, Reading, frames_of_period
from transom.features.frames.algorithm.reference import reports as expected_reports
from transom.features.frames.algorithm.vectorised import FrameReports, advance, period_frames

Key = list[Reading]


Runs = Sequence[tuple[int, int]]
"""First and last hour of each run."""


@st.composite
def cases(draw: st.DrawFn, kind: str) -> tuple[FrameSpec, list[Key]]:
    framing = draw(framings(kind))
    return framing, draw(st.lists(readings(framing), min_size=1, max_size=3))


@st.composite
def runs(draw: st.DrawFn) -> tuple[Runs, Runs]:
    """Draw some runs, and the same hours in as few runs as possible. Some hours are not requested."""
    ends = sorted({0, HOURS + 8, *draw(st.sets(st.integers(1, HOURS + 7), max_size=5))})
    result = [run for run in pairwise(ends) if draw(st.integers(0, 4))]
    few: list[tuple[int, int]] = []
    for begin, end in result:
        joins = few and few[-1][1] == begin
        few.append((few.pop()[0] if joins else begin, end))
    return result, few


def columns(keys: Sequence[Key], begin: int, until: int) -> Readings:
    rows = [(key, one) for key, of in enumerate(keys) for one in of if begin <= one.time < until]
    of = [one for _, one in rows]
    return Readings(
        np.array([key for key, _ in rows], dtype=np.int64),
        np.array([one.time for one in of], dtype=np.int64),
        np.array([MISSING if one.value is None else one.value for one in of], dtype=np.int64),
        *(
            np.array([getattr(one, name) for one in of], dtype=bool)
            for name in ("missing", "holds", "starts", "ends")
        ),
    )


def latest(rows: OpenFrameState) -> OpenFrameState:
    """Return the last row of each key."""
    order = np.lexsort([rows.hour, rows.key])
    return rows.take(order[np.append(np.diff(rows.key[order]) != 0, True)[: len(order)]])


def as_tuples(reports: FrameReports) -> Iterator[tuple[object, ...]]:
    yield from zip(*(column.tolist() for column in reports.columns().values()), strict=True)


def as_tuple(key: int, report: FrameReport, framing: FrameSpec) -> tuple[object, ...]:
    frame, values = report.frame, report.frame.values
    return (
        frame.records,
        frame.missing,
        len(values),
        sum(values),
        min(values, default=MISSING),
        max(values, default=MISSING),
        next((r.time for r in frame.readings if r.value is not None and r.value == max(values)), MISSING),
        key,
        report.hour,
        report.fragment,
        report.state == "final",
        frame.first,
        frame.start,
        frame.end,
        frame.length(framing.every),
        True,
        sum(report.hour <= r.time < report.hour + HOUR_LENGTH for r in frame.readings),
    )


def in_runs(
    framing: FrameSpec, keys: Sequence[Key], hours: Runs
) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Return the rows of runs, and their state; each looks back exactly as far as a frame may be idle."""
    remaining, result = OpenFrameState.none(), []
    last = 0
    for begin, until in ((begin * HOUR_LENGTH, end * HOUR_LENGTH) for begin, end in hours):
        near = remaining.take(remaining.hour >= begin - -(-framing.idle // HOUR_LENGTH) * HOUR_LENGTH)
        if framing.begins:
            # The last requested hour has all known keys.
            near = near.take(near.hour == last - HOUR_LENGTH)
        near, last = latest(near), until
        reports, rows = advance(framing, near, columns(keys, begin, until), begin, until)
        result += as_tuples(reports)
        remaining = remaining.and_then(rows)
    return result, sorted(zip(*(column.tolist() for column in remaining.columns().values()), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_runs_of_many_keys_equal_the_framing_function(kind: str) -> None:
    @rare_case(4)
    @given(case=cases(kind), requested=runs())
    def check(case: tuple[FrameSpec, list[Key]], requested: tuple[Runs, Runs]) -> None:
        (framing, keys), (some, few) = case, requested
        result, remaining = in_runs(framing, keys, some)
        # The state of hours is a table, too, and does not depend on the runs either.
        assert remaining == in_runs(framing, keys, few)[1]
        hours = [number * HOUR_LENGTH for run in few for number in range(*run)]
        hour = list(OpenFrameState.none().columns()).index("hour")
        assert {row[hour] for row in remaining} <= set(hours)
        keys = [[one for one in of if one.time // HOUR_LENGTH * HOUR_LENGTH in hours] for of in keys]
        expected = [
            as_tuple(key, report, framing)
            for key, of in enumerate(keys)
            for report in expected_reports(framing, of, hours, HOUR_LENGTH)
        ]
        assert sorted(result) == sorted(expected)

    check()


@pytest.mark.parametrize("kind", ["delta", "aggregate", "threshold"])
@pytest.mark.parametrize("longest", [False, True])
def test_frames_of_a_single_period_equal_the_framing_function(kind: str, longest: bool) -> None:
    @rare_case(4)
    @given(case=cases(kind), overlap=st.booleans())
    def check(case: tuple[FrameSpec, list[Key]], overlap: bool) -> None:
        framing, keys = case
        # In a single period a key is unknown before its first reading.
        framing = replace(framing, begins=False)
        overlap &= kind != "threshold"
        until = (HOURS + 8) * HOUR_LENGTH
        result = period_frames(framing, columns(keys, 0, until), 0, until, overlap, longest)
        expected = []
        for key, of in enumerate(keys):
            frames = frames_of_period(framing, of, until, overlap)
            limit = max((frame.length(framing.every) for frame in frames), default=0)
            for frame in frames:
                if not longest or frame.length(framing.every) == limit:
                    reported = as_tuple(key, FrameReport(until - HOUR_LENGTH, "final", 1, frame), framing)
                    expected.append((*reported[:-1], len(frame.readings)))
        assert sorted(as_tuples(result)) == sorted(expected)

    check()


WORKED = [30, 31, 33, 34, 30, 34, 33, 34, 35, 32]
"""The example of appendix B: temperatures at the times 1 to 10."""


@pytest.mark.parametrize(
    ("framing", "longest", "expected"),
    [
        (FrameSpec(Threshold()), False, [(3, 4), (6, 9)]),
        (FrameSpec(Threshold()), True, [(6, 9)]),
        (FrameSpec(Trend(), min_time=3), False, [(1, 4), (7, 9)]),
    ],
    ids=["F1", "F2", "F3"],
)
def test_worked_example_of_the_paper_is_reproduced(
    framing: FrameSpec, longest: bool, expected: list[tuple[int, int]]
) -> None:
    ones = [Reading(time, value, holds=value > 32) for time, value in enumerate(WORKED, start=1)]
    frames = frames_of_period(framing, ones, HOUR_LENGTH, overlap=False)
    limit = max(frame.length(1) for frame in frames)
    spans = [(frame.start, frame.end) for frame in frames if not longest or frame.length(1) == limit]
    assert spans == expected
    result = period_frames(
        framing, columns([ones], 0, HOUR_LENGTH), 0, HOUR_LENGTH, overlap=False, longest=longest
    )
    assert list(zip(result.start.tolist(), result.end.tolist(), strict=True)) == expected


def test_possibly_inexact_sums_are_refused() -> None:
    framing = FrameSpec(Aggregate("sum", ">", Fraction(100), False))
    of = [Reading(time, 2**60) for time in range(5)]
    with pytest.raises(
        OverflowError, match=r"below 2\^62 steps .* got values of one key whose sum is 5.76e\+18"
    ):
        advance(framing, OpenFrameState.none(), columns([of], 0, HOUR_LENGTH), 0, HOUR_LENGTH)


def test_sums_of_other_keys_and_earlier_frames_do_not_count() -> None:
    framing = FrameSpec(Aggregate("sum", ">", Fraction(2**60), True), min_records=2)
    keys = [[Reading(time, 2**59) for time in range(6)] for _ in range(40)]
    reports, _ = advance(framing, OpenFrameState.none(), columns(keys, 0, HOUR_LENGTH), 0, HOUR_LENGTH)
    assert reports.final.all()
    assert reports.records.tolist() == [3] * 80
