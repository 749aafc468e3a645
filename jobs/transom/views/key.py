"""All that is known of a key or an item."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from transom.charts.section import Section
from transom.core.intervals import HOUR, Interval
from transom.engine.reader import UnknownKey
from transom.engine.selection import Selection
from transom.storage.tables import LakeError
from transom.views import events
from transom.views.block_titles import full_title
from transom.views.findings import FindingFilter, FindingsPage, findings_of
from transom.views.open_stream import OpenStream
from transom.views.results import sections


@dataclass(frozen=True)
class KeyView:
    """All that is known of a key or an item in an interval.

    Attributes:
        key: the text of each of its columns.
        interval: the hours.
        findings: the first page of its findings.
        sections: `horizon` and `frequency` at the end of the interval, the results of all features that have
            its columns, and its raw events last.
        notices: what a reader should know about the page as a whole.
    """

    key: Mapping[str, str]
    interval: Interval
    findings: FindingsPage
    sections: list[Section]
    notices: list[str] = field(default_factory=list)


def key_of(
    opened: OpenStream,
    key: Mapping[str, str],
    interval: Interval,
    page: int = 1,
    stale: Mapping[str, Collection[datetime]] | None = None,
) -> KeyView:
    """Return what is known of a key or an item.

    Args:
        opened: the stream.
        key: the text of each of its columns, one or more.
        interval: the hours.
        page: the page of each table, from 1.
        stale: the stale hours of each stage, if they are known.

    Raises:
        ValueError: the stream has no such column, or the text is no value of it.
    """
    values = opened.key_of(key)

    def read(selection: Selection) -> list[Section]:
        return [*_of_key(opened, values, interval), *sections(selection), events.of_key(selection)]

    parts, notices = opened.consistent(interval, key, page, read, stale)
    return KeyView(key, interval, findings_of(opened, FindingFilter(interval, key)), parts, notices)


def _of_key(opened: OpenStream, key: Mapping[str, Any], interval: Interval) -> Iterator[Section]:
    """Yield what features know of a key, in addition to their results."""
    last = opened.snapshot().required_hours.last
    end = interval.end if last is None else min(interval.end, last + HOUR)
    if interval.start >= end:
        return
    for of in opened.stream.features:
        section = of.of_key
        if section is None:
            continue
        for name in opened.stream.blocks(of.block):
            title = full_title(opened.stream, of, name)
            try:
                part = section(opened.results, name, key, Interval(interval.start, end))
            except UnknownKey:
                part = Section(title, "No hour of this block has a record of this key.")
            except (LookupError, ValueError, LakeError) as error:
                part = Section(title, f"Not known: {error}.")
            if part is not None:
                yield replace(part, feature=of.name, subject=f"key-{name}")
