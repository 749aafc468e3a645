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
        slots: the number of slots of the window, `n`; 1 or more.
        alpha: the minimum share of slots of a persistent item; above 0, at most 1.
        epsilon: the tolerance below `alpha` for a reported item; from `2 / n`, below `alpha`. A larger value
            stores fewer tuples, and reports more items that are not alpha-persistent.
        instances: the number of instances, each with its own seed; 1 or more. Each stores tuples of its own.

    >>> params = PersistenceParams(72, Fraction(7, 10), Fraction(3, 10), instances_for(0.05))
    >>> params.tau, params.min_reported, params.min_certain, params.instances
    (Fraction(5, 54), 29, 51, 2)
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
                f"epsilon must be at least 2 / {self.slots}, or every item is tracked, which costs more than "
                f"exact counts: tau = 2 / (epsilon n) is {float(self.tau):.3g}; got "
                f"epsilon {float(self.epsilon):g} of {self.slots} slots"
            )

    @property
    def tau(self) -> Fraction:
        """The probability that an item is tracked from a given slot of it on: `2 / (epsilon n)`."""
        return 2 / (self.epsilon * self.slots)

    @property
    def hash_threshold(self) -> int:
        """The smallest hash that is not below `tau`, in steps of `1 / UNIT`."""
        return math.ceil(self.tau * UNIT)

    @property
    def min_reported(self) -> int:
        """The minimum number of counted slots of a reported item."""
        return math.ceil((self.alpha - self.epsilon) * self.slots)

    @property
    def min_certain(self) -> int:
        """The minimum number of counted slots of an item that is certainly alpha-persistent."""
        return math.ceil(self.alpha * self.slots)

    def estimate(self, counted: int) -> Fraction:
        """Return the paper's estimate of an item's persistence, `counted + 1 / tau`.

        The published estimate is also limited to the upper bound (`vectorised.estimates`).
        """
        return counted + 1 / self.tau

    def may_be(self, counted: Any, unknown: Any) -> Any:
        """Return whether an item may be alpha-persistent: `counted + unknown >= alpha n`.

        The paper also reports other items with `counted >= (alpha - epsilon) n`. Omitting them misses no
        persistent item.

        Args:
            counted: the number of the item's slots since an instance tracks it; a number or an array.
            unknown: the number of slots of the window before that.
        """
        return counted + unknown >= self.min_certain


def instances_for(delta: float) -> int:
    """Return the number of instances that all miss an alpha-persistent item with probability at most `delta`
    (theorem 3.1).

    Args:
        delta: above 0 and below 1; a smaller value needs more instances.
    """
    return max(1, math.ceil(math.log(1 / delta) / 2))
