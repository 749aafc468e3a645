"""The most frequent items, and their bounds."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transom.features.frequency.algorithm.top_items import HourlyTopItems, top_k
from transom.features.frequency.windows import Window

RECORDS = st.lists(st.integers(1, 6), max_size=20)


@given(records=RECORDS, count=st.integers(1, 8), seed=st.integers(0, 9))
def test_largest_items_equal_those_of_a_sort(records: list[int], count: int, seed: int) -> None:
    keys = [b"%d" % n for n in np.random.default_rng(seed).permutation(len(records))]
    selected, left_out = top_k(np.array(records, dtype=np.int64), keys, count)
    order = sorted(range(len(records)), key=lambda n: (-records[n], keys[n]))
    assert selected.tolist() == sorted(order[:count])
    assert left_out == max((records[n] for n in order[count:]), default=0)


HOURS = st.lists(st.dictionaries(st.integers(0, 9), st.integers(1, 9), max_size=8), min_size=1, max_size=6)


@given(hours=HOURS, count=st.integers(1, 3), watched=st.sets(st.integers(0, 9), max_size=2), data=st.data())
def test_bounds_of_an_item_contain_its_count(
    hours: list[dict[int, int]], count: int, watched: set[int], data: st.DataObject
) -> None:
    rows, left_out = [], []
    for number, observed in enumerate(hours):
        others = sorted(observed.keys() - watched, key=lambda item: (-observed[item], item))
        rows += [
            (number, item, observed[item]) for item in sorted({*others[:count], *(watched & observed.keys())})
        ]
        left_out.append(max((observed[item] for item in others[count:]), default=0))
    hour, item, records = (np.array([row[n] for row in rows], dtype=np.int64) for n in range(3))
    retained = HourlyTopItems(item, hour, records, np.arange(len(hours)), np.array(left_out))
    # After the last: a window that ends before any record.
    first = data.draw(st.integers(0, len(hours) + 2))
    last = data.draw(st.integers(0, len(hours) - 1))
    requested = data.draw(st.sets(st.integers(0, 9)))
    result = retained.within(
        first, last, np.array(sorted(watched), dtype=np.int64), np.array(sorted(requested), dtype=np.int64)
    )
    truth = sum((Counter(observed) for observed in hours[first : last + 1]), Counter[int]())
    bounds = {
        item: (low, high)
        for item, low, high in zip(
            result.item.tolist(), result.low.tolist(), result.high.tolist(), strict=True
        )
    }
    assert bounds.keys() >= requested | watched
    for one in range(10):
        low, high = bounds.get(one, (0, result.unseen))
        assert low <= truth[one] <= high
        if one in watched:
            assert low == high


def test_equal_counts_are_ordered_by_certainty_then_by_item() -> None:
    window = Window(
        item=np.array([9, 2, 8, 1, 5]), low=np.array([3, 0, 4, 3, 0]), high=np.array([9, 9, 9, 9, 0]),
        unseen=0, estimate=np.array([5, 7, 5, 5, 9]), records=20, margin=np.arange(5.0),
    ).ranked()  # fmt: skip
    assert window.item.tolist() == [2, 8, 1, 9]
    assert window.margin is not None
    assert window.margin.tolist() == [1, 2, 3, 0]
