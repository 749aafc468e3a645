"""Recurring items: compared with the stairwise chain's, and both with the definition."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.support.granule_factories import granules
from tests.support.level_factories import nested_levels
from transom.features.aggregates.algorithm.granules import WindowLevel
from transom.features.aggregates.algorithm.reference import recurring_items, reports
from transom.features.aggregates.algorithm.reference_summaries import Items
from transom.features.aggregates.algorithm.rings import recurring

Events = list[tuple[int, str]]


def defined(events: Events, levels: list[WindowLevel], end: int) -> dict[str, tuple[int, ...]]:
    bounds = [end, *(end - level.range for level in levels)]
    counts = {
        item: tuple(
            sum(low <= time < high for time, other in events if other == item)
            for high, low in pairwise(bounds)
        )
        for _, item in events
    }
    return {item: rings for item, rings in counts.items() if all(rings)}


@given(
    st.data(),
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from("abc")), max_size=60),
)
def test_items_of_chain_and_granules_equal_those_of_the_definition(
    data: st.DataObject, draws: Events
) -> None:
    levels = data.draw(nested_levels(1))
    events = sorted(draws)
    ends = range(levels[-1].slide, 100, levels[-1].slide)
    required = {(end, item): rings for end in ends for item, rings in defined(events, levels, end).items()}
    chain = reports([(time, Items({item: 1})) for time, item in events], levels, 0, 99)
    listed = {
        (report.end, item): rings
        for report in chain
        if report.level == len(levels) - 1
        for item, rings in recurring_items(report).items()
    }
    assert listed == required
    codes = {item: code for code, item in enumerate("abc")}
    whole = granules([(codes[item], time, {"v": None}) for time, item in events], 1)
    result, times, counts = recurring(whole, 1, levels, [(0, 99)])
    fast = {
        (int(end), "abc"[code]): tuple(rings)
        for code, end, rings in zip(result.tolist(), times.tolist(), counts.T.tolist(), strict=True)
    }
    assert fast == required


def test_item_absent_from_one_ring_is_not_recurring() -> None:
    levels = [WindowLevel(2, 2), WindowLevel(4, 2), WindowLevel(8, 4)]
    events = [(time, "always") for time in range(8)] + [(0, "gap"), (6, "gap"), (1, "gap")]
    assert defined(events, levels, 8) == {"always": (2, 2, 4)}
