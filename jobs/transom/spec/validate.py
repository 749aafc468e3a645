"""Rules between the fields of a stream: what each field alone cannot know."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from transom.core.durations import format_duration
from transom.core.intervals import HOUR, format_hour
from transom.features.aggregates import alerts
from transom.features.aggregates import output_columns as figures
from transom.features.aggregates.spec import Aggregation
from transom.features.fills import validate as fill_columns
from transom.features.frames import validate as frame_columns
from transom.features.frequency import validate as frequency_columns
from transom.features.patterns import validate as pattern_columns
from transom.features.persistence import validate as persistence_columns
from transom.features.persistence.spec import looked_back
from transom.formats.json.record_paths import AROUND, level_of, lists_of
from transom.formats.record_format import REST, FieldType
from transom.spec import checks
from transom.spec import deduplicate as unique
from transom.spec import derived_columns as derived
from transom.spec.errors import Location, Problem, join, nearest, no_column, of_expression, twice
from transom.spec.expressions import ExpressionError, condition
from transom.spec.field_paths import split_paths
from transom.spec.format_options import fields_of, has_field

if TYPE_CHECKING:
    from transom.spec.stream import Stream

EVENT_COLUMNS = ("hour", "event_time", "source_id", "source_line")
"""Columns that every table of events has."""


def problems(stream: "Stream") -> list[Problem]:
    """Return every broken rule, with full paths, in the order of the fields.

    What reads a derived column is not judged before that is sound.
    """
    found = [*_source(stream), *_columns(stream)]
    of_derived = list(derived.problems(stream))
    if of_derived:
        return found + of_derived
    return [
        *found,
        *unique.problems(stream),
        *_key("key", stream.key, stream),
        *_default_where(stream),
        *_aggregate(stream),
        *figures.problems(stream),
        *pattern_columns.problems(stream),
        *frame_columns.problems(stream),
        *fill_columns.problems(stream),
        *persistence_columns.problems(stream),
        *frequency_columns.problems(stream),
        *_checks(stream),
        *_accept(stream),
        *_times(stream),
    ]


def _source(stream: "Stream") -> Iterator[Problem]:
    if stream.source.format is None:
        yield Problem("source.format", "is required where no preset gives it")
    if stream.time is None:
        yield Problem("time", "is required where no preset gives it")
    elif stream.time.by_name and stream.path_pattern.unit is None:
        yield Problem(
            "time.from",
            f"name needs a time in source.path, such as %Y-%m-%d/%H; got {stream.source.path!r}",
            (("source", "path"),),
        )


def _columns(stream: "Stream") -> Iterator[Problem]:
    taken = dict.fromkeys(EVENT_COLUMNS, "a column that every stream has")
    if stream.rest == "keep":
        taken[REST] = "the column of what `rest: keep` keeps"
    for name in stream.columns:
        if name in taken:
            yield Problem(f"columns.{name}", f"is {taken[name]}; choose another name")
    for name in stream.captures:
        if name in taken:
            yield Problem("source.path", f"{{{name}}} is {taken[name]}; choose another name")
        elif name in stream.columns:
            yield Problem("source.path", f"{{{name}}} is also a declared column; choose another name")
    yield from _paths(stream)


def _paths(stream: "Stream") -> Iterator[Problem]:
    """Return paths of columns and of the time that no record has."""
    format, options = stream.source.format, stream.source.options
    known, records = fields_of(format, options), options.get("records")
    if known is None and records is None:
        return
    named = {
        f"columns.{name}.from": column.from_ or name
        for name, column in stream.columns.items()
        if column.is_ is None
    }
    if stream.time is not None:
        fields = stream.time.column or ()
        times = {
            f"time.column[{i}]" if len(fields) > 1 else "time.column": text for i, text in enumerate(fields)
        }
        times |= {"time.plus": stream.time.plus} if stream.time.plus is not None else {}
        taken_elsewhere = {*stream.columns, *stream.captures}
        named |= {place: text for place, text in times.items() if text not in taken_elsewhere}
    for place, text in named.items():
        if known is not None and not any(has_field(path, format, options) for path in split_paths(text)):
            message = f"{format} records have no field {text!r}{nearest(text, known)}"
            yield Problem(place, message, (("columns", text), ("source", "path")))
        if records is not None:
            yield from _around(place, text, str(records))


def _around(place: str, text: str, records: str) -> Iterator[Problem]:
    """Return what is wrong with paths that lead to what stands around the records of a line."""
    for path in split_paths(text):
        if path.startswith(AROUND):
            try:
                level_of(path, records)
            except ValueError as error:
                yield Problem(place, str(error))
        elif any(path.startswith(f"{name}[]") for name in lists_of(records)[:1]):
            yield Problem(place, f"what stands around a record begins with {AROUND}: {AROUND}{path}")


def _recurring(place: str, block: Aggregation, stream: "Stream") -> Iterator[Problem]:
    if not block.recurring:
        return
    for index, name in enumerate(block.recurring):
        if name not in stream.event_columns:
            yield no_column(f"{place}[{index}]", name, stream.event_columns)
        elif name in block.key:
            yield Problem(
                f"{place}[{index}]", f"{name} is a column of the key; every item of a key has the same"
            )
    for name in dict.fromkeys([*block.key, *block.recurring]):
        if name in figures.ITEM_COLUMNS:
            yield Problem(
                place, f"{name} is a column that every recurring item has; name the column otherwise"
            )
    yield from twice(place, block.recurring)


def _key(place: str, key: tuple[str, ...], stream: "Stream") -> Iterator[Problem]:
    for index, name in enumerate(key):
        if name not in stream.event_columns:
            yield no_column(f"{place}[{index}]", name, stream.event_columns)
        elif name in (*figures.REPORT_COLUMNS, *figures.GRANULE_COLUMNS):
            what = "report" if name in figures.REPORT_COLUMNS else "granule"
            yield Problem(
                f"{place}[{index}]", f"{name} is a column that every {what} has; name the column otherwise"
            )
    yield from twice(place, key)


def _default_where(stream: "Stream") -> Iterator[Problem]:
    if stream.where is not None:
        yield from _condition("where", stream.where, stream.event_types)


def _aggregate(stream: "Stream") -> Iterator[Problem]:
    for name, block in stream.aggregate.items():
        place = f"aggregate.{name}"
        # What a block has from the stream is reported once, there.
        if block.key != stream.key:
            yield from _key(f"{place}.key", block.key, stream)
        if block.where is not None and block.where != stream.where:
            yield from _condition(f"{place}.where", block.where, stream.event_types)
        yield from _recurring(f"{place}.recurring", block, stream)
        yield from _measures(place, block, stream)
        if block.alert and figures.sound(stream, name):
            # Else its types are not known; the block's own problems say so.
            yield from alerts.problems(place, name, stream)


def _measures(place: str, block: Aggregation, stream: "Stream") -> Iterator[Problem]:
    types = stream.event_types
    numeric = [name for name, kind in types.items() if kind in figures.NUMERIC]
    for name, measure in block.measures.items():
        at, column = f"{place}.measures.{name}", measure.column
        if column is None or column in numeric:
            continue
        if measure.function == "distinct":
            if column not in stream.event_columns:
                known = stream.event_columns
                yield no_column(at, column, known, f" in {str(measure)!r}")
            continue
        if column in stream.event_columns:
            yield Problem(
                at, f"{measure.function} takes an integer or a number; {column} is a {types[column]}"
            )
        else:
            yield no_column(at, column, numeric, f" in {str(measure)!r}")


def _checks(stream: "Stream") -> Iterator[Problem]:
    blocks = list(stream.aggregate)
    for name, check in stream.checks.items():
        place = f"checks.{name}"
        found = checks.problems(name, check, blocks)
        yield from (replace(problem, path=join(place, problem.path)) for problem in found)
        if check.stage == "aggregate" and not blocks:
            yield Problem(f"{place}.stage", "the stream has no block of aggregate", (("aggregate",),))
        elif check.every is not None and check.stage is not None and not found:
            types: Mapping[str, FieldType] = stream.event_types
            if check.stage == "aggregate":
                block = check.block or blocks[0]
                if not figures.sound(stream, block):
                    continue  # its types are not known; the block's own problems say so
                types = stream.report_types(block)
            # Which block's, where none is named, depends on which there are.
            of_reports = (("key",), ("aggregate",)) if check.stage == "aggregate" else ()
            yield from _condition(f"{place}.every", check.every, types, *of_reports)


def _accept(stream: "Stream") -> Iterator[Problem]:
    stages = {name: default.stage for name, default in checks.BUILT_IN.items()}
    stages |= {
        name: check.stage for name, check in stream.checks.items() if name not in stages and check.stage
    }
    for index, accepted in enumerate(stream.accept):
        place, name = f"accept[{index}]", accepted.check
        if name not in stages:
            message = f"no check {name!r}{nearest(name, stages)}"
            yield Problem(f"{place}.check", message, (("checks", name),))
        elif stages[name] != accepted.stage:
            yield Problem(f"{place}.stage", f"{name} is a check of {stages[name]}; got {accepted.stage}")


def _times(stream: "Stream") -> Iterator[Problem]:
    if stream.heal % HOUR:
        yield Problem("heal", f"must be whole hours; got {format_duration(stream.heal)}")
    if stream.retention is not None:
        what, longest = max(_looks_back(stream), key=lambda one: one[1])
        least = stream.heal + longest
        if stream.retention % HOUR or stream.retention < least:
            yield Problem(
                "retention",
                f"must be whole hours, and no less than heal and {what} together, "
                f"{format_duration(least)}; got {format_duration(stream.retention)}",
                (("heal",),),
            )
    if stream.chunk < HOUR or stream.chunk % HOUR:
        yield Problem("chunk", f"must be whole hours, at least one; got {format_duration(stream.chunk)}")
    if stream.start and stream.until and stream.start >= stream.until:
        yield Problem(
            "until",
            f"must be after start; got start {format_hour(stream.start)}, until {format_hour(stream.until)}",
        )
    if stream.catchup and not stream.schedule:
        yield Problem("catchup", "needs schedule, which is false", (("schedule",),))
    if stream.catchup and stream.start is None:
        yield Problem("catchup", "needs start, the first hour to catch up with", (("start",),))


def _looks_back(stream: "Stream") -> Iterator[tuple[str, timedelta]]:
    """How far back each part reads state that is dropped some time, and what it is called."""
    ranges = [level.range for block in stream.aggregate.values() for level in block.levels]
    yield "the widest range", max(ranges, default=HOUR)
    for name, pattern in stream.patterns.items():
        yield f"the longest window of the pattern {name}", pattern.reach
    for name, frame in stream.frames.items():
        yield f"the idle time of the frames {name}", frame.silence
        if frame.over is not None:
            back = frame.stretch or HOUR
            shift = max(frame.baseline.shift) if frame.baseline else timedelta(0)
            yield f"what the frames {name} are made of", back + shift
    for name, said in stream.persistence.items():
        yield f"the window of persistence {name}", looked_back(said)
    for name, block in stream.frequency.items():
        yield f"the window of frequency {name}", (block.back + 1) * HOUR
    for name, fill in stream.fills.items():
        if fill.frame in stream.frames and fill.from_.block in stream.aggregate:
            frame, reach = stream.frames[fill.frame], fill_columns.reach(stream, name)
            behind = frame.stretch or frame.gap
            yield f"what the fill {name} looks back", behind + reach + fill.lead + max(fill.shift)


def _condition(place: str, text: str, types: Mapping[str, FieldType], *needs: Location) -> Iterator[Problem]:
    try:
        condition(text, types)
    except ExpressionError as error:
        yield of_expression(place, error, *needs)
