"""The plain parser of a log: values and times, from text to the declared type."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

from tests.formats.reference_lines import Record, Refused
from transom.formats.record_format import EventTime, Field, RecordFormat

LARGEST_INTEGER = 2**53
MOST_STEPS = 2**50
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2262, 1, 1, tzinfo=UTC)
LONGEST_ADDED = 1_000_000_000
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
INTEGER = re.compile(r"[+-]?[0-9]+")
TRUE, FALSE = {"true", "True", "TRUE", "T", "1"}, {"false", "False", "FALSE", "F", "0"}
INT64 = 2**63 - 1
EPOCHS = {"epoch": 1_000_000, "epoch_ms": 1_000, "epoch_us": 1}


def first_of(record: Record, paths: Sequence[str]) -> str | None:
    """Return the value under the first path that has one."""
    return next((value for path in paths if (value := record.get(path)) is not None), None)


def value_of(record: Record, column: Field) -> object:
    """Return a declared column's value."""
    text = first_of(record, column.paths)
    if text is None or is_missing(text, column):
        return None
    if column.type == "string":
        return text
    if column.type == "boolean":
        if text not in TRUE | FALSE:
            raise Refused("bad_type", text, column.name, "true or false")
        return text in TRUE
    if column.type == "integer":
        if not INTEGER.fullmatch(text):
            raise Refused("bad_type", text, column.name, "a whole number")
        digits = text.lstrip("+-").lstrip("0") or "0"
        if len(digits) > 20 or int(digits) > LARGEST_INTEGER:
            raise Refused("out_of_range", text, column.name, "-9007199254740992 to 9007199254740992")
        return -int(digits) if text.startswith("-") else int(digits)
    if column.type == "number":
        if not NUMBER.fullmatch(text):
            raise Refused("bad_type", text, column.name, "a number")
        steps = rounded(text, Fraction(column.resolution))
        if steps is None or abs(steps) > MOST_STEPS:
            raise Refused("out_of_range", text, column.name, f"at most 2**50 steps of {column.resolution}")
        return float(steps * Fraction(column.resolution))
    try:
        return instant(text, column.time_format or "iso", column.zone)
    except Refused:
        raise Refused("bad_type", text, column.name, in_form(column.time_format or "iso")) from None


def is_missing(text: str, column: Field) -> bool:
    """Return whether a text means a missing value; a number counts for any notation."""
    if text in column.missing:
        return True
    numeric = column.type in ("integer", "number") or column.time_format in EPOCHS
    if not numeric or not NUMBER.fullmatch(text):
        return False
    return float(text) in [float(other) for other in column.missing if NUMBER.fullmatch(other)]


def rounded(text: str, step: Fraction) -> int | None:
    """Return the number of steps of a number, half to even.

    A number is the nearest double, in its shortest decimal, as JSON readers return it; for up to 15 digits
    this is the number as written. None if it is beyond all doubles.
    """
    double = float(text)
    return None if double in (float("inf"), float("-inf")) else round(Fraction(repr(double)) / step)


def event_time(record: Record, layout: RecordFormat, number: int, start: datetime | None) -> datetime:
    time: EventTime = layout.time
    if time.by_lines is not None:
        first = (
            start if time.by_lines.start is None else EARLIEST + timedelta(microseconds=time.by_lines.start)
        )
        assert first is not None
        try:
            moment = first + (number - 1) * timedelta(microseconds=time.by_lines.step)
        except OverflowError:
            moment = LATEST
        if not EARLIEST <= moment < LATEST:
            raise Refused("bad_time", number, expected="a line whose time is from 1970 to 2261")
        return moment
    fields = [time.paths, *time.more]
    texts = [first_of(record, paths) for paths in fields]
    text = " ".join(text for text in texts if text is not None)
    if None in texts:
        required = " and ".join(" or ".join(paths) for paths in fields)
        there = all(any(path in record for path in paths) for paths in fields)
        raise Refused(
            "missing_time", expected=required if there else f"{required} among {', '.join(record)[:200]}"
        )
    form = time.time_format
    if layout.format == "apache" and form == "iso":
        form = "%d/%b/%Y:%H:%M:%S %z"
    moment = instant(text, form, time.zone)
    more = first_of(record, time.plus)
    if more is not None:
        if not NUMBER.fullmatch(more) or not abs(float(more)) < LONGEST_ADDED:
            raise Refused("bad_time", more, time.plus[0], "fewer than 1000000000 seconds")
        moment += timedelta(microseconds=rounded(more, Fraction(1, 1_000_000)) or 0)
    return in_range(moment, text, form)


def instant(text: str, form: str, zone: str | None) -> datetime:
    """Return a time in UTC, to the microsecond."""
    if form == "epoch_or_iso":
        try:
            number = float(text) if NUMBER.fullmatch(text) else None
            own = "iso" if number is None else "epoch_ms" if abs(number) >= 1e11 else "epoch"
            return instant(text, own, zone)
        except Refused as refused:
            if refused.reason != "bad_time":
                raise
            raise Refused("bad_time", text, expected=in_form(form)) from None
    try:
        if form in EPOCHS:
            if not NUMBER.fullmatch(text):
                raise Refused("bad_time", text, expected=in_form(form))
            since = rounded(text, Fraction(1, EPOCHS[form]))
            if since is None:
                raise Refused("bad_time", text, expected=in_form(form))
            return in_range(EARLIEST + timedelta(microseconds=since), text, form)
        if form == "epoch_ns":
            if not re.fullmatch(r"\+?[0-9]+", text) or int(text) > INT64:
                raise Refused("bad_time", text, expected=in_form(form))
            return in_range(EARLIEST + timedelta(microseconds=int(text) // 1000), text, form)
        # Its zone is checked below.
        moment = datetime.fromisoformat(text) if form == "iso" else datetime.strptime(text, form)  # noqa: DTZ007
        if moment.tzinfo is None:
            if zone is None:
                raise Refused("no_zone", text, expected="an offset, or a zone in the stream's file")
            moment = from_local(moment, ZoneInfo(zone), text)
        return in_range(moment.astimezone(UTC), text, form)
    except (ValueError, OverflowError):
        raise Refused("bad_time", text, expected=in_form(form)) from None


def in_range(moment: datetime, text: str, form: str) -> datetime:
    if not EARLIEST <= moment < LATEST:
        raise Refused("bad_time", text, expected=in_form(form))
    return moment


def in_form(form: str) -> str:
    """Return the required format of a time as text."""
    if form == "epoch_ns":
        return f"{form}, whole nanoseconds of at most {INT64}, from 1970 to 2261"
    words = {"iso": "ISO 8601", "epoch_or_iso": "seconds or milliseconds since 1970, or ISO 8601"}
    return f"{words.get(form, form)}, from 1970 to 2261"


def from_local(local: datetime, zone: ZoneInfo, text: str) -> datetime:
    """Return the first instant at which the zone's clocks show a time.

    The offset is that of a day before or a day after. Where clocks are put back, both give an instant, and
    the earlier one counts; where they are put forward, neither does for the time between.
    """
    shown = [
        moment for moment in candidates(local, zone) if moment.astimezone(zone).replace(tzinfo=None) == local
    ]
    if not shown:
        raise Refused("no_such_local_time", text, expected="a time that the zone's clocks show")
    return min(shown)


def candidates(local: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    for days in (-1, 1):
        offset = (local + timedelta(days=days)).replace(tzinfo=UTC).astimezone(zone).utcoffset()
        assert offset is not None
        yield (local - offset).replace(tzinfo=UTC)
