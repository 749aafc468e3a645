"""How long ago: durations with a minus before them, as `-7 days`."""

from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema

from transom.core.durations import format_duration, parse_duration


def _ago(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError(f"must be a duration into the past, such as -7 days; got {value!r}")
    length = parse_duration(value.strip().removeprefix("-"))
    if length and not value.strip().startswith("-"):
        raise ValueError(f"must be into the past, such as -7 days; got {value!r}")
    return length


def format_ago(length: timedelta) -> str:
    """Return how long ago something was as it is written."""
    return f"-{format_duration(length)}" if length else format_duration(length)


Ago = Annotated[
    timedelta,
    BeforeValidator(_ago),
    PlainSerializer(format_ago, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["-24 hours", "-7 days"]}),
]
"""How long ago: a `timedelta` that is not negative."""


def _some(shifts: tuple[timedelta, ...]) -> tuple[timedelta, ...]:
    if not shifts:
        raise ValueError("must have at least 1; got []")
    return shifts


# A length that pydantic checks is told of a list whose one item is wrong, too.
Shifts = Annotated[tuple[Ago, ...], AfterValidator(_some), Field(json_schema_extra={"minItems": 1})]
"""How long ago, one or several."""
