"""Values of columns that a stream file writes."""

from collections.abc import Mapping
from typing import Any

from transom.formats.record_format import FieldType

TYPES: Mapping[FieldType, type] = {"string": str, "integer": int, "boolean": bool}
"""Column types whose values can be written in the stream file."""


def with_article(kind: str) -> str:
    """Return the name of a type with its article."""
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def value_problem(
    column: str, value: Any, kind: FieldType, types: Mapping[FieldType, type] = TYPES
) -> str | None:
    """Return why a column cannot have a value; None if it can.

    Args:
        column: the column.
        value: the value.
        kind: the type of the column.
        types: the types of values, by the types of columns that can be used.
    """
    if kind not in types:
        return f"no value of {column} can be written here, which is {with_article(kind)}"
    if type(value) is not types[kind]:
        return f"must be {with_article(kind)} for {column}; got {value!r}"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return f"must be of 64 bits for {column}; got {value}"
    if isinstance(value, str) and value != value.encode(errors="ignore").decode():
        return f"must be text that UTF-8 can write for {column}; got {value!r}"
    return None
