"""Metrics and filters of the checks of patterns."""

from collections.abc import Callable, Mapping
from typing import Any

from transom.core.intervals import HOUR_LENGTH
from transom.features.patterns.resolve import PatternBlock
from transom.features.patterns.work_bounds import LONGEST_BATCH, LONGEST_WINDOW

OUTSIDE_HOUR = (
    f"(unix_micros(`last_time`) - unix_micros(`hour`) >= {HOUR_LENGTH}) OR (`last_time` < `start_time`)"
)
"""Whether an episode ends before its start or after its hour. A match is detected after its last record."""


def excess(blocks: Mapping[str, PatternBlock]) -> dict[str, Callable[[Mapping[str, Any]], float | None]]:
    """Return metrics: by how much the longest batch exceeds 2L, and the longest window 4L records."""
    max_records = {name: block.widening.max_records for name, block in blocks.items()}
    return {
        "batch_beyond": lambda row: max(0, row[LONGEST_BATCH] - 2 * max_records[row["block"]]),
        "window_beyond": lambda row: max(0, row.get(LONGEST_WINDOW, 0) - 4 * max_records[row["block"]]),
    }


def records_excess(row: Mapping[str, Any]) -> float:
    """Return how many records the detector got beyond the bound of theorem 2."""
    over: float = row["records_shown"] - row["records_oversized"] - row["records_allowed"]
    return max(0, over)
