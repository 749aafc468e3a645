"""The ingest stage: from files of the landing folder to `events`, `duplicates`, `rejected` and `files`.

A run checks the files of its hours, reads those that may have changed, and decides on each as a whole
(`file_decisions`). It publishes at once every hour that a new, changed or removed file touches.
"""

from transom.core.intervals import HOUR, Interval
from transom.core.partitions import CheckResult, PartitionKey
from transom.engine.runner import Outcome
from transom.features.ingest.damaged_rows import damaged_partitions, waiting_partitions, with_losses
from transom.features.ingest.file_checks import check_files
from transom.features.ingest.file_decisions import decide
from transom.features.ingest.file_records import FileContent, FileRecord, in_scope, needs_read
from transom.features.ingest.publish import (
    IngestDecision,
    changed_hours,
    publish_decision,
    publish_kept_damage,
)
from transom.features.ingest.read_files import FileReadResult, FileReadTask
from transom.features.ingest.snapshot import IngestSnapshot, late_files, take_snapshot
from transom.features.ingest.specified import partition_of
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
    whole: Interval | None = None,
    recompute: bool = False,
) -> Outcome:
    """Bring the tables up to date over an interval.

    Args:
        whole: the run's interval, of which `interval` is a chunk; None is `interval`.
        recompute: whether the hours are computed from their files even if they are fresh.

    Raises:
        LandingError: the landing folder is not there.
        LakeError: Arrow cannot write where the tables are, or staged rows are missing.
        RunSuperseded: another run claimed or wrote the same.
    """
    tables, rows = Tables.of(stream), StagedRows(store, stream)
    snapshot = take_snapshot(store, ledger, stream, tables, interval, whole or interval, recompute)
    tables = tables.as_recorded(snapshot.pins)
    snapshot = snapshot.holding(waiting_partitions(snapshot))
    try:
        partition = partition_of("events", interval.start)
        found = _decide(stream, snapshot, rows, partition)
        different = damaged_partitions(stream, tables, snapshot, found)
        if different:
            # These hours are not published, and files that touch them wait: decide again.
            rows.discard()
            rows, snapshot = StagedRows(store, stream), snapshot.holding(different)
            snapshot = snapshot.holding(waiting_partitions(snapshot))
            found = _decide(stream, snapshot, rows, partition)
        outcome = publish_decision(ledger, tables, snapshot, found, rows, run_id)
        publish_kept_damage(ledger, snapshot, run_id)
    finally:
        rows.discard()
    contents, inventory = found.contents.values(), snapshot.inventory
    changed = [file.status for file in found.decisions.files.values()]
    waiting = sum(file.status == "waiting" for file in found.files.values())
    outcome.counters |= {
        "files_read": len(contents),
        "lines_read": sum(content.lines for content in contents),
        "lines_rejected": sum(content.rejected for content in contents),
        "files_conflicting": changed.count("conflict"),
        "files_missing": changed.count("missing"),
    }
    outcome.gauges |= {
        "files_listed": len(snapshot.listed) if inventory is None else inventory.listed,
        "files_waiting": waiting + (0 if inventory is None else inventory.waiting),
    }
    return outcome


def _decide(
    stream: Stream, snapshot: IngestSnapshot, rows: StagedRows, partition: PartitionKey
) -> IngestDecision:
    """Read the files that may have changed and decide on them; repeat while decisions need more contents."""
    paths = in_scope(snapshot.recorded, snapshot.listed, snapshot.in_scope)
    paths |= {
        path for path, file in snapshot.recorded.items() if not file.touched.isdisjoint(snapshot.to_reread)
    }
    to_read = {
        path
        for path in paths & snapshot.listed.keys()
        if needs_read(snapshot.listed[path], snapshot.recorded.get(path), snapshot.rules)
    }
    contents: dict[str, FileContent] = {}
    reads: dict[str, FileReadResult] = {}
    results: list[CheckResult] = []
    vanished: set[str] = set()
    while True:
        if to_read:
            tasks = [_read_task(stream, snapshot, path) for path in sorted(to_read)]
            new = rows.read(tasks)
            checked, of_checks = check_files(stream, partition, snapshot.listed, tasks, new, rows)
            contents |= checked
            results += of_checks
            reads |= {path: new[path] for path in checked}
            if snapshot.inventory is not None:
                snapshot.inventory.alike(checked.values())
        # A file that vanishes between listing and reading counts as not listed.
        vanished |= to_read - contents.keys()
        present = {path: file for path, file in snapshot.listed.items() if path not in vanished}
        decisions = decide(snapshot.recorded, present, contents, paths, snapshot.rules, snapshot.to_reread)
        if not decisions.unread:
            break
        to_read = set(decisions.unread)
    decisions, late = with_losses(snapshot, decisions), late_files(snapshot, paths)

    def files_after() -> dict[str, FileRecord]:
        files = {**snapshot.recorded, **late, **decisions.files}
        return {path: file for path, file in files.items() if path not in decisions.dropped}

    files = files_after()
    if snapshot.inventory is not None:
        changed = changed_hours(snapshot, files, decisions)
        snapshot.inventory.touching(changed | {hour - HOUR for hour in changed})
        # More rows are recorded now.
        files = files_after()
    return IngestDecision(decisions, files, contents, reads, results)


def _read_task(stream: Stream, snapshot: IngestSnapshot, path: str) -> FileReadTask:
    match, known = stream.source.pattern.match(path), snapshot.recorded.get(path)
    assert match is not None  # it would not be listed
    lengths = (known.bytes,) if known is not None and known.source_id is not None else ()
    return FileReadTask(snapshot.listed[path], absolute(path), stream.span(match), lengths)
