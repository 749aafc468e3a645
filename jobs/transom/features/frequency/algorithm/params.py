"""Parameters of Count-Min sketches; explained in `transom.features.frequency.algorithm.reference`."""

import math
from dataclasses import dataclass
from fractions import Fraction

SEEDS = 2**32
"""The number of seeds."""
WIDEST = 2**32
"""Maximum number of columns."""
TAU, MU = Fraction(1, 20), Fraction(3, 2)
"""Default parameters of Splitter, as in the paper's evaluation."""
UNIT = 2**24
"""Steps of a record: Splitter counts in `1 / UNIT` of a record."""


@dataclass(frozen=True)
class Shape:
    """The shape of a matrix. Matrices of the same shape can be added.

    Attributes:
        rows: the number of rows, `c1`; 1 or more. More rows make large errors rarer.
        columns: the number of columns, `c2`; 1 to 2^32. More columns make errors smaller.
        seed: the seed of the hashes, from 0 to 2^32 - 1.

    >>> Shape.for_error(epsilon=0.01, delta=0.01)
    Shape(rows=7, columns=272, seed=0)
    """

    rows: int
    columns: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rows < 1 or not 0 < self.columns <= WIDEST:
            raise ValueError(f"a matrix has 1 row or more, and 1 to 2^32 columns; got {self}")
        if not 0 <= self.seed < SEEDS:
            raise ValueError(f"seed must be from 0 up to 2^32; got {self.seed}")

    @classmethod
    def for_error(cls, epsilon: float, delta: float, seed: int = 0) -> "Shape":
        """Return the shape with `P(estimate - f >= epsilon * M) <= delta` for an item's count f of M records.

        Args:
            epsilon: above 0 and below 1; a larger value has fewer columns.
            delta: above 0 and below 1; a larger value has fewer rows.
            seed: the seed of the hashes.

        Raises:
            ValueError: a value is out of range.
        """
        for name, value in (("epsilon", epsilon), ("delta", delta)):
            if not 0 < value < 1:
                raise ValueError(f"{name} must be above 0 and below 1; got {value:g}")
        return cls(max(1, math.ceil(-math.log2(delta))), math.ceil(math.e / epsilon), seed)

    @property
    def epsilon(self) -> float:
        """The error of an estimate as a share of the records: `e / c2`."""
        return math.e / self.columns

    @property
    def delta(self) -> float:
        """The probability of a larger error: `2^-c1`."""
        return 2.0**-self.rows

    @property
    def cells(self) -> int:
        """The number of cells."""
        return self.rows * self.columns
