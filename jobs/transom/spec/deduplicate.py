"""Unique columns: which records are duplicates, and which one remains an event."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from transom.formats.record_format import NUMERIC, FieldType
from transom.spec.base import NonEmptyStr, ShorthandModel
from transom.spec.errors import Issue, no_column

_PREFER = "^(first|longest [a-z][a-z0-9_]*)$"


def _preference(text: str) -> str:
    if not re.fullmatch(_PREFER, text):
        raise ValueError(f"must be first, or longest and a column, as longest duration; got {text!r}")
    return text


_Preference = Annotated[str, AfterValidator(_preference), Field(json_schema_extra={"pattern": _PREFER})]


class Unique(ShorthandModel):
    """Columns that identify a record, for logs that are shipped at least once or that report a thing several
    times. A bare list in the file is its `columns`.

    Records of one hour of event time are duplicates if they agree in all columns. One of them remains an
    event; the others go to the table `duplicates`. Records of different hours are not compared, so the rows
    of an hour depend only on its records. A record that lacks one of the columns is no duplicate.
    """

    SHORT = (
        "columns",
        (list, tuple),
        {
            "type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1,
            "description": "columns that identify a record",
        },
    )  # fmt: skip

    columns: Annotated[tuple[NonEmptyStr, ...], Field(min_length=1)]
    """Columns, or event_time. Records of one hour that agree in all of them are duplicates."""
    prefer: _Preference = "first"
    """Which record remains an event: first, by time, file and line; or `longest COLUMN`, the one with the
    largest value of an integer or number column, such as longest duration (the first of equal ones)."""

    @property
    def longest(self) -> str | None:
        """The column whose largest value selects the remaining record; None if the first record remains."""
        return None if self.prefer == "first" else self.prefer.removeprefix("longest ")


def problems(unique: Unique, types: Mapping[str, FieldType]) -> Iterator[Issue]:
    """Yield the problems of `unique`: each column must exist, once, and `longest` needs a number."""
    for index, name in enumerate(unique.columns):
        if name not in types:
            yield no_column("unique", name, types)
        elif name in unique.columns[:index]:
            yield Issue("unique", f"names {name!r} more than once")
    longest = unique.longest
    if longest is not None and longest not in types:
        numeric = [name for name, kind in types.items() if kind in NUMERIC]
        yield no_column("unique.prefer", longest, numeric)
    elif longest is not None and types[longest] not in NUMERIC:
        rule = f"longest takes an integer or a number; {longest} is a {types[longest]}"
        yield Issue("unique.prefer", rule)
