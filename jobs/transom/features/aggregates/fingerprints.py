"""What of a block shapes the tables of aggregates, as canonical JSON."""

from transom.core.durations import microseconds
from transom.features.aggregates.alerts import conditions
from transom.features.aggregates.output_columns import report_types
from transom.features.aggregates.spec import Aggregation
from transom.spec.fingerprints import canonical, types_of
from transom.spec.stream import Stream


def granules(stream: "Stream", name: str) -> str:
    """Return what shapes the granules of a block."""
    block = stream.blocks(Aggregation)[name]
    where = stream.where_of(stream.blocks(Aggregation)[name])
    read = _measured(stream, name).union(block.key, where.columns if where else ())
    return canonical(
        {
            "key": list(block.key),
            # As compiled: spaces and letter case of keywords shape nothing.
            "where": where.sql if where else None,
            "measures": {name: str(measure) for name, measure in block.measures.items()},
            "base": microseconds(block.base),
            "types": types_of(stream, read - {"event_time"}),
        }
    )


def reports(stream: "Stream", name: str) -> str:
    """Return what shapes the reports of a block: the windows, the columns that a report has, and their
    units, of which granules hold whole numbers."""
    block = stream.blocks(Aggregation)[name]
    # What is left out where there is none shapes nothing of streams that stood before it could be said.
    fit = None if block.fit is None or block.unit is None else (microseconds(block.unit), block.fit)
    return canonical(
        ({"fit": {"unit": fit[0], "value": fit[1].value, "missing": fit[1].missing}} if fit else {})
        | ({"aging": block.aging} if block.aging else {})
        | {
            "key": list(block.key),
            "measures": {name: str(measure) for name, measure in block.measures.items()},
            "levels": [
                {"range": microseconds(level.range), "slide": microseconds(level.slide)}
                for level in block.levels
            ],
            "types": types_of(stream, _measured(stream, name)),
        }
    )


def item_granules(stream: "Stream", name: str) -> str:
    """Return what shapes the granules of the items of a block."""
    block = stream.blocks(Aggregation)[name]
    where = stream.where_of(stream.blocks(Aggregation)[name])
    read = {*block.key, *block.recurring, *(where.columns if where else ())}
    return canonical(
        {
            "key": list(block.key),
            "item": list(block.recurring),
            "where": where.sql if where else None,
            "base": microseconds(block.item_base),
            "types": types_of(stream, read - {"event_time"}),
        }
    )


def recurring(stream: "Stream", name: str) -> str:
    """Return what shapes the recurring items of a block: the rings between its windows."""
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


def alerts(stream: "Stream", name: str) -> str:
    """Return what shapes the alerts of a block: conditions as compiled, and the levels that they look at."""
    block, types = stream.blocks(Aggregation)[name], report_types(stream, name)
    met = conditions(stream, name)
    read = {column for of in met.values() for column in of.columns}.union(block.key)
    return canonical(
        {
            "alerts": {alert: [met[alert].sql, said.level] for alert, said in block.alert.items()},
            "key": list(block.key),
            "types": {column: types[column] for column in read},
        }
    )


def _measured(stream: "Stream", name: str) -> set[str]:
    measures = stream.blocks(Aggregation)[name].measures.values()
    return {measure.column for measure in measures if measure.column is not None}
