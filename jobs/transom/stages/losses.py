"""What damaged rows leave missing, where the files that they were read from cannot be read again.

Rows that are lost are noted as lacking with their file: so the hours count as incomplete, and the rows come
back as soon as the landing folder holds the content again.
"""

from dataclasses import replace
from datetime import datetime

from transom.intervals import format_hour
from transom.stages.decisions import Decisions
from transom.stages.files import File
from transom.stages.scene import Scene

LOST = "rows were damaged and are lost until the landing folder holds the same file again"
"""How a file of which rows are lost says so, before the hours."""


def with_losses(scene: Scene, decisions: Decisions) -> Decisions:
    """Decisions in which files say what of them is lost.

    A file loses its rows of an hour that is made again where no row of the table can be read and the file's
    content does not enter anew: it is gone, has changed, or waits for hours beyond the run.
    """
    events = scene.lost("events") | scene.lost("duplicates")
    rejected = scene.lost("rejected")
    if not events and not rejected:
        return decisions
    after = {**scene.known, **decisions.files}
    losing = {}
    for path, file in after.items():
        hours = _lost(file, events, rejected)
        published = file.source_id is not None and file.status != "duplicate"
        if hours and published and file.source_id not in decisions.added and path not in decisions.forgotten:
            losing[path] = replace(file, lacks=f"{LOST}: {', '.join(map(format_hour, hours))}")
    return replace(decisions, files={**decisions.files, **losing})


def _lost(file: File, events: frozenset[datetime], rejected: frozenset[datetime]) -> list[datetime]:
    """The hours of which a file's rows are lost, in order."""
    hours = events.intersection(file.hours)
    return sorted(hours | ({file.hour} & rejected if file.rejected else frozenset()))
