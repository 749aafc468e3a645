"""What of a specification shapes which table, as canonical JSON.

A table is stale when its shape's text changes, so a text holds all that changes rows and nothing else:
not a preset's name, a title, a unit, a check. Durations are microseconds, defaults are written out.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from operator import itemgetter
from typing import Any

from transom.core.durations import microseconds
from transom.spec.stream_fields import StreamFields


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces: equal values give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def ingest(stream: StreamFields) -> str:
    """Return what shapes events, duplicates, rejected and files."""
    layout = stream.layout()
    holds, unique, time = stream.source.holds, stream.unique, stream.time
    # What is left out where there is none shapes nothing of streams that stood before it could be said.
    of_name = [name for name in stream.captures if name in layout.of_time]
    return canonical(
        ({"time_captures": of_name} if of_name else {})
        | ({"repeated_hour": "by lines"} if time is not None and time.is_local else {})
        | {
            "format": layout.format,
            # An option left out and one that says the default are told apart: the defaults are the
            # parsers', and a recomputation that comes out the same makes nothing downstream stale.
            "options": dict(layout.options),
            # The path itself may change: which files there are is no part of the shape, but what is made of
            # their names is. That a name says something else than before is seen file by file.
            "captures": list(stream.captures),
            "name": {
                "zone": stream.source.zone,
                "unit": stream.path_pattern.unit,
                "before": microseconds(holds.before),
                "after": microseconds(holds.after),
            }
            | (
                {"covers": microseconds(stream.source.covers), "says": stream.source.name_time}
                if stream.source.covers is not None
                else {}
            )
            if stream.path_pattern.unit
            else None,
            "columns": sorted((asdict(field) for field in layout.fields), key=itemgetter("name")),
            "time": asdict(layout.time),
            "rest": layout.keep_rest,
            "derived": {
                name: [expression.sql, stream.event_columns[name].type, stream.event_columns[name].resolution]
                for name, expression in stream.derived.items()
            },
            "unique": {"columns": sorted(unique.columns), "keep": unique.keep} if unique else None,
            "ties": {"every": microseconds(time.every), "ties": time.ties, "key": sorted(stream.key)}
            if time and time.every and time.ties != "keep"
            else None,
        }
    )


def types_of(stream: StreamFields, columns: Iterable[str]) -> dict[str, list[Any]]:
    """Return the types and resolutions of columns of the events."""
    of = stream.event_columns
    return {column: [of[column].type, of[column].resolution] for column in columns}
