"""Granules of a few records, computed one by one."""

from typing import Any

import numpy as np

from transom.features.aggregates.algorithm.granules import ColumnSummary, Granules

Record = tuple[int, int, dict[str, int | None]]
"""Key, time and the values of columns."""


def granules(records: list[Record], base: int) -> Granules:
    """Return base granules in plain Python, in the order of their first record."""
    grouped: dict[tuple[int, int], list[int | None]] = {}
    for key, time, values in records:
        grouped.setdefault((key, time - time % base), []).append(values["v"])
    known = [[v for v in values if v is not None] for values in grouped.values()]

    def column(figures: list[int]) -> Any:
        return np.array(figures, dtype=np.int64)

    return Granules(
        column([key for key, _ in grouped]),
        column([start for _, start in grouped]),
        column([len(values) for values in grouped.values()]),
        {
            "v": ColumnSummary(
                column([len(v) for v in known]),
                column([(sum(v) + 2**63) % 2**64 - 2**63 for v in known]),
                column([min(v, default=0) for v in known]),
                column([max(v, default=0) for v in known]),
            )
        },
    ).ordered()
