"""Base models and small types of the specification."""

from collections.abc import Iterator
from datetime import datetime
from math import isfinite
from typing import Annotated, Any, ClassVar, Self
from zoneinfo import ZoneInfo, available_timezones

import pydantic
from pydantic import AfterValidator, BeforeValidator, GetJsonSchemaHandler, PlainSerializer, StringConstraints
from pydantic.json_schema import WithJsonSchema
from pydantic_core import CoreSchema

from transom.core.intervals import format_hour, hour_of, parse
from transom.core.time_zones import parse_offset, zone_with_offset
from transom.spec.errors import Issue, IssuesError, nearest


class Model(pydantic.BaseModel):
    """Base of each part of the specification: frozen, without unknown fields, with rules between fields."""

    # The docstring of a field is its description in the JSON Schema, which editors show.
    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @pydantic.model_validator(mode="after")
    def _check_rules(self) -> Self:
        if problems := tuple(self._rules()):
            raise IssuesError(problems)
        return self

    def _rules(self) -> Iterator[Issue]:
        """Yield the broken rules between the fields; paths are relative to this part."""
        yield from ()


class ShorthandModel(Model):
    """A part that a stream file may also write as the value of one of its fields."""

    SHORT: ClassVar[tuple[str, tuple[type, ...], dict[str, Any]]]
    """The field, the Python types of such a value, and its JSON Schema."""

    @pydantic.model_validator(mode="before")
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
        raise ValueError(
            f"must be an IANA time zone, such as Europe/Berlin; got {name!r}{_zone_hint(name)}"
        ) from None
    return name


def _zone_hint(name: str) -> str:
    offset = parse_offset(name)
    if offset is not None:
        zone = zone_with_offset(offset)
        return "; an offset is no zone" + (f": name one that has it, such as {zone}" if zone else "")
    # Listing the zones reads hundreds of files, so only for the error's text.
    by_lower = {zone.lower(): zone for zone in available_timezones()}
    near = nearest(name, by_lower)
    return f"; nearest: {by_lower[near]}" if near else ""


def _hour(value: Any) -> datetime:
    if isinstance(value, str):
        return parse(value)
    if not isinstance(value, datetime):
        raise ValueError(f"must be a time such as 2015-05-17T10:00; got {value!r}")
    if value.tzinfo is None or hour_of(value) != value:
        raise ValueError(f"must be on the hour, in UTC; got {value.isoformat()}")
    return hour_of(value)


def finite(value: Any) -> Any:
    """Return a finite number unchanged. Refuse "0.5" and true, which pydantic would convert."""
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
