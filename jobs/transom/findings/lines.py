"""A finding in one line: what its title leaves out of key, item and time."""

import re
from datetime import datetime

from transom.core.intervals import HOUR, format_hour
from transom.core.terminal import escape_control_chars


def describe_subject(
    title: str, key: str | None, item: str | None, start: datetime | None, end: datetime | None
) -> str:
    """Return what a finding's title does not say of its key, its item and its time, in brackets.

    Args:
        key, item: the values; None where it is about none.
        start, end: in UTC; None for files that belong to no hour.

    Returns:
        Text to append to the title, such as ` (10.0.0.1, 2015-05-17T10:00 to 2015-05-17T12:00)`; empty where
        the title says everything.
    """
    missing = [
        escape_control_chars(value) for value in (key, item) if value is not None and not _names(title, value)
    ]
    if start is not None and end is not None and format_hour(start) not in title:
        missing.append(_span(start, end))
    return f" ({', '.join(missing)})" if missing else ""


def _names(title: str, value: str) -> bool:
    """Whether a value stands in a title as a word of its own."""
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", title) is not None


def _span(start: datetime, end: datetime) -> str:
    whole_hour = end - start == HOUR and start.minute == 0
    return format_hour(start) if whole_hour else f"{format_hour(start)} to {format_hour(end)}"
