"""Items in lists of the stream file."""

from datetime import timedelta
from typing import Annotated, Any

from pydantic import (
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from transom.core.durations import format_duration
from transom.spec.errors import Issue

Value = StrictBool | StrictInt | StrictStr
Item = Annotated[tuple[Value, ...], Field(min_length=1)]


def _value_or_values(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(value)
    except ValidationError:
        rule = "must be a text, an integer or a truth value, or a list with one for each column"
        raise ValueError(f"{rule}; got {value!r}") from None


ItemLiteral = Annotated[Value | Item, WrapValidator(_value_or_values)]
"""An item of a list: the value of its only column, or a list with a value for each column."""


def window_issue(window: timedelta, part: timedelta, parts: str) -> Issue | None:
    """Return the problem of a window that is not a whole number of slots or ticks.

    Args:
        part: the length of one of them.
        parts: their noun, in the plural.
    """
    if window >= part and not window % part:
        return None
    rule = f"must be a whole number of {parts} of {format_duration(part)}"
    return Issue("window", f"{rule}; got {format_duration(window)}")
