"""Find recurring items: those that occur at every granularity (Patroumpas and Sellis, section 4.C).

An item of a key is recurring at `f` if it appears at least once in every ring
`[f - range_i, f - range_{i-1})` of the levels, ring 0 being `[f - range_0, f)`: now, in the hours before, and
in the days before those. Its counts in the rings show how regular it is.

Granules have the number of records of each item. Coarser granules add those of finer ones, where the paper
ORs bits. `Items` is the summary for the stairwise chain, record by record; `recurring` finds the items of
many keys at once.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from transom.core.exact_sums import Int64s
from transom.features.aggregates.algorithm.granules import Granules, WindowLevel
from transom.features.aggregates.algorithm.rings import Rings
from transom.features.aggregates.algorithm.stairwise_reference import LevelReport


@dataclass(frozen=True)
class Items:
    """The number of records of each item, without zeros."""

    records: Mapping[Hashable, int]

    @classmethod
    def of(cls, item: Hashable) -> "Items":
        """Return the summary of one record."""
        return cls({item: 1})

    def __add__(self, later: "Items") -> "Items":
        return Items(Counter(self.records) + Counter(later.records))

    def without(self, oldest: "Items") -> "Items":
        """Return the summary without its oldest part."""
        return Items(Counter(self.records) - Counter(oldest.records))


def of_report(report: LevelReport[Items]) -> dict[Hashable, tuple[int, ...]]:
    """Return the recurring items of a report of the widest level, with their number of records in each
    ring."""
    if any(ring is None for ring in report.rings):
        return {}
    rings = [ring.records for ring in report.rings if ring is not None]
    everywhere = set(rings[0]).intersection(*rings[1:])
    return {item: tuple(ring[item] for ring in rings) for item in everywhere}


@dataclass(frozen=True)
class Recurring:
    """Recurring items, by code and then by time.

    Attributes:
        code: the code of key and item together.
        end: the time of the report, in microseconds.
        counts: records in each ring, the nearest first; shape (levels, found).
    """

    code: Int64s
    end: Int64s
    counts: Int64s


def recurring(
    granules: Granules, length: int, levels: Sequence[WindowLevel], intervals: Sequence[tuple[int, int]]
) -> Recurring:
    """Return the recurring items at every report of the widest level.

    Args:
        granules: of each pair of key and item, ordered; `key` is the pair's code.
        length: of a granule, in microseconds; divides every range, and the slide of the widest level.
        levels: the finest first.
        intervals: pairs `(a, b)` in microseconds: reports at `f` with `a < f <= b` are returned.
    """
    reports = granules.windows(levels[-1], intervals)
    rings = Rings.of(granules, length, reports.key, reports.end, [level.range for level in levels])
    counts = rings.sums(granules.records)
    everywhere = np.all(counts > 0, axis=0)
    return Recurring(reports.key[everywhere], reports.end[everywhere], counts[:, everywhere])
