"""Derived columns: computed from other columns by an expression."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from transom.formats import record_format as layout
from transom.formats.record_format import FieldType
from transom.spec.errors import Issue, of_expression
from transom.spec.event_time import Time
from transom.spec.expressions import Expression, ExpressionError
from transom.spec.expressions import compile as compiled
from transom.spec.source import Column, resolution_problems

Columns = Mapping[str, Column]


def expression(columns: Columns, read: Mapping[str, layout.Field], name: str) -> Expression:
    """Return the compiled expression of a derived column.

    Raises:
        ExpressionError: it is invalid over event_time and the columns that are not derived.
    """
    text = columns[name].is_
    assert text is not None
    types: dict[str, FieldType] = {column: field.type for column, field in read.items()}
    try:
        return compiled(text, types | {"event_time": "timestamp"})
    except ExpressionError as error:
        if error.unknown in _derived(columns):
            rule = f"{error.unknown} is derived, too; a derived column reads others"
            raise ExpressionError(text, error.offset, rule) from None
        raise


def field(columns: Columns, read: Mapping[str, layout.Field], name: str) -> layout.Field:
    """Return the name, type and resolution of a derived column; as declared if its expression is invalid."""
    column = columns[name]
    kind = column.type
    if "type" not in column.model_fields_set:
        with suppress(ExpressionError):  # reported by `problems`
            kind = expression(columns, read, name).type
    return layout.Field(name, (), kind, column.resolution or "1")


def problems(columns: Columns, read: Mapping[str, layout.Field], time: Time | None) -> Iterator[Issue]:
    """Yield the problems of derived columns, and of a time that reads one."""
    for name in _derived(columns):
        place, column = f"columns.{name}", columns[name]
        try:
            gives = expression(columns, read, name).type
        except ExpressionError as error:
            yield of_expression(f"{place}.is", error)
            continue
        kind = column.type if "type" in column.model_fields_set else gives
        if kind != gives and (kind, gives) != ("number", "integer"):
            yield Issue(f"{place}.type", f"must be {gives}, which `is` gives; got {kind}")
        else:
            for problem in resolution_problems(kind, column.resolution):
                yield replace(problem, path=f"{place}.{problem.path}")
    if time is not None:
        for place, text in [*(("column", text) for text in time.column or ()), ("plus", time.plus)]:
            if text in _derived(columns):
                yield Issue(f"time.{place}", f"{text} is derived; a time comes from a record's own fields")


def _derived(columns: Columns) -> list[str]:
    return [name for name, column in columns.items() if column.is_ is not None]
