"""The exact counts with which a sketch is compared, for many items at once, against the plain form."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from transom.features.persistence.algorithm.reference import Exact
from transom.features.persistence.algorithm.vectorised import ExactTracker

ITEMS = 4
PAIRS = st.lists(st.tuples(st.integers(0, ITEMS - 1), st.integers(480_000, 480_030)), max_size=60)


@example(pairs=[], slots=3, last=480_010)
@given(pairs=PAIRS, slots=st.integers(1, 40), last=st.integers(479_990, 480_080))
def test_persistences_equal_those_of_the_plain_form(
    pairs: list[tuple[int, int]], slots: int, last: int
) -> None:
    plain = Exact(slots)
    for item, slot in pairs:
        plain.take(b"%d" % item, slot)
    expected = plain.persistence(last)
    item, slot = (np.array([pair[place] for pair in pairs], dtype=np.int64) for place in range(2))
    result = ExactTracker(item, slot, ITEMS).persistences(last - slots + 1, last)
    assert result.tolist() == [expected.get(b"%d" % item, 0) for item in range(ITEMS)]
