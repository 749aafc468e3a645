"""Whether the times in files' names say when the period that each file covers ends, and how long that is."""

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
PERIODS = (*(timedelta(minutes=many) for many in (1, 5, 10, 15, 20, 30)), HOUR, DAY)
"""What files usually cover."""
ZONES = timedelta(minutes=15)
"""Zones differ by multiples of this: names may be so much later than the lines for their zone alone."""


@dataclass(frozen=True)
class NamedEnds:
    """Names that seem to say when periods end.

    Attributes:
        pattern: of the paths, with all of the time that goes with the period.
        covers: how long a period is.
        sure: whether several names are so far apart; one name alone says nothing of it.
        example: a name's time.
    """

    pattern: str
    covers: timedelta
    sure: bool
    example: datetime

    @property
    def declared(self) -> dict[str, str]:
        """What a stream file says of its source."""
        return {"covers": format_duration(self.covers), "name_time": "end"}

    @property
    def note(self) -> str:
        """What a person has to look at."""
        time = f"{self.example:%Y-%m-%dT%H:%M}"
        seen = f"?: the time in a name, such as {time}, is after all lines of its file"
        zone = "" if self.covers % ZONES else "; or names are in another zone than UTC: say `zone` then"
        return f"{seen}{zone}"


def named_ends(stream: Stream, samples: Sequence[LogSample], paths: Sequence[str]) -> NamedEnds | None:
    """Return what names say of ends; None where they say the start of what a file covers, or nothing.

    Args:
        stream: as it is drafted, in which the time of a name is that of a start.
        paths: of the files, as the stream's file writes them.
    """
    text = pattern_of(paths, minutes=True)
    pattern = PathPattern(text)
    if pattern.unit is None or (stream.time is not None and stream.time.by_name):
        return None
    files = list(_files(pattern, extents(stream, samples, paths), paths))
    if not files:
        return None
    # The last line of a file lies within its period; those before it may have come late.
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
    """The time in the name of each file that has events, and the first and the last of their times."""
    for path, extent in zip(paths, extents, strict=True):
        match = pattern.match(path)
        if extent is not None and match is not None and match.start is not None:
            yield match.start, *extent


def _periods(names: Sequence[datetime]) -> Iterator[timedelta]:
    """The period of which names are multiples apart, if files can cover it."""
    gaps = [later - one for one, later in pairwise(names)]
    least = min(gaps)
    if not any(gap % least for gap in gaps) and (not HOUR % least or not least % HOUR) and least <= DAY:
        yield least
