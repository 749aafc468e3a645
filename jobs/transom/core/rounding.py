"""Round doubles to whole steps, half to even, as the written decimals are rounded.

A step such as 0.001 is no double. So `value / step` can miss a half that the decimal hits: 0.5015 would
become 0.501. A value therefore means the shortest decimal of its double, which for up to 15 digits is the
written one. If the quotient is within its error of a half, that decimal is divided exactly.
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from transom.core.exact_sums import Bools, Int64s

Doubles = npt.NDArray[np.float64]
LARGEST = 2.0**54
"""Values of more steps are not rounded; no caller needs them."""


def ratio(resolution: str) -> tuple[int, int]:
    """Return a step as numerator and denominator.

    >>> ratio("0.001")
    (1, 1000)
    """
    return Decimal(resolution).as_integer_ratio()


def steps(values: Doubles, step: tuple[int, int]) -> tuple[Int64s, Bools]:
    """Return the steps of each value, and which values are finite and at most `LARGEST` steps.

    >>> steps(np.array([0.5015]), ratio("0.001"))[0].tolist()
    [502]
    """
    up, down = step
    with np.errstate(invalid="ignore", over="ignore"):
        multiplied = values * down
        quotients = multiplied / up
        fits = np.abs(quotients) <= LARGEST
        quotients = np.where(fits, quotients, 0.0)
        whole = np.rint(quotients).astype(np.int64)
        if up == down == 1:
            # Nothing was multiplied or divided: a half is exact.
            return whole, fits
        error = np.spacing(np.abs(values)) * down / up + np.spacing(np.abs(multiplied)) / up
        error = (error + np.spacing(np.abs(quotients))) / 2
        doubtful = fits & (np.abs(np.abs(quotients - np.trunc(quotients)) - 0.5) <= error)
    exact = Fraction(down, up)
    for index in np.flatnonzero(doubtful).tolist():
        whole[index] = round(Fraction(repr(float(values[index]))) * exact)
    return whole, fits


def mean(total: Int64s, values: Int64s, step: tuple[int, int]) -> Doubles:
    """Return means; NaN where there is no value.

    Correctly rounded if `total * up` and `values * down` fit into 53 bits, else off by at most 3 roundings.

    Args:
        total: sums, in steps.
        values: the numbers of values.
        step: the step, as numerator `up` and denominator `down`.
    """
    up, down = step
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Doubles = (total.astype(float) * up) / (values.astype(float) * down)
    return means


def value(whole: Int64s, step: tuple[int, int]) -> Doubles:
    """Return the double nearest to each number of steps."""
    up, down = step
    doubles = whole.astype(np.float64) * up / down
    if up > 1:
        # These products are no doubles: they would be rounded twice.
        for index in np.flatnonzero(np.abs(whole) > 2**53 // up).tolist():
            doubles[index] = float(Fraction(int(whole[index]) * up, down))
    return doubles
