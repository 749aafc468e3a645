"""The ingest stage: files of the landing folder become events, duplicates, rejections and rows of `files`.

A run looks at the files of its hours, reads those that may have changed, decides on each as a whole
(`transom.features.ingest.file_decisions`), and publishes in one go every hour that a new, changed or
withdrawn file touches: the stored rows of the other files and the new ones.
"""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack

from pyspark.sql import DataFrame

from transom.core.intervals import HOUR, Interval
from transom.engine.runner import Outcome
from transom.features.ingest.file_checks import contents
from transom.features.ingest.file_decisions import Decisions, decide
from transom.features.ingest.file_records import Content, File, has_to_be_read, in_scope
from transom.features.ingest.kept_rows import unlike
from transom.features.ingest.landing import absolute
from transom.features.ingest.lost_rows import waiting, with_losses
from transom.features.ingest.publish import Found, changed_hours, publish_found, publish_held
from transom.features.ingest.read_files import Read, Reading
from transom.features.ingest.snapshot import Scene, late_files, scene_of
from transom.features.ingest.specified import node_of
from transom.features.ingest.staged_rows import ReadRows
from transom.features.ingest.tables import Tables
from transom.ledger.ledger import Ledger
from transom.ledger.state import Node, Verdict
from transom.spec.stream import Stream
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
    tables, rows = Tables.of(stream), ReadRows(store, stream)
    scene = scene_of(store, ledger, stream, tables, interval, stretch or interval, recompute)
    tables = tables.as_held(scene.pins)
    scene = scene.holding(waiting(scene))
    try:
        node = node_of("events", interval.start)
        found = _found(stream, scene, rows, node)
        different = unlike(tables, scene, found)
        if different:
            # Their hours stay as they are, and what touches them waits: all is decided again.
            rows.discard()
            rows, scene = ReadRows(store, stream), scene.holding(different)
            scene = scene.holding(waiting(scene))
            found = _found(stream, scene, rows, node)
        with ExitStack() as kept:

            def keep(frame: DataFrame) -> DataFrame:
                kept.callback(frame.unpersist)
                return frame.persist()

            outcome = publish_found(store, ledger, stream, tables, scene, found, rows, keep, run_id)
            publish_held(ledger, scene, run_id)
    finally:
        rows.discard()
    outcome.work |= {
        "files_read": len(found.contents),
        "lines_read": sum(content.lines for content in found.contents.values()),
        "lines_rejected": sum(content.rejected for content in found.contents.values()),
        "files_conflicting": sum(file.status == "conflict" for file in found.decisions.files.values()),
        "files_gone": sum(file.status == "gone" for file in found.decisions.files.values()),
    }
    outcome.standing |= {
        "files_listed": len(scene.there) if scene.inventory is None else scene.inventory.listed,
        "files_waiting": sum(file.status == "waiting" for file in found.files.values())
        + (0 if scene.inventory is None else scene.inventory.waiting),
    }
    return outcome


def _found(stream: Stream, scene: Scene, rows: ReadRows, node: Node) -> Found:
    """Reads what may have changed, and decides on it; more is read where that takes more to be known."""
    paths = in_scope(scene.known, scene.there, scene.looked_at)
    paths |= {path for path, file in scene.known.items() if not file.touched.isdisjoint(scene.to_reread)}
    to_read = {
        path
        for path in paths & scene.there.keys()
        if has_to_be_read(scene.there[path], scene.known.get(path), scene.rules)
    }
    read: dict[str, Content] = {}
    reads: dict[str, Read] = {}
    verdicts: list[Verdict] = []
    vanished: set[str] = set()
    while True:
        if to_read:
            readings = _readings(stream, scene, to_read)
            now = rows.read(readings)
            of_files, seen = contents(stream, node, scene.there, readings, now, rows)
            read |= of_files
            verdicts += seen
            reads |= {path: now[path] for path in of_files}
            if scene.inventory is not None:
                scene.inventory.alike(of_files.values())
        # A file that vanished between listing and reading is as good as never listed.
        vanished |= to_read - read.keys()
        present = {path: file for path, file in scene.there.items() if path not in vanished}
        decisions = decide(scene.known, present, read, paths, scene.rules, scene.to_reread)
        if not decisions.unread:
            break
        to_read = set(decisions.unread)
    decisions = with_losses(scene, decisions)
    late = late_files(scene, paths)
    if scene.inventory is not None:
        found = _standing(scene, late, decisions)
        changed = changed_hours(scene, found, decisions)
        scene.inventory.touching({hour - before for hour in changed for before in (0 * HOUR, HOUR)})
    return Found(decisions, _standing(scene, late, decisions), read, reads, verdicts)


def _standing(scene: Scene, late: Mapping[str, File], decisions: Decisions) -> dict[str, File]:
    """The rows of `files` that the run has to do with, as they will stand."""
    files = {**scene.known, **late, **decisions.files}
    return {path: file for path, file in files.items() if path not in decisions.forgotten}


def _readings(stream: Stream, scene: Scene, paths: Iterable[str]) -> list[Reading]:
    readings = []
    for path in sorted(paths):
        file = scene.there[path]
        match = stream.path_pattern.match(path)
        assert match is not None  # it would not be listed
        held = scene.known.get(path)
        lengths = (held.bytes,) if held is not None and held.source_id is not None else ()
        readings.append(
            Reading(
                path,
                absolute(path),
                file.size,
                file.captures,
                stream.span(match),
                lengths,
                file.origin,
                file.varies,
            )
        )
    return readings
