"""Fit least-squares lines of value against time over sliding windows (Patroumpas and Sellis, section 4.B).

A series has one value in each *unit* of time, computed from the unit's values, such as their mean; in fixed
point with `BITS` more bits. A unit without values carries the last value before it in the window, and units
before the window's first value are left out. In a series of counts such a unit is 0, and every unit of a
window with a value is known. With `n` known units, numbered `x = 0 .. n - 1` from the first, and `y(x)`:

    slope = sum((x - xbar) * y) / sum((x - xbar)**2)
          = 6 * (2 * sum(x * y) - (n - 1) * sum(y)) / (n * (n**2 - 1))
    level = sum(y) / n, the line's value at xbar = (n - 1) / 2

These are the paper's equations 6 and 7 with time centred. All sums are distributive. They are exact if no
unit's value reaches `MAX_UNIT_VALUE`, in windows of up to `2**15` units: no digit is lost at present-day
times. Fewer than two units have no line.

`Series.lines` returns the terms of many windows at once, from running sums: a carried value is the same in
every window that contains it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transom.core.exact_sums import Bools, Int64s

Floats = npt.NDArray[np.float64]

BITS = 20
ONE = 2**BITS
MAX_UNIT_VALUE = 2 ** (62 - BITS)
"""Values of units are smaller than this, in steps of their resolution."""
HALF = 31
"""Bits of the lower half of a value: int64 holds `sum(x * y)` of either half of any `2**15` units."""
_LOW = 2**HALF - 1


def split(numbers: Int64s) -> Int64s:
    """Return integers below `2**62` in two parts, with shape (2, numbers): `high * 2**HALF + low`.

    Arithmetic on both parts gives integers larger than int64. Then `low` may have any sign.
    """
    return np.stack([numbers >> HALF, numbers & _LOW])


def to_floats(parts: Int64s) -> Floats:
    """Return integers in two parts as doubles, correct except for the last digit."""
    high, low = parts
    # Carry first, so that neither part cancels digits of the other.
    doubles: Floats = (high + (low >> HALF)) * 2.0**HALF + (low & _LOW)
    return doubles


def to_ints(parts: Int64s) -> list[int]:
    """Return integers in two parts as Python ints."""
    return [(high << HALF) + low for high, low in parts.T.tolist()]


@dataclass(frozen=True)
class FittedLines:
    """The terms of the lines of many windows.

    Attributes:
        units: known units, from the first with a value to the window's end; 0 if there is none.
        total: sum of the values of all known units, in two parts as of `split`.
        moment: sum of value times number, from the first known unit on, in two parts.
        exact: whether no unit's value is too large.
    """

    units: Int64s
    total: Int64s
    moment: Int64s
    exact: Bools

    @property
    def exists(self) -> Bools:
        """Whether each window has a line."""
        exists: Bools = self.units > 1
        return exists

    def slope(self) -> Floats:
        """Return the change of the value per unit; 0 if there is no line."""
        n = np.where(self.exists, self.units, 2)
        above = to_floats(2 * self.moment - self.total * (n - 1))
        n = n.astype(float)
        return np.where(self.exists, 6.0 * above / (n * (n - 1) * (n + 1) * ONE), 0.0)

    def at(self, number: Int64s) -> Floats:
        """Return the line's value at a unit, counted from the first known one."""
        n = np.maximum(self.units, 1)
        mean = to_floats(self.total) / (n * ONE)
        value: Floats = mean + self.slope() * (number - (n - 1) / 2)
        return value


@dataclass(frozen=True)
class Series:
    """The values of many keys, one for each unit with a value.

    Attributes:
        key: the code of the key.
        unit: number of the unit; ordered by key and then by unit.
        value: in fixed point with `BITS` more bits.
        fits: which values are valid: below `2**62`, with these bits.
        length: of a unit, in microseconds.
        carried: whether a unit without a value carries the last one; else it is 0.
    """

    key: Int64s
    unit: Int64s
    value: Int64s
    fits: Bools
    length: int = 1
    carried: bool = True

    def lines(self, first: Int64s, after: Int64s, end: Int64s, units: int) -> FittedLines:
        """Return the terms of the lines of many windows.

        Args:
            first, after: the values `[first, after)` of each window, all of one key.
            end: the number of the first unit after each window.
            units: the number of units of a window.
        """
        known = first < after
        oldest, newest = np.where(known, first, 0), np.where(known, after - 1, 0)
        if not len(self.key):
            none = np.zeros((2, len(first)), dtype=np.int64)
            return FittedLines(none[0], none, none, none[0] == 0)
        base = self.unit.min()
        numbers, until = self.unit - base, end - base
        # The last value of a key is not used here: no window spans two keys.
        following = np.append(numbers[1:], 0) if self.carried else numbers + 1
        values = split(self.value)
        totals = running_sums(values * (following - numbers))
        moments = running_sums(values * _numbers(numbers, following))
        low, last = numbers[newest], values[:, newest]
        high = until if self.carried else low + 1
        total = totals[:, newest] - totals[:, oldest] + last * (high - low)
        moment = moments[:, newest] - moments[:, oldest] + last * _numbers(low, high)
        origin = numbers[oldest] if self.carried else until - units
        misfits = running_sums(~self.fits)
        return FittedLines(
            np.where(known, until - origin, 0),
            np.where(known, total, 0),
            np.where(known, moment - total * origin, 0),
            ~known | (misfits[after] == misfits[first]),
        )


def _numbers(low: Int64s, high: Int64s) -> Int64s:
    """Return the sum of the numbers in `[low, high)`."""
    total: Int64s = (high - low) * (low + high - 1) // 2
    return total


def running_sums(amounts: Int64s | Bools) -> Int64s:
    """Return the sums of all amounts before each position, and of all; along the last axis.

    They may wrap around; a difference of two is exact if the sum of the amounts between them is.
    """
    sums = np.zeros((*amounts.shape[:-1], amounts.shape[-1] + 1), np.int64)
    np.cumsum(amounts, axis=-1, out=sums[..., 1:])
    return sums


def means(total: Int64s, values: Int64s) -> Int64s:
    """Return the means of units in fixed point, rounded half to even.

    Args:
        values: at least 1; `|total| / values < 2**(62 - BITS)`.
    """
    whole, rest = np.divmod(total, values)
    # In two steps, as the total may have no room for more bits.
    fraction, rest = np.divmod(rest << BITS, values)
    fixed = (whole << BITS) + fraction
    fixed += (2 * rest > values) | ((2 * rest == values) & (fixed % 2 == 1))
    return fixed
