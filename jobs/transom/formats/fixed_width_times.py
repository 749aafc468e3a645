"""Read times of a fixed-width form from their bytes, whole columns at a time.

Apache's times have such a form, and few of them repeat in a busy log. Other spellings (a day of one digit, a
month in capitals, a second that does not exist) are left to the plain reader, which accepts all that strptime
does.
"""

import re
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

WIDTHS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "b": 3, "z": 5}
"""Bytes of each part; %b is an English month, as in Python without a locale."""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
YEARS = (1900, 2300)
"""Logs have no other years. Near the years 1 and 9999, UTC may be outside of a datetime's range."""

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_MONTH_CODES = np.array([int.from_bytes(month.encode(), "big") for month in MONTHS])
_ORDER = np.argsort(_MONTH_CODES)


@cache
def _parts(form: str) -> dict[str, int] | None:
    """Return the position of each part of a form and of each literal character, and under "" its length; None
    for a form of another kind.
    """
    tokens = re.findall(r"%(.)|([^%])", form, re.DOTALL)
    at, parts = 0, {}
    for directive, literal in tokens:
        parts[f"%{directive}" if directive else f"{literal}{at}"] = at
        at += WIDTHS.get(directive, 1)
    names = [f"%{directive}" for directive, _ in tokens if directive]
    whole = "".join(f"%{directive}" if directive else literal for directive, literal in tokens) == form
    # A repeated part, or a single percent sign, is left to strptime.
    valid = whole and form.isascii() and len(names) == len(set(names))
    known = all(name[1] in WIDTHS for name in names) and ("%b" in names) != ("%m" in names)
    return {**parts, "": at} if valid and known and {"%Y", "%d", "%H", "%M", "%S"} <= set(names) else None


def of_fixed_width(text: pa.Array, form: str, zone: str | None, micros: Int64s) -> Mask:
    """Read the times that have exactly the fixed-width form.

    Args:
        zone: the zone of times without an offset; if it is not UTC, these are left to the plain reader.
        micros: receives their instants.

    Returns:
        Which times were read; `micros` is unchanged for the others.
    """
    was_read = np.zeros(len(text), dtype=bool)
    parts = _parts(form)
    if parts is None or ("%z" not in parts and zone != "UTC"):
        return was_read
    width = parts[""]
    rows = np.flatnonzero(np.asarray(pc.fill_null(pc.equal(pc.binary_length(text), width), False)))
    if not len(rows):
        return was_read
    packed = text.take(pa.array(rows)).cast(pa.large_string())
    _, offsets, data = packed.buffers()
    first = np.frombuffer(offsets, dtype=np.int64)[packed.offset]
    size = len(rows) * width
    letters = np.frombuffer(data, dtype=np.uint8, count=size, offset=first).reshape(-1, width)
    instants, valid = _instants(letters, parts)
    micros[rows[valid]] = instants[valid]
    was_read[rows[valid]] = True
    return was_read


def _instants(letters: npt.NDArray[np.uint8], at: dict[str, int]) -> tuple[Int64s, Mask]:
    valid = np.ones(len(letters), dtype=bool)
    for name, place in at.items():
        if name and not name.startswith("%"):
            np.logical_and(valid, letters[:, place] == ord(name[0]), out=valid)

    def number(place: int, width: int) -> Int64s:
        value = np.zeros(len(letters), dtype=np.int64)
        for column in range(place, place + width):
            digit = letters[:, column] - np.uint8(48)  # below the digits it wraps to more than 9
            np.logical_and(valid, digit < 10, out=valid)
            value = value * 10 + digit
        return value

    year, day = number(at["%Y"], 4), number(at["%d"], 2)
    hour, minute, second = (number(at[part], 2) for part in ("%H", "%M", "%S"))
    month = number(at["%m"], 2) if "%m" in at else _month(letters, at["%b"])
    valid &= (year >= YEARS[0]) & (year < YEARS[1]) & (month >= 1) & (month <= 12)
    valid &= (hour < 24) & (minute < 60) & (second < 60)
    # The arithmetic must not fail for an invalid month.
    months = np.where(valid, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    begins = months.astype("datetime64[D]").astype(np.int64)
    next_begins = (months + 1).astype("datetime64[D]").astype(np.int64)
    valid &= (day >= 1) & (day <= next_begins - begins)
    seconds = (begins + day - 1) * 86_400 + hour * 3_600 + minute * 60 + second
    if "%z" in at:
        sign = letters[:, at["%z"]]
        hours, minutes = number(at["%z"] + 1, 2), number(at["%z"] + 3, 2)
        valid &= ((sign == ord("+")) | (sign == ord("-"))) & (hours < 24) & (minutes < 60)
        seconds -= np.where(sign == ord("-"), -1, 1) * (hours * 3_600 + minutes * 60)
    return seconds * 1_000_000, valid


def _month(letters: npt.NDArray[np.uint8], place: int) -> Int64s:
    """Return the month, 1 to 12, or 0 for another word."""
    three = letters[:, place : place + 3].astype(np.int64)
    code = (three[:, 0] << 16) | (three[:, 1] << 8) | three[:, 2]
    index = np.minimum(np.searchsorted(_MONTH_CODES, code, sorter=_ORDER), 11)
    months: Int64s = np.where(_MONTH_CODES[_ORDER[index]] == code, _ORDER[index] + 1, 0)
    return months
