"""What the files say of an hour: what is withheld, missing, held back. No Spark, no disk."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from transom.core.intervals import HOUR, UNKNOWN_HOUR, format_hour
from transom.core.partitions import WITHHELD_FILE
from transom.core.reasons import Cause, Kind
from transom.features.ingest.equal_files import EqualFile
from transom.features.ingest.file_records import FileRecord
from transom.features.ingest.periods import Periods

NONE_EQUAL: Mapping[str, EqualFile] = {}


@dataclass(frozen=True)
class HourState:
    """What the files say of an hour.

    Attributes:
        withheld_for: the files for which the hour is withheld, with the reason.
        lacks: what is missing.
        files: how many files have come for the hour, withheld ones included.
        conflicts: the files that are held back because they differ from what stands, with the reason.
        mixed_specifications: whether rows stand in it that were read under another specification, and can be
            read again.
        equal: its files whose bytes another file holds, too, in words.
        uncovered: the starts of its periods that files do not cover.
    """

    withheld_for: tuple[Cause, ...]
    lacks: tuple[Cause, ...]
    files: int
    conflicts: tuple[str, ...]
    mixed_specifications: bool = False
    equal: tuple[str, ...] = ()
    uncovered: tuple[datetime, ...] = ()

    @property
    def quarantined(self) -> tuple[str, ...]:
        """In words, for what files the hour is withheld."""
        return tuple(cause.text for cause in self.withheld_for)

    @property
    def missing(self) -> tuple[str, ...]:
        """In words, what is missing."""
        return tuple(cause.text for cause in self.lacks)


def hour_states(
    files: Iterable[FileRecord],
    hours: Collection[datetime],
    shape: Callable[[datetime], str],
    there: Collection[str] = (),
    equal: Mapping[str, EqualFile] = NONE_EQUAL,
    periods: Periods | None = None,
) -> dict[datetime, HourState]:
    """The state of some hours. A file counts for the hour that it belongs to; what is missing of it is
    missing in every hour that it touches.

    Args:
        shape: as in `FilePolicy`; rows of another specification are as missing.
        there: the paths of the landing folder, which can be read again.
        equal: as `equal_files` finds them.
        periods: which periods an hour has; None where nobody says.
    """
    withheld: dict[datetime, list[Cause]] = {hour: [] for hour in hours}
    conflicts: dict[datetime, list[str]] = {hour: [] for hour in hours}
    missing: dict[datetime, list[Cause]] = {hour: [] for hour in hours}
    twins: dict[datetime, list[str]] = {hour: [] for hour in hours}
    mixed: set[datetime] = set()
    count = dict.fromkeys(hours, 0)
    paths: dict[datetime, list[str]] = {}
    for file in sorted(files, key=lambda file: file.path):
        if periods is not None:
            paths.setdefault(file.hour, []).append(file.path)
        if file.hour in count:
            count[file.hour] += 1
            if file.path in equal:
                twins[file.hour].append(equal[file.path].words)
            if file.status in ("withheld", "conflict"):
                words = f"{file.path}: {file.detail}"
                if file.status == "withheld":
                    withheld[file.hour].append(Cause("file", words, file.path))
                else:
                    conflicts[file.hour].append(words)
        lacks = [file.detail] if file.status == "waiting" else []
        if file.status == "withheld":
            # The checks that withhold it are told where it belongs; nothing more will come here.
            where = "files without an hour" if file.hour == UNKNOWN_HOUR else format_hour(file.hour)
            lacks = [f"{WITHHELD_FILE} {where} says why"]
        if file.source_id is not None:
            lacks += [file.lacks] if file.lacks else []
            if file.status != "duplicate" and file.shape != shape(file.hour):
                of_old = "its rows were read under another specification"
                # Where another content is held back, what stands was read for the last time.
                same = file.status in ("waiting", "withheld") and file.seen_id == file.source_id
                if file.path in there and (same or file.status in ("ingested", "gone")):
                    mixed |= file.touched
                    of_old += f"; a run from {_span(file)} reads it again"
                lacks.append(of_old)
        for hour in file.touched & missing.keys():
            kind: Kind = "withheld_file" if file.status == "withheld" else "file"
            missing[hour] += [Cause(kind, f"{file.path}: {words}", file.path) for words in lacks]
    return {
        hour: HourState(
            tuple(withheld[hour]),
            tuple(missing[hour]),
            count[hour],
            tuple(conflicts[hour]),
            hour in mixed,
            tuple(twins[hour]),
            _uncovered(periods, paths, hour),
        )
        for hour in hours
    }


def _uncovered(
    periods: Periods | None, paths: Mapping[datetime, Sequence[str]], hour: datetime
) -> tuple[datetime, ...]:
    if periods is None or hour == UNKNOWN_HOUR:
        return ()
    return periods.uncovered([*paths.get(hour - HOUR, ()), *paths.get(hour, ())], hour)


def _span(file: FileRecord) -> str:
    hours = file.touched - {UNKNOWN_HOUR} or file.touched
    return f"{format_hour(min(hours))} to {format_hour(max(hours) + HOUR)}"
