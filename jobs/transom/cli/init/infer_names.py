"""Infer what the times in files' names mean: starts or ends of periods, the zone, and files per hour."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from transom.cli.init.infer_path import pattern_of
from transom.core.durations import format_duration, format_duration_long
from transom.core.intervals import HOUR
from transom.core.path_pattern import Match, PathPattern
from transom.core.time_zones import format_offset, offsets, parse_offset, zone_with_offset
from transom.spec.source import MIN_UNIT_LENGTH
from transom.spec.stream import Stream

DAY = timedelta(days=1)
PERIODS = (*(timedelta(minutes=minutes) for minutes in (1, 5, 10, 15, 20, 30)), HOUR, DAY)
"""Usual periods of files."""
ZONES = timedelta(minutes=15)
"""Zones differ by multiples of this, so a name may be later than the lines because of its zone."""
OFFSET_OF_LINE = re.compile(
    r"[0-9]:[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]+)?)? ?(?P<offset>[+-][0-9]{2}:?[0-5][0-9])(?![0-9])"
)
"""A time of day with its offset from UTC."""

Extent = tuple[datetime, datetime] | None
"""The first and the last time of a file's events; None if it has no events."""
TimedFile = tuple[datetime, datetime, datetime]
"""The time in a file's name, and the first and the last time of its events."""


@dataclass(frozen=True)
class NamedTimes:
    """The inferred meaning of the times in files' names.

    Attributes:
        pattern: the pattern of the paths.
        note: a remark on it for the user.
        declared: further declarations of the source: name, value, remark, and whether it is certain. An
            uncertain one is only proposed in a comment.
    """

    pattern: str
    note: str
    declared: list[tuple[str, object, str, bool]]


def named_times(
    stream: Stream, extents: Sequence[Extent], paths: Sequence[str], of_lines: timedelta | None = None
) -> NamedTimes:
    """Infer whether times in names are starts or ends of periods, their zone, and the files per hour.

    Args:
        stream: the draft, whose pattern has a time; it takes this as the start of a period, in UTC.
        paths: the files' paths, as the stream file has them.
        of_lines: the offset from UTC that the times of all lines carry; None if there is none.
    """
    pattern = stream.source.pattern
    note, zone, is_zone_sure = _zone(stream, extents, paths, of_lines)
    ends = _ends(stream, extents, paths, note)
    if ends is not None:
        return ends
    declared: list[tuple[str, object, str, bool]] = []
    if zone is not None:
        declared.append(("zone", zone, note, is_zone_sure))
    known = "files of an hour: where one is missing, the hour counts as incomplete"
    question = "?: how many files an hour has; with it a missing one is seen"
    count = _expected_files([match for match in map(pattern.match, paths) if match is not None])
    declared.append(("expected_files", count or 1, known if count else question, bool(count)))
    return NamedTimes(pattern.text, note if zone is None else "", declared)


def _ends(stream: Stream, extents: Sequence[Extent], paths: Sequence[str], note: str) -> NamedTimes | None:
    """Return the meaning of names with the ends of periods; None if they have starts, or no time.

    The meaning is certain if several names have this distance; else it has a remark.
    """
    pattern = PathPattern(pattern_of(paths, minutes=True))
    files = _timed_files(pattern, extents, paths)
    if pattern.unit is None or not files or (stream.time is not None and stream.time.by_name):
        return None
    # The last line of a file is within the file's period; earlier lines may be late events.
    names = sorted({named for named, _, _ in files})
    several, first = len(names) > 1, min(first for _, first, _ in files)
    for covers in _common_gaps(names) if several else PERIODS:
        fits = all(named - covers < last <= named for named, _, last in files)
        if fits and covers >= MIN_UNIT_LENGTH[pattern.unit] and (several or names[0] - covers <= first):
            zone = "" if covers % ZONES else "; or names are in another zone than UTC: set `zone` then"
            example = f"{names[0]:%Y-%m-%dT%H:%M}"
            why = f"?: the time in a name, such as {example}, is after all lines of its file{zone}"
            end = "name_time", "end", "names give the end of what a file covers", several
            covered = "covers", format_duration(covers), why, several
            return NamedTimes(pattern.text, "" if several else note, [covered, end])
    return None


def _timed_files(pattern: PathPattern, extents: Sequence[Extent], paths: Sequence[str]) -> list[TimedFile]:
    """Return the time in the name, and the first and the last event time, of each file with events."""
    files = zip(map(pattern.match, paths), extents, strict=True)
    return [(match.start, *extent) for match, extent in files if extent and match and match.start]


def _common_gaps(names: Sequence[datetime]) -> list[timedelta]:
    """Return the least distance of names if it is a valid period and divides all distances; else nothing."""
    gaps = [later - earlier for earlier, later in pairwise(names)]
    period = min(gaps)
    valid = period <= DAY and (not HOUR % period or not period % HOUR)
    return [period] if valid and not any(gap % period for gap in gaps) else []


def _zone(
    stream: Stream, extents: Sequence[Extent], paths: Sequence[str], of_lines: timedelta | None
) -> tuple[str, str | None, bool]:
    """Return a remark on the zone of names, the probable zone if not UTC, and whether the lines have it."""
    pattern = stream.source.pattern
    files = _timed_files(pattern, extents, paths) if pattern.unit == "hour" else []
    zone = (stream.time is not None and stream.time.zone) or "UTC"
    if files and _is_ahead(files, timedelta(0)):
        if stream.time is not None and stream.time.zone is not None:
            same = "?: the hour in a name is that of its lines"
            return f"{same}; with another zone than {zone}, set it here, too", None, False
        return "the hour in a name is that of its lines, in UTC", None, False
    by_zone = [(file, file[2].astimezone(ZoneInfo(zone)).utcoffset()) for file in files if zone != "UTC"]
    if by_zone and all(offset is not None and _is_ahead([file], offset) for file, offset in by_zone):
        return f"?: the times in the names are those of the lines, in {zone}", zone, True
    offset = _offset(files, of_lines)
    if offset is None:
        return "?: the times in the names are read as UTC; else set their `zone`", None, False
    words = f"{format_duration_long(abs(offset))} {'after' if offset > timedelta(0) else 'before'}"
    why = f", by the offset {format_offset(offset)} of the lines" if offset == of_lines else ""
    note = (
        f"?: names are {words} their lines in UTC{why}: if that is local time, set its `zone`, such as this"
    )
    return note, zone_with_offset(offset), False


def _is_ahead(files: Sequence[TimedFile], offset: timedelta) -> bool:
    """Return whether the last line of each file is in the hour of its name, in local time with an offset.

    The first line may be a late event.
    """
    return all(named - offset <= last < named - offset + HOUR for named, _, last in files)


def _offset(files: Sequence[TimedFile], of_lines: timedelta | None) -> timedelta | None:
    """Return how far times in names are ahead of their lines in UTC; None if several offsets fit, or none.

    Args:
        files: the files, with times in UTC.
        of_lines: the offset that all lines carry, which is preferred; None if there is none.
    """
    fitting = [offset for offset in offsets() if files and _is_ahead(files, offset)]
    if of_lines in fitting:
        return of_lines
    # Files that begin late or sparsely fit several offsets. Prefer those with most first lines inside.
    inside = {offset: sum(first >= named - offset for named, first, _ in files) for offset in fitting}
    best = [offset for offset in fitting if inside[offset] == max(inside.values())]
    whole = [offset for offset in best if not offset % HOUR]
    chosen = whole or best
    return chosen[0] if len(chosen) == 1 else None


def offset_of_lines(lines: Iterable[str]) -> timedelta | None:
    """Return the offset from UTC of the times in lines; None if they have none, or several."""
    found = {match["offset"] for match in map(OFFSET_OF_LINE.search, lines) if match is not None}
    return parse_offset(found.pop()) if len(found) == 1 else None


def _expected_files(matches: Sequence[Match]) -> int | None:
    """Return the number of files per hour if the hours in the names are consecutive."""
    hours = Counter(match.hour for match in matches)
    periods = sorted((match.start, match.end) for match in matches if match.start and match.end)
    gapless = all(later <= end for (_, end), (later, _) in pairwise(periods))
    counts = set(hours.values())
    return counts.pop() if len(hours) > 1 and gapless and len(counts) == 1 else None
