"""What of a specification shapes which table, as canonical JSON.

A table is stale when its shape's text changes, so a text holds all that changes rows and nothing else:
not a preset's name, a title, a unit, a check. Durations are microseconds, defaults are written out.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from transom.core.durations import microseconds
from transom.features.fills import validate as fill_columns
from transom.features.frames import spec_rules as frame_rules
from transom.features.frames import validate as frame_columns
from transom.features.patterns import detector_path as detectors

if TYPE_CHECKING:
    from transom.features.patterns.spec import Gap
    from transom.spec.external_source import Filler
    from transom.spec.stream import Stream


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces: equal values give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def ingest(stream: "Stream") -> str:
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


def granules(stream: "Stream", name: str) -> str:
    """Return what shapes the granules of a block."""
    block = stream.aggregate[name]
    where = stream.condition(name)
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
    block = stream.aggregate[name]
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
    block = stream.aggregate[name]
    where = stream.condition(name)
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
    block = stream.aggregate[name]
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
    block, types = stream.aggregate[name], stream.report_types(name)
    met = stream.alert_conditions(name)
    read = {column for of in met.values() for column in of.columns}.union(block.key)
    return canonical(
        {
            "alerts": {alert: [met[alert].sql, said.level] for alert, said in block.alert.items()},
            "key": list(block.key),
            "types": {column: types[column] for column in read},
        }
    )


def batches(stream: "Stream", name: str) -> str:
    """Return what shapes the batches of a pattern."""
    return canonical(_batches(stream, name))


def matches(stream: "Stream", name: str) -> str:
    """Return what shapes the matches of a pattern: its batches, and what is looked for in windows of them."""
    pattern = stream.patterns[name]
    return canonical(
        {
            **_batches(stream, name),
            "within": microseconds(pattern.within),
            "keep": sorted(pattern.keep),
            # Conditions are those of the batches, in the same order.
            "elements": [
                {
                    "steps": [
                        {
                            "id": step.id,
                            "times": step.times,
                            "distinct": sorted(step.distinct),
                            "by": sorted(pattern.agreements(step)),
                        }
                        for step in steps
                    ],
                    "within": None if element.within is None else microseconds(element.within),
                    "gap": _gap(element.gap),
                }
                for element, steps in zip(pattern.steps, pattern.elements, strict=True)
            ],
            "never": [never.between for never in pattern.never],
            "detector": [pattern.detector, detectors.source_digest(pattern.detector)]
            if pattern.detector
            else None,
        }
    )


def episodes(stream: "Stream", name: str) -> str:
    """Return what shapes the episodes of a pattern, matches given."""
    pattern = stream.patterns[name]
    return canonical(
        {
            "key": list(pattern.key),
            "merge": microseconds(pattern.merge),
            # When no match can join any more.
            "within": microseconds(pattern.within),
            "top": microseconds(pattern.top),
            "types": types_of(stream, pattern.key),
        }
    )


def open_frames(stream: "Stream", name: str) -> str:
    """Return what shapes what hours leave and tell of a kind of frame, its readings given."""
    said, block = stream.frames[name], stream.aggregate.get(stream.frames[name].over or "")
    key, read, every = (
        frame_columns.key(stream, name),
        frame_columns.read(stream, name),
        frame_columns.every(stream, name),
    )
    # What is left out where there is none shapes nothing of streams that stood before it could be said.
    return canonical(
        ({} if said.known is None else {"known": microseconds(said.known)})
        | {
            "key": list(key),
            "conditions": {field: met.sql for field, met in frame_columns.conditions(stream, name).items()},
            "value": frame_columns.value(stream, name),
            "measures": {column: str(block.measures[column]) for column in read} if block else None,
            "every": None if every is None else microseconds(every),
            "ties": said.ties,
            "baseline": said.baseline.model_dump(mode="json") if said.baseline else None,
            "kind": [
                said.kind,
                said.extent,
                said.step,
                said.below,
                str(said.condition),
                said.span,
                said.direction,
            ],
            "meeting": said.when_open,
            "lengths": [
                None if length is None else microseconds(length)
                for length in (said.min_length, said.max_length)
            ],
            "records": [said.min_records, said.max_records],
            "missing": said.missing,
            "idle": microseconds(said.idle),
            "stretch": None
            if said.stretch is None
            else [microseconds(said.stretch), frame_rules.overlaps(said), said.longest],
            "types": types_of(stream, {c for c in (*key, *_columns_read(stream, name)) if c != "event_time"}),
        }
    )


def frames(stream: "Stream", name: str) -> str:
    """Return what shapes how frames are told, what hours leave and tell of them given."""
    key, value = frame_columns.key(stream, name), frame_columns.value(stream, name)
    block = stream.aggregate.get(stream.frames[name].over or "")
    column = block.measures[value].column if block and value else value
    of = [str(block.measures[value])] if block and value else []
    return canonical(
        {
            "key": list(key),
            "value": [value, *of],
            "types": types_of(stream, {*key, *([column] if column else [])}),
        }
    )


def fills(stream: "Stream", name: str) -> str:
    """Return what shapes a fill, its frames given."""
    said, where = stream.fills[name], fill_columns.where(stream, name)
    over, every = fill_columns.over(said), frame_columns.every(stream, said.frame)
    read = {str(of.column) for of in said.measures.values()}.union(where.columns if where else ())
    measures = stream.aggregate[over].measures if over else {}
    key = frame_columns.key(stream, said.frame)
    own = set() if said.from_.outside else read
    columns = {measures[column].column or "" if column in measures else column for column in own}
    return canonical(
        {
            "frame": said.frame,
            "from": _filler(said.from_, {*read, *fill_columns.by(stream, name)}),
            "key": list(key),
            "by": list(fill_columns.by(stream, name)),
            "where": where.sql if where else None,
            "stretch": [microseconds(length) for length in (said.lead, said.lag, *said.shift)],
            "every": None if every is None else microseconds(every),
            "take": said.take,
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


def _columns_read(stream: "Stream", name: str) -> set[str]:
    """Return the columns of the events that a kind of frame reads, by way of an aggregation or not."""
    block, read = stream.aggregate.get(stream.frames[name].over or ""), frame_columns.read(stream, name)
    if block is None:
        return set(read)
    return {column for measure in read if (column := block.measures[measure].column) is not None}


def _batches(stream: "Stream", name: str) -> dict[str, Any]:
    pattern, where = stream.patterns[name], stream.pattern_where(name)
    conditions, carried = stream.pattern_conditions(name), stream.pattern_columns(name)
    read = {*pattern.key, *carried, *(where.columns if where else ())}
    read = read.union(*(met.columns for met in conditions))
    return {
        "key": list(pattern.key),
        "where": where.sql if where else None,
        "conditions": [met.sql for met in conditions],
        "all": pattern.counts_all,
        "batch": microseconds(pattern.batch),
        "max_records": pattern.max_records,
        "columns": list(carried),
        "types": types_of(stream, read - {"event_time"}),
    }


def _gap(gap: "Gap | None") -> list[int | None] | None:
    # A gap of nothing or more is none: records of one element come after those of the one before anyway.
    if gap is None or (not gap.min and gap.max is None):
        return None
    return [microseconds(gap.min), None if gap.max is None else microseconds(gap.max)]


def _measured(stream: "Stream", name: str) -> set[str]:
    measures = stream.aggregate[name].measures.values()
    return {measure.column for measure in measures if measure.column is not None}


def types_of(stream: "Stream", columns: Iterable[str]) -> dict[str, list[Any]]:
    """Return the types and resolutions of columns of the events."""
    of = stream.event_columns
    return {column: [of[column].type, of[column].resolution] for column in columns}
