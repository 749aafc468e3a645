"""Convert times of logs to UTC microseconds, whole columns at a time.

Local times need a zone. A time that a clock change skips is refused. A repeated one means the earlier instant
here (see `event_time.Order`), unless letters of the zone (`%Z`, such as CET and CEST) decide.

Times of a fixed-width form, such as Apache's, are read from their bytes: few of them repeat in a busy log.
Other spellings (a day of one digit, a month in capitals, a second that does not exist) go to strptime.
"""

import re
from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core import rounding
from transom.core.intervals import EPOCH
from transom.formats.record_format import DOUBLES, EPOCH_OR_ISO, NANOSECONDS
from transom.formats.rejections import Int64s, Mask, int64s, mask, null_where

WIDTHS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "b": 3, "z": 5}
"""Bytes of each part; %b is an English month, as in Python without a locale."""
MONTHS = pa.array(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"])
YEARS = (1900, 2300)
"""The first year, and the end, of fixed-width times. Near 1 and 9999, UTC may exceed a datetime's range."""
TIMESTAMP = pa.timestamp("us", "UTC")
LIMIT = (datetime(2262, 1, 1, tzinfo=UTC) - EPOCH).days * 86_400_000_000
"""The first instant, in microseconds, that does not fit into 64 bits of nanoseconds."""
MILLIS_FROM = 1e11
"""Larger numbers are milliseconds: as seconds this would be in the year 5138, as milliseconds in 1973."""
LARGEST_INT64 = str(2**63 - 1)
NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
APACHE = "%d/%b/%Y:%H:%M:%S %z"
LETTERS = "%Z"
"""The directive for letters of a zone. strptime itself only knows those of the machine."""
UNIVERSAL = ("UTC", "GMT")
"""Letters with one meaning everywhere."""
REASONS = ("", "no_zone", "no_such_local_time", "no_such_zone", "bad_time")
"""The reasons why a text is no time, by code; code 0 is a time."""
BAD_TIME = REASONS.index("bad_time")
EXPECTED = {
    "no_zone": "an offset, or a zone in the stream's file",
    "no_such_local_time": "a time that the zone's clocks show",
    "no_such_zone": "UTC, GMT, or letters that the zone in the stream's file has at that time",
}
"""The expected value by reason; for `bad_time` it depends on the form."""
Codes = npt.NDArray[np.int8]


@cache
def _parts(form: str) -> dict[str, int] | None:
    """Return the position of each part of a form and of each literal character, and under "" its length; None
    for a form of another kind.

    >>> _parts("%d/%b")  # it has no year
    >>> _parts("%Y%m%dT%H%M%S")
    {'%Y': 0, '%m': 4, '%d': 6, 'T8': 8, '%H': 9, '%M': 11, '%S': 13, '': 15}
    """
    tokens = re.findall(r"%.|[^%]", form, re.DOTALL)
    at, parts = 0, {}
    for token in tokens:
        parts[token if token[0] == "%" else f"{token}{at}"] = at
        at += WIDTHS.get(token[1:], 1)
    names = [token[1] for token in tokens if token[0] == "%"]
    # A repeated part, or a single percent sign, goes to strptime.
    valid = "".join(tokens) == form and form.isascii() and len(names) == len(set(names))
    known = set("YdHMS") <= set(names) <= WIDTHS.keys() and ("b" in names) != ("m" in names)
    return {**parts, "": at} if valid and known else None


def read_fixed_width(text: pa.Array, form: str, zone: str | None, micros: Int64s) -> Mask:
    """Read the times that have exactly the fixed-width form.

    Args:
        text: the texts, shape (rows,).
        form: a strptime format; without a fixed width, no time is read.
        zone: the zone of times without an offset; if it is not UTC, these are not read.
        micros: receives the instants, in microseconds since 1970, shape (rows,).

    Returns:
        The times that were read, as a mask; `micros` is unchanged for the others.
    """
    was_read = np.zeros(len(text), dtype=bool)
    parts = _parts(form)
    if parts is None or ("%z" not in parts and zone != "UTC"):
        return was_read
    width = parts[""]
    rows = np.flatnonzero(mask(pc.equal(pc.binary_length(text), width)))
    if not len(rows):
        return was_read
    texts = text.take(pa.array(rows))
    data = texts.buffers()[2]
    letters = np.frombuffer(data, np.uint8, len(rows) * width).reshape(-1, width)
    valid = np.ones(len(rows), dtype=bool)

    def number(place: int, size: int) -> Int64s:
        value = np.zeros(len(rows), dtype=np.int64)
        for column in range(place, place + size):
            digit = letters[:, column] - np.uint8(48)  # below the digits it wraps to more than 9
            np.logical_and(valid, digit < 10, out=valid)
            value = value * 10 + digit
        return value

    for name, place in parts.items():
        if name and name[0] != "%":
            np.logical_and(valid, letters[:, place] == ord(name[0]), out=valid)
    year, day, hour, minute, second = (number(parts[f"%{part}"], WIDTHS[part]) for part in "YdHMS")
    if "%m" in parts:
        month = number(parts["%m"], 2)
    else:
        names = pc.utf8_slice_codeunits(texts, parts["%b"], parts["%b"] + 3)
        month = int64s(pc.add(pc.index_in(names, MONTHS), 1))
    valid &= (year >= YEARS[0]) & (year < YEARS[1]) & (month >= 1) & (month <= 12)
    valid &= (day >= 1) & (hour < 24) & (minute < 60) & (second < 60)
    # The arithmetic must not fail for an invalid month.
    months = np.where(valid, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    valid &= days.astype("datetime64[M]") == months
    seconds = days.astype(np.int64) * 86_400 + hour * 3_600 + minute * 60 + second
    if "%z" in parts:
        sign = letters[:, parts["%z"]]
        hours, minutes = number(parts["%z"] + 1, 2), number(parts["%z"] + 3, 2)
        valid &= ((sign == ord("+")) | (sign == ord("-"))) & (hours < 24) & (minutes < 60)
        seconds -= np.where(sign == ord("-"), -1, 1) * (hours * 3_600 + minutes * 60)
    micros[rows[valid]] = seconds[valid] * 1_000_000
    was_read[rows[valid]] = True
    return was_read


def instants(text: pa.Array, form: str, zone: str | None) -> tuple[pa.Array, Codes]:
    """Convert a column of texts, or of numbers if the form is an epoch.

    >>> times, codes = instants(pa.array(["0", "x", None]), "epoch", None)
    >>> times.null_count, [REASONS[code] for code in codes]
    (2, ['', 'bad_time', ''])

    Args:
        text: the values, shape (rows,).
        form: a format of `Field.time_format`.
        zone: the zone of times without an offset; None refuses them.

    Returns:
        The instants (timestamp us UTC, null for no time), and the reason for each value that is no time, as
        an index of `REASONS`. Both have the shape (rows,).
    """
    if form in DOUBLES:
        values, _ = numbers(text)
        micros, fits = rounding.steps(values.to_numpy(zero_copy_only=False), _microsecond(form))
        codes = _codes(~fits)
    elif form == EPOCH_OR_ISO:
        micros, codes = _epoch_or_iso(text, zone)
    elif form == NANOSECONDS:
        micros, codes = _nanoseconds(text)
    else:
        micros, codes = _written(text.cast(pa.string()), form, zone)
    codes[(codes == 0) & out_of_range(micros)] = BAD_TIME
    missing = mask(pc.is_null(text))
    codes[missing] = 0
    none = missing | (codes > 0)
    return pa.array(np.where(none, 0, micros), mask=none).cast(TIMESTAMP), codes


def describe(form: str, reason: str = "bad_time") -> str:
    """Return the description of a valid time, for a message with a reason."""
    if reason != "bad_time":
        return EXPECTED[reason]
    if form == NANOSECONDS:
        return f"{form}, whole nanoseconds of at most {LARGEST_INT64}, from 1970 to 2261"
    names = {"iso": "ISO 8601", EPOCH_OR_ISO: "seconds or milliseconds since 1970, or ISO 8601"}
    return f"{names.get(form, form)}, from 1970 to 2261"


def out_of_range(micros: Int64s) -> Mask:
    """Return which instants are before 1970 or from 2262 on, beyond 64 bits of nanoseconds."""
    return (micros < 0) | (micros >= LIMIT)


def numbers(text: pa.Array) -> tuple[pa.Array, Mask]:
    """Return doubles from texts (null for no number) or from numbers, and which texts are no numbers."""
    if not pa.types.is_string(text.type):
        return text.cast(pa.float64(), safe=False), np.zeros(len(text), dtype=bool)
    fits = pc.match_substring_regex(text, NUMBER)
    other = pc.invert(fits)
    return null_where(other, text).cast(pa.float64()), mask(other)


def _microsecond(form: str) -> tuple[int, int]:
    """Return a microsecond in the unit of an epoch, as a fraction."""
    return 1, 1_000_000 // DOUBLES[form]


def _codes(bad: Mask) -> Codes:
    return np.where(bad, BAD_TIME, 0).astype(np.int8)


def _epoch_or_iso(text: pa.Array, zone: str | None) -> tuple[Int64s, Codes]:
    """Return the instants of values that are numbers since 1970 or ISO texts."""
    values, is_text = numbers(text)
    floats = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)
    millis = np.abs(floats) >= MILLIS_FROM
    micros, fits = rounding.steps(np.where(millis, 0.0, floats), _microsecond("epoch"))
    micros[millis], fits[millis] = rounding.steps(floats[millis], _microsecond("epoch_ms"))
    codes = _codes(~fits)
    rows = np.flatnonzero(is_text)
    if len(rows):
        micros[rows], codes[rows] = _written(text.take(pa.array(rows)), "iso", zone)
    return micros, codes


def _nanoseconds(text: pa.Array) -> tuple[Int64s, Codes]:
    """Return microseconds of whole nanoseconds; values may be invalid or exceed 64 bits."""
    if pa.types.is_string(text.type):
        digits = pc.utf8_ltrim(pc.utf8_ltrim(text, "+"), "0")
        length = pc.binary_length(digits)
        small = pc.and_(pc.equal(length, 19), pc.less_equal(digits, LARGEST_INT64))
        fits = pc.and_(pc.match_substring_regex(text, r"^\+?[0-9]+$"), pc.or_(pc.less(length, 19), small))
        text = null_where(pc.invert(fits), pc.if_else(pc.equal(digits, ""), "0", digits))
    nanos = text.cast(pa.int64())
    return int64s(nanos) // 1000, _codes(mask(pc.is_null(nanos)))


def _written(text: pa.Array, form: str, zone: str | None) -> tuple[Int64s, Codes]:
    micros, codes = np.zeros(len(text), dtype=np.int64), np.zeros(len(text), dtype=np.int8)
    other = np.flatnonzero(~read_fixed_width(text, form, zone, micros))
    # Logs repeat times, so each distinct text is read once.
    distinct = text.take(pa.array(other)).dictionary_encode()
    read = [one_instant(value, form, zone) for value in distinct.dictionary.to_pylist()]
    read.append((0, None))
    index = distinct.indices.fill_null(len(read) - 1).to_numpy(zero_copy_only=False)
    micros[other] = np.array([instant for instant, _ in read])[index]
    codes[other] = np.array([REASONS.index(reason or "") for _, reason in read])[index]
    return micros, codes


def letters_of(text: str, form: str) -> str | None:
    """Return the letters of a zone at the `%Z` of the form, None if the form has no `%Z`.

    >>> letters_of("2024-05-06 CEST", "%Y-%m-%d %Z")
    'CEST'

    Raises:
        ValueError: the text has no word there.
    """
    words = form.split()
    if LETTERS not in words:
        return None
    parts = text.split()
    if len(parts) != len(words) or "%" in text:
        raise ValueError("not of the form")
    return parts[words.index(LETTERS)]


def one_instant(text: str, form: str, zone: str | None) -> tuple[int, str | None]:
    """Return a time in microseconds since 1970, and the reason if it is invalid, else None.

    >>> one_instant("1970-01-01T00:00:01Z", "iso", None), one_instant("1970-01-01", "iso", None)
    ((1000000, None), (0, 'no_zone'))
    """
    try:
        letters = letters_of(text, form)
        form = form if letters is None else form.replace(LETTERS, letters)
        # The zone is checked below.
        moment = datetime.fromisoformat(text) if form == "iso" else datetime.strptime(text, form)  # noqa: DTZ007
        if letters in UNIVERSAL:
            moment = moment.replace(tzinfo=UTC)
        if moment.tzinfo is None:
            if zone is None:
                return 0, "no_zone"
            moment = moment.replace(tzinfo=ZoneInfo(zone), fold=0)
            if letters is not None and moment.tzname() != letters:
                # In a repeated hour the letters decide.
                moment = moment.replace(fold=1)
                if moment.tzname() != letters:
                    return 0, "no_such_zone"
            clock = moment.astimezone(UTC).astimezone(ZoneInfo(zone))
            if clock.replace(tzinfo=None) != moment.replace(tzinfo=None):
                return 0, "no_such_local_time"
        since = moment.astimezone(UTC) - EPOCH
    except (ValueError, OverflowError):
        # In the years 1 and 9999 UTC may be outside of a datetime's range.
        return 0, "bad_time"
    return (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds, None
