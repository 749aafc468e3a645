"""Rules between the fields of a stream."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from transom.core.durations import format_duration
from transom.core.intervals import HOUR, format_hour
from transom.formats.json.record_paths import AROUND, level_of, lists_of
from transom.formats.record_format import REST, FieldType
from transom.spec import checks, notify
from transom.spec import deduplicate as unique
from transom.spec import derived_columns as derived
from transom.spec.errors import Issue, Location, did_you_mean, find_duplicates, join, no_column, of_expression
from transom.spec.expressions import ExpressionError, condition
from transom.spec.format_options import fields_of, has_field
from transom.spec.literals import value_problem
from transom.spec.source import split_paths
from transom.spec.stream_fields import StreamFields

EVENT_COLUMNS = ("hour", "event_time", "source_id", "source_line")
"""Columns of every table of events."""


def problems(stream: StreamFields) -> Iterator[Issue]:
    """Yield every broken rule, with full paths, in the order of the fields.

    If blocks have problems of their own, only these are yielded. If derived columns have problems, the fields
    that may read one are not checked.
    """
    if of_blocks := list(_blocks(stream)):
        yield from of_blocks
        return
    yield from _source(stream)
    yield from _columns(stream)
    if of_derived := list(derived.problems(stream.columns, stream.read_columns, stream.time)):
        yield from of_derived
        return
    if stream.unique is not None:
        yield from unique.problems(stream.unique, stream.event_types)
    yield from key_problems("key", stream.key, stream)
    if stream.where is not None:
        yield from condition_problems("where", stream.where, stream.event_types)
    for feature in stream.features:
        yield from feature.problems(stream)
    yield from _checks(stream)
    yield from _waivers(stream)
    yield from _suppress(stream)
    blocks = {feature.name: stream.blocks(feature.block) for feature in stream.features}
    yield from notify.problems(stream.notify, stream.silence, blocks)
    yield from _times(stream)


def _blocks(stream: StreamFields) -> Iterator[Issue]:
    for feature in stream.features:
        for name, block in stream.blocks(feature.block).items():
            for problem in feature.block_problems(block):
                yield replace(problem, path=join(f"{feature.name}.{name}", problem.path))


def _source(stream: StreamFields) -> Iterator[Issue]:
    if stream.source.format is None:
        yield Issue("source.format", "is required where no preset gives it")
    if stream.time is None:
        yield Issue("time", "is required where no preset gives it")
    elif stream.time.by_name and stream.source.pattern.unit is None:
        rule = f"name needs a time in source.path, such as %Y-%m-%d/%H; got {stream.source.path!r}"
        yield Issue("time.from", rule, (("source", "path"),))


def _columns(stream: StreamFields) -> Iterator[Issue]:
    reserved = dict.fromkeys(EVENT_COLUMNS, "a column that every stream has")
    if stream.extra_fields == "keep":
        reserved[REST] = "the column of what `extra_fields: keep` keeps"
    for name in stream.columns:
        if name in reserved:
            yield Issue(f"columns.{name}", f"is {reserved[name]}; choose another name")
    for name in stream.source.pattern.captures:
        if name in reserved:
            yield Issue("source.path", f"{{{name}}} is {reserved[name]}; choose another name")
        elif name in stream.columns:
            yield Issue("source.path", f"{{{name}}} is also a declared column; choose another name")
    yield from _paths(stream)


def _paths(stream: StreamFields) -> Iterator[Issue]:
    """Yield paths of columns and of the time that no record has."""
    format, options = stream.source.format, stream.source.options
    known, records = fields_of(format, options), options.get("records")
    if known is None and records is None:
        return
    read = [(name, column) for name, column in stream.columns.items() if column.is_ is None]
    places = [(f"columns.{name}.from", column.from_ or name) for name, column in read]
    if stream.time is not None:
        fields = stream.time.column or ()
        several = len(fields) > 1
        times = [(f"time.column[{i}]" if several else "time.column", text) for i, text in enumerate(fields)]
        times += [("time.plus", stream.time.plus)] if stream.time.plus is not None else []
        other_names = {*stream.columns, *stream.source.pattern.captures}
        places += [(place, text) for place, text in times if text not in other_names]
    for place, text in places:
        if known is not None and not any(has_field(path, format, options) for path in split_paths(text)):
            message = f"{format} records have no field {text!r}{did_you_mean(text, known)}"
            yield Issue(place, message, (("columns", text), ("source", "path")))
        if records is not None:
            yield from _around(place, text, str(records))


def _around(place: str, text: str, records: str) -> Iterator[Issue]:
    """Yield the problems of paths that lead to values around the records of a line."""
    for path in split_paths(text):
        if path.startswith(AROUND):
            try:
                level_of(path, records)
            except ValueError as error:
                yield Issue(place, str(error))
        elif any(path.startswith(f"{name}[]") for name in lists_of(records)[:1]):
            yield Issue(place, f"a path to a value around a record begins with {AROUND}: {AROUND}{path}")


def key_problems(place: str, key: tuple[str, ...], stream: StreamFields) -> Iterator[Issue]:
    """Yield the problems of the columns of a key."""
    for index, name in enumerate(key):
        if name not in stream.event_columns:
            yield no_column(f"{place}[{index}]", name, stream.event_columns)
    yield from find_duplicates(place, key)


def _checks(stream: StreamFields) -> Iterator[Issue]:
    owners = {feature.name: feature for feature in stream.features if feature.row_types is not None}
    for name, check in stream.checks.items():
        place, feature = f"checks.{name}", owners.get(check.stage or "")
        blocks = [] if feature is None else list(stream.blocks(feature.block))
        owner = "ingest" if feature is None else feature.name
        issues = list(checks.problems(name, check, stream.built_in, ["ingest", *owners], owner, blocks))
        yield from (replace(problem, path=join(place, problem.path)) for problem in issues)
        if feature is not None and not blocks:
            yield Issue(f"{place}.stage", f"the stream has no block of {feature.name}", ((feature.name,),))
        elif check.every is not None and check.stage is not None and not issues:
            types: Mapping[str, FieldType] | None = stream.event_types
            needs: tuple[Location, ...] = ()
            if feature is not None and feature.row_types is not None:
                # If the check names no block, the existing blocks determine it.
                types = feature.row_types(stream, check.block or blocks[0])
                needs = (("key",), (feature.name,))
            if types is not None:  # else the block has problems of its own
                yield from condition_problems(f"{place}.every", check.every, types, *needs)


def _waivers(stream: StreamFields) -> Iterator[Issue]:
    stages = {name: default.stage for name, default in stream.built_in.items()}
    own = {name: check.stage for name, check in stream.checks.items() if check.stage}
    stages = stages | own | stages  # a built-in check keeps its stage
    for index, waiver in enumerate(stream.waivers):
        place, name = f"waivers[{index}]", waiver.check
        if name not in stages:
            message = f"no check {name!r}{did_you_mean(name, stages)}"
            yield Issue(f"{place}.check", message, (("checks", name),))
        elif stages[name] != waiver.stage:
            yield Issue(f"{place}.stage", f"{name} is a check of {stages[name]}; got {waiver.stage}")


def _suppress(stream: StreamFields) -> Iterator[Issue]:
    stages = {feature.name: feature for feature in stream.features if feature.findings is not None}
    for index, entry in enumerate(stream.suppress):
        place, feature = f"suppress[{index}]", stages.get(entry.stage)
        if feature is None:
            known = ", ".join(map(repr, stages))
            yield Issue(f"{place}.stage", f"must be one of {known}; got {entry.stage!r}")
            continue
        blocks = stream.blocks(feature.block)
        if entry.block not in blocks:
            message = f"no block {entry.block!r} of {entry.stage}{did_you_mean(entry.block, blocks)}"
            yield Issue(f"{place}.block", message, ((entry.stage, entry.block),))
            continue
        columns = feature.subject(stream, entry.block)
        for column, value in entry.key.items():
            at = f"{place}.key.{column}"
            if column not in columns:
                yield no_column(at, column, columns, f" of the key of {entry.block}")
            elif rule := value_problem(column, value, stream.event_types[column]):
                yield Issue(at, rule)


def _times(stream: StreamFields) -> Iterator[Issue]:
    if stream.repair_window % HOUR:
        yield Issue("repair_window", f"must be whole hours; got {format_duration(stream.repair_window)}")
    if stream.retention is not None:
        reads = [read for feature in stream.features for read in feature.lookback(stream)]
        what, longest = max(reads, key=lambda read: read[1], default=("an hour", HOUR))
        minimum = stream.repair_window + longest
        if stream.retention % HOUR or stream.retention < minimum:
            rule = f"must be whole hours, and no less than repair_window and {what} together"
            got = f"{format_duration(minimum)}; got {format_duration(stream.retention)}"
            yield Issue("retention", f"{rule}, {got}", (("repair_window",),))
    if stream.chunk < HOUR or stream.chunk % HOUR:
        yield Issue("chunk", f"must be whole hours, at least one; got {format_duration(stream.chunk)}")
    if stream.start and stream.until and stream.start >= stream.until:
        got = f"start {format_hour(stream.start)}, until {format_hour(stream.until)}"
        yield Issue("until", f"must be after start; got {got}")
    if stream.catchup and not stream.schedule:
        yield Issue("catchup", "needs schedule, which is false", (("schedule",),))
    if stream.catchup and stream.start is None:
        yield Issue("catchup", "needs start, the first hour to catch up with", (("start",),))


def condition_problems(
    place: str, text: str, types: Mapping[str, FieldType], *needs: Location
) -> Iterator[Issue]:
    """Yield the problems of a condition over columns of some types."""
    try:
        condition(text, types)
    except ExpressionError as error:
        yield of_expression(place, error, *needs)
