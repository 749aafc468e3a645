"""What of a block shapes the table of fills, as canonical JSON."""

from collections.abc import Iterable
from typing import Any

from transom.core.durations import microseconds
from transom.features.aggregates.spec import Aggregation
from transom.features.fills import validate as fill_columns
from transom.features.fills.spec import Fill
from transom.features.frames import validate as frame_columns
from transom.spec.external_source import Filler
from transom.spec.fingerprints import canonical, types_of
from transom.spec.stream import Stream


def fills(stream: "Stream", name: str) -> str:
    """Return what shapes a fill, its frames given."""
    said, where = stream.blocks(Fill)[name], fill_columns.where(stream, name)
    over, every = fill_columns.over(said), frame_columns.every(stream, said.frame)
    read = {str(of.column) for of in said.measures.values()}.union(where.columns if where else ())
    measures = stream.blocks(Aggregation)[over].measures if over else {}
    key = frame_columns.key(stream, said.frame)
    own = set() if said.source.outside else read
    columns = {measures[column].column or "" if column in measures else column for column in own}
    return canonical(
        {
            "frame": said.frame,
            "from": _filler(said.source, {*read, *fill_columns.by(stream, name)}),
            "key": list(key),
            "by": list(fill_columns.by(stream, name)),
            "where": where.sql if where else None,
            "stretch": [microseconds(length) for length in (said.lead, said.lag, *said.shift)],
            "every": None if every is None else microseconds(every),
            "take": said.combine,
            "measures": {measure: str(of) for measure, of in said.measures.items()},
            "of": {column: str(measures[column]) for column in read if column in measures},
            "reach": microseconds(fill_columns.reach(stream, name)),
            "types": types_of(stream, {*key, *columns} & stream.event_columns.keys()),
        }
    )


def _filler(said: "Filler", read: Iterable[str]) -> Any:
    """What shapes rows from outside the stream: which table, and the columns that are read of it."""
    if not said.outside:
        return said.block
    columns = {name: column.field(name) for name, column in said.columns.items() if name in set(read)}
    return {
        "stream": said.stream,
        "table": said.table,
        "time": said.time,
        "columns": {name: [of.paths[0], of.type, of.resolution] for name, of in columns.items()},
    }
