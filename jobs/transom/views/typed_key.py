"""Keys as a person types them: with the names of columns, or a value alone, for which a column is chosen."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from transom.core.intervals import Interval
from transom.findings.store import NAME, about_sql, reported_sql
from transom.spec.errors import did_you_mean
from transom.spec.stream import Stream
from transom.views import events
from transom.views.open_stream import OpenStream
from transom.views.results import has_results


@dataclass(frozen=True)
class TypedKey:
    """A key as a person typed it.

    Attributes:
        columns: the text of each of its columns.
        notices: which column was chosen, and how to type the others; empty if there is no choice.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def typed_key(opened: OpenStream, text: str, interval: Interval, subject: Sequence[str] = ()) -> TypedKey:
    """Return the key of a text, such as `10.0.0.1`, or `client=10.0.0.1, path=/`.

    A value without a column is one of the first column that has findings of it in the interval, else events,
    else results. If nothing is known of it, it is one of the first column.

    Args:
        opened: the stream.
        text: the key.
        interval: the hours of the page.
        subject: the columns to choose from. Default: those of the stream's key, then those of its blocks.

    Raises:
        ValueError: there is no such column, or the text is no value of any column.
    """
    named = _named_columns(opened.stream, text)
    if named is not None:
        opened.key_of(named)
        return TypedKey(named)
    keys = _possible(opened, text, subject or _subjects(opened.stream))
    if len(keys) == 1:
        return TypedKey(keys[0])
    found = next(_known(opened, keys, interval), None)
    chosen = found or keys[0]
    why = "the first column with something of it" if found else "as nothing is known of it"
    others = " or ".join(_typed(key) for key in keys if key is not chosen)
    notice = f"Read as {_typed(chosen)}, {why} in these hours. For another column, type {others}."
    return TypedKey(chosen, (notice,))


def _named_columns(stream: Stream, text: str) -> dict[str, str] | None:
    """Return the columns that a text names, with their texts; None if it is a value without a column."""
    known = sorted(stream.event_types)
    # A value may have a comma.
    names = "|".join(map(re.escape, known))
    parts = [part.partition("=") for part in re.split(f", (?=(?:{names})=)", text)]
    if all(separator and name in known for name, separator, _ in parts):
        return {name: value for name, _, value in parts}
    first, separator, _ = parts[0]
    if separator and first.isidentifier():
        hint = did_you_mean(first, known)
        raise ValueError(f"key: must be COLUMN=VALUE with a column of {stream.name}; got {text!r}{hint}")
    return None


def _subjects(stream: Stream) -> Sequence[str]:
    """Return the columns of the stream's key, then those of the keys and items of its blocks."""
    of_blocks = (
        column
        for feature in stream.features
        for name in stream.blocks(feature.block)
        for column in feature.subject(stream, name)
    )
    return [name for name in dict.fromkeys([*stream.key, *of_blocks]) if name in stream.event_types]


def _possible(opened: OpenStream, text: str, columns: Iterable[str]) -> list[dict[str, str]]:
    """Return the keys of one column that a text may be, one or more; raise as `typed_key`."""
    keys, problem = list[dict[str, str]](), None
    for column in columns:
        try:
            opened.key_of({column: text})
            keys.append({column: text})
        except ValueError as error:
            problem = problem or error
    if not keys:
        name = opened.stream.name
        raise problem or ValueError(f"key: must be COLUMN=VALUE with a column of {name}; got {text!r}")
    return keys


def _known(
    opened: OpenStream, keys: Sequence[dict[str, str]], interval: Interval
) -> Iterator[dict[str, str]]:
    """Yield the keys of which something is known; the cheapest evidence is read first."""
    table = opened.tables.pin(NAME)
    terms = (f"bool_or({about_sql(opened.stream, key)}) AS key_{place}" for place, key in enumerate(keys))
    sql = f"SELECT {', '.join(terms)} FROM t WHERE {reported_sql(interval)}"
    for row in table.rows(sql) if table else ():
        yield from (key for key, has_findings in zip(keys, row.values(), strict=True) if has_findings)
    selections = [opened.selection(interval, key) for key in keys]
    for is_known in (events.has_events, has_results):
        yield from (key for key, of in zip(keys, selections, strict=True) if is_known(of))


def _typed(key: Mapping[str, str]) -> str:
    return ", ".join(f"{column}={text}" for column, text in key.items())
