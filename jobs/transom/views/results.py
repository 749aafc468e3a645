"""The results of features as sections of a page."""

from collections.abc import Mapping
from dataclasses import replace

from transom.charts.section import Section
from transom.core.intervals import Interval
from transom.engine.selection import Selection
from transom.storage.tables import LakeError
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

    After the section of a block come those of its parts, such as the fills of frames.

    Args:
        opened: the stream.
        feature: the feature, such as `aggregates`. Default: all.
        block: the block. Default: all.
        interval: the hours. Default: as of `OpenStream.interval_of`.
        key: the text of each column of a key. Default: all keys.
        page: the page of each table, from 1, of `MAX_ROWS` rows.

    Raises:
        ValueError: as of `OpenStream.key_of`.
    """
    interval = interval or opened.interval_of(None, None)[0]
    return opened.consistent(
        interval, key or {}, page, lambda selection: sections(selection, feature, block)
    )[0]


def sections(selection: Selection, feature: str | None = None, block: str | None = None) -> list[Section]:
    """Return a section for each block that has the selected key; arguments as of `sections_of`."""
    stream, found = selection.stream, list[Section]()
    for of in stream.features:
        view = of.view
        for name in stream.blocks(of.block):
            is_selected = feature in (None, of.name) and block in (None, name)
            if view is None or not (is_selected or of.part_of(stream, name) == (feature, block)):
                continue
            if not selection.key.keys() <= {*of.subject(stream, name)}:
                continue
            try:
                part = view(selection, name)
            except LakeError as error:
                # Damage of one table must not take the whole page.
                part = Section(name, f"{error}.", subject=name)
            coverage = selection.coverage(of.name, name, of.outlets)
            found.append(replace(part, feature=of.name, note=f"{part.note} {coverage}"))
    return found
