"""What the files say of an hour: what is withheld, missing, held back. No Spark, no disk."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from transom.intervals import NO_HOUR, format_hour
from transom.lake.book import WITHHELD_FILE
from transom.stages.files import File


@dataclass(frozen=True)
class HourState:
    """What the files say of an hour.

    Attributes:
        withheld: the files for which the hour is withheld, with the reason.
        missing: what is missing, in words.
        files: how many files have come for the hour, withheld ones included.
        conflicts: the files that are held back because they differ from what stands, with the reason.
        mixed: whether rows stand in it that were read under another specification, and can be read again.
    """

    withheld: tuple[str, ...]
    missing: tuple[str, ...]
    files: int
    conflicts: tuple[str, ...]
    mixed: bool = False


def hour_states(
    files: Iterable[File],
    hours: Collection[datetime],
    shape: Callable[[datetime], str],
    there: Collection[str] = (),
) -> dict[datetime, HourState]:
    """The state of some hours. A file counts for the hour that it belongs to; what is missing of it is
    missing in every hour that it touches.

    Args:
        shape: as in `Rules`; rows of another specification are as missing.
        there: the paths of the landing folder, which can be read again.
    """
    withheld: dict[datetime, list[str]] = {hour: [] for hour in hours}
    conflicts: dict[datetime, list[str]] = {hour: [] for hour in hours}
    missing: dict[datetime, list[str]] = {hour: [] for hour in hours}
    mixed: set[datetime] = set()
    count = dict.fromkeys(hours, 0)
    for file in sorted(files, key=lambda file: file.path):
        if file.hour in count:
            count[file.hour] += 1
            if file.status in ("withheld", "conflict"):
                held_back = withheld if file.status == "withheld" else conflicts
                held_back[file.hour].append(f"{file.path}: {file.detail}")
        lacks = [file.detail] if file.status == "waiting" else []
        if file.status == "withheld":
            # The checks that withhold it are told where it belongs; nothing more will come here.
            where = "files without an hour" if file.hour == NO_HOUR else format_hour(file.hour)
            lacks = [f"{WITHHELD_FILE} {where} says why"]
        if file.source_id is not None:
            lacks += [file.lacks] if file.lacks else []
            if file.status != "duplicate" and file.shape != shape(file.hour):
                of_old = "its rows were read under another specification"
                # Where another content is held back, what stands was read for the last time.
                same = file.status in ("waiting", "withheld") and file.seen_id == file.source_id
                if file.path in there and (same or file.status in ("ingested", "gone")):
                    mixed |= file.touched
                    of_old += f"; run {_stretch(file)} to read it again"
                lacks.append(of_old)
        for hour in file.touched & missing.keys():
            missing[hour] += [f"{file.path}: {words}" for words in lacks]
    return {
        hour: HourState(
            tuple(withheld[hour]), tuple(missing[hour]), count[hour], tuple(conflicts[hour]), hour in mixed
        )
        for hour in hours
    }


def _stretch(file: File) -> str:
    hours = file.touched - {NO_HOUR} or file.touched
    return f"{min(hours):%Y-%m-%dT%H:%M} to {max(hours):%Y-%m-%dT%H:%M}"
