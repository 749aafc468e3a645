"""What the files say of an hour: what is withheld, missing, held back. No Spark, no disk."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from transom.core.intervals import HOUR, UNKNOWN_HOUR, format_hour
from transom.core.partitions import WITHHELD_FILE
from transom.core.reasons import Kind, Reason
from transom.features.ingest.equal_files import EqualFile
from transom.features.ingest.file_records import FileRecord
from transom.features.ingest.periods import Periods

NONE_EQUAL: Mapping[str, EqualFile] = {}


@dataclass
class HourState:
    """What the files say of an hour.

    Attributes:
        wrong: the files for which the hour is quarantined, with the reason.
        missing: what is missing of it.
        files: how many files have come for the hour, withheld ones included.
        mixed_specifications: whether rows stand in it that were read under another specification, and can be
            read again.
        at_fault: what its checks are about, in words, by the name of the check: files that differ from what
            stands, files whose bytes another one holds, too, and periods that no file covers.
    """

    wrong: list[Reason] = field(default_factory=list)
    missing: list[Reason] = field(default_factory=list)
    files: int = 0
    mixed_specifications: bool = False
    at_fault: dict[str, list[str]] = field(
        default_factory=lambda: {"files_unchanged": [], "files_distinct": [], "periods_covered": []}
    )

    def metrics(self, scheduled: bool) -> dict[str, int | None]:
        """Return the numbers that the checks of the hour judge, None where one does not apply.

        Args:
            scheduled: whether the stream's schedule has the hour.
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
    states = {hour: HourState() for hour in sorted(hours)}
    paths: dict[datetime, list[str]] = {}
    for file in sorted(files, key=lambda file: file.path):
        paths.setdefault(file.hour, []).append(file.path)
        if (own := states.get(file.hour)) is not None:
            own.files += 1
            words = f"{file.path}: {file.status_reason}"
            if file.path in equal:
                own.at_fault["files_distinct"].append(equal[file.path].words)
            if file.status == "quarantined":
                own.wrong.append(Reason("file", words, file.path))
            elif file.status == "conflict":
                own.at_fault["files_unchanged"].append(words)
        kind: Kind = "quarantined_file" if file.status == "quarantined" else "file"
        missing, mixed = _missing(file, shape(file.hour), file.path in there)
        for hour in file.touched & states.keys():
            states[hour].missing += [Reason(kind, f"{file.path}: {words}", file.path) for words in missing]
            states[hour].mixed_specifications |= mixed
    if periods is not None:
        for hour in states.keys() - {UNKNOWN_HOUR}:
            uncovered = periods.uncovered([*paths.get(hour - HOUR, ()), *paths.get(hour, ())], hour)
            states[hour].at_fault["periods_covered"] += map(periods.words, uncovered)
    return states


def _missing(file: FileRecord, shape: str, there: bool) -> tuple[list[str], bool]:
    """What is missing of a file, in words; and whether that is so as its rows were read under another
    specification, and it can be read again."""
    missing, mixed = [str(file.status_reason)] if file.status == "waiting" else [], False
    if file.status == "quarantined":
        # The checks that withhold it are told where it belongs; nothing more will come here.
        where = "files without an hour" if file.hour == UNKNOWN_HOUR else format_hour(file.hour)
        missing = [f"{WITHHELD_FILE} {where} says why"]
    if file.source_id is not None:
        missing += [file.incomplete_reason] if file.incomplete_reason else []
        if file.status != "duplicate" and file.spec_hash != shape:
            # Where another content is held back, what stands was read for the last time.
            same = file.status in ("waiting", "quarantined") and file.last_read_source_id == file.source_id
            mixed = there and (same or file.status in ("ingested", "missing"))
            again = f"; a run from {_span(file)} reads it again" if mixed else ""
            missing.append(f"its rows were read under another specification{again}")
    return missing, mixed


def _span(file: FileRecord) -> str:
    hours = file.touched - {UNKNOWN_HOUR} or file.touched
    return f"{format_hour(min(hours))} to {format_hour(max(hours) + HOUR)}"
