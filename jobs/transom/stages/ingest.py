"""The ingest stage: files of the landing folder become events, duplicates, rejections and rows of `files`.

A run looks at the files of its hours, reads those that may have changed, decides on each as a whole
(`transom.stages.decisions`), and publishes in one go every hour that a new, changed or withdrawn file
touches: the stored rows of the other files and the new ones.
"""

from collections.abc import Iterable
from contextlib import ExitStack

from pyspark.sql import DataFrame

from transom.intervals import Interval
from transom.lake.book import Verdict
from transom.lake.ledger import Ledger
from transom.lake.refresh import Outcome
from transom.lake.store import Store
from transom.stages.contents import contents
from transom.stages.decisions import decide
from transom.stages.derived import with_derived
from transom.stages.files import Content, has_to_be_read, in_scope
from transom.stages.ingest_publishing import Found, publish_found
from transom.stages.ingest_tables import Parsed, Tables, event_types
from transom.stages.landing import absolute
from transom.stages.parsing import Reading, parsed
from transom.stages.scene import Scene, late_files, node_of, scene_of
from transom.stream import Stream


def ingest(
    store: Store,
    ledger: Ledger,
    stream: Stream,
    interval: Interval,
    run_id: str,
    stretch: Interval | None = None,
) -> Outcome:
    """Brings `events`, `rejected` and `files` up to date over an interval.

    Args:
        stretch: the whole of which the interval is a chunk; None is the interval itself.

    Raises:
        LandingError: the landing folder is not there.
    """
    tables, types = Tables.of(stream), event_types(stream)
    scene = scene_of(store, ledger, stream, tables, interval, stretch or interval)
    tables = tables.as_held(scene.pins)
    paths = in_scope(scene.known, scene.there, scene.looked_at)
    to_read = {
        path
        for path in paths & scene.there.keys()
        if has_to_be_read(scene.there[path], scene.known.get(path), scene.rules)
    }
    late = late_files(scene, paths)
    read: dict[str, Content] = {}
    places: dict[str, Parsed] = {}
    verdicts: list[Verdict] = []
    present = scene.there
    with ExitStack() as kept:

        def keep(frame: DataFrame) -> DataFrame:
            kept.callback(frame.unpersist)
            return frame.persist()

        while True:
            if to_read:
                readings = _readings(stream, scene, to_read)
                read_columns = {name: types[name] for name in stream.read_columns}
                rows = parsed(store.spark, readings, stream.layout(), read_columns)
                frame = keep(with_derived(rows, stream))
                of_files, seen = contents(
                    stream, node_of("events", interval.start), scene.there, readings, frame
                )
                read |= of_files
                verdicts += seen
                places |= {r.path: Parsed(frame, r.number) for r in readings if r.path in of_files}
            # A file that vanished between listing and reading is as good as never listed.
            present = {p: file for p, file in present.items() if p not in to_read or p in read}
            decisions = decide(scene.known, present, read, paths, scene.rules)
            if not decisions.unread:
                break
            to_read = set(decisions.unread)
        files = {**scene.known, **late, **decisions.files}
        for path in decisions.forgotten:
            del files[path]
        found = Found(decisions, files, places, verdicts)
        outcome = publish_found(store, ledger, stream, tables, scene, found, keep, run_id)
    outcome.work |= {
        "files_read": len(read),
        "lines_read": sum(content.lines for content in read.values()),
        "lines_rejected": sum(content.rejected for content in read.values()),
        "files_conflicting": sum(file.status == "conflict" for file in decisions.files.values()),
        "files_gone": sum(file.status == "gone" for file in decisions.files.values()),
    }
    outcome.standing |= {
        "files_listed": len(scene.there),
        "files_waiting": sum(file.status == "waiting" for file in files.values()),
    }
    return outcome


def _readings(stream: Stream, scene: Scene, paths: Iterable[str]) -> list[Reading]:
    readings = []
    for number, path in enumerate(sorted(paths)):
        file = scene.there[path]
        match = stream.path_pattern.match(path)
        assert match is not None  # it would not be listed
        held = scene.known.get(path)
        lengths = (held.bytes,) if held is not None and held.source_id is not None else ()
        readings.append(
            Reading(
                number,
                path,
                absolute(path),
                file.size,
                file.captures,
                stream.span(match),
                lengths,
                file.origin,
            )
        )
    return readings
