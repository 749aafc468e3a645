"""Alerts: conditions on the reports of an aggregation that a person is told of."""

from collections.abc import Iterator

from transom.features.aggregates.alert_spec import UNNAMED
from transom.features.aggregates.output_columns import report_types
from transom.features.aggregates.spec import Aggregation
from transom.formats.record_format import FieldType
from transom.spec.errors import Issue, of_expression
from transom.spec.expressions import Expression, ExpressionError, condition
from transom.spec.stream import Stream
from transom.spec.titles import title_problems

ALERT_COLUMNS = ("hour", "block", "alert", "level", "window_start", "window_end", "count", "complete")
"""Columns of `alerts` beside keys and figures."""


def conditions(stream: Stream, block: str) -> dict[str, Expression]:
    """Return the compiled conditions of a block's alerts, by name."""
    types = report_types(stream, block)
    return {
        name: condition(alert.when, types) for name, alert in stream.blocks(Aggregation)[block].alert.items()
    }


def figures(stream: Stream, block: str) -> dict[str, FieldType]:
    """Return the columns that the conditions of a block read, beside those that every report has."""
    named = {column for met in conditions(stream, block).values() for column in met.columns}
    beside = {*ALERT_COLUMNS, *stream.blocks(Aggregation)[block].key}
    return {name: kind for name, kind in report_types(stream, block).items() if name in named - beside}


def problems(place: str, block: str, stream: Stream) -> Iterator[Issue]:
    """Yield what is wrong with the alerts of a block whose columns are known.

    Args:
        place: the path of the block.
    """
    declared = stream.blocks(Aggregation)[block]
    types = report_types(stream, block)
    for name, alert in declared.alert.items():
        short = name == UNNAMED and alert.model_fields_set == {"when"}
        at = f"{place}.alert" if short else f"{place}.alert.{name}"
        if alert.level is not None and alert.level >= len(declared.levels):
            most = len(declared.levels) - 1
            rule = f"must be the number of a level, from 0 to {most}"
            yield Issue(f"{at}.level", f"{rule}; got {alert.level}")
        try:
            met = condition(alert.when, types)
        except ExpressionError as error:
            yield of_expression(at if short else f"{at}.when", error, ("key",))
            continue
        if UNNAMED in (*declared.key, *met.columns):
            yield Issue(at, f"{UNNAMED} is a column that every alert has; name the column otherwise")
        if alert.title is not None:
            told = {*declared.key, *met.columns, "level", "window_start", "window_end", "count"}
            rule = "a title names columns of the key and of its condition"
            yield from title_problems(f"{at}.title", alert.title, [n for n in types if n in told], rule)
