"""Convert times of logs to UTC microseconds, whole columns at a time.

Local times need a zone. A time that a clock change skips is refused. A repeated one means the earlier instant
here (see `formats.repeated_hour`), unless letters of the zone (`%Z`, as CET and CEST) tell which.
"""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core import rounding
from transom.core.intervals import EPOCH
from transom.formats.fixed_width_times import of_fixed_width
from transom.formats.record_format import DOUBLES, EPOCH_OR_ISO, NANOSECONDS

FIRST = 0
LAST = (datetime(2262, 1, 1, tzinfo=UTC) - EPOCH).days * 86_400_000_000
MILLIS_FROM = 1e11
"""Larger numbers are milliseconds: as seconds this would be in the year 5138, as milliseconds in 1973."""
LARGEST_INT64 = str(2**63 - 1)
NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
APACHE = "%d/%b/%Y:%H:%M:%S %z"
LETTERS = "%Z"
"""The directive for letters of a zone. strptime itself only knows those of the machine."""
UNIVERSAL = ("UTC", "GMT")
"""Letters with one meaning everywhere."""
SPECIAL = {
    "no_zone": "an offset, or a zone in the stream's file",
    "no_such_local_time": "a time that the zone's clocks show",
    "no_such_zone": "UTC, GMT, or letters that the zone in the stream's file goes by at that time",
}
"""Special reasons why a text is no time, with the expected text."""

Mask = npt.NDArray[np.bool_]


def instants(text: pa.Array, form: str, zone: str | None) -> tuple[pa.Array, Mask, dict[str, Mask]]:
    """Convert a column of texts, or of numbers if the form is an epoch.

    Returns:
        The instants (timestamp us UTC, null for none), which values are no time, and of those the ones with a
        special reason (`SPECIAL`).
    """
    present = np.asarray(pc.is_valid(text).to_numpy(zero_copy_only=False), dtype=bool)
    special: dict[str, Mask] = {}
    if form in DOUBLES:
        micros, bad = _epoch(text, _steps(form))
    elif form == EPOCH_OR_ISO:
        micros, bad, special = _any(text, zone)
    elif form == NANOSECONDS:
        micros, bad = _nanoseconds(text)
    else:
        micros, bad, special = _written(text.cast(pa.string()), form, zone)
    bad = present & (bad | beyond(micros))
    times = pa.array(np.where(bad | ~present, 0, micros), mask=bad | ~present)
    return times.cast(pa.timestamp("us", "UTC")), bad, special


def time_form(form: str) -> str:
    """Return the description of a valid time."""
    if form == NANOSECONDS:
        return f"{form}, whole nanoseconds of at most {LARGEST_INT64}, from 1970 to 2261"
    words = {"iso": "ISO 8601", EPOCH_OR_ISO: "seconds or milliseconds since 1970, or ISO 8601"}
    return f"{words.get(form, form)}, from 1970 to 2261"


def beyond(micros: npt.NDArray[np.int64]) -> Mask:
    """Return which instants are out of range: before 1970, or not in a signed 64-bit number of
    nanoseconds."""
    return (micros < FIRST) | (micros >= LAST)


def numbers(text: pa.Array) -> tuple[pa.Array, Mask]:
    """Return doubles from texts (null for no number), or from numbers; and which texts are no numbers."""
    if not pa.types.is_string(text.type):
        return text.cast(pa.float64(), safe=False), np.zeros(len(text), dtype=bool)
    fits = pc.match_substring_regex(text, NUMBER)
    wrong = pc.fill_null(pc.invert(fits), False).to_numpy(zero_copy_only=False)
    return pc.if_else(fits, text, pa.scalar(None, text.type)).cast(pa.float64()), np.asarray(
        wrong, dtype=bool
    )


def _steps(form: str) -> tuple[int, int]:
    """Return a microsecond in the unit of an epoch, as a fraction."""
    return 1, 1_000_000 // DOUBLES[form]


def _epoch(text: pa.Array, unit: tuple[int, int]) -> tuple[npt.NDArray[np.int64], Mask]:
    values, _ = numbers(text)
    micros, fits = rounding.steps(values.to_numpy(zero_copy_only=False), unit)
    return micros, ~fits


def _any(text: pa.Array, zone: str | None) -> tuple[npt.NDArray[np.int64], Mask, dict[str, Mask]]:
    """Return the instants of numbers since 1970 and of ISO texts, as each is written."""
    values, wrong = numbers(text)
    number = np.asarray(pc.is_valid(values).to_numpy(zero_copy_only=False), dtype=bool)
    floats = np.where(number, pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False), 0.0)
    millis = np.abs(floats) >= MILLIS_FROM
    micros, fits = rounding.steps(np.where(millis, 0.0, floats), _steps("epoch"))
    in_millis, fit_millis = rounding.steps(np.where(millis, floats, 0.0), _steps("epoch_ms"))
    micros, bad = np.where(millis, in_millis, micros), number & ~np.where(millis, fit_millis, fits)
    special: dict[str, Mask] = {}
    if wrong.any():
        rows = np.flatnonzero(wrong)
        written, bad[rows], reasons = _written(text.take(pa.array(rows)), "iso", zone)
        micros[rows] = written
        for reason, where in reasons.items():
            special[reason] = np.zeros(len(text), dtype=bool)
            special[reason][rows] = where
    return micros, bad, special


def _nanoseconds(text: pa.Array) -> tuple[npt.NDArray[np.int64], Mask]:
    """Return microseconds of whole nanoseconds, and which values are invalid or exceed 64 bits."""
    if pa.types.is_string(text.type):
        digits = pc.utf8_ltrim(pc.utf8_ltrim(text, "+"), "0")
        length = pc.binary_length(digits)
        small = pc.or_(
            pc.less(length, 19), pc.and_(pc.equal(length, 19), pc.less_equal(digits, LARGEST_INT64))
        )
        fits = pc.and_(pc.match_substring_regex(text, r"^\+?[0-9]+$"), small)
        plain = pc.if_else(pc.equal(digits, ""), "0", digits)
        text = pc.if_else(fits, plain, pa.scalar(None, pa.string()))
    nanos = text.cast(pa.int64())
    bad = ~np.asarray(pc.is_valid(nanos).to_numpy(zero_copy_only=False), dtype=bool)
    return pc.fill_null(nanos, 0).to_numpy(zero_copy_only=False) // 1000, bad


def _written(
    text: pa.Array, form: str, zone: str | None
) -> tuple[npt.NDArray[np.int64], Mask, dict[str, Mask]]:
    micros = np.zeros(len(text), dtype=np.int64)
    odd = np.flatnonzero(~of_fixed_width(text, form, zone, micros))
    special = {reason: np.zeros(len(text), dtype=bool) for reason in SPECIAL}
    bad = np.zeros(len(text), dtype=bool)
    micros[odd], bad[odd], reasons = _distinct_instants(text.take(pa.array(odd)), form, zone)
    for reason, where in reasons.items():
        special[reason][odd] = where
    return micros, bad, special


def _distinct_instants(
    text: pa.Array, form: str, zone: str | None
) -> tuple[npt.NDArray[np.int64], Mask, dict[str, Mask]]:
    # Logs repeat times: each distinct text is read once.
    distinct = text.dictionary_encode()
    values = distinct.dictionary.to_pylist()
    read = [one_instant(value, form, zone) for value in values] or [(0, "bad_time")]
    micros = np.array([micro for micro, _ in read], dtype=np.int64)
    reasons = np.array([reason or "" for _, reason in read], dtype=np.str_)
    index = distinct.indices.fill_null(0).to_numpy(zero_copy_only=False)
    row_reasons = reasons[index]
    missing = ~np.asarray(pc.is_valid(text).to_numpy(zero_copy_only=False), dtype=bool)
    row_reasons = np.where(missing, "", row_reasons)
    special = {reason: row_reasons == reason for reason in SPECIAL}
    return micros[index], row_reasons != "", special


def letters_of(text: str, form: str) -> str | None:
    """Return the letters of a zone at the `%Z` of the form, None if the form has no `%Z`.

    Raises:
        ValueError: the text has no word there.
    """
    words = form.split()
    if LETTERS not in words:
        return None
    written = text.split()
    if len(written) != len(words) or "%" in text:
        raise ValueError("not of the form")
    return written[words.index(LETTERS)]


def one_instant(text: str, form: str, zone: str | None) -> tuple[int, str | None]:
    """Return a time in microseconds since 1970, and the reason if it is invalid."""
    try:
        letters = letters_of(text, form)
        written = form if letters is None else form.replace(LETTERS, letters)
        # The zone is checked below.
        moment = datetime.fromisoformat(text) if form == "iso" else datetime.strptime(text, written)  # noqa: DTZ007
        if letters in UNIVERSAL:
            moment = moment.replace(tzinfo=UTC)
        if moment.tzinfo is None:
            if zone is None:
                return 0, "no_zone"
            moment = moment.replace(tzinfo=ZoneInfo(zone), fold=0)
            if letters is not None and moment.tzname() != letters:
                # In a repeated hour the letters tell which one it is.
                moment = moment.replace(fold=1)
                if moment.tzname() != letters:
                    return 0, "no_such_zone"
            shown_time = moment.astimezone(UTC).astimezone(ZoneInfo(zone))
            if shown_time.replace(tzinfo=None) != moment.replace(tzinfo=None):
                return 0, "no_such_local_time"
        since = moment.astimezone(UTC) - EPOCH
    except (ValueError, OverflowError):
        # In the years 1 and 9999 UTC may be outside of a datetime's range.
        return 0, "bad_time"
    return (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds, None
