"""Parameters of persistent items and the rules for a report; explained in
`transom.features.persistence.algorithm.reference`."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

UNIT = 2**53
"""Steps of a hash from 0 to 1."""


@dataclass(frozen=True)
class PersistenceParams:
    """Parameters of a window.

    Attributes:
        slots: the number of slots of the window, n.
        alpha: the minimum share of slots of a persistent item; above 0, at most 1.
        epsilon: the tolerance below alpha for a reported item; above 0, below alpha, and so large that not
            every item is tracked. Larger values give fewer tuples.
        instances: the number of instances, each with its own seed.
    """

    slots: int
    alpha: Fraction
    epsilon: Fraction
    instances: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise ValueError(f"alpha must be above 0 and at most 1; got {float(self.alpha):g}")
        if not 0 < self.epsilon < self.alpha:
            got = f"{float(self.epsilon):g} and alpha {float(self.alpha):g}"
            raise ValueError(f"epsilon must be above 0 and below alpha; got {got}")
        if self.slots < 1 or self.instances < 1:
            raise ValueError(f"slots and instances must be 1 or more; got {self.slots}, {self.instances}")
        if self.tau > 1:
            raise ValueError(
                f"epsilon must be at least 2 / {self.slots}, or every item is tracked, which takes more than "
                f"counting all of them exactly: tau = 2 / (epsilon n) is {float(self.tau):.3g}; got "
                f"epsilon {float(self.epsilon):g} of {self.slots} slots"
            )

    @property
    def tau(self) -> Fraction:
        """The probability that an item is tracked from one of its slots on."""
        return 2 / (self.epsilon * self.slots)

    @property
    def hash_threshold(self) -> int:
        """The smallest hash, in steps of `1 / UNIT`, that is not below `tau`."""
        return math.ceil(self.tau * UNIT)

    @property
    def min_reported(self) -> int:
        """The minimum counted slots of a reported item."""
        return math.ceil((self.alpha - self.epsilon) * self.slots)

    @property
    def min_certain(self) -> int:
        """The minimum counted slots of an item that is certainly alpha-persistent."""
        return math.ceil(self.alpha * self.slots)

    def estimate(self, counted: int) -> Fraction:
        """Return the paper's estimate of an item's persistence from its counted slots. The published one is
        limited to what is possible (`transom.features.persistence.algorithm.vectorised.estimates`)."""
        return counted + 1 / self.tau

    def may_be(self, counted: Any, unknown: Any) -> Any:
        """Return whether an item may be alpha-persistent: whether its persistence can be `alpha n`.

        The paper also reports other items that were counted often enough. Leaving them out misses nothing.

        Args:
            counted: the number of the item's slots since any instance tracks it; a number or an array.
            unknown: the number of slots of the window before that.
        """
        return counted + unknown >= self.min_certain


def instances_for(delta: float) -> int:
    """Return the number of instances that all miss an alpha-persistent item with probability at most `delta`,
    above 0 and below 1 (theorem 3.1)."""
    return max(1, math.ceil(math.log(1 / delta) / 2))
