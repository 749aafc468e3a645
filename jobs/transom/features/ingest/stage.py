"""The ingest stage: from files of the landing folder to `events`, `duplicates`, `rejected` and `files`.

A run checks the files of its hours, reads those that may have changed, and decides on each as a whole
(`file_decisions`). The engine publishes together all hours that new, changed or removed files touch.
"""

from collections import Counter

from transom.core.intervals import HOUR, Interval
from transom.core.partitions import CheckResult
from transom.engine.run_outcome import Outcome
from transom.features.ingest.damaged_rows import damaged_partitions, waiting_partitions, with_losses
from transom.features.ingest.file_checks import check_files, conditions_of
from transom.features.ingest.file_decisions import decide, late_files
from transom.features.ingest.file_records import FileContent, file_read
from transom.features.ingest.file_selection import in_scope, needs_read
from transom.features.ingest.hour_plan import IngestDecision, changed_hours
from transom.features.ingest.inventory import Inventory
from transom.features.ingest.parsed_rows import ParsedRows
from transom.features.ingest.publish import publish_hours, publish_kept_damage
from transom.features.ingest.read_files import FileReadResult, FileReadTask
from transom.features.ingest.snapshot import IngestSnapshot, take_snapshot
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
        interval: the chunk to compute.
        run_id: the run.
        whole: the run's interval, which contains `interval`. Default: `interval`.
        recompute: whether the hours are computed from their files even if they are fresh.

    Raises:
        LandingError: the landing folder does not exist or cannot be listed.
        LakeError: Arrow cannot write where the tables are, or data files of parsed rows are missing.
        RunSuperseded: another run claimed or wrote the same partitions.
    """
    tables, rows = Tables.of(stream), ParsedRows(store, stream)
    snapshot = take_snapshot(store, ledger, stream, tables, interval, whole or interval, recompute)
    tables = tables.as_recorded(snapshot.pins)
    snapshot = snapshot.keep_damage(waiting_partitions(snapshot))
    try:
        snapshot, decision = decide_files(stream, snapshot, rows)
        different = damaged_partitions(stream, tables, snapshot, decision)
        if different:
            # These hours are not published, and files that touch them wait: decide again.
            rows.discard()
            rows, snapshot = ParsedRows(store, stream), snapshot.keep_damage(different)
            snapshot = snapshot.keep_damage(waiting_partitions(snapshot))
            snapshot, decision = decide_files(stream, snapshot, rows)
        outcome = publish_hours(ledger, tables, snapshot, decision, rows, run_id)
        publish_kept_damage(ledger, snapshot, run_id)
    finally:
        rows.discard()
    contents, inventory = decision.contents.values(), snapshot.inventory
    assert inventory is not None  # it has all files
    changed = Counter(file.status for file in decision.decisions.files.values())
    outcome.files = [
        file_read(file, content, snapshot.recorded.get(path), snapshot.had_run(file.hour))
        for path, content in decision.contents.items()
        if (file := decision.files.get(path))
    ]
    outcome.counters |= {
        "files_read": len(contents),
        "lines_read": sum(content.lines for content in contents),
        "lines_rejected": sum(content.rejected for content in contents),
        "files_conflicting": changed["conflict"],
        "files_missing": changed["missing"],
    }
    waiting = sum(file.status == "waiting" for file in decision.files.values())
    outcome.gauges |= {"files_listed": inventory.listed, "files_waiting": waiting + inventory.waiting}
    return outcome


def decide_files(
    stream: Stream, snapshot: IngestSnapshot, rows: ParsedRows
) -> tuple[IngestSnapshot, IngestDecision]:
    """Read the files that may have changed and decide on them. Repeat while decisions need more contents.

    Returns:
        The snapshot with all files that the decisions depend on, and the decisions.
    """
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
            parsed = rows.parse_files(tasks, conditions_of(stream))
            checked, of_checks = check_files(stream, tasks, parsed, rows)
            contents |= checked
            results += of_checks
            reads |= {path: parsed[path] for path in checked}
            snapshot = snapshot.select(Inventory.select_same_content, checked.values())
        # A file that vanishes between listing and reading counts as not listed.
        vanished |= to_read - contents.keys()
        present = {path: file for path, file in snapshot.listed.items() if path not in vanished}
        decisions = decide(snapshot.recorded, present, contents, paths, snapshot.rules, snapshot.to_reread)
        if not decisions.unread:
            break
        to_read = set(decisions.unread)
    decisions = with_losses(snapshot, decisions)
    late = late_files(snapshot.recorded, snapshot.listed, paths, snapshot.rules, snapshot.is_too_late)
    changed = changed_hours(snapshot, decisions.applied_to({**snapshot.recorded, **late}), decisions)
    snapshot = snapshot.select(Inventory.select_touching, changed | {hour - HOUR for hour in changed})
    files = decisions.applied_to({**snapshot.recorded, **late})
    return snapshot, IngestDecision(decisions, files, contents, reads, results)


def _read_task(stream: Stream, snapshot: IngestSnapshot, path: str) -> FileReadTask:
    match, known = stream.source.pattern.match(path), snapshot.recorded.get(path)
    assert match is not None  # it would not be listed
    lengths = (known.bytes,) if known is not None and known.source_id is not None else ()
    return FileReadTask(snapshot.listed[path], absolute(path), stream.span(match), lengths)
