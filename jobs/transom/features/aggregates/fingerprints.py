"""The part of a block that determines the rows of each table, as canonical JSON."""

from collections.abc import Iterable
from typing import Any

from transom.core.durations import microseconds
from transom.features.aggregates.output_columns import aggregate_types, alert_conditions
from transom.features.aggregates.spec import Aggregation
from transom.spec.fingerprints import canonical, types_of
from transom.spec.stream import Stream


def granules(stream: Stream, name: str) -> str:
    """Return the fingerprint of a block's granules."""
    block = stream.blocks(Aggregation)[name]
    measures = {name: str(measure) for name, measure in block.measures.items()}
    return _of_events(stream, block, block.measured, measures=measures, base=microseconds(block.base))


def item_granules(stream: Stream, name: str) -> str:
    """Return the fingerprint of the granules of a block's items."""
    block = stream.blocks(Aggregation)[name]
    item = block.recurring
    return _of_events(stream, block, item, item=list(item), base=microseconds(block.item_base))


def _of_events(stream: Stream, block: Aggregation, columns: Iterable[str], **parts: Any) -> str:
    """Return the fingerprint of rows that are computed from events: parts, key, condition and types."""
    where = stream.where_of(block)
    read = {*block.key, *columns, *(where.columns if where else ())} - {"event_time"}
    # The compiled condition does not depend on spaces and letter case of keywords.
    condition = where.sql if where else None
    return canonical({"key": list(block.key), "where": condition, "types": types_of(stream, read), **parts})


def aggregates(stream: Stream, name: str) -> str:
    """Return the fingerprint of a block's aggregates: windows, columns, and resolutions of sums."""
    block = stream.blocks(Aggregation)[name]
    parts: dict[str, Any] = {
        "key": list(block.key),
        "measures": {name: str(measure) for name, measure in block.measures.items()},
        "levels": [
            {"range": microseconds(level.range), "slide": microseconds(level.slide)} for level in block.levels
        ],
        "types": types_of(stream, block.measured),
    }
    # Optional keys: a new option leaves the fingerprints of blocks without it as they are.
    if block.fit and block.unit:
        unit = microseconds(block.unit)
        parts["fit"] = {"unit": unit, "value": block.fit.value, "missing": block.fit.missing}
    if block.aging:
        parts["aging"] = block.aging
    return canonical(parts)


def recurring(stream: Stream, name: str) -> str:
    """Return the fingerprint of a block's recurring items: the rings between its windows."""
    block = stream.blocks(Aggregation)[name]
    return canonical(
        {
            "key": list(block.key),
            "item": list(block.recurring),
            "ranges": [microseconds(level.range) for level in block.levels],
            "slide": microseconds(block.levels[0].slide),
            "types": types_of(stream, {*block.key, *block.recurring}),
        }
    )


def alerts(stream: Stream, name: str) -> str:
    """Return the fingerprint of a block's alerts: the compiled conditions and their levels."""
    block, types = stream.blocks(Aggregation)[name], aggregate_types(stream, name)
    conditions = alert_conditions(stream, name)
    read = {column for condition in conditions.values() for column in condition.columns}.union(block.key)
    return canonical(
        {
            "alerts": {alert: [conditions[alert].sql, spec.level] for alert, spec in block.alert.items()},
            "key": list(block.key),
            "types": {column: types[column] for column in read},
        }
    )
