"""The small documented rules of frames, in the framing function and in its vectorised form."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from transom.arrays.column_batch import MISSING
from transom.core.intervals import HOUR_LENGTH
from transom.features.frames.algorithm.params import Aggregate, FrameSpec, Threshold
from transom.features.frames.algorithm.readings import OpenFrameState, Readings
from transom.features.frames.algorithm.reference import Reading, framed, frames_of_period
from transom.features.frames.algorithm.vectorised import advance, period_frames


def columns(ones: Sequence[Reading]) -> Readings:
    """Return readings of one key, as columns."""
    return Readings(
        np.zeros(len(ones), dtype=np.int64),
        np.array([one.time for one in ones], dtype=np.int64),
        np.array([MISSING if one.value is None else one.value for one in ones], dtype=np.int64),
        *(
            np.array([getattr(one, name) for one in ones], dtype=bool)
            for name in ("missing", "holds", "starts", "ends")
        ),
    )


def final_ends(framing: FrameSpec, ones: Sequence[Reading]) -> list[tuple[int, int]]:
    """Return the ends of the final frames of an hour, by both forms."""
    reports, _ = advance(framing, OpenFrameState.none(), columns(ones), 0, HOUR_LENGTH)
    result = [
        (start, end)
        for start, end, final in zip(
            reports.start.tolist(), reports.end.tolist(), reports.final.tolist(), strict=True
        )
        if final
    ]
    expected = [
        (frame.start, frame.end) for frame in framed(framing, ones, HOUR_LENGTH) if frame.closed is not None
    ]
    assert result == expected
    return result


def test_liberal_frame_extends_past_readings_without_a_value() -> None:
    ones = [
        Reading(1, 5, holds=False), Reading(2, None, missing=True), Reading(3, 50, holds=True),
        Reading(4, None, missing=True), Reading(5, 5, holds=False),
    ]  # fmt: skip
    assert final_ends(FrameSpec(Threshold(liberal=True)), ones) == [(1, 5)]


def test_start_drops_an_open_frame_only_if_it_would_have_joined_it() -> None:
    dropping = FrameSpec(Threshold(), when_open="drop")
    ends = Reading(6, 1, holds=False, starts=False)
    joins = [
        Reading(1, 50, holds=True),
        Reading(2, 50, holds=True, starts=False),
        Reading(3, 50, holds=True),
        ends,
    ]
    assert final_ends(dropping, joins) == [(3, 3)]
    does_not = [
        Reading(1, 50, holds=True),
        Reading(2, 50, holds=True, starts=False),
        Reading(3, 1, holds=False),
        ends,
    ]
    assert final_ends(dropping, does_not) == [(1, 2)]


def test_minimal_frames_that_contain_another_are_dropped() -> None:
    framing = FrameSpec(Aggregate("sum", ">", Fraction(10), True))
    # From 1 it needs three readings, from 2 two, from 3 two.
    ones = [Reading(time, value) for time, value in enumerate([1, 3, 8, 9], start=1)]
    result = period_frames(framing, columns(ones), 0, HOUR_LENGTH, overlap=True, longest=False)
    assert sorted(zip(result.start.tolist(), result.end.tolist(), strict=True)) == [(2, 3), (3, 4)]
    frames = frames_of_period(framing, ones, HOUR_LENGTH, overlap=True)
    assert sorted((frame.start, frame.end) for frame in frames) == [(2, 3), (3, 4)]


def test_frame_reported_at_the_end_of_its_period_counts_all_readings_as_new() -> None:
    ones = [Reading(hour * HOUR_LENGTH, 50, holds=True) for hour in range(3)]
    result = period_frames(
        FrameSpec(Threshold()), columns(ones), 0, 4 * HOUR_LENGTH, overlap=False, longest=False
    )
    assert result.new.tolist() == result.records.tolist() == [3]
    assert result.hour.tolist() == [3 * HOUR_LENGTH]


def test_silence_of_a_known_key_is_a_frame_once_long_enough() -> None:
    """Lines a minute, counted by 5 minutes, of hosts as in an operator's report: a is silent from 10:30 on, c
    from 9:00 to 10:00, and b never.
    """
    every = HOUR_LENGTH // 12
    framing = FrameSpec(
        Threshold(), every, True, "satisfies", idle=24 * HOUR_LENGTH, min_time=2 * every, begins=True
    )
    silent = {"a": range(10 * 12 + 6, 13 * 12), "b": range(0), "c": range(9 * 12, 10 * 12)}
    first = {}
    for until in range(8 * 12, 13 * 12 + 1):
        for host, turns in silent.items():
            ones = [Reading(at * every, 5, holds=False) for at in range(8 * 12, until) if at not in turns]
            for frame in framed(framing, ones, until * every):
                if frame.long_enough(framing):
                    first.setdefault((host, frame.start), (until * every, frame.records))
    minute = HOUR_LENGTH // 60
    assert first == {
        ("c", 9 * HOUR_LENGTH): (9 * HOUR_LENGTH + 10 * minute, 0),
        ("a", 10 * HOUR_LENGTH + 30 * minute): (10 * HOUR_LENGTH + 40 * minute, 0),
    }
    ones = [Reading(at * every, 5, holds=False) for at in (*range(2), *range(6, 12))]
    assert final_ends(framing, ones) == [(2 * every, 5 * every)]


def test_key_may_be_idle_for_any_number_of_minutes() -> None:
    minute = HOUR_LENGTH // 60
    framing = FrameSpec(Threshold(), idle=20 * minute)
    ones = [Reading(at * minute, 50, holds=True) for at in (0, 19, 39, 50)]
    assert final_ends(framing, ones) == [(0, 19 * minute)]
