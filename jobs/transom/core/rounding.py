"""Doubles to whole steps, half to even, as a person rounds the decimal that is written.

A step such as 0.001 is no double, so `value / step` lands beside a half where the decimal lies on it:
0.5015 would become 0.501. A value is therefore taken for the shortest decimal that means its double,
which for up to 15 digits is the one that was written, and where the quotient is as near to a half as
its error, that decimal is divided exactly.
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

LARGEST = 2.0**54
"""Steps beyond which a double is not rounded: no caller takes as many."""


def ratio(resolution: str) -> tuple[int, int]:
    """A step as numerator and denominator."""
    return Decimal(resolution).as_integer_ratio()


def steps(
    values: npt.NDArray[np.float64], step: tuple[int, int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """How many steps make each value, and which values are finite and not beyond `LARGEST` steps."""
    up, down = step
    with np.errstate(invalid="ignore", over="ignore"):
        multiplied = values * down
        found = multiplied / up
        fits = np.abs(found) <= LARGEST
        found = np.where(fits, found, 0.0)
        whole = np.rint(found).astype(np.int64)
        if up == down == 1:
            # Nothing was calculated, and the shortest decimal of a half ends in .5.
            return whole, fits
        error = np.spacing(np.abs(values)) * down / up + np.spacing(np.abs(multiplied)) / up
        error = (error + np.spacing(np.abs(found))) / 2
        doubtful = fits & (np.abs(np.abs(found - np.trunc(found)) - 0.5) <= error)
    exact = Fraction(down, up)
    for index in np.flatnonzero(doubtful).tolist():
        whole[index] = round(Fraction(repr(float(values[index]))) * exact)
    return whole, fits


def mean(
    total: npt.NDArray[np.int64], values: npt.NDArray[np.int64], step: tuple[int, int]
) -> npt.NDArray[np.float64]:
    """The mean of some values by their sum in steps; NaN of none.

    The double next to it where 53 bits hold `total * up` and `values * down`, else off by at most three
    roundings.
    """
    up, down = step
    with np.errstate(invalid="ignore", divide="ignore"):
        found: npt.NDArray[np.float64] = (total.astype(float) * up) / (values.astype(float) * down)
    return found


def value(whole: npt.NDArray[np.int64], step: tuple[int, int]) -> npt.NDArray[np.float64]:
    """The double next to each number of steps."""
    up, down = step
    found = whole.astype(np.float64) * up / down
    if up > 1:
        # The product of these is no double, so that two roundings would follow each other.
        for index in np.flatnonzero(np.abs(whole) > 2**53 // up).tolist():
            found[index] = float(Fraction(int(whole[index]) * up, down))
    return found
