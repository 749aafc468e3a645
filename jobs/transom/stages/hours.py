"""What the files say of an hour: what is withheld, missing, held back. No Spark, no disk."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from transom.stages.files import File


@dataclass(frozen=True)
class HourState:
    """What the files say of an hour.

    Attributes:
        withheld: the files for which the hour is withheld, with the reason.
        missing: what is missing, in words.
        files: how many files have come for the hour, withheld ones included.
        conflicts: the files that are held back because they differ from what stands, with the reason.
    """

    withheld: tuple[str, ...]
    missing: tuple[str, ...]
    files: int
    conflicts: tuple[str, ...]


def hour_states(
    files: Iterable[File], hours: Collection[datetime], shape: Callable[[datetime], str]
) -> dict[datetime, HourState]:
    """The state of some hours. A file counts for the hour that it belongs to; what is missing of it is
    missing in every hour that it touches.

    Args:
        shape: as in `Rules`; rows of another specification that can be read no more are as missing.
    """
    withheld: dict[datetime, list[str]] = {hour: [] for hour in hours}
    conflicts: dict[datetime, list[str]] = {hour: [] for hour in hours}
    missing: dict[datetime, list[str]] = {hour: [] for hour in hours}
    count = dict.fromkeys(hours, 0)
    for file in sorted(files, key=lambda file: file.path):
        if file.hour in count:
            count[file.hour] += 1
            if file.status in ("withheld", "conflict"):
                held_back = withheld if file.status == "withheld" else conflicts
                held_back[file.hour].append(f"{file.path}: {file.detail}")
        lacks = [file.detail] if file.status in ("waiting", "withheld") else []
        if file.source_id is not None:
            lacks += [file.lacks] if file.lacks else []
            if file.status != "duplicate" and file.shape != shape(file.hour):
                lacks.append("its rows were read under another specification")
        for hour in file.touched & missing.keys():
            missing[hour] += [f"{file.path}: {words}" for words in lacks]
    return {
        hour: HourState(tuple(withheld[hour]), tuple(missing[hour]), count[hour], tuple(conflicts[hour]))
        for hour in hours
    }
