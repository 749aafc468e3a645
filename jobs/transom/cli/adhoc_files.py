"""Scan files of any name, and link them into a landing folder of a stream."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from operator import itemgetter
from os.path import normpath
from pathlib import Path
from typing import Any, BinaryIO
from zoneinfo import ZoneInfo

import numpy as np

from transom.cli.arguments import NoEventsError, UsageError
from transom.core.durations import format_duration
from transom.core.file_names import split_name
from transom.core.intervals import HOUR, HOUR_LENGTH, Interval, format_hour, hour_of, moment_of, number_of
from transom.core.path_pattern import Match, PathPattern, Unit, split_scheme
from transom.core.terminal import counted, escape_control_chars
from transom.formats.read_file import Chunk, FileSummary, read_file
from transom.stream import Stream, parse

MAX_HOURS = 8784
"""Maximum number of hours of a trial: those of a leap year."""
FOLDERS: Mapping[Unit, str] = {
    "year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H",
    "minute": "%Y-%m-%dT%H-%M", "second": "%Y-%m-%dT%H-%M-%S",
}  # fmt: skip
LANDED = re.compile(r"landing/[^\s,;]*\*")
"""A pattern of links in the landing folder: files that are missing there."""
EXAMPLES = 3
"""Maximum number of examples per kind."""
REFUSED = "rejected_share"
"""Name of the check on the share of rejected lines."""


@dataclass
class ScannedFile:
    """The content of a file, read as a job would.

    Attributes:
        match: the parts of its name by the stream's pattern; None if the name does not match.
        hours: the number of events of each hour, and the line of the first one.
        reasons: the number of rejected lines by reason.
        examples: the first rejected lines by reason: line number, text, and the column with the value.
        error: why the file ends early; None if it does not.
        nul_bytes: the number of skipped NUL bytes before lines.
    """

    path: Path
    match: Match | None
    hours: dict[datetime, tuple[int, int]] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[tuple[int, str, str]]] = field(default_factory=dict)
    lines: int = 0
    events: int = 0
    header_lines: int = 0
    error: str | None = None
    nul_bytes: int = 0

    def add(self, part: Chunk | FileSummary) -> None:
        """Add a chunk, or the summary at the end of the file."""
        if not isinstance(part, Chunk):
            self.lines, self.events, self.header_lines = part.lines, part.accepted, part.header_lines
            self.error, self.nul_bytes = part.broken, part.nul_bytes
            return
        micros = part.events["event_time"].cast("int64").to_numpy(zero_copy_only=False)
        numbers, firsts, counts = np.unique(micros // HOUR_LENGTH, return_index=True, return_counts=True)
        for number, first, count in zip(numbers.tolist(), firsts.tolist(), counts.tolist(), strict=True):
            hour = moment_of(number)
            events, line = self.hours.get(hour, (0, part.events["source_line"][first].as_py()))
            self.hours[hour] = events + count, line
        for row in part.rejected.to_pylist():
            self.reasons[row["reason"]] += 1
            examples = self.examples.setdefault(row["reason"], [])
            if len(examples) < EXAMPLES:
                seen = ": ".join(filter(None, (row["column"], row["detail"])))
                examples.append((row["source_line"], row["raw"], seen))


def read_as_job(
    stream: Stream, source: BinaryIO, name: str, match: Match | None, bounded: bool = True
) -> Iterator[Chunk | FileSummary]:
    """Read a file as a job reads it.

    Args:
        name: the file's name; its suffix determines the compression.
        match: the parts of its name by the stream's pattern.
        bounded: whether events outside of the period in the name are rejected.
    """
    by_name = stream.time is not None and stream.time.by_name
    start, captures = (None, {}) if match is None else (match.start if by_name else None, match.captures)
    span = stream.span(match) if bounded and match is not None else None
    return read_file(source, name, stream.layout(), span, start=start, captures=captures)


def scan_file(stream: Stream, path: Path) -> ScannedFile:
    """Read a file to its end.

    Raises:
        UsageError: the name lacks a time or a capture that times need, or has an empty capture.
    """
    match = named(stream.source.pattern, path)
    if match is not None and match.empty:
        words = stream.source.pattern.words_of_empty(match.empty)
        raise UsageError(f"{path}: {words}, and a job does not publish such a file")
    of_time = [name for name in stream.source.pattern.captures if name in stream.layout().of_time]
    why = ""
    if stream.time is not None and stream.time.by_name and match is None:
        why = "times count from its name"
    elif not set(of_time) <= set(match.captures if match is not None else ()):
        why = f"times consist of {', '.join(of_time)} in its name"
    if why:
        raise UsageError(f"{path}: must be named as in source.path, {stream.source.path}, as {why}")
    file = ScannedFile(path, match)
    with path.open("rb") as source:
        for part in read_as_job(stream, source, path.name, match):
            file.add(part)
    return file


def other_hours(stream: Stream, file: ScannedFile) -> str | None:
    """Return a message if no event of a file is of the period in its name; None if some event is."""
    span = None if file.match is None else stream.span(file.match)
    if span is None:
        return None
    limits = stream.source.event_time_range
    start, end = span.start + limits.before, span.end - limits.after
    refused = file.reasons["outside_holds"]
    if (not refused and not file.events) or any(hour_of(start) <= hour < end for hour in file.hours):
        return None
    first = _first_time(stream, file)
    period = f"{format_hour(hour_of(start))} to {format_hour(hour_of(end))} UTC"
    advice = "if names are in local time, set `source.zone`, such as Europe/Berlin"
    if stream.source.zone != "UTC":
        advice = f"is `source.zone`, {stream.source.zone}, that of the names?"
    if stream.time is not None and stream.time.zone is not None:
        advice += f"; is `time.zone`, {stream.time.zone}, that of the log?"
    return (
        f"{file.path}: by its name it is of {period}, and none of its events is; the first is of "
        f"{first:%Y-%m-%dT%H:%M:%S} UTC: {advice}"
    )


def _first_time(stream: Stream, file: ScannedFile) -> datetime:
    """Return the time of the first event, also outside of the period in the name."""
    with file.path.open("rb") as source:
        parts = read_as_job(stream, source, file.path.name, file.match, bounded=False)
        events = next(part.events for part in parts if isinstance(part, Chunk) and part.events.num_rows)
    time: datetime = events["event_time"][0].as_py()
    return time.astimezone(UTC)


def first_remarks(remarks: Sequence[str]) -> list[str]:
    """Return the first of some remarks, one per file, and a line that counts the others."""
    more = len(remarks) - EXAMPLES
    return [*remarks[:EXAMPLES], *([f"and the same of {counted(more, 'more file')}"] if more > 0 else [])]


def named(pattern: PathPattern, path: Path) -> Match | None:
    """Match the end of a file's path with the end of the pattern, with as many folders as possible.

    A match must have all parts of the pattern's time. Matches without empty captures come first.
    """
    names = normpath(path.absolute()).split("/")
    folders = split_scheme(pattern.text)[1].strip("/").split("/")
    depths = range(min(len(folders), len(names)), 0, -1)
    tails = takewhile(itemgetter(0), ((pattern.tail(depth), depth) for depth in depths))
    matches = (tail.match("/".join(names[-depth:])) for tail, depth in tails if tail is not None)
    of_whole_time = [match for match in matches if match is not None and match.unit == pattern.unit]
    return next((match for match in of_whole_time if not match.empty), next(iter(of_whole_time), None))


def interval_of(files: Sequence[ScannedFile]) -> Interval:
    """Return the hours that some files cover.

    Raises:
        UsageError: there are more than `MAX_HOURS`, or none.
    """
    counts: Counter[datetime] = Counter()
    for file in files:
        counts.update({hour: number for hour, (number, _) in file.hours.items()})
    if not counts:
        names = ", ".join(str(file.path) for file in files)
        raise NoEventsError(f"{names}: none of {sum(file.lines for file in files)} lines is an event")
    for file in files:
        match = file.match
        # A run selects files by the hours in their names, even if all events are of other hours.
        if file.hours and match is not None and match.hour is not None and match.end is not None:
            inside = any(match.hour <= hour < match.end for hour in file.hours)
            counts.update({} if inside else {match.hour: 0})
    interval = Interval(min(counts), max(counts) + HOUR)
    if len(interval) <= MAX_HOURS:
        return interval
    densest = _densest(counts)
    odd = [
        f"{file.path}, line {line}: {format_hour(hour)}"
        for file in files
        for hour, (_, line) in sorted(file.hours.items())
        if hour not in densest
    ]
    more = "; ..." if odd[EXAMPLES:] else ""
    hours = [hour for hour in counts if hour in densest]
    raise UsageError(
        f"times: must lie within {MAX_HOURS} hours; they cover {len(interval)}, {interval}. Outside of "
        f"the {MAX_HOURS} hours that hold most: {'; '.join(odd[:EXAMPLES])}{more}. To continue without "
        f"these hours, add --from {format_hour(min(hours))} --to {format_hour(max(hours) + HOUR)}"
    )


def _densest(counts: Mapping[datetime, int]) -> Interval:
    """Return the interval of `MAX_HOURS` hours with most events."""
    hours = sorted(counts)
    numbers = np.array(list(map(number_of, hours)))
    events = np.cumsum([0, *map(counts.__getitem__, hours)])
    ends = np.searchsorted(numbers, numbers + MAX_HOURS)
    start = hours[int(np.argmax(events[ends] - events[:-1]))]
    return Interval(start, start + MAX_HOURS * HOUR)


def hours_cut_to(files: Sequence[ScannedFile], hours: Interval) -> Interval | None:
    """Return the hours if a file has events outside of them; None if no file has to be cut.

    Raises:
        NoEventsError: none of the files has an event in them.
    """
    present = {hour for file in files for hour in file.hours}
    inside = [hour in hours for hour in present]
    if present and not any(inside):
        names = ", ".join(str(file.path) for file in files)
        seen = f"{format_hour(min(present))} to {format_hour(max(present) + HOUR)}"
        raise NoEventsError(f"{names}: no event is in {hours}; events are of {seen}")
    return None if all(inside) else hours


@dataclass(frozen=True)
class TryStream:
    """A stream whose landing folder contains links to the tried files.

    Attributes:
        notes: messages about what is not tried.
        pattern: the declared pattern of the files.
        paths: the files by their paths in the landing folder.
    """

    stream: Stream
    notes: tuple[str, ...]
    pattern: PathPattern
    paths: Mapping[str, ScannedFile] = field(default_factory=dict)

    def named(self, text: str) -> str:
        """Replace landing paths in a text by the paths of the user's files, and those of missing files by the
        names that they should have."""
        for landed, file in self.paths.items():
            for shown in (str, escape_control_chars):
                text = text.replace(shown(landed), shown(str(file.path)))
        return LANDED.sub(self._as_declared, text)

    def _as_declared(self, path: re.Match[str]) -> str:
        match = self.stream.source.pattern.match(path[0])
        if match is None or match.start is None:
            return path[0]
        return self.pattern.format_hour_path(match.start)


def link_into_landing(
    data: Mapping[str, Any],
    stream: Stream,
    files: Sequence[ScannedFile],
    folder: Path,
    interval: Interval,
    end: datetime,
    only: Interval | None = None,
) -> TryStream:
    """Link files into a landing folder, and return the stream that finds them there.

    If the name of each file has a time by the stream's pattern, the links keep these times. Otherwise the
    links have no times, and each file may have events of any hour. Captures are also kept.

    Args:
        data: the content of the stream file.
        folder: the landing folder.
        interval: the hours to run, in one chunk.
        end: the end of the hours that the files cover, exclusive.
        only: the hours to which files are cut: the stream rejects all other events, and its check tolerates
            as many more rejected lines. None keeps all events.

    Raises:
        UsageError: a file is cut, but its times depend on its name.
    """
    pattern, notes = stream.source.pattern, []
    timed = only is None and pattern.unit is not None and all(file.match is not None for file in files)
    if only is not None:
        if stream.time is not None and stream.time.by_name:
            rule = "must hold all events of files whose times count from their names"
            raise UsageError(f"--from and --to: {rule}; got {only}")
        notes += first_remarks(
            [_outside(file, only) for file in files if file.hours.keys() - {*only.hours()}]
        )
        if pattern.unit is not None:
            ignored = "what source.path, `event_time_range` and `expected_files` specify of hours"
            notes.append(f"as files are cut, {ignored} is not tried")
    elif pattern.unit is not None and not timed:
        other = next(file.path for file in files if file.match is None)
        notes.append(
            f"{other} is not named as in source.path: `event_time_range` and `expected_files` are not tried"
        )
    if not all(set(pattern.captures) <= set(file.match.captures if file.match else ()) for file in files):
        notes.append(f"{', '.join(pattern.captures)}: not in a file's path, taken as 'try'")
    source = dict(data["source"])
    form = FOLDERS[pattern.unit] if timed and pattern.unit is not None else None
    if not timed:
        source.pop("expected_files", None)
    if only is not None:
        # A file has events of the period in its name only.
        form, data = FOLDERS["hour"], _tolerant(data, stream, files, only)
        source |= {"zone": "UTC", "name_time": "start", "covers": format_duration(len(only) * HOUR)}
        source |= {"event_time_range": {"before": "0 seconds", "after": "0 seconds"}}
    captures = [f"{{{name}}}" for name in pattern.captures]
    source["path"] = "/".join(["landing", *([form] if form else []), *captures, "*"])
    chunk = format_duration(max(len(interval), 1) * HOUR)
    # No file is missing after the hours that the files cover.
    until = {"start": None, "until": end} if end < interval.end else {}
    tried = parse({**data, "source": source, "chunk": chunk, **until}, f"{stream.name}.yaml")
    landed: dict[str, ScannedFile] = {}
    twice = []
    for number, file in zip(_numbers(files), files, strict=True):
        match = file.match
        moment = None if match is None else match.end if source.get("name_time") == "end" else match.start
        moment = moment if only is None else only.start
        parts = [folder / "landing"]
        if form is not None and moment is not None:
            parts.append(Path(moment.astimezone(ZoneInfo(tried.source.zone)).strftime(form)))
        parts += [Path(match.captures.get(name, "try") if match else "try") for name in pattern.captures]
        link = Path(*parts, f"{number}-{file.path.name}")
        while (same := landed.get(str(link))) is not None and same.path.absolute() != file.path.absolute():
            link = link.with_name(f"again-{link.name}")
        if same is not None:
            twice.append(f"{file.path} is given twice, and counts once")
            continue
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(file.path.absolute())
        landed[str(link)] = file
    paths = {str(Path(link).relative_to(folder)): file for link, file in landed.items()}
    return TryStream(tried, (*notes, *first_remarks(twice)), pattern, paths)


def _outside(file: ScannedFile, only: Interval) -> str:
    """Return a message with the number of a file's events outside of some hours, and the first of them."""
    outside = [(hour, *events) for hour, events in sorted(file.hours.items()) if hour not in only]
    first = ", ".join(f"line {line} of {format_hour(hour)}" for hour, _, line in outside[:EXAMPLES])
    more = ", ..." if outside[EXAMPLES:] else ""
    count = sum(number for _, number, _ in outside)
    return f"{file.path}: {count} of {file.events} events are outside of {only} and omitted: {first}{more}"


def _tolerant(
    data: Mapping[str, Any], stream: Stream, files: Sequence[ScannedFile], only: Interval
) -> Mapping[str, Any]:
    """Return a stream file's content whose check on rejected lines also tolerates the events outside of
    `only`."""
    gate = next((gate for gate in stream.gates if gate.name == REFUSED), None)
    if gate is None or gate.at_most is None:
        return data
    shares = [
        sum(number for hour, (number, _) in file.hours.items() if hour not in only)
        / max(file.lines - file.header_lines, 1)
        for file in files
    ]
    checks = data.get("checks") or {}
    changed = {**(checks.get(REFUSED) or {}), "at_most": min(1.0, gate.at_most + max(shares))}
    return {**data, "checks": {**checks, REFUSED: changed}}


def _numbers(files: Sequence[ScannedFile]) -> list[int]:
    """Return a number for each file; files that a job would take for the same file have the same number."""
    numbers: dict[object, int] = {}
    identities = (
        split_name(str(file.path.absolute()))[0]
        if file.match is None
        else (file.match.varies, str(file.match.captures))
        for file in files
    )
    return [numbers.setdefault(identity, len(numbers) + 1) for identity in identities]
