"""Values as text in titles and evidence."""

import hashlib
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from transom.core.intervals import HOUR, format_hour
from transom.core.terminal import escape_control_chars
from transom.spec.titles import parts_of

_DECODER = json.JSONDecoder()
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def as_text(value: Any) -> str:
    """Return a value as text: a whole number without decimals, `null` for None."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return as_decimal(value).removesuffix(".0")
    if isinstance(value, datetime):
        whole_millis = value.microsecond % 1000 == 0 and value.microsecond > 0
        return f"{as_time(value, 'milliseconds' if whole_millis else 'auto')}Z"
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_time(moment: datetime | None, to: str = "seconds") -> str:
    """Return a UTC time without its zone, to a `timespec` of `datetime.isoformat`; empty for None."""
    return "" if moment is None else moment.isoformat(timespec=to).removesuffix("+00:00")


def as_decimal(value: float) -> str:
    """Return a number as the shortest decimal that parses to the same number: `3.0`, `0.00001`, `1e16`."""
    text = repr(value)
    if "e" in text:
        digits, exponent = text.split("e")
        return f"{Decimal(text):f}" if exponent == "-05" else f"{digits}e{int(exponent)}"
    return "NaN" if math.isnan(value) else text


def rounded(value: float, digits: int) -> float:
    """Return a number rounded to some decimal places, half away from zero."""
    scaled = value * 10.0**digits
    if not math.isfinite(scaled):
        return scaled
    whole = math.trunc(scaled)
    if abs(scaled - whole) >= 0.5:
        whole += 1 if scaled > 0 else -1
    return math.copysign(whole / 10.0**digits, value)


def as_range(minimum: Any, maximum: Any) -> str:
    """Return a range of values as short text: `3 to 12`, or `3` for equal texts."""
    low = as_short(minimum)
    high = low if minimum == maximum else as_short(maximum)
    return low if low == high else f"{low} to {high}"


def as_short(value: Any) -> str:
    """Return a value as text for people: a decimal number with four digits, or all digits of its whole part.

    >>> as_short(13.692882335911627), as_short(123456.7), as_short(123456)
    ('13.69', '123457', '123456')

    Keys and items need `as_text`, as they are found by their text.
    """
    if not isinstance(value, float) or not math.isfinite(value):
        return as_text(value)
    # Zero has no first digit; negative zero loses its sign.
    digits = 3 - math.floor(math.log10(abs(value))) if value else 0
    return as_text(rounded(value or 0.0, min(15, max(0, digits))))


def bounds_text(low: int, high: int) -> str:
    """Return the bounds of a count: `29 to 32`, or `32` if it is exact."""
    return str(low) if low == high else f"{low} to {high}"


def key_text(columns: Sequence[str], row: Mapping[str, Any]) -> str | None:
    """Return a key as text: its value, or `name=value` for each of several columns; None without columns.

    Different keys have different texts, but for a null and the text `null`. `key_values` is the inverse.

    >>> key_text(["user", "host"], {"user": "a, host=b", "host": "c, d"})
    'user="a, host=b", host=c, d'
    """
    if len(columns) < 2:
        return as_text(row[columns[0]]) if columns else None
    return ", ".join(f"{column}={value_in_key(columns, as_text(row[column]))}" for column in columns)


def value_in_key(columns: Sequence[str], value: str) -> str:
    """Return the text of a value in a key of several columns.

    It is in quotes, as in JSON, if it looks like a further column, or begins with a quote.
    """
    is_ambiguous = value.startswith('"') or any(f", {column}=" in value for column in columns)
    return json.dumps(value, ensure_ascii=False) if is_ambiguous else value


def key_values(columns: Sequence[str], text: str) -> dict[str, str]:
    """Return the text of each column of a key; empty if `key_text` has not written it for these columns."""
    if len(columns) < 2:
        return dict.fromkeys(columns, text)
    values: dict[str, str] = {}
    rest = f", {text}"
    for place, column in enumerate(columns):
        name, ends = f", {column}=", columns[place + 1 : place + 2]
        if not rest.startswith(name):
            return {}
        rest = rest.removeprefix(name)
        try:
            value, end = _DECODER.raw_decode(rest) if rest.startswith('"') else (None, 0)
        except ValueError:
            return {}
        if value is None:
            end = rest.find(f", {ends[0]}=") if ends else len(rest)
            value = rest[:end]
        values[column], rest = value, rest[end:]
    return {} if rest else values


def filled(
    title: str, row: Mapping[str, Any], times: Collection[str] = (), exact: Collection[str] = ()
) -> str:
    """Return a title in which values replace the columns in braces.

    Args:
        title: the title, with columns in braces.
        row: the values, by column.
        times: the columns that are formatted by `as_time`.
        exact: the columns that are formatted by `as_text`; others by `as_short`.
    """

    def text_of(column: str) -> str:
        form = as_time if column in times else as_text if column in exact else as_short
        return form(row[column])

    return "".join(text + ("" if column is None else text_of(column)) for text, column in parts_of(title))


def one_line(text: str) -> str:
    """Return a text in which a blank replaces line ends and control characters."""
    return _CONTROL.sub(" ", text)


def short_hash(text: str) -> str:
    """Return a short stable hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def describe_subject(
    title: str, key: str | None, item: str | None, start: datetime | None, end: datetime | None
) -> str:
    """Return what a finding's title lacks: ` (10.0.0.1, 2015-05-17T10:00 to 2015-05-17T12:00)`, or nothing.

    Args:
        title: the title.
        key: the key; None if there is none.
        item: the item; None if there is none.
        start: the start in UTC; None for files that belong to no hour.
        end: the end in UTC, exclusive; None for files that belong to no hour.
    """
    missing = [
        escape_control_chars(value)
        for value in (key, item)
        if value is not None and not re.search(rf"(?<!\w){re.escape(value)}(?!\w)", title)
    ]
    if start is not None and end is not None and format_hour(start) not in title:
        one_hour = end - start == HOUR and start.minute == 0
        missing.append(format_hour(start) if one_hour else f"{format_hour(start)} to {format_hour(end)}")
    return f" ({', '.join(missing)})" if missing else ""
