"""Splitter: a Count-Min sketch of the last N steps that forgets at the rate at which it counted, record by
record (Rivetti, Busnel and Mostefaoui, section 3.4).

A cell is a queue of sub-cells. Each has counted an interval of steps, and its records are assumed to be
evenly spread. Records that leave the window are subtracted from the oldest sub-cell at its rate. The newest
one counts until it has `tau M / c2` records. Then it is merged into the previous one if their rates differ by
a factor of at most `mu`. If the number of records in the window, M, is constant, there are at most
`c1 c2 / tau` sub-cells besides the oldest and the newest of each cell. If it grows, there are up to
`1 + ln M` times as many.

`SplitterListing`, the paper's listing, retracts every cell at every step. `Splitter` has the same values. It
updates a cell before it is read, at an amortised cost of `O(log 1/delta)` per record.

Unlike in the paper, sub-cells also store their total number of records. If the oldest one has partly expired,
this gives bounds:

    low = sum of the other sub-cells
    low <= records of the cell in the window <= min(low + total of the oldest, M)

An item's count is at most the upper bound of any of its cells. If rates are steady, sub-cells are always
merged and the bounds are wide.
"""

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, product
from typing import Any

from transom.features.frequency.algorithm.params import MU, TAU, UNIT, Shape
from transom.features.frequency.algorithm.reference import Cell, Counts, WindowedCountMin, cells_of


@dataclass
class SubCell:
    """An interval of steps of a cell.

    Attributes:
        counter: the records that have not expired, in the unit of the sketch.
        first_step: the first step that has not expired.
        last_step: the step of its last record.
        total: all records that it counted.
        partly_expired: whether some records have expired.
    """

    counter: Any
    first_step: int
    last_step: int
    total: int
    partly_expired: bool = False

    @property
    def rate(self) -> Any:
        """The mean count per step."""
        return self.counter / (self.last_step - self.first_step + 1)


def error(previous: SubCell, last: SubCell) -> Any:
    """Return the larger rate of two sub-cells divided by the smaller one (listing 3.5).

    The previous one is assumed to last until the other begins.
    """
    previous_rate, last_rate = previous.counter / (last.first_step - previous.first_step), last.rate
    return max(previous_rate, last_rate) / min(previous_rate, last_rate)


class SplitterListing(WindowedCountMin):
    """Updates every cell at every step (listing 3.4), with exact fractions.

    Args:
        shape: the shape of the matrix.
        steps: the number of steps of the window, N.
        step: the number of the step before the first one.
        tau: a sub-cell counts until it has this share of `M / c2` records; above 0, at most 1. A larger value
            has fewer sub-cells and a larger error.
        mu: rates that differ by at most this factor count as equal; above 0, usually 1 or more. A larger
            value has fewer sub-cells and a larger error.
    """

    unit: Fraction | int = Fraction(1)
    """Counters are in `1 / unit` of a record."""
    rate_type: type[Fraction] | type[float] = Fraction
    """The type of `mu`."""

    def __init__(
        self, shape: Shape, steps: int, step: int = -1, tau: Fraction = TAU, mu: Fraction = MU
    ) -> None:
        super().__init__(shape, steps, step)
        if not 0 < tau <= 1:
            raise ValueError(f"tau must be above 0 and at most 1; got {float(tau):g}")
        if mu <= 0:
            raise ValueError(f"mu must be above 0; got {float(mu):g}")
        self.tau, self.mu = tau, self.rate_type(mu)
        self.sub_cells: defaultdict[Cell, deque[SubCell]] = defaultdict(deque)
        self._of_steps: deque[int] = deque()
        self._in_window = 0
        self._count_based = False

    @property
    def records(self) -> int:
        """The number of records in the window, M; for count-based windows its final number."""
        return self.steps if self._count_based else self._in_window

    def update(self, item: bytes) -> None:
        """Add a record as a step of its own."""
        self._count_based = True
        super().update(item)

    def _forget(self) -> None:
        for row, column in product(range(self.shape.rows), range(self.shape.columns)):
            self._retract(self.sub_cells[Cell(row, column)])

    def _retract(self, queue: deque[SubCell]) -> None:
        """Remove expired records. Calling it again in the same step has no effect."""
        if queue and queue[0].first_step == self.step - self.steps:
            first = queue[0]
            first.counter -= first.rate
            first.first_step += 1
            first.partly_expired = True
            if first.first_step > first.last_step:
                queue.popleft()

    def _count(self, counts: Counts) -> None:
        if len(self._of_steps) == self.steps:
            self._in_window -= self._of_steps.popleft()
        # Each record is in exactly one cell of the first row.
        self._of_steps.append(sum(count for cell, count in counts.items() if cell.row == 0))
        self._in_window += self._of_steps[-1]
        complete = self._complete()
        for cell, count in counts.items():
            self._retract(self.sub_cells[cell])
            self._add(self.sub_cells[cell], count, complete)

    def _complete(self) -> Fraction | int:
        """Return the counter with which a sub-cell is complete."""
        return self.tau * self.records * self.unit / self.shape.columns

    def _add(self, queue: deque[SubCell], count: int, complete: Fraction | int) -> None:
        """Add records to the newest sub-cell, or to a new one if it is complete."""
        now, last = self.step, queue[-1] if queue else None
        if last is not None and last.counter < complete:
            last.last_step = now
            last.counter += count * self.unit
            last.total += count
            return
        if last is not None and len(queue) > 1 and error(queue[-2], last) <= self.mu:
            previous = queue[-2]
            previous.last_step = last.last_step
            previous.counter += last.counter
            previous.total += last.total
            queue.pop()
        queue.append(SubCell(count * self.unit, now, now, count))

    def value(self, cell: Cell) -> Fraction:
        """Return the value of a cell."""
        queue = self.sub_cells.get(cell, deque())
        self._retract(queue)
        return self._sum(queue)

    def _sum(self, queue: Iterable[SubCell]) -> Fraction:
        return Fraction(sum(sub.counter for sub in queue)) / self.unit

    def bounds(self, item: bytes) -> tuple[Fraction, Fraction]:
        """Return the smallest lower and the smallest upper bound of an item's cells, in records.

        The item's count is at most the upper bound.
        """
        of_cells = [self.bounds_of(cell) for cell in cells_of(self.shape, item)]
        return min(low for low, _ in of_cells), min(high for _, high in of_cells)

    def bounds_of(self, cell: Cell) -> tuple[Fraction, Fraction]:
        """Return lower and upper bounds of a cell's number of records in the window."""
        whole, queue = self.value(cell), self.sub_cells.get(cell)
        if not queue or not queue[0].partly_expired:
            return whole, whole
        rest = self._sum(islice(queue, 1, None))
        return rest, min(rest + queue[0].total, Fraction(self._in_window))

    def queues(self) -> Iterator[tuple[Cell, list[SubCell]]]:
        """Yield the sub-cells of all cells that have any."""
        for cell, queue in self.sub_cells.items():
            self._retract(queue)
            if queue:
                yield cell, list(queue)


class Splitter(SplitterListing):
    """Updates a cell when it gets a record or is read; cells without records are not stored."""

    def _forget(self) -> None:
        pass

    def _retract(self, queue: deque[SubCell]) -> None:
        start = self.step - self.steps + 1
        while queue and queue[0].last_step < start:
            queue.popleft()
        if queue and queue[0].first_step < start:
            first = queue[0]
            first.counter = self._remaining(first, first.last_step - start + 1)
            first.first_step = start
            first.partly_expired = True

    def _remaining(self, first: SubCell, steps: int) -> Any:
        """Return the counter of a sub-cell for its last steps, those in the window."""
        return first.rate * steps


class FixedPointSplitter(Splitter):
    """Rounds counters to `1 / UNIT` of a record, and computes with doubles.

    Its values equal those of `transom.features.frequency.algorithm.splitter` to the last bit. Exact fractions
    grow without bound if a sub-cell gets records while others of its records leave the window.
    """

    unit = UNIT
    rate_type = float

    def _complete(self) -> int:
        return math.ceil(super()._complete())

    def _remaining(self, first: SubCell, steps: int) -> Any:
        return round(first.counter * (steps / (first.last_step - first.first_step + 1)))
