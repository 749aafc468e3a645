"""Base models and small types of the specification."""

from datetime import datetime
from math import isfinite
from typing import Annotated, Any, ClassVar
from zoneinfo import ZoneInfo, available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetJsonSchemaHandler,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema

from transom.core.intervals import format_hour, hour_of, parse
from transom.spec.errors import did_you_mean


class Model(BaseModel):
    """A part of the specification: frozen, and without fields that it does not know."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_by_name=False,
        validate_by_alias=True,
        # The docstring of a field is its description in the JSON Schema, which editors show.
        use_attribute_docstrings=True,
    )


class ShorthandModel(Model):
    """A part that a file may also say in short, by the value of one of its fields alone.

    Attributes:
        SHORT: the field, the types of a value that is meant for it, and their JSON Schema.
    """

    SHORT: ClassVar[tuple[str, tuple[type, ...], dict[str, Any]]]

    @model_validator(mode="before")
    @classmethod
    def _in_short(cls, data: Any) -> Any:
        field, kinds, _ = cls.SHORT
        return {field: data} if isinstance(data, kinds) else data

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the schema: the single value, or a mapping."""
        return {"anyOf": [cls.SHORT[2], handler.resolve_ref_schema(handler(core))]}


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):  # a folder, a path that climbs, an unknown name
        raise ValueError(f"must be an IANA time zone; got {name!r}{_near_zone(name)}") from None
    return name


def _near_zone(name: str) -> str:
    # Listing the zones reads hundreds of files, so only for the error's text.
    by_lower = {zone.lower(): zone for zone in available_timezones()}
    hint = did_you_mean(name, by_lower)
    return f"; nearest: {by_lower[hint.removeprefix('; nearest: ')]}" if "nearest" in hint else ""


def _hour(value: Any) -> datetime:
    if isinstance(value, datetime):
        if value.tzinfo is None or hour_of(value) != value:
            raise ValueError(f"must be on the hour, in UTC; got {value.isoformat()}")
        return hour_of(value)
    if not isinstance(value, str):
        raise ValueError(f"must be a time such as 2015-05-17T10:00; got {value!r}")
    try:
        return parse(value, "")
    except ValueError as error:
        raise ValueError(str(error).removeprefix(": ")) from None


def finite(value: Any) -> Any:
    """Return a finite number as it is.

    Raises:
        ValueError: anything else, a text or a truth value that could be read as a number among it.
    """
    # Pydantic would take "0.5" and true for numbers, too.
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"must be a number; got {value!r}")
    return value


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
"""A name that is safe as a folder, a column, a DAG id and an identifier in SQL."""

NonEmptyStr = Annotated[str, StringConstraints(min_length=1)]
"""Text that is not empty."""

Zone = Annotated[str, AfterValidator(_zone)]
"""The name of an IANA time zone."""

Number = Annotated[float, BeforeValidator(finite)]
"""A finite number, not a text that looks like one."""

Hour = Annotated[
    datetime,
    BeforeValidator(_hour),
    PlainSerializer(format_hour, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["2015-05-17T10:00"]}),
]
"""An hour, UTC, written `2015-05-17T10:00`."""
