"""Unique columns: which records are duplicates, and which of them is kept."""

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
    """Columns that make a record one, for logs that are shipped at least once or that tell a thing while it
    goes on. A bare list in the file is its `columns`.

    Of the records of one hour of event time that agree in all columns one stays, and the others are kept in
    the table `duplicates`. Across hours nothing is compared: what an hour's rows are depends on that hour's
    records alone. A record that lacks one of the columns is like no other.
    """

    SHORT = (
        "columns",
        (list, tuple),
        {
            "type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1,
            "description": "columns in which records agree that are one",
        },
    )  # fmt: skip

    columns: Annotated[tuple[NonEmptyStr, ...], Field(min_length=1)]
    """Columns, or event_time, in all of which records of one hour agree that are one."""
    prefer: _Preference = "first"
    """Which of them stays: first, by time, file and line; or `longest COLUMN`, the one of the largest value
    of an integer or a number, such as longest duration, and the first of equal ones."""

    @property
    def longest(self) -> str | None:
        """The column whose largest value selects the record to keep; None if the first record is kept."""
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
