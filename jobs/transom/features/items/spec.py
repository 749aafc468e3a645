"""Items in lists of the stream file."""

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
