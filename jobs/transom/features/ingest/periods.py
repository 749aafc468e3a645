"""Which parts of an hour files cover, by their names. No Spark, no disk."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from transom.core.intervals import HOUR
from transom.core.path_pattern import PathPattern
from transom.spec.stream import Stream


@dataclass(frozen=True)
class Periods:
    """The periods of which an hour needs files.

    Attributes:
        pattern: of the files' paths.
        length: of a period, a divisor of one hour.
    """

    pattern: PathPattern
    length: timedelta

    @classmethod
    def of(cls, stream: Stream) -> "Periods | None":
        """Return the periods of a stream, None where it does not say them."""
        source = stream.source
        if source.covers is None or not source.periods_checked:
            return None
        return cls(source.pattern, source.covers)

    def uncovered(self, paths: Iterable[str], hour: datetime) -> tuple[datetime, ...]:
        """Return the starts of the periods of an hour that files do not cover.

        Files that begin and end at other times than the periods cover what lies in between.

        Args:
            paths: of files that belong to this hour or the one before; others change nothing.
            hour: any hour.
        """
        covered: list[tuple[datetime, datetime]] = []
        for path in paths:
            match = self.pattern.match(path)
            if match is not None and match.start is not None and match.end is not None:
                covered.append((match.start, match.end))
        covered.sort()
        starts = (hour + number * self.length for number in range(HOUR // self.length))
        return tuple(start for start in starts if not _covers(covered, start, start + self.length))

    def name(self, start: datetime) -> str:
        """Return what the name of the file of a period looks like."""
        return self.pattern.format_hour_path(start)

    def words(self, start: datetime) -> str:
        """Return a period without a file, for a person."""
        return f"no file of {start:%Y-%m-%dT%H:%M:%S} to {start + self.length:%H:%M:%S}: {self.name(start)}"


def _covers(covered: Sequence[tuple[datetime, datetime]], start: datetime, end: datetime) -> bool:
    """Return whether stretches, in their order, cover all from `start` to `end`."""
    for first, last in covered:
        if first > start:
            return False
        if last > start:
            start = last
            if start >= end:
                return True
    return False
