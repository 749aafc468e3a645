"""The results of a feature as sections of a page."""

from collections.abc import Mapping

from transom.charts.section import Section
from transom.core.intervals import Interval
from transom.views.open_stream import OpenStream


def sections_of(
    opened: OpenStream,
    feature: str | None = None,
    block: str | None = None,
    interval: Interval | None = None,
    key: Mapping[str, str] | None = None,
    page: int = 1,
) -> list[Section]:
    """Return a section for each block that has the selected key; none if there is no such block.

    Args:
        opened: the stream.
        feature: the feature, such as `aggregates`. Default: all.
        block: the block. Default: all.
        interval: the hours. Default: as of `OpenStream.interval_of`.
        key: the text of each column of a key. Default: all keys.
        page: the page of each table, from 1, of `MAX_ROWS` rows.
    """
    raise NotImplementedError
