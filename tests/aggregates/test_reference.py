"""The stairwise chain against the definition of its windows, and its cost."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.features.aggregates.algorithm.granules import WindowLevel
from transom.features.aggregates.algorithm.reference import Chain, LevelReport, recompute, reports
from transom.features.aggregates.algorithm.reference_summaries import Sums

Records = list[tuple[int, int | None]]


@st.composite
def levels_of(draw: st.DrawFn, nested: bool) -> list[WindowLevel]:
    """Draw one to four valid levels: ranges grow, slides do not shrink."""
    levels: list[WindowLevel] = []
    for _ in range(draw(st.integers(1, 4))):
        below = levels[-1] if levels else WindowLevel(1, 1)
        slide = below.slide * draw(st.integers(1, 3)) if nested else below.slide + draw(st.integers(0, 3))
        minimum = below.range // slide + 1 if levels else 1
        levels.append(WindowLevel(slide * draw(st.integers(minimum, minimum + 3)), slide))
    return levels


def records_of(start: int) -> st.SearchStrategy[Records]:
    record = st.tuples(st.integers(start, start + 80), st.none() | st.integers(-9, 9))
    return st.lists(record, max_size=30).map(lambda records: sorted(records, key=lambda record: record[0]))


def summed(records: Records) -> list[tuple[int, Sums]]:
    return [(time, Sums.of(value)) for time, value in records]


def rows_of(result: Sequence[LevelReport[Sums]], level: int) -> list[dict[str, Any]]:
    return [
        {
            "key": 0,
            "end": report.end,
            "records": window.records,
            "v": (window.values, window.total, window.minimum, window.maximum),
        }
        for report in result
        if report.level == level and (window := report.window) is not None
    ]


@given(st.data(), st.booleans(), st.integers(-7, 7))
def test_every_window_equals_the_definition(data: st.DataObject, nested: bool, start: int) -> None:
    levels = data.draw(levels_of(nested))
    records = data.draw(records_of(start))
    result = list(reports(summed(records), levels, start, start + 100))
    assert [report.end for report in result] == sorted(report.end for report in result)
    for number, level in enumerate(levels):
        # The definition starts at the epoch: time counts from the chain's start.
        moved = [(0, time - start, {"v": value}) for time, value in records]
        required = [{**row, "end": row["end"] + start} for row in recompute(moved, level, 0, 100)]
        assert rows_of(result, number) == required


@given(st.data())
def test_rings_are_between_the_starts_of_neighbouring_windows(data: st.DataObject) -> None:
    levels = data.draw(levels_of(nested=True))
    records = data.draw(records_of(0))
    for report in reports(summed(records), levels, 0, 100):
        nearest = report.end
        for number, ring in enumerate(report.rings):
            rear = report.end - levels[number].range
            inside = [Sums.of(value) for time, value in records if rear <= time < nearest]
            assert (ring is None) == (not inside)
            if ring is not None:
                assert ring == sum(inside[1:], inside[0])
            nearest = rear


@given(st.data())
def test_number_of_granules_is_that_of_the_paper(data: st.DataObject) -> None:
    """Level k has `ceil((omega_k - omega_{k-1}) / beta_k)` granules; less than a slide is pending."""
    levels = data.draw(levels_of(nested=True))
    chain: Chain[Sums] = Chain(levels, 0)
    limit, below, finest = 0, 0, levels[0].slide
    for level in levels:
        limit += -(-(level.range - below) // level.slide) + level.slide // finest
        below, finest = level.range, level.slide
    for time in range(2 * levels[-1].range):
        list(chain.receive(time, Sums.of(time)))
        assert chain.granules <= limit


def test_example_of_the_picture_is_reproduced() -> None:
    chain: Chain[Sums] = Chain([WindowLevel(4, 1), WindowLevel(8, 2), WindowLevel(16, 4)], 0)
    result = [report for time in range(16) for report in chain.receive(time, Sums.of(time))]
    result += chain.advance(16)
    assert [(report.level, report.end) for report in result[-3:]] == [(0, 16), (1, 16), (2, 16)]
    assert result[-1].rings == (Sums(4, 4, 54, 12, 15), Sums(4, 4, 38, 8, 11), Sums(8, 8, 28, 0, 7))
    assert chain.granules == 4 + 2 + 2


def test_finer_level_may_reach_further_back_if_slides_are_no_multiples() -> None:
    """At 15 the finer window is [8, 12), the wider one covers [10, 15)."""
    result = reports(summed([(9, 1), (11, 2)]), [WindowLevel(4, 4), WindowLevel(5, 5)], 0, 15)
    assert [(r.level, r.end, r.window and r.window.total) for r in result] == [
        (1, 10, 1),
        (0, 12, 3),
        (1, 15, 2),
    ]


def test_extremes_are_searched_only_when_they_leave() -> None:
    one, two = Sums.of(1), Sums.of(2)
    assert (one + two + Sums.of(3)).without(two) == Sums(2, 2, 4, 1, 3)
    assert (one + two).without(one) is None
    assert (one + Sums.of(None)).without(Sums.of(None)) == one


def test_record_before_an_earlier_one_is_refused() -> None:
    chain: Chain[Sums] = Chain([WindowLevel(4, 2)], 0)
    list(chain.receive(5, Sums.of(1)))
    with pytest.raises(ValueError, match="a record of 4 comes after one of 5"):
        list(chain.receive(4, Sums.of(1)))


@given(st.data(), st.booleans(), st.integers(-7, 7))
def test_horizon_equals_its_records(data: st.DataObject, nested: bool, start: int) -> None:
    """At any time, as far back as any granule's bound."""
    levels = data.draw(levels_of(nested))
    records = data.draw(records_of(start))
    now = data.draw(st.integers(start, start + 90))
    chain: Chain[Sums] = Chain(levels, start)
    for time, summary in summed([record for record in records if record[0] < now]):
        list(chain.receive(time, summary))
    list(chain.advance(now))
    reported = 0
    for length in range(1, now - start + 1):
        try:
            result = chain.horizon(length)
        except ValueError:
            continue
        inside = [Sums.of(value) for time, value in records if now - length <= time < now]
        assert result == (reduce(add, inside) if inside else None)
        reported += 1
    # Records that no level has taken over yet are in the finest granules.
    assert reported >= min(levels[0].range, now - start) // levels[0].slide


def test_horizon_may_begin_after_the_records_of_a_coarse_granule() -> None:
    """The granule of [-6, 0) has the records that left the level below, which ends at -3."""
    chain: Chain[Sums] = Chain([WindowLevel(2, 1), WindowLevel(3, 3), WindowLevel(6, 6)], -6)
    list(chain.receive(-4, Sums.of(5)))
    list(chain.advance(0))
    assert [chain.horizon(length) for length in (1, 2, 3, 6)] == [None, None, None, Sums.of(5)]
    with pytest.raises(ValueError, match=r"^-4 lies inside the granule \[-6, -3\)$"):
        chain.horizon(4)


def test_horizon_ends_where_granules_end() -> None:
    chain: Chain[Sums] = Chain([WindowLevel(4, 1), WindowLevel(8, 2), WindowLevel(16, 4)], 0)
    for time in range(18):
        list(chain.receive(time, Sums.of(1)))
    list(chain.advance(18))
    assert [horizon.records if (horizon := chain.horizon(h)) else 0 for h in (1, 4, 6, 18)] == [1, 4, 6, 18]
    with pytest.raises(ValueError, match=r"^11 lies inside the granule \[10, 12\)$"):
        chain.horizon(7)
    list(chain.advance(20))
    with pytest.raises(
        ValueError, match=r"^a horizon of 18 at 20 reaches further back than the widest level$"
    ):
        chain.horizon(18)
