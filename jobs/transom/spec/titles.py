"""Titles of findings, with names of columns in braces."""

from collections.abc import Collection, Iterator
from functools import lru_cache
from string import Formatter

from transom.spec.errors import Issue, did_you_mean


@lru_cache
def parts_of(title: str) -> list[tuple[str, str | None]]:
    """Split a title into texts, each with the column that follows it or None; raise a ValueError if a brace
    is not closed or contains more than a name.

    >>> parts_of("{client} is busy")
    [('', 'client'), (' is busy', None)]
    """
    try:
        parts = list(Formatter().parse(title))
    except ValueError:
        raise ValueError(f"must be a text with names in braces; got {title!r}") from None
    if any(form or conversion for _, _, form, conversion in parts):
        raise ValueError(f"has no formats in braces; got {title!r}")
    return [(text, column) for text, column, _, _ in parts]


def title_problems(place: str, title: str, known: Collection[str], rule: str) -> Iterator[Issue]:
    """Yield the problems of a title; `known` are the columns that it may name, `rule` describes them."""
    try:
        for _, column in parts_of(title):
            if column is not None and column not in known:
                # The key of a block may be the stream's.
                needs = (("columns", column), ("key",))
                yield Issue(place, f"{rule}; no column {column!r}{did_you_mean(column, known)}", needs)
    except ValueError as error:
        yield Issue(place, str(error))
