"""The fast windows against the definition, and the edges of one window, drawn.

level: range 4, slide 2; a record at 3 stands in the windows that end at 4 and at 6, not at 2, not at 8.

    0 . . 3 4 . 6 . 8
    [-----x-)          ends at 4
        [-x-----)      ends at 6
            [-------)  ends at 8
"""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.granule_factories import Record, granules
from transom.features.aggregates.algorithm.granules import Granules, WindowLevel
from transom.features.aggregates.algorithm.reference import recompute


def fast(
    records: list[Record], base: int, level: WindowLevel, periods: list[tuple[int, int]]
) -> list[dict[str, Any]]:
    return windows(granules(records, base), level, periods)


def windows(of: Granules, level: WindowLevel, periods: list[tuple[int, int]]) -> list[dict[str, Any]]:
    result = of.windows(level, periods)
    column = result.columns["v"]
    return [
        {
            "key": int(result.key[i]),
            "end": int(result.end[i]),
            "records": int(result.records[i]),
            "v": (
                int(column.values[i]),
                int(column.total[i]),
                int(column.minimum[i]) if column.values[i] else None,
                int(column.maximum[i]) if column.values[i] else None,
            ),
        }
        for i in range(len(result.key))
    ]


def ordered(rows: Any) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["key"], row["end"]))


records_of = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(-40, 120),
        st.fixed_dictionaries({"v": st.none() | st.integers(-(2**40), 2**40)}),
    ),
    max_size=40,
)


@given(
    records_of,
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 8),
    st.integers(-60, 60),
    st.integers(0, 90),
)
def test_fast_windows_equal_the_definition(
    records: list[Record], base: int, steps: int, mu: int, after: int, length: int
) -> None:
    level = WindowLevel(base * steps * mu, base * steps)
    required = ordered(recompute(records, level, after, after + length))
    assert fast(records, base, level, [(after, after + length)]) == required


@given(records_of, st.lists(st.integers(0, 12), min_size=2, max_size=6, unique=True).map(sorted))
def test_reports_of_several_intervals_equal_those_of_each(records: list[Record], cuts: list[int]) -> None:
    level = WindowLevel(12, 3)
    periods = [(a * 10, b * 10) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    each = [row for period in periods for row in fast(records, 3, level, [period])]
    assert fast(records, 3, level, periods) == ordered(each)


@given(records_of, st.integers(1, 12))
def test_windows_of_some_keys_at_a_time_equal_those_of_all(records: list[Record], limit: int) -> None:
    level, periods, whole = WindowLevel(12, 3), [(-60, 120)], granules(records, 3)
    parts = list(whole.by_keys(limit))
    assert [row for part in parts for row in windows(part, level, periods)] == windows(whole, level, periods)
    by_key = Counter(whole.key.tolist())
    assert len(parts) <= len(whole.key) // limit + 1
    assert all(sum(by_key[key] for key in set(part.key.tolist())) == len(part.key) for part in parts)
    assert all(len(part.key) < limit + max(by_key.values()) for part in parts)


@given(st.lists(st.tuples(st.integers(0, 2**40), st.integers(-(2**40), 2**40)), max_size=9, unique=True))
def test_order_is_by_key_then_time_for_any_values(pairs: list[tuple[int, int]]) -> None:
    key, start = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in (0, 1))
    result = Granules(key, start, np.ones(len(pairs), dtype=np.int64), {}).ordered()
    assert list(zip(result.key.tolist(), result.start.tolist(), strict=True)) == sorted(pairs)


def test_record_is_in_the_windows_that_cover_it() -> None:
    rows = fast([(0, 3, {"v": 7})], 1, WindowLevel(4, 2), [(0, 100)])
    assert [row["end"] for row in rows] == [4, 6]


def test_window_includes_its_start_and_excludes_its_end() -> None:
    assert [row["end"] for row in fast([(0, 4, {"v": 7})], 1, WindowLevel(4, 4), [(0, 100)])] == [8]


large = st.sampled_from([1, 2**51, 2**60 - 1, 2**60, 2**62 - 1, 2**62, 2**63 - 1]) | st.integers(0, 2**63 - 1)
large_records_of = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 20),
        st.fixed_dictionaries({"v": st.none() | st.builds(int.__mul__, large, st.sampled_from([1, -1]))}),
    ),
    max_size=20,
)


@given(large_records_of, st.integers(1, 2), st.integers(1, 4))
def test_window_decides_exactness_of_its_sum_by_its_own_values(
    records: list[Record], slide: int, mu: int
) -> None:
    level = WindowLevel(slide * mu, slide)
    result = granules(records, 1).windows(level, [(0, 30)])
    column, required = result.columns["v"], ordered(recompute(records, level, 0, 30))
    assert list(result.end) == [row["end"] for row in required]
    for exact, total, row in zip(column.exact, column.total, required, strict=True):
        values, of_all, minimum, limit = row["v"]
        assert exact == (float(max(abs(minimum or 0), abs(limit or 0))) * values < 2**62)
        assert total == of_all or not exact


def test_level_with_range_no_multiple_of_its_slide_is_refused() -> None:
    with pytest.raises(ValueError, match="range 5 must be a positive multiple of slide 2"):
        WindowLevel(5, 2)
