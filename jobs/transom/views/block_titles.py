"""Short titles of blocks, for menus."""

import re

from transom.spec.feature import Feature
from transom.spec.stream import Stream
from transom.spec.titles import parts_of

MAX_TITLE = 48
"""The maximum number of characters of a short title."""
_OPEN_END = re.compile(r"[\s,:;(]+(?:(?:from|since|for|at|to|until|in|of|by|with|on|and)\b[\s,:;(]*)*$")


def block_titles(stream: Stream) -> dict[str, dict[str, str]]:
    """Return a short title for each block that has a page, by feature."""
    return {
        feature.name: {
            name: short_title(getattr(block, "title", None), feature.subject(stream, name)) or name
            for name, block in stream.blocks(feature.block).items()
        }
        for feature in stream.features
        if feature.view is not None and stream.blocks(feature.block)
    }


def full_title(stream: Stream, feature: Feature[Stream], name: str) -> str:
    """Return the title of a block for the heading of its page: as `short_title`, of any length."""
    block = stream.blocks(feature.block)[name]
    return short_title(getattr(block, "title", None), feature.subject(stream, name), None) or name


def short_title(title: str | None, subject: tuple[str, ...], limit: int | None = MAX_TITLE) -> str:
    """Return the part of a title that is true of a whole block, with the names of its key or item.

    >>> short_title("{client} was busy from {start_time}, for {records} hours", ("client",))
    'client was busy'

    Args:
        title: the title of the block or of its findings; None if it has none.
        subject: the columns of its key or item.
        limit: the maximum number of characters; None is any.

    Returns:
        The title up to the first other column; empty if nothing is left.
    """
    text = ""
    for part, column in parts_of(title or ""):
        text += part
        if column is not None and column not in subject:
            text = _OPEN_END.sub("", text)
            break
        text += column or ""
    text = " ".join(text.split())
    if limit is None or len(text) <= limit:
        return text
    return f"{text[: limit - 2].rpartition(' ')[0] or text[: limit - 3]}..."
