"""Count-Min sketches of the last N steps, record by record (Rivetti, Busnel and Mostefaoui, sections 2.2 to
3.3 and 3.6).

Every row of a matrix has its own hash, which assigns each item to a column. A record adds 1 to its item's
cell in each row. The estimate of an item's count f is the smallest of its cells. For a matrix of M records,

    rows c1 = ceil(log2(1 / delta)),  columns c2 = ceil(e / epsilon)
    f <= estimate,  P(estimate - f >= epsilon (M - f)) <= delta

A record and an estimate cost `O(c1)` each, and a matrix `c1 c2` numbers.

A step is a record (count-based windows), or a tick of time with its records (time-based). The window of step
t is the steps `t - N + 1` to `t`. The variants differ in how they forget:

    Vanilla       never forgets: M is the number of all records
    Perfect       stores the window, and subtracts the records that leave it
    Simple        forgets everything at each step that is divisible by N
    Proportional  keeps the matrix of that step instead, and subtracts an N-th at each step
    Splitter      see `transom.features.frequency.algorithm.splitter_reference`

The bounds hold for Vanilla and Perfect. All except Splitter are sums of the matrices of ticks
(`transom.features.frequency.algorithm.tick_matrices`).
"""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from transom.features.frequency.algorithm.params import Shape
from transom.features.frequency.algorithm.row_hashes import columns


class Cell(NamedTuple):
    """A cell of the matrix, by its row and column from 0."""

    row: int
    column: int


Counts = Mapping[Cell, int]
"""The number of records for each cell."""


def cells_of(shape: Shape, item: bytes) -> list[Cell]:
    """Return the cells of an item."""
    return [Cell(row, column) for row, column in enumerate(columns(item, shape))]


class WindowedCountMin(ABC):
    """A sketch of the last N steps.

    `update` adds a record as a step of its own. `update_sample` adds it to the current tick, which
    `update_tick` ends; the order of records within a tick does not matter. Estimates are as of the last step.

    Args:
        shape: the shape of the matrix.
        steps: the number of steps of the window, N; 1 or more.
        step: the number of the step before the first one.

    >>> sketch = Perfect(Shape.for_error(epsilon=0.01, delta=0.01), steps=2)
    >>> for item in (b"a", b"a", b"b"):
    ...     sketch.update(item)
    >>> sketch.estimate(b"a")  # of the last two records
    1
    """

    def __init__(self, shape: Shape, steps: int, step: int = -1) -> None:
        if steps < 1:
            raise ValueError(f"a window has 1 step or more; got {steps}")
        self.shape, self.steps, self.step = shape, steps, step
        self._tick_counts: Counter[Cell] = Counter()

    def update(self, item: bytes) -> None:
        """Add a record as a step of its own."""
        self.update_sample(item)
        self.update_tick()

    def update_sample(self, item: bytes, times: int = 1) -> None:
        """Add one or more records of an item to the current tick."""
        if times < 1:
            raise ValueError(f"an item is seen once or more; got {times}")
        for cell in cells_of(self.shape, item):
            self._tick_counts[cell] += times

    def update_tick(self) -> None:
        """End the current tick."""
        self.step += 1
        self._forget()
        self._count(self._tick_counts)
        self._tick_counts = Counter()

    @abstractmethod
    def _forget(self) -> None:
        """Subtract the records that expire with the new step."""

    @abstractmethod
    def _count(self, counts: Counts) -> None:
        """Add the records of the step."""

    @abstractmethod
    def value(self, cell: Cell) -> int | Fraction:
        """Return the value of a cell."""

    def estimate(self, item: bytes) -> int:
        """Return the estimated count of an item in the window: the smallest of its cells, rounded."""
        return round(min(map(self.value, cells_of(self.shape, item))))


class Vanilla(WindowedCountMin):
    """Never forgets (listing 2.1): counts all records, independent of the number of steps."""

    def __init__(self, shape: Shape, steps: int = 1, step: int = -1) -> None:
        super().__init__(shape, steps, step)
        self._counts: defaultdict[Cell, int | Fraction] = defaultdict(int)

    def _forget(self) -> None:
        pass

    def _count(self, counts: Counts) -> None:
        for cell, count in counts.items():
            self._counts[cell] += count

    def value(self, cell: Cell) -> int | Fraction:
        """Return the value of a cell."""
        return self._counts.get(cell, 0)


class Perfect(Vanilla):
    """Stores the steps of the window, and subtracts each when it leaves (listing 3.1)."""

    def __init__(self, shape: Shape, steps: int, step: int = -1) -> None:
        super().__init__(shape, steps, step)
        self._step_counts: deque[Counts] = deque()

    def _forget(self) -> None:
        if len(self._step_counts) == self.steps:
            for cell, count in self._step_counts.popleft().items():
                self._counts[cell] -= count

    def _count(self, counts: Counts) -> None:
        super()._count(counts)
        self._step_counts.append(counts)


class Simple(Vanilla):
    """Forgets everything at each step that is divisible by N (listing 3.2)."""

    def _forget(self) -> None:
        if self.step % self.steps == 0:
            self._counts.clear()


class Proportional(Vanilla):
    """Keeps the matrix of each step divisible by N, and subtracts an N-th at each step (listing 3.3)."""

    def __init__(self, shape: Shape, steps: int, step: int = -1) -> None:
        super().__init__(shape, steps, step)
        self._snapshot: dict[Cell, Fraction] = {}

    def _forget(self) -> None:
        if self.step % self.steps == 0:
            self._snapshot = {cell: Fraction(count) / self.steps for cell, count in self._counts.items()}
        for cell, part in self._snapshot.items():
            self._counts[cell] -= part
