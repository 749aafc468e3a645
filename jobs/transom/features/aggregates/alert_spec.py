"""The alerts of a block of aggregates, as people write them."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictInt

from transom.spec.base import Name, NonEmptyStr, ShorthandModel

UNNAMED = "alert"
"""The name of an alert that has none."""


class Alert(ShorthandModel):
    """A condition on reports; one that meets it is a finding. A bare text in the file is its `when`."""

    SHORT = ("when", (str,), {"type": "string", "description": "a condition on the reports"})

    when: NonEmptyStr
    """A condition on the reports, such as slope_sent > 0 and n > 1000: on the key, level, window_start,
    window_end, count, and the figures of the block."""
    level: Annotated[StrictInt, Field(ge=0)] | None = None
    """The level whose reports are looked at, 0 the finest; all where nothing is said."""
    severity: Literal["high", "medium", "low"] = "medium"
    """How bad it is."""
    title: NonEmptyStr | None = None
    """For people: what is the matter, with columns of the key or of the condition in braces, as
    {client} is sent more every hour."""


def _named(value: Any) -> Any:
    if isinstance(value, dict) and isinstance(value.get("when"), str):
        raise ValueError(
            f"an alert with settings needs a name, as in many: {{when: ...}}; got {', '.join(value)}"
        )
    return {UNNAMED: value} if isinstance(value, str) else value


Alerts = Annotated[dict[Name, Alert], BeforeValidator(_named, json_schema_input_type=str | dict[Name, Alert])]
