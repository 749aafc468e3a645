"""All that is known of a key or an item."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from transom.charts.section import DataTable, Section
from transom.core.intervals import HOUR, Interval, format_hour
from transom.engine.selection import Selection
from transom.features.aggregates.spec import Aggregation
from transom.features.aggregates.view import exactness
from transom.features.frequency.spec import Frequency
from transom.storage.tables import LakeError
from transom.views import events
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
        sections: the results of all features that have its columns, `horizon` and `frequency` at the end of
            the interval, and its raw events last.
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
        queried = [*_horizons(opened, values, interval), *_frequencies(opened, values, interval)]
        return [*sections(selection), *queried, events.of_key(selection)]

    parts, notices = opened.consistent(interval, key, page, read, stale)
    return KeyView(key, interval, findings_of(opened, FindingFilter(interval, key)), parts, notices)


def _horizons(opened: OpenStream, key: Mapping[str, Any], interval: Interval) -> Iterator[Section]:
    """Yield the aggregates of the whole interval, for each block with this key."""
    end = _end(opened, interval)
    for name, block in opened.stream.blocks(Aggregation).items():
        if {*block.key} == key.keys() and interval.start < end:
            title = f"{block.title or name}: {', '.join(block.measures)} of the whole interval"
            try:
                row = opened.results.horizon(key, end, end - interval.start, block=name)
            except (LookupError, ValueError, LakeError) as error:
                yield Section(title, f"Not known: {error}.", None, None, f"horizon-{name}", "aggregates")
                continue
            gap = "" if row is None or row["complete"] else " Some of its hours are incomplete."
            yield Section(
                title,
                f"Of all its events, not of a level. {exactness(block)}{gap}" if row else "No event.",
                DataTable.of(("figure", "value"), row.items()) if row else None,
                None,
                f"horizon-{name}",
                "aggregates",
            )


def _frequencies(opened: OpenStream, key: Mapping[str, Any], interval: Interval) -> Iterator[Section]:
    """Yield the frequency of the item in the last window, for each block with this item."""
    end = _end(opened, interval)
    for name, block in opened.stream.blocks(Frequency).items():
        if {*block.item} == key.keys() and interval.start < end:
            title = f"{name}: how often in the last window"
            try:
                answer = opened.results.frequency(name, tuple(key[column] for column in block.item), end)
            except (LookupError, ValueError, LakeError) as error:
                yield Section(title, f"Not known: {error}.", None, None, f"frequency-{name}", "frequency")
                continue
            margin = (
                f"It is below the estimate by more than margin with a probability of at most {block.delta:g}."
                if answer.margin is not None
                else "There is no other bound."
            )
            until = (
                f"The window ends at {format_hour(end)}. The count is certainly from low to high. {margin}"
            )
            yield Section(
                title,
                until,
                DataTable.of(("figure", "value"), vars(answer).items()),
                None,
                f"frequency-{name}",
                "frequency",
            )


def _end(opened: OpenStream, interval: Interval) -> datetime:
    """Return the end of an interval, but at most that of the last requested hour."""
    last = opened.snapshot().required_hours.last
    return interval.end if last is None else min(interval.end, last + HOUR)
