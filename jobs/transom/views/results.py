"""The results of features as sections of a page."""

from contextlib import suppress
from dataclasses import replace

from transom.charts.section import Section
from transom.engine.selection import Selection
from transom.storage.tables import LakeError


def sections(selection: Selection, feature: str | None = None, block: str | None = None) -> list[Section]:
    """Return a section for each block that has the selected key; none if there is no such block.

    After the section of a block come those of its parts, such as the fills of frames.

    Args:
        selection: the rows.
        feature: the feature, such as `aggregates`. Default: all.
        block: the block. Default: all.
    """
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


def has_results(selection: Selection) -> bool:
    """Return whether any block has rows of the selected key; a damaged table has none."""
    stream = selection.stream
    for of in stream.features:
        for name in stream.blocks(of.block):
            if selection.key.keys() <= {*of.subject(stream, name)}:
                for table in of.outlets:
                    with suppress(LakeError):
                        if selection.query(of.name, name, table, ("hour",)).rows(1):
                            return True
    return False
