"""Infer from files' names the zone of their times, and the number of files per hour."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from transom.cli.init.try_draft import extents
from transom.cli.log_sample import LogSample
from transom.core.intervals import HOUR, hour_of
from transom.core.path_pattern import Match
from transom.core.terminal import counted
from transom.spec.stream import Stream

MAX_AHEAD = 14 * HOUR
"""The largest offset of a local time ahead of UTC; behind UTC it is two hours less."""
ASSUMED_UTC = "?: the times in the names are taken as UTC; else say their `zone`"


@dataclass(frozen=True)
class NamedHours:
    """The inferred properties of names with a time.

    Attributes:
        note: a remark about the times.
        zone: their probable zone; None if it is UTC or unknown.
        sure: whether the lines are in the same zone.
        expected_files: the number of files per hour; None if it differs or hours are missing.
    """

    note: str
    zone: str | None = None
    sure: bool = False
    expected_files: int | None = None


def named_hours(stream: Stream, samples: Sequence[LogSample], paths: Sequence[str]) -> NamedHours | None:
    """Infer the properties of names; None if they have no time.

    Args:
        stream: the draft, with the times in names as UTC.
        paths: the files' paths, in the form of the stream's file.
    """
    pattern = stream.path_pattern
    if pattern.unit is None:
        return None
    matches = [match for match in map(pattern.match, paths) if match is not None and match.start is not None]
    expect = _expected(matches)
    if pattern.unit != "hour":
        return NamedHours(ASSUMED_UTC, expected_files=expect)
    pairs = zip(map(pattern.match, paths), extents(stream, samples, paths), strict=True)
    # Compare the last line: the first one may be late.
    named = [
        (match.start, extent[1])
        for match, extent in pairs
        if match is not None and match.start is not None and extent is not None
    ]
    ahead = {start - hour_of(last) for start, last in named}
    if not named or (len(ahead) > 1 and not _local(stream, named)):
        return NamedHours(ASSUMED_UTC, expected_files=expect)
    if ahead == {timedelta(0)}:
        return NamedHours("the hour in a name is that of its lines, in UTC", expected_files=expect)
    zone = _local(stream, named)
    if zone is not None:
        note = f"?: the times in the names are those of the lines, in {zone}"
        return NamedHours(note, zone, True, expect)
    (by,) = ahead
    if not timedelta(hours=2) - MAX_AHEAD <= by <= MAX_AHEAD:
        return NamedHours(ASSUMED_UTC, expected_files=expect)
    hours = by // HOUR
    words = f"{counted(abs(hours), 'hour')} {'after' if hours > 0 else 'before'}"
    note = f"?: names are {words} their lines in UTC: if that is local time, say its `zone`, such as this"
    return NamedHours(note, f"Etc/GMT{-hours:+d}", False, expect)


def _local(stream: Stream, named: Sequence[tuple[datetime, datetime]]) -> str | None:
    """Return the zone of the lines if it explains the difference between names and lines."""
    zone = stream.time.zone if stream.time is not None else None
    if zone is None or zone == "UTC":
        return None
    offsets = ((last.astimezone(ZoneInfo(zone)).utcoffset(), start, last) for start, last in named)
    return zone if all(start - hour_of(last) == offset for offset, start, last in offsets) else None


def _expected(matches: Sequence[Match]) -> int | None:
    """Return the number of files per hour, if the hours in the names are consecutive."""
    counts = Counter(match.hour for match in matches)
    starts = sorted((match.start, match.end) for match in matches if match.start and match.end)
    gapless = all(later[0] <= earlier[1] for earlier, later in pairwise(starts))
    (count, *others) = sorted(set(counts.values())) or [0]
    return count if len(counts) > 1 and gapless and not others else None
