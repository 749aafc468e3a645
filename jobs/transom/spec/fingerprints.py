"""Fingerprints: the parts of a specification that determine the rows of a table, as canonical JSON.

A table is stale when its fingerprint changes. So a fingerprint has everything that changes rows and nothing
else: no preset's name, title, unit or check. Durations are in microseconds, defaults are written out.
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
    """Return the fingerprint of events, duplicates, rejected and files."""
    layout = stream.layout()
    holds, unique, time = stream.source.event_time_range, stream.unique, stream.time
    # Keys of later features are left out if unused, so that older streams keep their fingerprint.
    of_name = [name for name in stream.captures if name in layout.of_time]
    return canonical(
        ({"time_captures": of_name} if of_name else {})
        | ({"repeated_hour": "by lines"} if time is not None and time.is_local else {})
        | {
            "format": layout.format,
            # A missing option and its default differ here: the parsers have the defaults, and a recomputation
            # with the same result makes nothing downstream stale.
            "options": dict(layout.options),
            # The path may change: the set of files is no part of the fingerprint, but the use of their names
            # is. A changed meaning of a name is noticed file by file.
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
            "unique": {"columns": sorted(unique.columns), "keep": unique.prefer} if unique else None,
            "ties": {
                "every": microseconds(time.interval),
                "ties": time.on_duplicate_time,
                "key": sorted(stream.key),
            }
            if time and time.interval and time.on_duplicate_time != "keep"
            else None,
        }
    )


def types_of(stream: StreamFields, columns: Iterable[str]) -> dict[str, list[Any]]:
    """Return the types and resolutions of columns of the events."""
    fields = stream.event_columns
    return {column: [fields[column].type, fields[column].resolution] for column in columns}
