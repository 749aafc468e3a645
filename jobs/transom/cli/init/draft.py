"""Draft a stream file from the first lines of a log, and try it on them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os.path import normpath
from typing import Any

from transom.cli.arguments import NoEventsError, UsageError
from transom.cli.init.detect import Unknown, recognise
from transom.cli.init.infer_columns import columns_of
from transom.cli.init.infer_names import named_times, offset_of_lines
from transom.cli.init.infer_path import pattern_of, stream_name
from transom.cli.init.infer_time import time_of
from transom.cli.init.log_format import SAMPLE_LINES, LogFormat, NotRead
from transom.cli.init.render_yaml import text_of
from transom.cli.init.suggest_blocks import column_values, first_blocks, repeats
from transom.cli.init.try_draft import DraftTrial, events_of, extents_of, times_are_in_names
from transom.cli.log_sample import LogSample
from transom.core.path_pattern import PathPattern
from transom.spec.event_time import NAME as BY_NAME
from transom.storage.filesystem import landing_root
from transom.stream import parse

FIRST = "2024-01-01T00:00"
"""Time of the first line if neither lines nor files' names have times."""


@dataclass(frozen=True)
class Draft:
    """A stream file, and its result for the sampled lines.

    Attributes:
        untimed: why the stream file has no `time` yet and cannot be used; empty if it has one.
    """

    text: str
    trial: DraftTrial
    untimed: str = ""


def draft(samples: Sequence[LogSample], name: str | None = None) -> Draft:
    """Draft a stream file.

    Raises:
        UsageError: the files have no known form, different forms, or a form that no format reads.
        SpecificationError: the name is invalid.
    """
    log = _recognised(samples)
    paths = [_landing_path(sample) for sample in samples]
    pattern = pattern_of(paths)
    timed = PathPattern(pattern).unit is not None
    when = None if log.preset else time_of(log, paths, BY_NAME if timed else FIRST)
    if when is not None and when.path is not None:
        pattern = when.path
    columns, undeclared = columns_of(log, when, PathPattern(pattern).captures)
    name = stream_name(paths) if name is None else name
    source: dict[str, Any] = {"path": pattern}
    source |= {} if log.preset else {"format": log.format}
    source |= {"options": dict(log.options)} if log.options else {}
    data: dict[str, Any] = {"name": name, "source": source}
    if when is None:
        data["preset"] = log.preset
    else:
        data["columns"] = {column.name: column.declared() for column in columns}
        data["time"] = dict(when.declared)
    stream, names = parse(data, name), None
    if not times_are_in_names(stream, samples, paths):
        source["path"] = pattern_of(paths, timed=False)
    elif stream.source.pattern.unit is not None:
        of_lines = offset_of_lines(line for sample in samples for line in sample.lines)
        names = named_times(stream, extents_of(stream, samples, paths), paths, of_lines)
        source |= {"path": names.pattern, **{key: value for key, value, _, sure in names.declared if sure}}
    stream = parse(data, name)
    trial = events_of(stream, samples, paths)
    if not trial.events.num_rows:
        first = f": the first was rejected as {trial.refused[0].reason}" if trial.refused else ""
        raise NoEventsError(f"{samples[0].path}: none of {trial.lines} lines became an event{first}")
    values = column_values(stream, trial)
    data |= first_blocks(stream, values, trial)
    parse(data, name)
    repeated = None if stream.unique else repeats(values, trial)
    text = text_of(data, log, columns, undeclared, when, samples, trial, repeated, names)
    return Draft(text, trial, "" if when is None else when.untimed)


def _recognised(samples: Sequence[LogSample]) -> LogFormat:
    """Return the common format of all files, with the fields of each."""
    logs = [_form(sample, sample.lines) for sample in samples]
    first, fields = logs[0], dict[str, list[str]]()
    for sample, log in zip(samples, logs, strict=True):
        expected, got = first.preset or first.format, log.preset or log.format
        if got != expected:
            raise UsageError(
                f"{sample.path}: must be of the form of {samples[0].path}, {expected}; it is {got}"
            )
        if log.options != first.options:
            # The lines of all files together may have less in common than those of each file.
            share = SAMPLE_LINES // len(samples) + 1
            return _form(samples[0], [line for sample in samples for line in sample.lines[:share]])
        for path, texts in log.fields.items():
            fields.setdefault(path, []).extend(texts)
    return replace(first, fields=fields)


def _form(sample: LogSample, lines: Sequence[str]) -> LogFormat:
    try:
        log = recognise(lines)
    except (Unknown, NotRead) as error:
        raise NoEventsError(f"{sample.path}: {error}") from None
    # A job counts empty lines; the sample has none.
    numbers = {name: log.options.get(name) for name in ("header", "skip")}
    counted = {name: sample.number(n) for name, n in numbers.items() if n and type(n) is int}
    return replace(log, options={**log.options, **counted})


def _landing_path(sample: LogSample) -> str:
    """Return a file's path as a stream file has it: relative to the landing folder if it is inside."""
    path = normpath(sample.path.absolute())
    try:
        PathPattern(pattern_of([path]))
    except ValueError as error:
        raise UsageError(f"{path!r}: no path of a stream can match this name: {error}") from None
    return path.removeprefix(f"{landing_root()}/")
