"""The most frequent items, and their bounds."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transom.features.frequency.algorithm.top_items import HourlyTopItems, top_k
from transom.features.frequency.windows import Window

RECORDS = st.lists(st.integers(1, 6), max_size=20)


@given(records=RECORDS, many=st.integers(1, 8), seed=st.integers(0, 9))
def test_largest_items_equal_those_of_a_sort(records: list[int], many: int, seed: int) -> None:
    keys = [b"%d" % n for n in np.random.default_rng(seed).permutation(len(records))]
    taken, left_out = top_k(np.array(records, dtype=np.int64), keys, many)
    order = sorted(range(len(records)), key=lambda n: (-records[n], keys[n]))
    assert taken.tolist() == sorted(order[:many])
    assert left_out == max((records[n] for n in order[many:]), default=0)


HOURS = st.lists(st.dictionaries(st.integers(0, 9), st.integers(1, 9), max_size=8), min_size=1, max_size=6)


@given(hours=HOURS, many=st.integers(1, 3), watched=st.sets(st.integers(0, 9), max_size=2), data=st.data())
def test_bounds_of_an_item_contain_its_count(
    hours: list[dict[int, int]], many: int, watched: set[int], data: st.DataObject
) -> None:
    rows, left_out = [], []
    for number, seen in enumerate(hours):
        others = sorted(seen.keys() - watched, key=lambda item: (-seen[item], item))
        rows += [(number, item, seen[item]) for item in sorted({*others[:many], *(watched & seen.keys())})]
        left_out.append(max((seen[item] for item in others[many:]), default=0))
    hour, item, records = (np.array([row[n] for row in rows], dtype=np.int64) for n in range(3))
    kept = HourlyTopItems(item, hour, records, np.arange(len(hours)), np.array(left_out))
    # After the last: a window that ends before any record.
    first = data.draw(st.integers(0, len(hours) + 2))
    last = data.draw(st.integers(0, len(hours) - 1))
    asked = data.draw(st.sets(st.integers(0, 9)))
    found = kept.within(
        first, last, np.array(sorted(watched), dtype=np.int64), np.array(sorted(asked), dtype=np.int64)
    )
    truth = sum((Counter(seen) for seen in hours[first : last + 1]), Counter[int]())
    bounds = {
        item: (low, high)
        for item, low, high in zip(found.item.tolist(), found.low.tolist(), found.high.tolist(), strict=True)
    }
    assert bounds.keys() >= asked | watched
    for one in range(10):
        low, high = bounds.get(one, (0, found.unseen))
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
