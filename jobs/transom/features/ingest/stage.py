"""The ingest stage: files of the landing folder become events, duplicates, rejections and rows of `files`.

A run looks at the files of its hours, reads those that may have changed, decides on each as a whole
(`transom.features.ingest.file_decisions`), and publishes in one go every hour that a new, changed or
withdrawn file touches: the stored rows of the other files and the new ones.
"""

from collections.abc import Iterable, Mapping

from transom.core.intervals import HOUR, Interval
from transom.core.partitions import CheckResult, PartitionKey
from transom.engine.runner import Outcome
from transom.features.ingest.file_checks import check_files
from transom.features.ingest.file_decisions import Decisions, decide
from transom.features.ingest.file_records import FileContent, FileRecord, in_scope, needs_read
from transom.features.ingest.kept_rows import damaged_partitions
from transom.features.ingest.lost_rows import waiting_partitions, with_losses
from transom.features.ingest.publish import (
    IngestDecision,
    changed_hours,
    publish_decision,
    publish_kept_damage,
)
from transom.features.ingest.read_files import FileReadResult, FileReadTask
from transom.features.ingest.snapshot import IngestSnapshot, late_files, take_snapshot
from transom.features.ingest.specified import node_of
from transom.features.ingest.staged_rows import StagedRows
from transom.features.ingest.tables import Tables
from transom.ledger.ledger import Ledger
from transom.spec.stream import Stream
from transom.storage.filesystem import absolute
from transom.storage.store import Store


def ingest(
    store: Store,
    ledger: Ledger,
    stream: Stream,
    interval: Interval,
    run_id: str,
    stretch: Interval | None = None,
    recompute: bool = False,
) -> Outcome:
    """Brings `events`, `rejected` and `files` up to date over an interval.

    Args:
        stretch: the whole of which the interval is a chunk; None is the interval itself.
        recompute: whether the interval's hours are made again from their files even where they are fresh.

    Raises:
        LandingError: the landing folder is not there.
    """
    tables, rows = Tables.of(stream), StagedRows(store, stream)
    scene = take_snapshot(store, ledger, stream, tables, interval, stretch or interval, recompute)
    tables = tables.as_recorded(scene.pins)
    scene = scene.holding(waiting_partitions(scene))
    try:
        node = node_of("events", interval.start)
        found = _decide(stream, scene, rows, node)
        different = damaged_partitions(stream, tables, scene, found)
        if different:
            # Their hours stay as they are, and what touches them waits: all is decided again.
            rows.discard()
            rows, scene = StagedRows(store, stream), scene.holding(different)
            scene = scene.holding(waiting_partitions(scene))
            found = _decide(stream, scene, rows, node)
        outcome = publish_decision(ledger, tables, scene, found, rows, run_id)
        publish_kept_damage(ledger, scene, run_id)
    finally:
        rows.discard()
    outcome.counters |= {
        "files_read": len(found.contents),
        "lines_read": sum(content.lines for content in found.contents.values()),
        "lines_rejected": sum(content.rejected for content in found.contents.values()),
        "files_conflicting": sum(file.status == "conflict" for file in found.decisions.files.values()),
        "files_missing": sum(file.status == "missing" for file in found.decisions.files.values()),
    }
    outcome.gauges |= {
        "files_listed": len(scene.listed) if scene.inventory is None else scene.inventory.listed,
        "files_waiting": sum(file.status == "waiting" for file in found.files.values())
        + (0 if scene.inventory is None else scene.inventory.waiting),
    }
    return outcome


def _decide(stream: Stream, scene: IngestSnapshot, rows: StagedRows, node: PartitionKey) -> IngestDecision:
    """Reads what may have changed, and decides on it; more is read where that takes more to be known."""
    paths = in_scope(scene.recorded, scene.listed, scene.in_scope)
    paths |= {path for path, file in scene.recorded.items() if not file.touched.isdisjoint(scene.to_reread)}
    to_read = {
        path
        for path in paths & scene.listed.keys()
        if needs_read(scene.listed[path], scene.recorded.get(path), scene.rules)
    }
    read: dict[str, FileContent] = {}
    reads: dict[str, FileReadResult] = {}
    verdicts: list[CheckResult] = []
    vanished: set[str] = set()
    while True:
        if to_read:
            readings = _readings(stream, scene, to_read)
            now = rows.read(readings)
            of_files, seen = check_files(stream, node, scene.listed, readings, now, rows)
            read |= of_files
            verdicts += seen
            reads |= {path: now[path] for path in of_files}
            if scene.inventory is not None:
                scene.inventory.alike(of_files.values())
        # A file that vanished between listing and reading is as good as never listed.
        vanished |= to_read - read.keys()
        present = {path: file for path, file in scene.listed.items() if path not in vanished}
        decisions = decide(scene.recorded, present, read, paths, scene.rules, scene.to_reread)
        if not decisions.unread:
            break
        to_read = set(decisions.unread)
    decisions = with_losses(scene, decisions)
    late = late_files(scene, paths)
    if scene.inventory is not None:
        found = _file_records_after(scene, late, decisions)
        changed = changed_hours(scene, found, decisions)
        scene.inventory.touching({hour - before for hour in changed for before in (0 * HOUR, HOUR)})
    return IngestDecision(decisions, _file_records_after(scene, late, decisions), read, reads, verdicts)


def _file_records_after(
    scene: IngestSnapshot, late: Mapping[str, FileRecord], decisions: Decisions
) -> dict[str, FileRecord]:
    """The rows of `files` that the run has to do with, as they will stand."""
    files = {**scene.recorded, **late, **decisions.files}
    return {path: file for path, file in files.items() if path not in decisions.dropped}


def _readings(stream: Stream, scene: IngestSnapshot, paths: Iterable[str]) -> list[FileReadTask]:
    readings = []
    for path in sorted(paths):
        match, held = stream.path_pattern.match(path), scene.recorded.get(path)
        assert match is not None  # it would not be listed
        lengths = (held.bytes,) if held is not None and held.source_id is not None else ()
        readings.append(FileReadTask(scene.listed[path], absolute(path), stream.span(match), lengths))
    return readings
