"""Recurring items: those that come back at every granularity (Patroumpas and Sellis, section 4.C).

An item of a key is recurring at `f` if it appears at least once in every ring
`[f - range_i, f - range_{i-1})` of the levels, ring 0 being `[f - range_0, f)`: now, in the hours before, and
in the days before those. How often it was there in each ring tells how regular it is.

Granules hold how many records each item has; going up, those of finer granules are added, as the paper ORs
their bits, of which they hold more. `Items` is that summary for the stairwise chain, record by record;
`recurring` finds the items of many keys at once.
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
    """How many records each item has; of those that have some."""

    records: Mapping[Hashable, int]

    @classmethod
    def of(cls, item: Hashable) -> "Items":
        """Of one record."""
        return cls({item: 1})

    def __add__(self, later: "Items") -> "Items":
        return Items(Counter(self.records) + Counter(later.records))

    def without(self, oldest: "Items") -> "Items":
        """What is left when the oldest part leaves."""
        return Items(Counter(self.records) - Counter(oldest.records))


def of_report(report: LevelReport[Items]) -> dict[Hashable, tuple[int, ...]]:
    """The recurring items of a report of the widest level: how many records each has in every ring."""
    if any(ring is None for ring in report.rings):
        return {}
    rings = [ring.records for ring in report.rings if ring is not None]
    everywhere = set(rings[0]).intersection(*rings[1:])
    return {item: tuple(ring[item] for ring in rings) for item in everywhere}


@dataclass(frozen=True)
class Recurring:
    """Items that are recurring, by their code and then by time.

    Attributes:
        code: of key and item together.
        end: when, in microseconds.
        counts: records in each ring, the nearest first; shape (levels, found).
    """

    code: Int64s
    end: Int64s
    counts: Int64s


def recurring(
    granules: Granules, length: int, levels: Sequence[WindowLevel], stretches: Sequence[tuple[int, int]]
) -> Recurring:
    """The recurring items at every report of the widest level.

    Args:
        granules: ordered, of each pair of key and item; `key` is the pair's code.
        length: of a granule, in microseconds; divides every range, and the slide of the widest level.
        levels: the finest first.
        stretches: pairs `(a, b)` in microseconds: reports at `f` with `a < f <= b` are wanted.
    """
    found = granules.windows(levels[-1], stretches)
    rings = Rings.of(granules, length, found.key, found.end, [level.range for level in levels])
    counts = rings.sums(granules.records)
    everywhere = np.all(counts > 0, axis=0)
    return Recurring(found.key[everywhere], found.end[everywhere], counts[:, everywhere])
