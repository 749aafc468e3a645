"""Time zones by their offset from UTC, as examples for the user."""

import re
from datetime import timedelta

_OFFSET = re.compile(
    r"(?:UTC|GMT)? ?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>[0-5]\d))?", re.IGNORECASE
)
_PART_HOURS = {
    "-09:30": "Pacific/Marquesas", "-03:30": "America/St_Johns", "-02:30": "America/St_Johns",
    "+03:30": "Asia/Tehran", "+04:30": "Asia/Kabul", "+05:30": "Asia/Kolkata", "+05:45": "Asia/Kathmandu",
    "+06:30": "Asia/Yangon", "+08:45": "Australia/Eucla", "+09:30": "Australia/Darwin",
    "+10:30": "Australia/Adelaide", "+12:45": "Pacific/Chatham", "+13:45": "Pacific/Chatham",
}  # fmt: skip
"""All offsets in use that are no whole hours, each with a zone that has it, some only in summer or winter."""


def parse_offset(text: str) -> timedelta | None:
    """Return the offset that a text such as `+05:45`, `+0545`, `UTC+5` denotes; None for another text.

    >>> parse_offset("-0330")
    datetime.timedelta(days=-1, seconds=73800)
    """
    match = _OFFSET.fullmatch(text.strip())
    if match is None:
        return None
    size = timedelta(hours=int(match["hours"]), minutes=int(match["minutes"] or 0))
    return size if match["sign"] == "+" else -size


def format_offset(offset: timedelta) -> str:
    """Return an offset as text.

    >>> format_offset(timedelta(hours=5, minutes=45)), format_offset(-timedelta(hours=3))
    ('+05:45', '-03:00')
    """
    minutes = abs(offset) // timedelta(minutes=1)
    return f"{'-' if offset < timedelta(0) else '+'}{minutes // 60:02}:{minutes % 60:02}"


def zone_with_offset(offset: timedelta) -> str | None:
    """Return a zone with an offset: a fixed one for whole hours, else one of a region. None if there is none.

    >>> zone_with_offset(timedelta(hours=2)), zone_with_offset(timedelta(hours=5, minutes=45))
    ('Etc/GMT-2', 'Asia/Kathmandu')
    """
    if offset % timedelta(hours=1):
        return _PART_HOURS.get(format_offset(offset))
    hours = offset // timedelta(hours=1)
    # POSIX counts hours west of Greenwich.
    return f"Etc/GMT{-hours:+d}" if -12 <= hours <= 14 else None


def offsets() -> list[timedelta]:
    """Return all offsets in use, in order."""
    whole = [timedelta(hours=hours) for hours in range(-12, 15)]
    return sorted([*whole, *filter(None, map(parse_offset, _PART_HOURS))])
