"""A stream file for a log, drafted from its first lines and tried on them."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from os.path import normpath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from transom.cli.asked import Refusal
from transom.cli.guesses import Column, Seen, When, columns_of, figure_of, key_of, time_of
from transom.cli.landing import counted_from
from transom.cli.naming import identifier, pattern_of, stream_name
from transom.cli.recognise import Log, recognise
from transom.cli.sample import MOST, Sample
from transom.cli.yaml_text import comment, flow, lined, scalar
from transom.formats.layout import Span
from transom.formats.reading import Chunk, Summary, read_file
from transom.intervals import format_hour, hour_of
from transom.paths import Match, PathPattern
from transom.stages.landing import home
from transom.stream import Stream, parse
from transom.stream.time import NAME as BY_NAME

HOUR = timedelta(hours=1)
LONG = "RANGES 24 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR"
SHORT = "RANGES 1 HOUR, 5 MINUTES SLIDES 5 MINUTES, 5 MINUTES"
"""Levels for a log of days, and for one of minutes."""
TOLERATED = 0.04
"""The share of refused lines from which a draft says how many may be, before the gate does."""


def draft(samples: Sequence[Sample], name: str | None = None) -> str:
    """Returns the text of a stream file.

    Raises:
        Refusal: the files are of no form that is known, or of several.
        SpecificationError: the name is none.
    """
    log = _recognised(samples)
    paths = [_landing_path(sample) for sample in samples]
    pattern = pattern_of(paths)
    columns, left = columns_of(log, PathPattern(pattern).captures)
    when = None if log.preset else time_of(columns, log)
    name = stream_name(paths) if name is None else name
    data = _data(name, log, pattern, columns, when)
    if not _times_are_in_names(parse(data, name), samples, paths):
        pattern = pattern_of(paths, timed=False)
        data["source"]["path"] = pattern
    stream = parse(data, name)
    found = _try(stream, samples, paths)
    if not found.events.num_rows:
        first = f": the first was refused as {found.reasons[0]}" if found.reasons else ""
        raise Refusal(f"{samples[0].path}: none of {found.lines} lines became an event{first}")
    data |= _blocks(stream, found)
    return _text(parse(data, name), data, log, columns, left, when, samples, found)


def _recognised(samples: Sequence[Sample]) -> Log:
    """The form that all files have, with the fields of all of them."""
    first: Log | None = None
    fields: dict[str, list[str]] = {}
    for sample in samples:
        log = recognise(sample.lines)
        if log is None:
            first_line = sample.lines[0][:200]
            raise Refusal(f"{sample.path}: of no form that is known; its first line: {first_line!r}")
        first = first or log
        wanted, got = first.preset or first.format, log.preset or log.format
        if got != wanted:
            raise Refusal(f"{sample.path}: must be of the form of {samples[0].path}, {wanted}; it is {got}")
        for path, texts in log.fields.items():
            fields.setdefault(path, []).extend(texts)
    assert first is not None  # a command line has one file at least
    return Log(first.format, fields, first.types, first.options, first.preset, first.notes)


def _landing_path(sample: Sample) -> str:
    """A file's path as the stream file writes it: from the landing folder where it lies in there."""
    path = normpath(sample.path.absolute())
    try:
        PathPattern(pattern_of([path]))
    except ValueError as error:
        raise Refusal(f"{path!r}: no path of a stream can say this name: {error}") from None
    return path.removeprefix(f"{home()}/")


def _data(name: str, log: Log, pattern: str, columns: Sequence[Column], when: When | None) -> dict[str, Any]:
    source: dict[str, Any] = {"path": pattern}
    if log.preset is None:
        source["format"] = log.format
    if log.options:
        source["options"] = dict(log.options)
    data: dict[str, Any] = {"name": name, "source": source}
    if log.preset is not None:
        return {"name": name, "preset": log.preset, "source": source}
    data["columns"] = {column.name: column.declared() for column in columns}
    # A log without times has its lines one after the other.
    start = "2024-01-01T00:00" if PathPattern(pattern).unit is None else BY_NAME
    data["time"] = {"lines": "1 second", "from": start} if when is None else dict(when.declared)
    return data


@dataclass(frozen=True)
class Tried:
    """What became of the first lines.

    Attributes:
        events: of all files, with `event_time` and the columns.
        reasons: of refused lines, with what was seen.
    """

    events: pa.Table
    lines: int
    rejected: int
    reasons: tuple[str, ...]


def _try(stream: Stream, samples: Sequence[Sample], paths: Sequence[str]) -> Tried:
    """Reads the first lines as a job would."""
    events, reasons = [], []
    lines = rejected = 0
    for sample, path in zip(samples, paths, strict=True):
        match = stream.path_pattern.match(path)
        span = None if match is None else stream.span(match)
        for part in _parts(stream, sample, span, match):
            if isinstance(part, Summary):
                lines, rejected = lines + part.lines, rejected + part.rejected
            else:
                events.append(part.events)
                reasons += [
                    f"{row['reason']}, {row['detail']}" if row["detail"] else row["reason"]
                    for row in part.rejected.slice(0, 3).to_pylist()
                ]
    schema = events[0].schema if events else pa.schema([("event_time", pa.timestamp("us", "UTC"))])
    return Tried(pa.Table.from_batches(events, schema), lines, rejected, tuple(reasons))


def _parts(stream: Stream, sample: Sample, span: Span | None, match: Match | None) -> list[Chunk | Summary]:
    data = "".join(f"{line}\n" for line in sample.lines).encode()
    return list(
        read_file(io.BytesIO(data), "sample", stream.layout(), span, start=counted_from(stream, match))
    )


def _times_are_in_names(stream: Stream, samples: Sequence[Sample], paths: Sequence[str]) -> bool:
    """Whether the times of the files' events are those that their names say, where they say any."""
    for sample, path in zip(samples, paths, strict=True):
        match = stream.path_pattern.match(path)
        span = None if match is None else stream.span(match)
        if match is None or span is None:
            continue
        inside = sum(
            part.events.num_rows for part in _parts(stream, sample, span, match) if isinstance(part, Chunk)
        )
        free = sum(
            part.events.num_rows for part in _parts(stream, sample, None, match) if isinstance(part, Chunk)
        )
        if inside < free * (1 - TOLERATED):
            return False
    return True


def _blocks(stream: Stream, found: Tried) -> dict[str, Any]:
    """A key, a first block of figures, and a tolerance where more lines are refused than by default."""
    seen = [
        Seen(
            name,
            field.type,
            found.events[name].null_count,
            int(pc.count_distinct(found.events[name], mode="only_valid").as_py()),
        )
        for name, field in stream.event_columns.items()
        if name in found.events.column_names
    ]
    key, figure = key_of(seen, found.events.num_rows), figure_of(seen)
    measures = {"n": "count"}
    if figure is not None:
        function, column = figure
        name = f"{'total' if function == 'sum' else function}_{column}"
        measures[identifier(name, [*stream.event_columns, "n"])] = f"{function}({column})"
    first, last = _extent(found.events)
    blocks: dict[str, Any] = {"key": [key.name]} if key is not None else {}
    blocks["aggregate"] = {
        "activity": {"measures": measures, "levels": LONG if last - first > 12 * HOUR else SHORT}
    }
    share = found.rejected / found.lines
    if share > TOLERATED:
        blocks["checks"] = {"rejected_share": {"at_most": min(1.0, round(share * 1.5 + 0.005, 2))}}
    return blocks


def _extent(events: pa.Table) -> tuple[datetime, datetime]:
    ends = pc.min_max(events["event_time"]).as_py()
    return ends["min"].astimezone(UTC), ends["max"].astimezone(UTC)


def _text(
    stream: Stream,
    data: Mapping[str, Any],
    log: Log,
    columns: Sequence[Column],
    left: Sequence[str],
    when: When | None,
    samples: Sequence[Sample],
    found: Tried,
) -> str:
    lines = [*_heading(samples, found), f"name: {scalar(data['name'])}"]
    if log.preset is not None:
        lines.append(f"preset: {log.preset}")
    source = data["source"]
    path_note = "times in the names are in UTC; else say their `zone`" if stream.path_pattern.unit else ""
    rows = [(f"path: {scalar(source['path'])}", path_note)]
    rows += [(f"format: {source['format']}", "; ".join(log.notes))] if "format" in source else []
    rows += [(f"options: {flow(source['options'])}", "")] if "options" in source else []
    lines += ["source:", *lined(rows, 2)]
    if log.preset is None:
        declared = [(f"{column.name}: {flow(column.declared())}", column.words) for column in columns]
        lines += ["columns:", *lined(declared, 2)]
    else:
        lines.append("# Of its columns, some values:")
        lines += [f"#   {comment(f'{column.path}: {column.words}')}" for column in columns]
    if left:
        lines.append(f"# Left out: {comment(', '.join(left)[:500])}")
    if "time" in data:
        note = "?: no field looks like a time; each line counts a second" if when is None else when.note
        lines += lined([(f"time: {flow(data['time'])}", note)])
    if "key" in data:
        (key,) = data["key"]
        values = pc.count_distinct(found.events[key]).as_py()
        lines += lined([(f"key: {flow(data['key'])}", f"{values} values in these lines")])
    block = data["aggregate"]["activity"]
    lines += ["aggregate:", "  activity:", f"    measures: {flow(block['measures'])}"]
    lines.append(f"    levels: {block['levels']}")
    if "checks" in data:
        refused = f"refused here: {'; '.join(found.reasons[:2])[:200]}"
        lines += lined([(f"checks: {flow(data['checks'])}", refused)])
    return "\n".join(lines) + "\n"


def _heading(samples: Sequence[Sample], found: Tried) -> list[str]:
    first, last = _extent(found.events)
    hours = (hour_of(last) - hour_of(first)) // HOUR + 1
    names = ", ".join(sample.path.name for sample in samples[:3]) + (", ..." if len(samples) > 3 else "")
    cut = "" if all(sample.whole for sample in samples) else f" (the first {MOST // 2**20} MiB of each)"
    stretch = f"{format_hour(hour_of(first))} to {format_hour(hour_of(last) + HOUR)} UTC"
    return [
        f"# Drafted from {comment(names)}{cut}: {found.lines} lines, {found.events.num_rows} events,",
        f"# {stretch} ({hours} hour{'' if hours == 1 else 's'}). A question mark is a guess to look at.",
    ]
