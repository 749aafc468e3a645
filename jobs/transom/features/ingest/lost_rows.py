"""What damaged rows leave missing, where the files that they were read from cannot be read again.

Rows that are lost are noted as lacking with their file: so the hours count as incomplete, and the rows come
back as soon as the landing folder holds the content again. Where it does and the file only waits, as it
touches hours beyond the run, nothing is lost: the hour stays damaged until a run takes the file whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from transom.core.intervals import HOUR, UNKNOWN_HOUR, format_hour
from transom.core.partitions import PartitionKey
from transom.features.ingest.file_decisions import Decisions
from transom.features.ingest.file_records import OWNS_ROWS, FileRecord, ListedFile
from transom.features.ingest.snapshot import IngestSnapshot

LOST = "rows were damaged and are lost until the landing folder holds the same file again"
"""How a file of which rows are lost says so, before the hours."""
WAITS = "; its rows come back with "
"""What comes before the files that a damaged hour waits for."""


def comes_back(file: FileRecord, there: Mapping[str, ListedFile]) -> bool:
    """Return whether a run over all hours that a file touches takes what stands of it again.

    Args:
        there: the files of the landing folder.
    """
    again = file.status in (*OWNS_ROWS, "waiting", "missing")
    return again and file.source_id is not None and file.path in there


def waiting_partitions(scene: IngestSnapshot) -> dict[PartitionKey, str]:
    """Return the damaged nodes of hours that lose rows of a file which this run may not take, with the cause.

    A file is taken whole. So one that touches such an hour and another damaged one makes that one wait, too.
    """
    events, rejected = scene.lost("events") | scene.lost("duplicates"), scene.lost("rejected")
    losing = [
        (file, hours)
        for _, file in sorted(scene.recorded.items() if events or rejected else ())
        if comes_back(file, scene.listed) and (hours := _lost(file, events, rejected))
    ]
    held: dict[datetime, list[FileRecord]] = {}
    while True:
        left = []
        for file, hours in losing:
            if held.keys().isdisjoint(file.touched) and all(map(scene.rules.permitted, file.touched)):
                left.append((file, hours))
            else:
                for hour in hours:
                    held.setdefault(hour, []).append(file)
        if len(left) == len(losing):
            break
        losing = left
    return {
        node: (entry.reason or "").partition(WAITS)[0] + WAITS + format_awaited_files(held[node.hour])
        for node, entry in scene.ledger_state.troubled()
        if node.hour in held and entry.damaged
    }


def format_awaited_files(files: Sequence[FileRecord]) -> str:
    """Return which files an hour waits for, and which run takes them."""
    hours = frozenset().union(*(file.touched for file in files)) - {UNKNOWN_HOUR}
    others = " and others" if len(files) > 1 else ""
    return (
        f"{files[0].path}{others}, by a run from {format_hour(min(hours))} to "
        f"{format_hour(max(hours) + HOUR)}"
    )


def with_losses(scene: IngestSnapshot, decisions: Decisions) -> Decisions:
    """Decisions in which files say what of them is lost.

    A file loses its rows of an hour that is made again where no row of the table can be read and the file's
    content does not enter anew: it is gone or has changed.
    """
    events = scene.lost("events") | scene.lost("duplicates")
    rejected = scene.lost("rejected")
    if not events and not rejected:
        return decisions
    after = {**scene.recorded, **decisions.files}
    losing = {}
    for path, file in after.items():
        hours = _lost(file, events, rejected)
        published = file.source_id is not None and file.status != "duplicate"
        if hours and published and file.source_id not in decisions.added and path not in decisions.dropped:
            losing[path] = replace(file, incomplete_reason=f"{LOST}: {', '.join(map(format_hour, hours))}")
    return replace(decisions, files={**decisions.files, **losing})


def _lost(file: FileRecord, events: frozenset[datetime], rejected: frozenset[datetime]) -> list[datetime]:
    """The hours of which a file's rows are lost, in order."""
    hours = events.intersection(file.hours)
    return sorted(hours | ({file.hour} & rejected if file.rejected else frozenset()))
