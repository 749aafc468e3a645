"""Files of any name as a landing folder of a stream: what they hold, and under which names they land."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from os.path import normpath
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from transom.cli.arguments import NoEventsError, UsageError
from transom.core.durations import format_duration
from transom.core.file_names import split_name
from transom.core.intervals import HOUR, Interval, format_hour, hour_of
from transom.core.path_pattern import Match, PathPattern, Unit, split_scheme
from transom.core.terminal import counted, escape_control_chars
from transom.formats.read_file import Chunk, FileSummary, read_file
from transom.stream import Stream, parse

MAX_HOURS = 8784
"""Hours that are tried at a time: a leap year."""
FOLDERS: Mapping[Unit, str] = {
    "year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H",
    "minute": "%Y-%m-%dT%H-%M", "second": "%Y-%m-%dT%H-%M-%S",
}  # fmt: skip
EXAMPLES = 3
NO_MORE = {"before": "0 seconds", "after": "0 seconds"}
REFUSED = "rejected_share"
"""The check on the share of lines that are refused."""


@dataclass
class ScannedFile:
    """What a file holds, read as a job would.

    Attributes:
        match: what its own name says by the stream's pattern; None where it is named otherwise.
        hours: the number of events of each hour, and the line of the first of them.
        reasons: how many lines were refused for each reason.
        nul_bytes: how many NUL bytes came before lines; they are skipped.
        examples: of each reason the first lines: number, text, what was seen, in which column.
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


def counted_from(stream: Stream, match: Match | None) -> datetime | None:
    """The instant from which the times of a file's lines count, where they do not say their own."""
    by_name = stream.time is not None and stream.time.by_name
    return match.start if by_name and match is not None else None


def scan_file(stream: Stream, path: Path) -> ScannedFile:
    """Reads a file to its end.

    Raises:
        Refusal: times count from the start in the file's name, and it has none; or a capture is empty in it.
    """
    match = named(stream.path_pattern, path)
    if match is not None and match.empty:
        words = stream.path_pattern.words_of_empty(match.empty)
        raise UsageError(f"{path}: {words}, and a job withholds such a file")
    if stream.time is not None and stream.time.by_name and match is None:
        raise UsageError(
            f"{path}: must be named as source.path says, {stream.source.path}, as times count from its name"
        )
    of_time = [name for name in stream.captures if name in stream.layout().of_time]
    captures = match.captures if match is not None else {}
    if not set(of_time) <= set(captures):
        raise UsageError(
            f"{path}: must be named as source.path says, {stream.source.path}, as times are made of "
            f"{', '.join(of_time)} in its name"
        )
    span = stream.span(match) if match is not None else None
    found = ScannedFile(path, match)
    start = counted_from(stream, match)
    with path.open("rb") as source:
        for part in read_file(source, path.name, stream.layout(), span, start=start, captures=captures):
            if isinstance(part, Chunk):
                _count(found, part)
            else:
                _sum_up(found, part)
    return found


def other_hours(stream: Stream, found: ScannedFile) -> str | None:
    """What is wrong with a file whose name says a time of which none of its events is, and probably why; None
    where nothing is."""
    match = found.match
    named = None if match is None else stream.span(match)
    if match is None or named is None:
        return None
    before, after = stream.source.event_time_range.before, stream.source.event_time_range.after
    start, end = named.start + before, named.end - after
    refused = found.reasons["outside_holds"]
    if (not refused and not found.events) or any(hour_of(start) <= hour < end for hour in found.hours):
        return None
    first = _first_time(stream, found)
    stretch = f"{format_hour(hour_of(start))} to {format_hour(hour_of(end))} UTC"
    advice = (
        f"is `source.zone`, {stream.source.zone}, that of the names?"
        if stream.source.zone != "UTC"
        else "if names are in local time, say which by `source.zone`, such as Europe/Berlin"
    )
    zone = stream.time.zone if stream.time is not None else None
    if zone is not None:
        advice += f"; is `time.zone`, {zone}, that of the log?"
    return (
        f"{found.path}: by its name it is of {stretch}, and none of its events is; the first is of "
        f"{first:%Y-%m-%dT%H:%M:%S} UTC: {advice}"
    )


def _first_time(stream: Stream, found: ScannedFile) -> datetime:
    """The time of the first event that a file would have under any name."""
    match = found.match
    captures = {} if match is None else match.captures
    start = counted_from(stream, match)
    with found.path.open("rb") as source:
        for part in read_file(source, found.path.name, stream.layout(), None, start=start, captures=captures):
            if isinstance(part, Chunk) and part.events.num_rows:
                time: datetime = part.events["event_time"][0].as_py()
                return time.astimezone(UTC)
    raise AssertionError("a file of which lines were refused for their time has an event under any name")


def _count(found: ScannedFile, part: Chunk) -> None:
    micros = part.events["event_time"].cast("int64").to_numpy(zero_copy_only=False)
    lines = part.events["source_line"].to_numpy(zero_copy_only=False)
    hours, firsts, counts = np.unique(micros // 3_600_000_000, return_index=True, return_counts=True)
    for hour, first, count in zip(hours.tolist(), firsts.tolist(), counts.tolist(), strict=True):
        moment = datetime.fromtimestamp(hour * 3600, UTC)
        before, line = found.hours.get(moment, (0, int(lines[first])))
        found.hours[moment] = before + count, line
    for row in part.rejected.to_pylist():
        found.reasons[row["reason"]] += 1
        examples = found.examples.setdefault(row["reason"], [])
        if len(examples) < EXAMPLES:
            seen = ": ".join(filter(None, (row["column"], row["detail"])))
            examples.append((row["source_line"], row["raw"], seen))


def first_remarks(remarks: Sequence[str]) -> list[str]:
    """Return the first of remarks of one kind on files, each of another file, and how many more there are."""
    more = len(remarks) - EXAMPLES
    return [*remarks[:EXAMPLES], *([f"and the same of {counted(more, 'more file')}"] if more > 0 else [])]


def _sum_up(found: ScannedFile, summary: FileSummary) -> None:
    found.lines, found.events = summary.lines, summary.accepted
    found.header_lines, found.error = summary.header_lines, summary.broken
    found.nul_bytes = summary.nul_bytes


def named(pattern: PathPattern, path: Path) -> Match | None:
    """What a file's own name says, by the pattern or by as many of its last parts as say all of its time."""
    found = [tail.match(name) for tail, name in _tails(pattern, path)]
    matches = [match for match in found if match is not None and match.unit == pattern.unit]
    return next((match for match in matches if not match.empty), next(iter(matches), None))


def _tails(pattern: PathPattern, path: Path) -> Iterator[tuple[PathPattern, str]]:
    """The last parts of a pattern and of a path, the most first, as long as they can say a time."""
    names = normpath(path.absolute()).split("/")
    for depth in range(min(split_scheme(pattern.text)[1].strip("/").count("/") + 1, len(names)), 0, -1):
        tail = pattern.tail(depth)
        if tail is None:
            return
        yield tail, "/".join(names[-depth:])


def interval_of(files: Sequence[ScannedFile]) -> Interval:
    """The hours that some files cover.

    Raises:
        Refusal: they are too many, or there are none.
    """
    counts: Counter[datetime] = Counter()
    for file in files:
        counts.update({hour: number for hour, (number, _) in file.hours.items()})
    if not counts:
        names = ", ".join(str(file.path) for file in files)
        raise NoEventsError(f"{names}: none of {sum(file.lines for file in files)} lines is an event")
    for file in files:
        match = file.match
        # A run reads the files that are named of its hours, whatever hours their events are of.
        if file.hours and match is not None and match.hour is not None and match.end is not None:
            inside = any(match.hour <= hour < match.end for hour in file.hours)
            counts.update({} if inside else {match.hour: 0})
    first, last = min(counts), max(counts)
    interval = Interval(first, last + HOUR)
    if len(interval) > MAX_HOURS:
        odd = [
            f"{file.path}, line {line}: {format_hour(hour)}"
            for file in files
            for hour, (_, line) in sorted(file.hours.items())
            if hour not in _densest(counts)
        ]
        more = "; ..." if odd[EXAMPLES:] else ""
        kept = [hour for hour in counts if hour in _densest(counts)]
        only = f"--from {format_hour(min(kept))} --to {format_hour(max(kept) + HOUR)}"
        raise UsageError(
            f"times: must lie within {MAX_HOURS} hours; they cover {len(interval)}, {interval}. Outside of "
            f"the {MAX_HOURS} hours that hold most: {'; '.join(odd[:EXAMPLES])}{more}. To continue without "
            f"these hours, add {only}"
        )
    return interval


def hours_cut_to(files: Sequence[ScannedFile], hours: Interval) -> Interval | None:
    """Return some hours where files have events outside of them, and are cut to these; else None.

    Raises:
        NoEvents: none of the files has an event in them.
    """
    there = {hour for file in files for hour in file.hours}
    if not there:
        return None
    if not any(hour in hours for hour in there):
        names = ", ".join(str(file.path) for file in files)
        seen = f"{format_hour(min(there))} to {format_hour(max(there) + HOUR)}"
        raise NoEventsError(f"{names}: no event is in {hours}; events are of {seen}")
    return hours if any(hour not in hours for hour in there) else None


def _densest(counts: Mapping[datetime, int]) -> Interval:
    """The stretch of the most hours allowed that holds most events."""
    hours = sorted(counts)
    best, most, start, inside = hours[0], 0, 0, 0
    for hour in hours:
        inside += counts[hour]
        while hour - hours[start] >= MAX_HOURS * HOUR:
            inside -= counts[hours[start]]
            start += 1
        if inside > most:
            best, most = hours[start], inside
    return Interval(best, best + MAX_HOURS * HOUR)


@dataclass(frozen=True)
class TryStream:
    """A stream as it is tried: on files of a folder of its own.

    Attributes:
        notes: what is not tried, for a person.
        paths: the files by the paths under which they land.
    """

    stream: Stream
    notes: tuple[str, ...]
    paths: Mapping[str, ScannedFile] = field(default_factory=dict)

    def named(self, text: str) -> str:
        """Return a text that names files as they were given."""
        for landed, file in self.paths.items():
            for shown in (str, escape_control_chars):
                text = text.replace(shown(landed), shown(str(file.path)))
        return text


def link_into_landing(
    data: Mapping[str, Any],
    stream: Stream,
    files: Sequence[ScannedFile],
    folder: Path,
    interval: Interval,
    end: datetime,
    only: Interval | None = None,
) -> TryStream:
    """Links files into a landing folder, and returns the stream that finds them there.

    Where each file's own name says its time, as the stream's pattern has it, that is kept; else none is: a
    file may then hold anything. Captures are taken from the names, too.

    Args:
        data: what the stream's file says.
        folder: of TRANSOM_LANDING.
        interval: what is run, in one piece.
        end: of what the files cover.
        only: hours to which the files are cut; None leaves them whole. The stream then refuses their other
            events, and as many lines more.

    Raises:
        Refusal: the times of files that are cut count from their names.
    """
    pattern, notes = stream.path_pattern, []
    if only is not None and stream.time is not None and stream.time.by_name:
        rule = "must hold all events of files whose times count from their names"
        raise UsageError(f"--from and --to: {rule}; got {only}")
    timed = only is None and pattern.unit is not None and all(file.match is not None for file in files)
    if only is not None:
        notes += first_remarks(
            [_outside(file, only) for file in files if file.hours.keys() - set(only.hours())]
        )
        if pattern.unit is not None:
            notes.append(
                "as files are cut, what source.path, `event_time_range` and `expected_files` say of hours is "
                "not tried"
            )
    elif pattern.unit is not None and not timed:
        other = next(file.path for file in files if file.match is None)
        notes.append(
            f"{other} is not named as source.path says: `event_time_range` and `expected_files` are not tried"
        )
    if pattern.captures and any(
        file.match is None or set(file.match.captures) < set(pattern.captures) for file in files
    ):
        notes.append(f"{', '.join(pattern.captures)}: not in a file's path, taken as 'try'")
    form = FOLDERS[pattern.unit] if timed and pattern.unit else None
    places = ["landing", *([form] if form else []), *(f"{{{name}}}" for name in pattern.captures), "*"]
    source = {**data["source"], "path": "/".join(places)}
    if not timed:
        source.pop("expected_files", None)
    if only is not None:
        # A file holds what its name says, and no more.
        places[1:1] = [FOLDERS["hour"]]
        form, data = FOLDERS["hour"], _tolerant(data, stream, files, only)
        source |= {"path": "/".join(places), "zone": "UTC", "name_time": "start"}
        source |= {"covers": format_duration(len(only) * HOUR), "event_time_range": NO_MORE}
    chunk = format_duration(max(len(interval), 1) * HOUR)
    # Behind what the files cover none is missing.
    until = {"start": None, "until": end} if end < interval.end else {}
    tried = parse({**data, "source": source, "chunk": chunk, **until}, f"{stream.name}.yaml")
    landed: dict[str, ScannedFile] = {}
    twice = []
    for number, file in zip(_numbers(files), files, strict=True):
        parts = [folder / "landing"]
        match = file.match
        moment = None if match is None else match.end if source.get("name_time") == "end" else match.start
        moment = moment if only is None else only.start
        if form is not None and moment is not None:
            zone = ZoneInfo(tried.source.zone)
            parts.append(Path(moment.astimezone(zone).strftime(form)))
        captured = match.captures if match is not None else {}
        parts += [Path(captured.get(name, "try")) for name in pattern.captures]
        link = Path(*parts, f"{number}-{file.path.name}")
        while (there := landed.get(str(link))) is not None and there.path.absolute() != file.path.absolute():
            link = link.with_name(f"again-{link.name}")
        if there is not None:
            twice.append(f"{file.path} is given twice, and counts once")
            continue
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(file.path.absolute())
        landed[str(link)] = file
    paths = {str(Path(link).relative_to(folder)): file for link, file in landed.items()}
    return TryStream(tried, (*notes, *first_remarks(twice)), paths)


def _outside(file: ScannedFile, only: Interval) -> str:
    """Return in words how many events a file has outside of some hours, and where the first ones are."""
    outside = [(hour, *of) for hour, of in sorted(file.hours.items()) if hour not in only]
    named = ", ".join(f"line {line} of {format_hour(hour)}" for hour, _, line in outside[:EXAMPLES])
    more = ", ..." if outside[EXAMPLES:] else ""
    many = sum(number for _, number, _ in outside)
    return f"{file.path}: {many} of {file.events} events are outside of {only} and left out: {named}{more}"


def _tolerant(
    data: Mapping[str, Any], stream: Stream, files: Sequence[ScannedFile], only: Interval
) -> Mapping[str, Any]:
    """Return what a stream's file says, with a check on refused lines that lets the events outside of some
    hours pass, as they are refused, too."""
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
    """Return a number for each file. Two have one number where a job takes names as theirs, with equal bytes,
    for names of one file."""
    numbers: dict[object, int] = {}
    found = []
    for file in files:
        match = file.match
        named = (
            split_name(str(file.path.absolute()))[0] if match is None else (match.varies, str(match.captures))
        )
        found.append(numbers.setdefault(named, len(numbers) + 1))
    return found
