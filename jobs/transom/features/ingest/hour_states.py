"""The state of an hour by its files: what is quarantined, missing or in conflict. No Spark, no disk."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from transom.core.intervals import HOUR, UNKNOWN_HOUR, format_hour
from transom.core.partitions import WITHHELD_FILE
from transom.core.path_pattern import PathPattern
from transom.core.reasons import Kind, Reason
from transom.features.ingest.equal_files import EqualFile
from transom.features.ingest.file_records import FileRecord
from transom.spec.stream import Stream


@dataclass(frozen=True)
class Periods:
    """The periods of an hour, each of which needs files.

    Attributes:
        pattern: the pattern of the files' paths.
        length: the length of a period, a divisor of one hour.
    """

    pattern: PathPattern
    length: timedelta

    @classmethod
    def of(cls, stream: Stream) -> "Periods | None":
        """Return the periods of a stream, None if it declares none or does not check them."""
        source = stream.source
        return cls(source.pattern, source.covers) if source.covers and source.periods_checked else None

    def uncovered(self, paths: Iterable[str], hour: datetime) -> tuple[datetime, ...]:
        """Return the starts of the periods of an hour that files do not cover.

        Files may start and end at other times than the periods.

        Args:
            paths: the paths of files of this hour and the hour before; others have no effect.
        """
        matches = [match for path in paths if (match := self.pattern.match(path)) is not None]
        covered = sorted((match.start, match.end) for match in matches if match.start and match.end)
        starts = (hour + number * self.length for number in range(HOUR // self.length))
        return tuple(start for start in starts if not _covers(covered, start, start + self.length))

    def name(self, start: datetime) -> str:
        """Return an example name of the file of a period."""
        return self.pattern.format_hour_path(start)

    def words(self, start: datetime) -> str:
        """Return a period without a file, as text."""
        return f"no file of {start:%Y-%m-%dT%H:%M:%S} to {start + self.length:%H:%M:%S}: {self.name(start)}"


def _covers(intervals: Iterable[tuple[datetime, datetime]], start: datetime, end: datetime) -> bool:
    """Return whether ordered intervals cover `[start, end)` without a gap."""
    for first, last in intervals:
        if first <= start < last:
            start = last
    return start >= end


@dataclass
class HourState:
    """The state of an hour by its files.

    Attributes:
        wrong: the reasons why the hour is quarantined.
        missing: what is missing of the hour.
        files: the number of files of the hour, quarantined ones included.
        mixed_specifications: whether some rows were read by another specification and can be read again.
        at_fault: what fails a check, as texts, by the check's name: files in conflict, files with equal
            bytes, and uncovered periods.
    """

    wrong: list[Reason] = field(default_factory=list)
    missing: list[Reason] = field(default_factory=list)
    files: int = 0
    mixed_specifications: bool = False
    at_fault: dict[str, list[str]] = field(
        default_factory=lambda: {"files_unchanged": [], "files_distinct": [], "periods_covered": []}
    )

    def metrics(self, scheduled: bool) -> dict[str, int | None]:
        """Return the metrics of the hour's checks, None for those that do not apply.

        Args:
            scheduled: whether the stream's schedule contains the hour.
        """
        return {
            "files": self.files if self.files or scheduled else None,
            "conflicts": len(self.at_fault["files_unchanged"]) or None,
            "equal": len(self.at_fault["files_distinct"]) or None,
            "uncovered": len(self.at_fault["periods_covered"]) if scheduled else None,
        }


def hour_states(
    files: Iterable[FileRecord],
    hours: Collection[datetime],
    spec_hash: Callable[[datetime], str],
    listed: Collection[str] = (),
    equal: Mapping[str, EqualFile] = {},
    periods: Periods | None = None,
) -> dict[datetime, HourState]:
    """Return the state of hours by their files.

    A file counts for its own hour. What it lacks is missing in every hour that it touches.

    Args:
        files: the rows of `files`.
        hours: the hours.
        spec_hash: as of `FilePolicy`; rows of another specification count as missing.
        listed: the paths in the landing folder.
        equal: as `equal_files` returns them.
        periods: the periods that need files; None if the stream declares none.
    """
    states = {hour: HourState() for hour in sorted(hours)}
    paths: dict[datetime, list[str]] = {}
    for file in sorted(files, key=lambda file: file.path):
        paths.setdefault(file.hour, []).append(file.path)
        if (own := states.get(file.hour)) is not None:
            own.files += 1
            text = f"{file.path}: {file.status_reason}"
            if file.path in equal:
                own.at_fault["files_distinct"].append(equal[file.path].words)
            if file.status == "quarantined":
                own.wrong.append(Reason("file", text, file.path))
            elif file.status == "conflict":
                own.at_fault["files_unchanged"].append(text)
        kind: Kind = "quarantined_file" if file.status == "quarantined" else "file"
        missing, mixed = _missing(file, spec_hash(file.hour), file.path in listed)
        for hour in file.touched & states.keys():
            states[hour].missing += [Reason(kind, f"{file.path}: {text}", file.path) for text in missing]
            states[hour].mixed_specifications |= mixed
    if periods is not None:
        for hour in states.keys() - {UNKNOWN_HOUR}:
            uncovered = periods.uncovered([*paths.get(hour - HOUR, ()), *paths.get(hour, ())], hour)
            states[hour].at_fault["periods_covered"] += map(periods.words, uncovered)
    return states


def _missing(file: FileRecord, spec_hash: str, listed: bool) -> tuple[list[str], bool]:
    """Return what is missing of a file, and whether rows of another specification can be read again."""
    missing, mixed = [str(file.status_reason)] if file.status == "waiting" else [], False
    if file.status == "quarantined":
        where = "files without an hour" if file.hour == UNKNOWN_HOUR else format_hour(file.hour)
        missing = [f"{WITHHELD_FILE} {where}"]
    if file.source_id is not None:
        missing += [file.incomplete_reason] if file.incomplete_reason else []
        if file.status != "duplicate" and file.spec_hash != spec_hash:
            # The published rows cannot be read again from a file with a new, quarantined content.
            same = file.status in ("waiting", "quarantined") and file.last_read_source_id == file.source_id
            mixed = listed and (same or file.status in ("ingested", "missing"))
            again = f"; a run from {format_span(file.touched)} reads it again" if mixed else ""
            missing.append(f"its rows were read under another specification{again}")
    return missing, mixed


def format_span(touched: Collection[datetime]) -> str:
    """Return the interval that covers hours, apart from `UNKNOWN_HOUR` if there are others."""
    hours = set(touched) - {UNKNOWN_HOUR} or touched
    return f"{format_hour(min(hours))} to {format_hour(max(hours) + HOUR)}"
