"""Arithmetic on hours and on half-open intervals of hours.

Every interval is `[start, end)`, UTC, with both ends on the hour. An *instant* (an event) belongs to the hour
that contains it, `[h, h + 1 hour)`. A *report* (a window's end) at `f` in `(h, h + 1 hour]` belongs to `h`,
the hour that completes it.

    instants   |h        |h+1      |h+2          an event at h+1 belongs to h+1
               [---------[---------[
    reports    |h        |h+1      |h+2          a report at h+1 belongs to h
               (---------]---------]
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

HOUR = timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)
HOUR_LENGTH = HOUR // MICROSECOND
"""An hour in microseconds."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNKNOWN_HOUR = EPOCH
"""The hour of a file without a time in its name and without events: it may belong to any hour."""


def micros(moment: datetime) -> int:
    """Return a moment in microseconds since the epoch."""
    return (moment - EPOCH) // MICROSECOND


def number_of(hour: datetime) -> int:
    """Return the number of an hour since the epoch."""
    return (hour - EPOCH) // HOUR


def moment_of(number: int) -> datetime:
    """Return the start of the hour with a number since the epoch."""
    return EPOCH + number * HOUR


def parse_time(text: str) -> datetime:
    """Return the time of an ISO 8601 text; without an offset it is UTC."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def parse(text: str, place: str = "") -> datetime:
    """Return the hour of an ISO 8601 text, in UTC; without an offset it is UTC: `2015-05-17T10:00`.

    >>> format_hour(parse("2015-05-17T12:00+02:00"))
    '2015-05-17T10:00'

    Args:
        text: a time that is on the hour in UTC.
        place: the name of the argument, for the error; "" is none.

    Raises:
        ValueError: the text is no such time.
    """
    prefix = f"{place}: " if place else ""
    try:
        moment = parse_time(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{prefix}must be a time such as 2015-05-17T10:00; got {text!r}") from None
    if hour_of(moment) != moment:
        raise ValueError(f"{prefix}must be on the hour, in UTC; got {text!r}")
    return moment


def format_hour(hour: datetime) -> str:
    """Return an hour in the form that `parse` reads: `2015-05-17T10:00`, UTC without an offset."""
    return hour.astimezone(UTC).strftime("%Y-%m-%dT%H:%M")


def hour_of(instant: datetime) -> datetime:
    """Return the hour `h` with `h <= instant < h + 1 hour`, in UTC; the instant must have a zone."""
    _require_zone("instant", instant)
    return instant.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


@dataclass(frozen=True, order=True)
class Interval:
    """The half-open interval `[start, end)`: converted to UTC, both ends on the hour, `start < end`.

    Its length is the number of its hours.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        for place, value in (("from", self.start), ("to", self.end)):
            _require_zone(place, value)
            if hour_of(value) != value:
                raise ValueError(f"{place}: must be on the hour, in UTC; got {value.isoformat()}")
        # Equal instants of different zones must be equal intervals with equal texts.
        object.__setattr__(self, "start", self.start.astimezone(UTC))
        object.__setattr__(self, "end", self.end.astimezone(UTC))
        if self.start >= self.end:
            got = f"from {format_hour(self.start)} to {format_hour(self.end)}"
            raise ValueError(f"from: must be before to, which is exclusive; got {got}")

    @classmethod
    def parse(cls, start: str, end: str) -> "Interval":
        """Return the interval between the texts of the arguments `--from` and `--to`; raise as `parse`."""
        return cls(parse(start, "from"), parse(end, "to"))

    @classmethod
    def of_hour(cls, hour: datetime) -> "Interval":
        """Return the one-hour interval that begins at `hour`."""
        return cls(hour, hour + HOUR)

    def __str__(self) -> str:
        return f"[{format_hour(self.start)}, {format_hour(self.end)})"

    def __contains__(self, instant: datetime) -> bool:
        return self.start <= instant < self.end

    def __len__(self) -> int:
        return (self.end - self.start) // HOUR

    def hours(self) -> Iterator[datetime]:
        """Return the start of each hour, in order."""
        return (self.start + index * HOUR for index in range(len(self)))

    def widen(self, before: timedelta = timedelta(0), after: timedelta = timedelta(0)) -> "Interval":
        """Return the interval extended by two durations, zero or more, rounded outward to whole hours.

        >>> str(Interval.parse("2015-05-17T10:00", "2015-05-17T12:00").widen(before=timedelta(minutes=90)))
        '[2015-05-17T08:00, 2015-05-17T12:00)'
        """
        for place, value in (("before", before), ("after", after)):
            if value < timedelta(0):
                raise ValueError(f"{place}: must not be negative; got {value}")
        return Interval(self.start + (-before // HOUR) * HOUR, self.end - (-after // HOUR) * HOUR)

    def chunks(self, length: timedelta) -> "Iterator[Interval]":
        """Yield intervals of a length of whole hours that cover this one; the last may be shorter."""
        if length < HOUR or length % HOUR:
            raise ValueError(f"length: must be a whole number of hours, at least one; got {length}")
        for start in (self.start + index * length for index in range(-(-(self.end - self.start) // length))):
            yield Interval(start, min(start + length, self.end))


def merge_hours(hours: Iterable[datetime]) -> list[Interval]:
    """Return the fewest intervals that contain exactly the given hours, ascending; repeats do not matter."""
    merged: list[tuple[datetime, datetime]] = []
    for hour in sorted(set(hours)):
        if merged and merged[-1][1] == hour:
            merged[-1] = merged[-1][0], hour + HOUR
        else:
            merged.append((hour, hour + HOUR))
    return [Interval(*ends) for ends in merged]


def _require_zone(place: str, value: datetime) -> None:
    if value.tzinfo is None or value.utcoffset() is None:
        raise ValueError(f"{place}: must have a zone, such as UTC; got {value.isoformat()}")


def format_hours(hours: Iterable[datetime]) -> str:
    """Return hours as text: `2015-05-17T10:00 to 2015-05-17T12:00, 2015-05-18T01:00`; ends are exclusive."""
    hours = set(hours)
    words = ["files without an hour"] if UNKNOWN_HOUR in hours else []
    for interval in merge_hours(hours - {UNKNOWN_HOUR}):
        start = format_hour(interval.start)
        words.append(start if len(interval) == 1 else f"{start} to {format_hour(interval.end)}")
    return ", ".join(words)
