"""Summaries of a granule's records for the stairwise chain: sums, items, lines, samples of distinct values.

Those that can forget their oldest part do; others are recomputed from the parts of the window.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from operator import itemgetter
from typing import Protocol, Self

from transom.features.aggregates.algorithm.distinct_count import BITS, SIZE
from transom.features.aggregates.algorithm.linear_fit import ONE


class GranuleSummary(Protocol):
    """The summary of a granule's records."""

    def __add__(self, later: Self) -> Self:
        """Return the sum with a later part."""

    def without(self, oldest: Self) -> Self | None:
        """Return the summary without its oldest part; None if it must be recomputed from the other parts."""


@dataclass(frozen=True)
class Sums:
    """Partial aggregates of the values of some records.

    Attributes:
        records: the number of records, with or without a value.
        values: the number of values.
        total: the sum of the values.
        minimum: the smallest value; None without values.
        maximum: the largest value; None without values.
    """

    records: int
    values: int
    total: int
    minimum: int | None
    maximum: int | None

    @classmethod
    def of(cls, value: int | None) -> "Sums":
        """Return the summary of one record."""
        return cls(1, 0, 0, None, None) if value is None else cls(1, 1, value, value, value)

    def __add__(self, later: "Sums") -> "Sums":
        minima = [part.minimum for part in (self, later) if part.minimum is not None]
        maxima = [part.maximum for part in (self, later) if part.maximum is not None]
        records, values = self.records + later.records, self.values + later.values
        extremes = min(minima, default=None), max(maxima, default=None)
        return Sums(records, values, self.total + later.total, *extremes)

    def without(self, oldest: "Sums") -> "Sums | None":
        """Subtract counts and sums; return None if the oldest part has an extreme of the whole."""
        if oldest.values and (oldest.minimum == self.minimum or oldest.maximum == self.maximum):
            return None
        records, values = self.records - oldest.records, self.values - oldest.values
        return Sums(records, values, self.total - oldest.total, self.minimum, self.maximum)


@dataclass(frozen=True)
class Items:
    """The number of records of each item, without zeros.

    Coarser granules add the numbers of finer ones, where the paper (section 4.C) ORs bits.
    """

    records: Mapping[Hashable, int]

    def __add__(self, later: "Items") -> "Items":
        return Items(Counter(self.records) + Counter(later.records))

    def without(self, oldest: "Items") -> "Items":
        """Return the summary without its oldest part."""
        return Items(Counter(self.records) - Counter(oldest.records))


@dataclass(frozen=True)
class Line:
    """The terms of consecutive known units of a line (`linear_fit`); exact, as whole numbers of any size.

    Attributes:
        first: the number of the first unit; it has a value.
        until: the number after the last unit.
        last: the value of the last unit.
        total: the sum of the values of all units.
        moment: the sum of number times value.
    """

    first: int
    until: int
    last: int
    total: int
    moment: int

    @classmethod
    def of(cls, unit: int, mean: int) -> "Line":
        """Return the terms of one unit."""
        return cls(unit, unit + 1, mean, mean, unit * mean)

    def through(self, until: int) -> "Line":
        """Return the terms extended to all units before `until`, which carry the last value."""
        total = self.total + (until - self.until) * self.last
        moment = self.moment + (until - self.until) * (self.until + until - 1) // 2 * self.last
        return Line(self.first, until, self.last, total, moment)

    def __add__(self, later: "Line") -> "Line":
        own = self.through(later.first)
        return Line(self.first, later.until, later.last, own.total + later.total, own.moment + later.moment)

    def without(self, oldest: "Line") -> None:
        """Return None: values that the oldest part carries affect later units."""


def unit_means(records: Iterable[tuple[int, int | None]], unit: int) -> Iterator[tuple[int, Line]]:
    """Yield the start and the terms of each unit with a value; `records` are ascending by time."""
    known = ((time // unit, value) for time, value in records if value is not None)
    for number, group in groupby(known, itemgetter(0)):
        values = [value for _, value in group]
        yield number * unit, Line.of(number, mean(sum(values), len(values)))


def mean(total: int, values: int) -> int:
    """Return a unit's mean in fixed point, rounded half to even."""
    return round(Fraction(total * ONE, values))


@dataclass(frozen=True)
class AdaptiveSample:
    """The summary of a set of hashes (`distinct_count`).

    Attributes:
        hashes: the `size + 1` smallest ones, or all if there are fewer; ascending.
        size: the maximal number of hashes that are counted exactly.
    """

    hashes: tuple[int, ...]
    size: int = SIZE

    @classmethod
    def of(cls, hashes: Iterable[int], size: int = SIZE) -> "AdaptiveSample":
        """Return the summary of hashes, each at least 1 and below 2**63."""
        return cls(tuple(sorted(set(hashes))[: size + 1]), size)

    def __add__(self, later: "AdaptiveSample") -> "AdaptiveSample":
        return AdaptiveSample.of((*self.hashes, *later.hashes), self.size)

    def without(self, oldest: "AdaptiveSample") -> None:
        """Return None: a value of the oldest part may also be in other parts."""

    @property
    def depth(self) -> int:
        """The depth of the set."""
        return 0 if len(self.hashes) <= self.size else depth_of(self.hashes[-1]) + 1

    @property
    def count(self) -> int:
        """The number of hashes in the sample."""
        return sum(depth_of(value) >= self.depth for value in self.hashes)


def depth_of(value: int) -> int:
    """Return the largest depth at which a hash is in the sample."""
    return BITS - value.bit_length()
