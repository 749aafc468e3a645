"""Items as people write them in lists."""

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


def _value_or_values(said: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(said)
    except ValidationError:
        rule = "must be a text, an integer or a truth value, or a list with one for each column"
        raise ValueError(f"{rule}; got {said!r}") from None


ItemLiteral = Annotated[Value | Item, WrapValidator(_value_or_values)]
"""An item of a list: of one column its value, of several a value for each."""
