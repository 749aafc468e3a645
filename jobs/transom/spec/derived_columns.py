"""Columns that are computed from the others, by the expression language."""

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from transom.formats import record_format as layout
from transom.formats.record_format import FieldType
from transom.spec.errors import Issue, of_expression
from transom.spec.expressions import Expression, ExpressionError
from transom.spec.expressions import compile as compiled
from transom.spec.source import NO_RESOLUTION, Column

if TYPE_CHECKING:
    from transom.spec.stream import Stream


def expression(stream: "Stream", name: str) -> Expression:
    """Return what a derived column is, compiled.

    Raises:
        ExpressionError: it cannot be compiled over the columns that are not derived, and event_time.
    """
    text = stream.columns[name].is_
    assert text is not None
    types: dict[str, FieldType] = {column: field.type for column, field in stream.read_columns.items()}
    try:
        return compiled(text, types | {"event_time": "timestamp"})
    except ExpressionError as error:
        read = next((other for other in _derived(stream) if text.startswith(other, error.offset)), None)
        if read is not None and error.unknown == read:
            raise ExpressionError(
                text, error.offset, f"{read} is derived, too; a derived column is made of others"
            ) from None
        raise


def field(stream: "Stream", name: str) -> layout.Field:
    """Return name, type and resolution of a derived column. One that cannot be compiled is as declared."""
    column = stream.columns[name]
    kind = column.type
    if not _has_type(column):
        with suppress(ExpressionError):  # told by `problems`
            kind = expression(stream, name).type
    return layout.Field(name, (), kind, column.resolution or "1")


def problems(stream: "Stream") -> Iterator[Issue]:
    """Yield what is wrong with the derived columns."""
    for name in _derived(stream):
        place, column = f"columns.{name}", stream.columns[name]
        try:
            gives = expression(stream, name).type
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
    if stream.time is not None:
        texts = [("column", text) for text in stream.time.column or ()] + [("plus", stream.time.plus)]
        for place, text in texts:
            if text in _derived(stream):
                yield Issue(f"time.{place}", f"{text} is derived; a time is made of a record's own fields")


def _derived(stream: "Stream") -> list[str]:
    return [name for name, column in stream.columns.items() if column.is_ is not None]


def _has_type(column: Column) -> bool:
    return "type" in column.model_fields_set
