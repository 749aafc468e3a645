"""What is known of a key or an item."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from transom.charts.section import Section
from transom.core.intervals import Interval
from transom.views.findings import FindingsPage
from transom.views.open_stream import OpenStream


@dataclass(frozen=True)
class KeyView:
    """What is known of a key or an item in an interval.

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


def key_of(opened: OpenStream, key: Mapping[str, str], interval: Interval, page: int = 1) -> KeyView:
    """Return what is known of a key or an item.

    Args:
        opened: the stream.
        key: the text of each of its columns, one or more.
        interval: the hours.
        page: the page of each table, from 1.

    Raises:
        ValueError: the stream has no such column, or the text is no value of it.
    """
    raise NotImplementedError
