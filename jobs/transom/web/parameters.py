"""Parameters of an address: the hours, the key, the filters."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Query, Request

from transom.core import intervals
from transom.core.intervals import Interval
from transom.views.open_stream import OpenStream
from transom.views.typed_key import TypedKey, typed_key
from transom.web.links import KEY

LONGEST = timedelta(days=366)
"""The longest interval of a page with rows; the grid of hours has no limit."""
MAX_PAGE = 2_000
"""The greatest number of a page: all rows before a page are sorted in memory, to find those of the page."""
PageNumber = Annotated[int, Query(ge=1, le=MAX_PAGE)]
Start = Annotated[str | None, Query(alias="from")]
End = Annotated[str | None, Query(alias="to")]


class BadInput(ValueError):
    """A parameter breaks a rule. The text is the rule and the value."""


@contextmanager
def rules() -> Iterator[None]:
    """Raise the errors of values as `BadInput`."""
    try:
        yield
    except (ValueError, OverflowError) as error:
        raise BadInput(str(error)) from None


def interval(
    opened: OpenStream, start: str | None, end: str | None, longest: timedelta | None, may_cut: bool = True
) -> tuple[Interval, list[str]]:
    """Return the hours of a page, and notices about them; an empty text is no text.

    Args:
        opened: the stream.
        start: the text of the first hour.
        end: the text of the end.
        longest: the longest interval; None is any.
        may_cut: whether a longer interval is cut, with a notice, or an error.

    Raises:
        BadInput: a time is none, the start is not before the end, or the interval is too long.
        NothingToView: no run has requested an hour.
    """
    with rules():
        first, last = (hour(text, place) if text else None for text, place in ((start, "from"), (end, "to")))
        if first and last:
            # The rule of intervals, also if the stream has no hours.
            Interval(first, last)
        chosen, notices = opened.interval_of(first, last)
        if longest is not None and chosen.end - chosen.start > longest:
            if not may_cut:
                raise ValueError(f"from and to: must be at most {longest.days} days apart; got {chosen}")
            chosen = _cut(chosen, longest, from_start=last is None)
            which = f"at most {longest.days} days, here {chosen}"
            notices = [*notices, f"This page shows {which}; the grid of hours has no limit."]
    return chosen, notices


def _cut(interval: Interval, longest: timedelta, from_start: bool) -> Interval:
    """Return the first or the last hours of an interval."""
    start, end = interval.start, interval.end
    return Interval(start, start + longest) if from_start else Interval(end - longest, end)


def hour(text: str, place: str) -> datetime:
    """Return an hour; raises ValueError with the name of the place."""
    return intervals.parse(text, place)


def key_in(request: Request, opened: OpenStream, interval: Interval, subject: Sequence[str]) -> TypedKey:
    """Return the key of an address: the parameters `key.COLUMN`, or `key` as a person types it.

    Args:
        request: the request.
        opened: the stream.
        interval: as of `typed_key`.
        subject: as of `typed_key`.

    Raises:
        BadInput: the stream has no such column, or the text is no value of it.
    """
    given = request.query_params
    key = {name.removeprefix(KEY): text for name, text in given.items() if name.startswith(KEY)}
    with rules():
        if not key and given.get("key"):
            return typed_key(opened, given["key"], interval, subject)
        opened.key_of(key)
    return TypedKey(key)


def one_of(name: str, text: str | None, known: Collection[str]) -> str | None:
    """Return a filter; None if it is empty.

    Raises:
        BadInput: it is none of the known values.
    """
    if text and text not in known:
        values = f"one of {', '.join(known)}" if known else "empty"
        raise BadInput(f"{name}: must be {values}; got {text!r}")
    return text or None
