"""Infer whether the times in files' names are the ends of their periods, and how long a period is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from transom.cli.init.infer_path import pattern_of
from transom.cli.init.try_draft import extents
from transom.cli.log_sample import LogSample
from transom.core.durations import format_duration
from transom.core.intervals import HOUR
from transom.core.path_pattern import PathPattern
from transom.spec.source import MIN_UNIT_LENGTH
from transom.spec.stream import Stream

DAY = timedelta(days=1)
PERIODS = (*(timedelta(minutes=minutes) for minutes in (1, 5, 10, 15, 20, 30)), HOUR, DAY)
"""Usual periods of files."""
ZONES = timedelta(minutes=15)
"""Zones differ by multiples of this, so names may be later than the lines because of their zone alone."""


@dataclass(frozen=True)
class NamedEnds:
    """Names that seem to have the ends of periods.

    Attributes:
        pattern: the pattern of the paths, with all time parts of the period.
        covers: the length of a period.
        sure: whether several names have this distance; with a single name it is a guess.
        example: the time of a name.
    """

    pattern: str
    covers: timedelta
    sure: bool
    example: datetime

    @property
    def declared(self) -> dict[str, str]:
        """The declarations for the source of a stream file."""
        return {"covers": format_duration(self.covers), "name_time": "end"}

    @property
    def note(self) -> str:
        """A remark for people."""
        time = f"{self.example:%Y-%m-%dT%H:%M}"
        text = f"?: the time in a name, such as {time}, is after all lines of its file"
        zone = "" if self.covers % ZONES else "; or names are in another zone than UTC: say `zone` then"
        return f"{text}{zone}"


def named_ends(stream: Stream, samples: Sequence[LogSample], paths: Sequence[str]) -> NamedEnds | None:
    """Infer the ends of periods from names; None if names have the start of a period, or no time.

    Args:
        stream: the draft, in which the time of a name is a start.
        paths: the files' paths, in the form of the stream's file.
    """
    text = pattern_of(paths, minutes=True)
    pattern = PathPattern(text)
    if pattern.unit is None or (stream.time is not None and stream.time.by_name):
        return None
    files = list(_files(pattern, extents(stream, samples, paths), paths))
    if not files:
        return None
    # The last line of a file lies within its period; earlier ones may be late.
    names = sorted({named for named, _, _ in files})
    several, first = len(names) > 1, min(first for _, first, _ in files)
    for covers in _periods(names) if several else PERIODS:
        fits = all(named - covers < last <= named for named, _, last in files)
        if fits and covers >= MIN_UNIT_LENGTH[pattern.unit] and (several or names[0] - covers <= first):
            return NamedEnds(text, covers, several, names[0])
    return None


def _files(
    pattern: PathPattern, extents: Sequence[tuple[datetime, datetime] | None], paths: Sequence[str]
) -> Iterator[tuple[datetime, datetime, datetime]]:
    """Yield the time in the name of each file with events, and the first and the last time of these."""
    for path, extent in zip(paths, extents, strict=True):
        match = pattern.match(path)
        if extent is not None and match is not None and match.start is not None:
            yield match.start, *extent


def _periods(names: Sequence[datetime]) -> Iterator[timedelta]:
    """Yield the period of which all distances of names are multiples, if it is valid."""
    gaps = [later - earlier for earlier, later in pairwise(names)]
    shortest = min(gaps)
    if (
        not any(gap % shortest for gap in gaps)
        and (not HOUR % shortest or not shortest % HOUR)
        and shortest <= DAY
    ):
        yield shortest
