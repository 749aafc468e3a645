"""Derived columns: computed from other columns by an expression."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from transom.formats import record_format as layout
from transom.formats.record_format import FieldType
from transom.spec.errors import Issue, of_expression
from transom.spec.event_time import Time
from transom.spec.expressions import Expression, ExpressionError
from transom.spec.expressions import compile as compiled
from transom.spec.source import NO_RESOLUTION, Column

Columns = Mapping[str, Column]


def expression(columns: Columns, read: Mapping[str, layout.Field], name: str) -> Expression:
    """Return the compiled expression of a derived column.

    Raises:
        ExpressionError: it cannot be compiled over the columns that are not derived, and event_time.
    """
    text = columns[name].is_
    assert text is not None
    types: dict[str, FieldType] = {column: field.type for column, field in read.items()}
    try:
        return compiled(text, types | {"event_time": "timestamp"})
    except ExpressionError as error:
        referenced = next(
            (referenced for referenced in _derived(columns) if text.startswith(referenced, error.offset)),
            None,
        )
        if referenced is not None and error.unknown == referenced:
            raise ExpressionError(
                text, error.offset, f"{referenced} is derived, too; a derived column is made of others"
            ) from None
        raise


def field(columns: Columns, read: Mapping[str, layout.Field], name: str) -> layout.Field:
    """Return name, type and resolution of a derived column; as declared if it cannot be compiled."""
    column = columns[name]
    kind = column.type
    if not _has_type(column):
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
        kind = column.type if _has_type(column) else gives
        if kind != gives and (kind, gives) != ("number", "integer"):
            yield Issue(f"{place}.type", f"must be {gives}, which `is` gives; got {kind}")
        elif kind == "number" and column.resolution is None:
            yield Issue(f"{place}.resolution", NO_RESOLUTION)
        elif kind != "number" and column.resolution is not None:
            rule = f"only a number has one; got {column.resolution} for type {kind}"
            yield Issue(f"{place}.resolution", rule)
    if time is not None:
        texts = [("column", text) for text in time.column or ()] + [("plus", time.plus)]
        for place, text in texts:
            if text in _derived(columns):
                yield Issue(f"time.{place}", f"{text} is derived; a time is made of a record's own fields")


def _derived(columns: Columns) -> list[str]:
    return [name for name, column in columns.items() if column.is_ is not None]


def _has_type(column: Column) -> bool:
    return "type" in column.model_fields_set
