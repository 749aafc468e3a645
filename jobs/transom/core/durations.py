"""Durations as text: a whole number and a unit, such as `5 minutes`, `1 h`, `90 s`, `2 days`."""

import re
from datetime import timedelta
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema

from transom.core.terminal import counted

# The full name comes first; formatting uses it. `m` is missing on purpose: it may mean minutes or months.
_NAMES: dict[timedelta, tuple[str, ...]] = {
    timedelta(microseconds=1): ("microsecond", "microseconds", "us"),
    timedelta(milliseconds=1): ("millisecond", "milliseconds", "ms"),
    timedelta(seconds=1): ("second", "seconds", "s", "sec"),
    timedelta(minutes=1): ("minute", "minutes", "min"),
    timedelta(hours=1): ("hour", "hours", "h"),
    timedelta(days=1): ("day", "days", "d"),
    timedelta(weeks=1): ("week", "weeks", "w"),
}
_MICROSECOND, _MILLISECOND, _SECOND, _MINUTE, _HOUR, _DAY, _ = _NAMES
_UNITS = {name: size for size, names in _NAMES.items() for name in names}
_PATTERN = r"^\s*[0-9]+\s*(" + "|".join(sorted(_UNITS)) + r")\s*$"


def parse_duration(text: str) -> timedelta:
    """Return the duration of a text such as `5 minutes` or `1 h`; case does not matter.

    >>> parse_duration("5 min")
    datetime.timedelta(seconds=300)

    Raises:
        ValueError: no whole number, no unit, an unknown unit (with the nearest known one), or more than the
            maximum of a timedelta (about 2.7 million years).
    """
    # ASCII digits only: `\d` accepts the digits of any script, some of which look alike.
    form = re.fullmatch(r"\s*([0-9]{1,18})\s*([^\W\d_]+)\s*", text)
    if form is None:
        raise ValueError(f"must be a whole number and a unit, such as 5 minutes; got {text!r}")
    unit = form[2].lower()
    if unit not in _UNITS:
        near = get_close_matches(unit, _UNITS, n=1)
        hint = f"nearest: {near[0]}" if near else f"known: {', '.join(names[1] for names in _NAMES.values())}"
        raise ValueError(f"unknown unit {form[2]!r} in {text!r}; {hint}")
    try:
        return int(form[1]) * _UNITS[unit]
    except OverflowError:
        raise ValueError(f"is too long; got {text!r}") from None


def format_duration(length: timedelta) -> str:
    """Return a duration, zero or more, in the largest unit below weeks that divides it.

    >>> format_duration(timedelta(seconds=90))
    '90 seconds'
    """
    if length < timedelta(0):
        raise ValueError(f"a duration must not be negative; got {length}")
    if not length:
        return "0 seconds"
    units = (_DAY, _HOUR, _MINUTE, _SECOND, _MILLISECOND, _MICROSECOND)
    unit = next(unit for unit in units if not length % unit)
    return counted(length // unit, _NAMES[unit][0])


def format_duration_long(length: timedelta) -> str:
    """Return a duration of whole seconds in several units.

    >>> format_duration_long(timedelta(hours=85, minutes=20))
    '3 days 13 hours 20 minutes'
    """
    parts = []
    for unit in (_DAY, _HOUR, _MINUTE, _SECOND):
        number, length = divmod(length, unit)
        parts += [counted(number, _NAMES[unit][0])] if number else []
    return " ".join(parts) or "0 seconds"


def format_bytes(count: int) -> str:
    """Return a number of bytes in the largest fitting unit.

    >>> format_bytes(3 * 2**29), format_bytes(1020)
    ('1.5 GiB', '1020 bytes')
    """
    power = min(max(count.bit_length() - 1, 0) // 10, 4)
    # Three digits, or four from 1000 on, where `g` alone writes an exponent.
    number = count / 1024**power
    return f"{number:.{4 if number >= 999.5 else 3}g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def microseconds(length: timedelta) -> int:
    """Return a duration in microseconds."""
    return length // timedelta(microseconds=1)


def _read(value: Any) -> timedelta:
    if isinstance(value, str):
        return parse_duration(value)
    if not isinstance(value, timedelta):
        raise ValueError(f"must be a whole number and a unit, such as 5 minutes; got {value!r}")
    if value < timedelta(0):
        raise ValueError(f"must not be negative; got {value}")
    return value


Duration = Annotated[
    timedelta,
    BeforeValidator(_read),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _PATTERN, "examples": ["5 minutes", "1 h", "2 days"]}),
]
"""A field of the specification: text such as `5 minutes` in the file, a timedelta in Python, not negative."""


def _some(shifts: tuple[timedelta, ...]) -> tuple[timedelta, ...]:
    # If pydantic checked the length, a list with one wrong item would have a second problem.
    if not shifts:
        raise ValueError("must have at least 1; got []")
    return shifts


Shifts = Annotated[tuple[Duration, ...], AfterValidator(_some), Field(json_schema_extra={"minItems": 1})]
"""One or several durations: how long ago."""
