"""Alerts: conditions on the reports of an aggregation that a person is told of."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictInt

from transom.formats.record_format import FieldType
from transom.spec.base import InShort, Name, Text
from transom.spec.errors import Problem, of_expression
from transom.spec.expressions import Expression, ExpressionError, condition
from transom.spec.titles import title_problems

if TYPE_CHECKING:
    from transom.spec.stream import Stream

UNNAMED = "alert"
"""The name of an alert that has none."""
ALERT_COLUMNS = ("hour", "block", "alert", "level", "window_start", "window_end", "count", "complete")
"""Columns of `alerts` beside keys and figures."""


class Alert(InShort):
    """A condition on reports; one that meets it is a finding. A bare text in the file is its `when`."""

    SHORT = ("when", (str,), {"type": "string", "description": "a condition on the reports"})

    when: Text
    """A condition on the reports, such as slope_sent > 0 and n > 1000: on the key, level, window_start,
    window_end, count, and the figures of the block."""
    level: Annotated[StrictInt, Field(ge=0)] | None = None
    """The level whose reports are looked at, 0 the finest; all where nothing is said."""
    severity: Literal["high", "medium", "low"] = "medium"
    """How bad it is."""
    title: Text | None = None
    """For people: what is the matter, with columns of the key or of the condition in braces, as
    {client} is sent more every hour."""


def _named(value: Any) -> Any:
    if isinstance(value, dict) and isinstance(value.get("when"), str):
        raise ValueError(
            f"an alert with settings needs a name, as in many: {{when: ...}}; got {', '.join(value)}"
        )
    return {UNNAMED: value} if isinstance(value, str) else value


Alerts = Annotated[dict[Name, Alert], BeforeValidator(_named, json_schema_input_type=str | dict[Name, Alert])]


def conditions(stream: "Stream", block: str) -> dict[str, Expression]:
    """Return the compiled conditions of a block's alerts, by name."""
    types = stream.report_types(block)
    return {name: condition(alert.when, types) for name, alert in stream.aggregate[block].alert.items()}


def figures(stream: "Stream", block: str) -> dict[str, FieldType]:
    """Return the columns that the conditions of a block read, beside those that every report has."""
    named = {column for met in conditions(stream, block).values() for column in met.columns}
    beside = {*ALERT_COLUMNS, *stream.aggregate[block].key}
    return {name: kind for name, kind in stream.report_types(block).items() if name in named - beside}


def problems(place: str, block: str, stream: "Stream") -> Iterator[Problem]:
    """Yield what is wrong with the alerts of a block whose columns are known.

    Args:
        place: the path of the block.
    """
    declared = stream.aggregate[block]
    types = stream.report_types(block)
    for name, alert in declared.alert.items():
        short = name == UNNAMED and alert.model_fields_set == {"when"}
        at = f"{place}.alert" if short else f"{place}.alert.{name}"
        if alert.level is not None and alert.level >= len(declared.levels):
            most = len(declared.levels) - 1
            rule = f"must be the number of a level, from 0 to {most}"
            yield Problem(f"{at}.level", f"{rule}; got {alert.level}")
        try:
            met = condition(alert.when, types)
        except ExpressionError as error:
            yield of_expression(at if short else f"{at}.when", error, ("key",))
            continue
        if UNNAMED in (*declared.key, *met.columns):
            yield Problem(at, f"{UNNAMED} is a column that every alert has; name the column otherwise")
        if alert.title is not None:
            told = {*declared.key, *met.columns, "level", "window_start", "window_end", "count"}
            rule = "a title names columns of the key and of its condition"
            yield from title_problems(f"{at}.title", alert.title, [n for n in types if n in told], rule)
