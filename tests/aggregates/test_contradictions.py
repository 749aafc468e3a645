"""Windows that contradict those of the next finer level."""

import numpy as np
import pytest

from transom.core.intervals import HOUR_LENGTH
from transom.features.aggregates.aggregate_rows import count_contradictions
from transom.features.aggregates.algorithm.granules import ColumnSummary, Windows
from transom.ledger.task_counters import TaskCounters


def windows(*rows: tuple[int, int, int, int, int, int]) -> Windows:
    """Return windows with key, hour of the end, records, values, minimum and maximum."""
    key, end, records, values, minimum, maximum = np.array(rows, dtype=np.int64).reshape(-1, 6).T
    summary = ColumnSummary(values, np.zeros_like(values), minimum, maximum)
    return Windows(key, end * HOUR_LENGTH, records, {"took": summary}, {})


def test_windows_that_contradict_narrower_ones_are_counted() -> None:
    narrow = windows((0, 2, 3, 2, 1, 5), (0, 3, 9, 1, 4, 4), (1, 2, 1, 0, -9, 99), (2, 2, 1, 1, 0, 0))
    same = (0, 2, 3, 2, 1, 5), (0, 3, 9, 1, 4, 4), (1, 2, 1, 0, 0, 0)
    right = windows(*same, (1, 3, 7, 0, 0, 0), (2, 2, 1, 1, 0, 0), (2, 4, 1, 1, 7, 7))
    wrong = windows((0, 2, 1, 2, 2, 5), (0, 3, 4, 1, 3, 3), (1, 2, 0, 0, 0, 0), (2, 2, 1, 1, 1, 1))
    counters = TaskCounters()
    for finer, wider in ((narrow, right), (windows(), right), (windows(), windows())):
        count_contradictions(finer, wider, HOUR_LENGTH, counters)
    assert counters == TaskCounters()
    count_contradictions(narrow, wrong, HOUR_LENGTH, counters)
    assert counters.maxima == {(1, "wide_short_of_narrow"): 2, (2, "wide_short_of_narrow"): 5}
    assert counters.sums == {(1, "narrow_beyond_wide"): 2, (2, "narrow_beyond_wide"): 1}


@pytest.mark.parametrize(
    ("wide", "lacking"), [([(0, 2), (1, 2)], 4), ([], 4), ([(0, 2), (1, 2), (2, 2)], None)]
)
def test_missing_window_lacks_all_records_of_the_narrower_one(
    wide: list[tuple[int, int]], lacking: int | None
) -> None:
    counters = TaskCounters()
    narrow = windows((0, 2, 3, 0, 0, 0), (0, 3, 9, 0, 0, 0), (1, 2, 1, 0, 0, 0), (2, 2, 4, 0, 0, 0))
    coarse = windows(*((key, end, 9, 0, 0, 0) for key, end in wide))
    count_contradictions(narrow, coarse, 2 * HOUR_LENGTH, counters)
    assert counters.maxima == ({} if lacking is None else {(1, "wide_short_of_narrow"): lacking})


def test_window_that_ends_between_those_of_the_coarser_level_is_not_compared() -> None:
    narrow = windows((0, 1, 9, 1, 0, 9), (0, 3, 8, 1, 0, 9), (1, 2, 3, 1, 2, 5), (1, 4, 2, 1, 2, 5))
    counters = TaskCounters()
    count_contradictions(narrow, windows((1, 2, 1, 1, 3, 5), (1, 4, 2, 1, 2, 5)), 2 * HOUR_LENGTH, counters)
    assert counters.maxima == {(1, "wide_short_of_narrow"): 2}
    assert counters.sums == {(1, "narrow_beyond_wide"): 1}
