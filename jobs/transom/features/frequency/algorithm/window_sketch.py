"""A Count-Min sketch that is done: what it counts, and what may be added to it (Rivetti, Busnel and
Mostefaoui, section 3.5).

Matrices of equal shape, hashes, variant, ticks, window and end add up, in whatever order; others do not, and
are refused. What many nodes have counted of their own records is, cell by cell, what one has counted of them
all. Only of Splitter it is not, which goes by the rates that each has seen: with the bounds of its cells
(`transom.features.frequency.algorithm.splitter_reference`), of nodes added up, the cells of both of them

    low <= records of the cell in the window <= high
    |cell of the sum - cell of one| <= (high - low) of the nodes + (high - low) of the one
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta

import numpy as np

from transom.core.durations import format_duration
from transom.core.exact_sums import MAX_EXACT_SUM, Int64s
from transom.core.intervals import EPOCH
from transom.features.frequency.algorithm.reference import Shape
from transom.features.frequency.algorithm.row_hash_arrays import columns_of


class UnmergeableError(ValueError):
    """Two sketches that do not add up."""


@dataclass(frozen=True, eq=False)
class WindowSketch:
    """What a matrix holds at the end of a tick.

    Attributes:
        shape: of the matrix, with the seed of its hashes.
        variant: how records are forgotten.
        tick: the length of a tick, in microseconds.
        steps: ticks of the window, N.
        step: the number of the last tick.
        records: how many there are in the window, M.
        scale: in which parts of a record the matrix counts.
        counts: the matrix: `(rows, columns)`.

    Raises:
        ValueError: a matrix of another shape.
    """

    shape: Shape
    variant: str
    tick: int
    steps: int
    step: int
    records: int
    scale: int
    counts: Int64s

    def __post_init__(self) -> None:
        if self.counts.shape != (self.shape.rows, self.shape.columns):
            raise ValueError(f"the matrix must be as {self.shape} says; it is {self.counts.shape}")

    def __add__(self, other: "WindowSketch") -> "WindowSketch":
        """What both have counted together.

        Raises:
            UnmergeableError: they do not have the same shape, seed, variant, tick, window or end.
            OverflowError: there are more records than can be added exactly.
        """
        if not isinstance(other, WindowSketch):
            return NotImplemented
        for field in fields(self):
            one, another = getattr(self, field.name), getattr(other, field.name)
            if field.name not in ("records", "counts") and one != another:
                what, said = self._format_field(field.name)
                raise UnmergeableError(
                    f"sketches of different {what} do not add up: {said} and "
                    f"{other._format_field(field.name)[1]}"
                )
        if (self.records + other.records) * self.scale >= MAX_EXACT_SUM:
            many = self.records + other.records
            raise OverflowError(f"{many} records, in parts of 1 / {self.scale}, cannot be added exactly")
        return replace(self, records=self.records + other.records, counts=self.counts + other.counts)

    def _format_field(self, field: str) -> tuple[str, str]:
        """An attribute, and its value, for people."""
        tick = timedelta(microseconds=self.tick)
        told = {
            "tick": ("ticks", format_duration(tick)),
            "steps": ("windows", format_duration(self.steps * tick)),
            "step": ("ends", f"{EPOCH + (self.step + 1) * tick:%Y-%m-%dT%H:%M:%SZ}"),
        }
        return told.get(field, (field, str(getattr(self, field))))

    def estimates(self, items: Sequence[bytes]) -> Int64s:
        """How often each of some items was seen: the smallest of its cells, to the nearest whole number."""
        return self.estimates_at(columns_of(items, self.shape.rows, self.shape.columns, self.shape.seed))

    def estimates_at(self, columns: Int64s) -> Int64s:
        """The same of items whose columns are known: `(rows, items)`."""
        least = self.counts[np.arange(self.shape.rows)[:, None], columns].min(axis=0)
        # Half of a record goes to the even number, as in the listings.
        whole, rest = np.divmod(least, self.scale)
        up = (2 * rest > self.scale) | ((2 * rest == self.scale) & (whole % 2 == 1))
        found: Int64s = whole + up
        return found
