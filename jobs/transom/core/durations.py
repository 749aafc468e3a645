"""Durations as people write them: a whole number and a unit, `5 minutes`, `1 h`, `90 s`, `2 days`.

`Duration` is the type of such a field in the specification: text in the file, a `timedelta` in Python.
"""

import re
from datetime import timedelta
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema

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
_UNITS = {name: size for size, names in _NAMES.items() for name in names}
# ASCII digits only: `\d` accepts the digits of any script, some of which look alike.
_FORM = re.compile(r"\s*([0-9]{1,18})\s*([^\W\d_]+)\s*")
_PATTERN = r"^\s*[0-9]+\s*(" + "|".join(sorted(_UNITS)) + r")\s*$"


def parse_duration(text: str) -> timedelta:
    """Return the duration that a text such as `5 minutes` or `1 h` means, zero or more.

    Case does not matter, so `RANGES 24 HOURS` is valid.

    Raises:
        ValueError: no whole number, no unit, an unknown unit (with the nearest known one), or more than the
            maximum of a timedelta (about 2.7 million years).
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise ValueError(f"must be a whole number and a unit, such as 5 minutes; got {text!r}")
    number, unit = int(form[1]), form[2].lower()
    if unit not in _UNITS:
        near = get_close_matches(unit, _UNITS, n=1)
        hint = f"nearest: {near[0]}" if near else f"known: {', '.join(names[1] for names in _NAMES.values())}"
        raise ValueError(f"unknown unit {form[2]!r} in {text!r}; {hint}")
    try:
        return number * _UNITS[unit]
    except OverflowError:
        raise ValueError(f"is too long; got {text!r}") from None


def format_duration(length: timedelta) -> str:
    """Return a duration in the largest unit below weeks that divides it: `90 seconds`, `2 days`.

    `parse_duration` reads it back.

    Raises:
        ValueError: the duration is negative.
    """
    if length < timedelta(0):
        raise ValueError(f"a duration must not be negative; got {length}")
    if not length:
        return "0 seconds"
    for size in (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)):
        if length % size == timedelta(0):
            return _plural(length // size, _NAMES[size][0])
    if length % timedelta(milliseconds=1) == timedelta(0):
        return _plural(length // timedelta(milliseconds=1), "millisecond")
    return _plural(length // timedelta(microseconds=1), "microsecond")


def format_duration_long(length: timedelta) -> str:
    """Return a duration of whole seconds for people, as `3 days 13 hours 20 minutes`."""
    parts = []
    for size in (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)):
        number, length = divmod(length, size)
        parts += [_plural(number, _NAMES[size][0])] if number else []
    return " ".join(parts) or "0 seconds"


def format_bytes(count: int) -> str:
    """Return a number of bytes in the largest fitting unit, such as `3.6 GiB`."""
    size, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.3g} {unit}"


def microseconds(length: timedelta) -> int:
    """Return a duration as the whole number of microseconds that it is."""
    return length // timedelta(microseconds=1)


def _plural(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _read(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        if value < timedelta(0):
            raise ValueError(f"must not be negative; got {value}")
        return value
    if not isinstance(value, str):
        raise ValueError(f"must be a whole number and a unit, such as 5 minutes; got {value!r}")
    return parse_duration(value)


Duration = Annotated[
    timedelta,
    BeforeValidator(_read),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _PATTERN, "examples": ["5 minutes", "1 h", "2 days"]}),
]
"""A duration field: written as `5 minutes`, parsed to a timedelta, never negative."""


def _at_least_one(shifts: tuple[timedelta, ...]) -> tuple[timedelta, ...]:
    if not shifts:
        raise ValueError("must have at least 1; got []")
    return shifts


# Where pydantic checks the length, a list with one wrong item gets a second problem.
Shifts = Annotated[
    tuple[Duration, ...], AfterValidator(_at_least_one), Field(json_schema_extra={"minItems": 1})
]
"""How long ago, one or several durations."""
