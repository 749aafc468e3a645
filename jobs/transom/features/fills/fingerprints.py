"""The parts of a block that determine the table of fills, as canonical JSON.

Its keys keep the names of earlier fingerprints, so that a renamed field makes no hour stale.
"""

from collections.abc import Set
from typing import Any

from transom.core.durations import microseconds
from transom.features.aggregates.spec import Aggregation
from transom.features.fills import input_columns
from transom.features.fills.spec import Fill
from transom.features.frames import input_columns as frame_columns
from transom.spec.external_source import Filler
from transom.spec.fingerprints import canonical, types_of
from transom.spec.stream import Stream


def fills(stream: Stream, name: str) -> str:
    """Return what determines `fills`, apart from the frames."""
    spec, where = stream.blocks(Fill)[name], input_columns.where(stream, name)
    by = input_columns.by(stream, name)
    over, every = input_columns.over(spec), frame_columns.every(stream, spec.frame)
    read = {str(measure.column) for measure in spec.measures.values()}.union(where.columns if where else ())
    measures = stream.blocks(Aggregation)[over].measures if over else {}
    key = frame_columns.key(stream, spec.frame)
    own = set() if spec.source.outside else read
    columns = {measures[column].column or "" if column in measures else column for column in own}
    return canonical(
        {
            "frame": spec.frame,
            "from": _filler(spec.source, {*read, *by}),
            "key": list(key),
            "by": list(by),
            "where": where.sql if where else None,
            "stretch": [microseconds(length) for length in (spec.lead, spec.lag, *spec.shift)],
            "every": None if every is None else microseconds(every),
            "take": spec.combine,
            "measures": {name: str(measure) for name, measure in spec.measures.items()},
            "of": {column: str(measures[column]) for column in read if column in measures},
            "reach": microseconds(input_columns.reach(stream, name)),
            "types": types_of(stream, {*key, *columns} & stream.event_columns.keys()),
        }
    )


def _filler(spec: Filler, read: Set[str]) -> Any:
    """Return what determines the rows of a source: its name, and of an external one the columns read."""
    if not spec.outside:
        return spec.block
    columns = {name: column.field(name) for name, column in spec.columns.items() if name in read}
    return {
        "stream": spec.stream,
        "table": spec.table,
        "time": spec.time,
        "columns": {name: [of.paths[0], of.type, of.resolution] for name, of in columns.items()},
    }
