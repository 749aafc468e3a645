"""A finished Count-Min sketch of a window, with estimates and addition (Rivetti, Busnel and Mostefaoui,
section 3.5).

The sum of the matrices of several nodes is the matrix of one node with all records. Only Splitter differs, as
it depends on the rates at each node. With the bounds of its cells, added over the nodes:

    low <= records of the cell in the window <= high
    |cell of the sum - cell of one node| <= (high - low) of the nodes + (high - low) of the one node
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta

import numpy as np

from transom.core.durations import format_duration
from transom.core.exact_sums import MAX_EXACT_SUM, Int64s
from transom.core.intervals import EPOCH
from transom.features.frequency.algorithm.params import Shape
from transom.features.frequency.algorithm.row_hashes import columns_of


class UnmergeableError(ValueError):
    """Two sketches cannot be added."""


@dataclass(frozen=True, eq=False)
class WindowSketch:
    """The matrix of a window at the end of a tick.

    Attributes:
        shape: the shape of the matrix, with the seed of its hashes.
        variant: the variant of forgetting records.
        tick: the length of a tick, in microseconds.
        steps: the number of ticks of the window, N.
        step: the number of the last tick.
        records: the number of records in the window, M.
        scale: the matrix counts in `1 / scale` of a record.
        counts: the matrix, shape (rows, columns).
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
            raise ValueError(f"the matrix must have the shape {self.shape}; it is {self.counts.shape}")

    def __add__(self, other: "WindowSketch") -> "WindowSketch":
        """Return the sum of two sketches.

        Raises:
            UnmergeableError: they differ in shape, seed, variant, tick, window or end.
            OverflowError: there are too many records to add exactly.
        """
        if not isinstance(other, WindowSketch):
            return NotImplemented
        for field in fields(self):
            own, another = getattr(self, field.name), getattr(other, field.name)
            if field.name not in ("records", "counts") and own != another:
                what, value = self._format_field(field.name)
                raise UnmergeableError(
                    f"sketches of different {what} do not add up: {value} and "
                    f"{other._format_field(field.name)[1]}"
                )
        if (self.records + other.records) * self.scale >= MAX_EXACT_SUM:
            records = self.records + other.records
            raise OverflowError(f"{records} records, in parts of 1 / {self.scale}, cannot be added exactly")
        return replace(self, records=self.records + other.records, counts=self.counts + other.counts)

    def _format_field(self, field: str) -> tuple[str, str]:
        """Return the name and the value of an attribute, for messages."""
        tick = timedelta(microseconds=self.tick)
        labels = {
            "tick": ("ticks", format_duration(tick)),
            "steps": ("windows", format_duration(self.steps * tick)),
            "step": ("ends", f"{EPOCH + (self.step + 1) * tick:%Y-%m-%dT%H:%M:%SZ}"),
        }
        return labels.get(field, (field, str(getattr(self, field))))

    def estimates(self, items: Sequence[bytes]) -> Int64s:
        """Return the estimated count of each item: the smallest of its cells, rounded.

        Args:
            items: the bytes of each item, as `transom.features.persistence.algorithm.item_slot_hash`
                describes them.
        """
        return self.estimates_at(columns_of(items, self.shape))

    def estimates_at(self, columns: Int64s) -> Int64s:
        """Return the estimates of items, from their columns in each row, shape (rows, items)."""
        smallest = self.counts[np.arange(self.shape.rows)[:, None], columns].min(axis=0)
        # Round half to even, as in the listings.
        whole, rest = np.divmod(smallest, self.scale)
        up = (2 * rest > self.scale) | ((2 * rest == self.scale) & (whole % 2 == 1))
        rounded: Int64s = whole + up
        return rounded
