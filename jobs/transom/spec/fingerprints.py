"""Fingerprints: the parts of a specification that determine the rows of a table, as canonical JSON.

A table becomes stale if its fingerprint changes. So a fingerprint contains everything that changes rows and
nothing else: no preset's name, title, unit or check. Durations are in microseconds, defaults are explicit.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from operator import itemgetter
from typing import Any

from transom.core.durations import microseconds
from transom.spec.stream_fields import StreamFields


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces: equal values give equal texts.

    >>> canonical({"b": 1, "a": [True, None]})
    '{"a":[true,null],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def ingest(stream: StreamFields) -> str:
    """Return the fingerprint of events, duplicates, rejected and files."""
    layout, source = stream.layout(), stream.source
    holds, unique, time = source.event_time_range, stream.unique, stream.time
    shape: dict[str, Any] = {
        "format": layout.format,
        # A missing option and its default differ: the parsers have the defaults, and a recomputation with the
        # same result makes nothing downstream stale.
        "options": dict(layout.options),
        # The path may change: the set of files is no part of the fingerprint, but the use of their names is.
        # A changed meaning of a name is noticed file by file.
        "captures": list(stream.source.pattern.captures),
        "name": None,
        "columns": sorted((asdict(field) for field in layout.fields), key=itemgetter("name")),
        "time": asdict(layout.time),
        "rest": layout.keep_rest,
        "derived": {
            name: [expression.sql, stream.event_columns[name].type, stream.event_columns[name].resolution]
            for name, expression in stream.derived.items()
        },
        "unique": {"columns": sorted(unique.columns), "keep": unique.prefer} if unique else None,
        "ties": None,
    }
    if stream.source.pattern.unit:
        before, after = microseconds(holds.before), microseconds(holds.after)
        name = {"zone": source.zone, "unit": stream.source.pattern.unit, "before": before, "after": after}
        if source.covers is not None:
            name |= {"covers": microseconds(source.covers), "says": source.name_time}
        shape["name"] = name
    if time and time.interval and time.on_duplicate_time != "keep":
        every, key = microseconds(time.interval), sorted(stream.key)
        shape["ties"] = {"every": every, "ties": time.on_duplicate_time, "key": key}
    # Later keys are omitted if unused, so that older streams keep their fingerprint.
    if of_name := [name for name in stream.source.pattern.captures if name in layout.of_time]:
        shape["time_captures"] = of_name
    if time is not None and time.is_local:
        shape["repeated_hour"] = "by lines"
    return canonical(shape)


def types_of(stream: StreamFields, columns: Iterable[str]) -> dict[str, list[Any]]:
    """Return the types and resolutions of columns of the events."""
    fields = stream.event_columns
    return {column: [fields[column].type, fields[column].resolution] for column in columns}
