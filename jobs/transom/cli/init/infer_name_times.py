"""What files' names say of hours: in which zone their times are, and how many files an hour has."""

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
"""By how much a local time may lie ahead of UTC; behind it, by two hours less."""
ASSUMED_UTC = "?: the times in the names are taken as UTC; else say their `zone`"


@dataclass(frozen=True)
class NamedHours:
    """What a draft says of names with a time.

    Attributes:
        note: of the times in them.
        zone: the zone that these are probably in; None where that is UTC or nobody knows.
        sure: whether the lines are in this zone, too.
        expect: how many files each hour has; None where that differs or hours are missing.
    """

    note: str
    zone: str | None = None
    sure: bool = False
    expect: int | None = None


def named_hours(stream: Stream, samples: Sequence[LogSample], paths: Sequence[str]) -> NamedHours | None:
    """Return what names say; None where they say no time.

    Args:
        stream: as it is drafted, which takes the times in names as UTC.
        paths: of the files, as the stream's file writes them.
    """
    pattern = stream.path_pattern
    if pattern.unit is None:
        return None
    matches = [match for match in map(pattern.match, paths) if match is not None and match.start is not None]
    expect = _expected(matches)
    if pattern.unit != "hour":
        return NamedHours(ASSUMED_UTC, expect=expect)
    found = zip(map(pattern.match, paths), extents(stream, samples, paths), strict=True)
    # The first line may have come late: most lines of a file are of its hour.
    named = [
        (match.start, extent[1])
        for match, extent in found
        if match is not None and match.start is not None and extent is not None
    ]
    ahead = {start - hour_of(last) for start, last in named}
    if not named or (len(ahead) > 1 and not _local(stream, named)):
        return NamedHours(ASSUMED_UTC, expect=expect)
    if ahead == {timedelta(0)}:
        return NamedHours("the hour in a name is that of its lines, in UTC", expect=expect)
    zone = _local(stream, named)
    if zone is not None:
        note = f"?: the times in the names are those of the lines, in {zone}"
        return NamedHours(note, zone, True, expect)
    (by,) = ahead
    if not timedelta(hours=2) - MAX_AHEAD <= by <= MAX_AHEAD:
        return NamedHours(ASSUMED_UTC, expect=expect)
    hours = by // HOUR
    words = f"{counted(abs(hours), 'hour')} {'after' if hours > 0 else 'before'}"
    note = f"?: names are {words} their lines in UTC: if that is local time, say its `zone`, such as this"
    return NamedHours(note, f"Etc/GMT{-hours:+d}", False, expect)


def _local(stream: Stream, named: Sequence[tuple[datetime, datetime]]) -> str | None:
    """The zone of the lines, where it explains how far names and lines are apart."""
    zone = stream.time.zone if stream.time is not None else None
    if zone is None or zone == "UTC":
        return None
    offsets = ((last.astimezone(ZoneInfo(zone)).utcoffset(), start, last) for start, last in named)
    return zone if all(start - hour_of(last) == offset for offset, start, last in offsets) else None


def _expected(matches: Sequence[Match]) -> int | None:
    """How many files each hour has, where names of several follow each other."""
    counts = Counter(match.hour for match in matches)
    starts = sorted((match.start, match.end) for match in matches if match.start and match.end)
    gapless = all(later[0] <= one[1] for one, later in pairwise(starts))
    (many, *others) = sorted(set(counts.values())) or [0]
    return many if len(counts) > 1 and gapless and not others else None
