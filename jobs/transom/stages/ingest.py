"""The ingest stage: files of the landing folder become events, rejections and rows of `files`.

A run looks at the files of its hours, reads those that may have changed, decides on each as a whole
(`transom.stages.files`), and publishes in one go every hour that a new, changed or withdrawn file
touches: the stored rows of the other files and the new ones.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.intervals import NO_HOUR, Interval
from transom.lake import digest as digests
from transom.lake.acceptance import in_short, verdict_of
from transom.lake.book import EMPTY_DIGEST, Book, Entry, Node, Verdict
from transom.lake.ledger import Ledger
from transom.lake.publishing import publish, stands
from transom.lake.quality import Check, judge
from transom.lake.refresh import Outcome
from transom.lake.staleness import Scope, completeness, fingerprint
from transom.lake.store import Pins, Store, Write, in_hours
from transom.stages.checks import accepted_of, built_in
from transom.stages.contents import contents, file_checks
from transom.stages.files import (
    HOLDING,
    Content,
    Decisions,
    File,
    Listed,
    Rules,
    Status,
    decide,
    has_to_be_read,
    in_scope,
    says_otherwise,
)
from transom.stages.hours import HourState, hour_states
from transom.stages.ingest_tables import Parsed, Tables, event_types, events, file_rows, rejected
from transom.stages.landing import absolute, listed
from transom.stages.parsing import Reading, parsed
from transom.stream import Stream

STAGE = "ingest"
BLOCK = "events"
VERSION = 3


@dataclass(frozen=True)
class _Scene:
    """What a run finds: the ledger and the tables as they stand, the files, the hours that it sees to.

    Attributes:
        known: the rows of `files`.
        there: the files of the landing folder.
    """

    book: Book
    pins: Pins
    scope: Scope
    known: Mapping[str, File]
    there: Mapping[str, Listed]
    rules: Rules
    expected: Callable[[datetime], Mapping[str, str]]

    def looked_at(self, hour: datetime, status: Status | None) -> bool:
        """Whether the run sees to the files of an hour."""
        known = status is not None or self.asked_before(hour)
        return hour == NO_HOUR or self.scope.looks_at(hour, known, status == "waiting")

    def asked_before(self, hour: datetime) -> bool:
        """Whether somebody has asked for an hour before."""
        return hour in self.book.hours(STAGE)

    def stale(self) -> list[datetime]:
        """Hours that a killed run has left, or that another specification has made."""
        entries = {node.hour: entry for node, entry in self.book.items() if node.table == "events"}
        found = {
            hour
            for hour, entry in entries.items()
            if entry.status == "writing" or entry.inputs != self.expected(hour)
        }
        both = self.known.keys() & self.there.keys()
        return sorted(found.union(self.known[path].hour for path in both if self.may_differ(path)))

    def may_differ(self, path: str) -> bool:
        """Whether a file may say something else than what stands of it: no part of any hour's inputs."""
        known, there = self.known[path], self.there[path]
        # Others are held back or wait, and what they lack is said.
        stands = known.status in (*HOLDING, "gone")
        return says_otherwise(there, known) or (stands and has_to_be_read(there, known, self.rules))

    def inputs(self, hour: datetime) -> Mapping[str, str] | None:
        """What an hour is made from once it is published. One that the run does not see to, and that a file
        touches all the same, stays as stale as it is."""
        held = self.book.get(_node("events", hour))
        if held is None or hour == NO_HOUR or self.scope.sees_to(hour):
            return self.expected(hour)
        return None if held.status == "writing" else held.inputs


def _node(table: str, hour: datetime) -> Node:
    return Node(STAGE, BLOCK, table, hour)


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
    tables = Tables.of(stream)
    scene = _scene(store, ledger, stream, tables, interval, stretch or interval)
    paths = in_scope(scene.known, scene.there, scene.looked_at)
    to_read = {
        path
        for path in paths & scene.there.keys()
        if has_to_be_read(scene.there[path], scene.known.get(path), scene.rules)
    }
    late = _late(scene, paths)
    read: dict[str, Content] = {}
    places: dict[str, Parsed] = {}
    verdicts: list[Verdict] = []
    frames: list[DataFrame] = []
    present = scene.there
    try:
        while True:
            if to_read:
                readings = _readings(stream, scene, to_read)
                frame = parsed(store.spark, readings, stream.layout(), event_types(stream)).persist()
                frames.append(frame)
                found, seen = contents(stream, _node("events", interval.start), scene.there, readings, frame)
                read |= found
                verdicts += seen
                places |= {r.path: Parsed(frame, r.number) for r in readings if r.path in found}
            # A file that vanished between listing and reading is as good as never listed.
            present = {p: file for p, file in present.items() if p not in to_read or p in read}
            decisions = decide(scene.known, present, read, paths, scene.rules)
            if not decisions.unread:
                break
            to_read = set(decisions.unread)
        files = {**scene.known, **late, **decisions.files}
        for path in decisions.forgotten:
            del files[path]
        outcome = _publish(store, ledger, stream, tables, scene, decisions, files, places, verdicts, run_id)
    finally:
        for frame in frames:
            frame.unpersist()
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


def _scene(
    store: Store,
    ledger: Ledger,
    stream: Stream,
    tables: Tables,
    interval: Interval,
    stretch: Interval,
) -> _Scene:
    # As in `refresh`: the tables are pinned between two readings of the ledger that agree.
    while True:
        book = ledger.book([STAGE])
        pins = store.pin((table.name for table in tables), book)
        if ledger.book([STAGE]) == book:
            break
    asked_before = book.hours(STAGE)
    scope = Scope.of(interval, stretch, stream.heal, asked_before)

    def shape(hour: datetime) -> str:
        decided = completeness(STAGE, file_checks(stream), accepted_of(stream), hour)
        return fingerprint([stream.ingest_shape(), VERSION, decided])

    def expected(hour: datetime) -> Mapping[str, str]:
        decided = completeness(STAGE, _hour_checks(stream), accepted_of(stream), hour)
        return {"specification": shape(hour), "version": str(VERSION), "completeness": decided}

    rules = Rules(
        cache(shape),
        stream.source.on_change == "replace",
        lambda hour: hour == NO_HOUR or scope.may_publish(hour, hour in asked_before),
    )
    known = {file.path: file for file in map(File.of_row, pins.rows("files"))}
    by_name = stream.time is not None and stream.time.by_name
    there = listed(stream.path_pattern, by_name)
    return _Scene(book, pins, scope, known, there, rules, cache(expected))


def _late(scene: _Scene, paths: Collection[str]) -> dict[str, File]:
    """Files that came too late for this run, of hours that were asked for before: listed as waiting."""
    return {
        path: File(
            path=path, hour=file.hour, status="waiting", source_id=None, seen_id=None, content=None,
            shape=scene.rules.shape(file.hour), bytes=0, lines=0, header_lines=0, accepted=0, rejected=0,
            duplicates=0, first_event=None, last_event=None, columns=(), hours=(), held_back=(), lacks=None,
            detail=f"came later than `heal`; run {file.hour:%Y-%m-%dT%H:%M} again to take it",
            size=-1, modified=file.modified,
        )
        for path, file in scene.there.items()
        if path not in paths and path not in scene.known
        and file.hour is not None and scene.asked_before(file.hour) and scene.scope.leaves(file.hour)
    }  # fmt: skip


def _readings(stream: Stream, scene: _Scene, paths: Iterable[str]) -> list[Reading]:
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


def _publish(
    store: Store,
    ledger: Ledger,
    stream: Stream,
    tables: Tables,
    scene: _Scene,
    decisions: Decisions,
    files: Mapping[str, File],
    places: Mapping[str, Parsed],
    verdicts: Sequence[Verdict],
    run_id: str,
) -> Outcome:
    book, pins, asked = scene.book, scene.pins, scene.scope.asked
    affected = _affected(scene.known, files, decisions)
    stale = scene.stale()
    changed = affected.union(asked, (h for h in stale if h == NO_HOUR or scene.scope.sees_to(h)))
    touched = asked.union(*(file.touched for file in files.values()))
    # As if there had never been a file of them.
    forgotten = {hour for hour in changed - touched if not scene.asked_before(hour)}
    states = hour_states(files.values(), changed - forgotten, scene.rules.shape)
    entries, checks = _entries(stream, scene, states, run_id)
    outcome = Outcome(stale_since=next((h for h in stale if h != NO_HOUR and scene.scope.leaves(h)), None))
    # An hour that was asked for and comes out as it stands is left alone.
    to_publish = {h for h, entry in entries.items() if h in affected or not _as_it_stands(book, h, entry)}
    publishing = sorted(to_publish | forgotten)
    if not publishing:
        return outcome
    outcome.hours_healed = len(to_publish - asked)

    def stored(table: str) -> list[datetime]:
        held = {hour: book.get(_node(table, hour)) for hour in publishing}
        return [hour for hour, entry in held.items() if entry and entry.rows]

    in_file_rows = file_rows(tables.files, [file for file in files.values() if file.hour in to_publish])
    frames = {
        "events": events(tables.events, pins, decisions, places, stored("events")),
        "rejected": rejected(tables.rejected, pins, decisions, places, stored("rejected"), files),
        "files": store.spark.createDataFrame(in_file_rows),
    }
    figures = _figures(tables, frames)
    results: dict[Node, Entry | None] = {}
    writes = []
    for table in tables:
        targets = []
        for hour in publishing:
            count, digest = figures.get((table.name, hour), (0, EMPTY_DIGEST))
            node, entry = _node(table.name, hour), entries.get(hour)
            results[node] = replace(entry, digest=digest, rows=count) if entry else None
            # The columns outside the promise change under an equal digest.
            if table.name == "files" or not stands(book, node, digest):
                targets.append(hour)
            outcome.rows_out += count if table.name == "events" else 0
        if targets:
            rows = in_file_rows if table.name == "files" else frames[table.name].where(in_hours(targets))
            writes.append(Write(table, rows, {None: targets}))
    outcome.quarantined = sum(entries[hour].status == "quarantined" for hour in to_publish)
    outcome.published = len(to_publish) - outcome.quarantined
    seen = [verdict for verdict in [*verdicts, *checks] if verdict.node.hour in to_publish]
    # What earlier runs saw in files that are still there and were not read again.
    not_read = files.keys() - places.keys()
    seen += [verdict for verdict in ledger.checks(book, STAGE, to_publish) if verdict.subject in not_read]
    publish(store, ledger, STAGE, run_id, writes, results, book, seen)
    return outcome


def _affected(known: Mapping[str, File], files: Mapping[str, File], decisions: Decisions) -> set[datetime]:
    """The hours in whose tables something changes."""
    hours: set[datetime] = set()
    for path in known.keys() | files.keys():
        before, after = known.get(path), files.get(path)
        if before != after:
            hours |= before.touched if before else set()
            hours |= after.touched if after else set()
    return hours.union(*decisions.removed.values())


def _figures(tables: Tables, frames: Mapping[str, DataFrame]) -> dict[tuple[str, datetime], tuple[int, str]]:
    """Number and digest of the rows of each table and hour, in one aggregation."""
    hashed = [
        frames[table.name].select(
            F.lit(table.name).alias("table"),
            "hour",
            digests.row_hash(frames[table.name], table.promised()).alias(digests.HASH),
        )
        for table in tables
    ]
    rows = (
        reduce(DataFrame.unionByName, hashed)
        .groupBy("table", "hour")
        .agg(
            F.count("*").alias("count"),
            digests.digest_of(F.count("*"), digests.total_hash(F.col(digests.HASH))).alias("digest"),
        )
    )
    return {
        (row["table"], row["hour"].astimezone(UTC)): (row["count"], row["digest"])
        for row in rows.toArrow().to_pylist()
    }


def _as_it_stands(book: Book, hour: datetime, new: Entry) -> bool:
    held = book.get(_node("events", hour))
    return held is not None and replace(held, digest=EMPTY_DIGEST, rows=0, run_id=new.run_id) == new


def _hour_checks(stream: Stream) -> tuple[Check, ...]:
    """The checks of an hour, beside those of its files."""
    expected = stream.source.expect
    return (
        *(built_in(stream, "files_expected", metric="files", at_least=expected) if expected else ()),
        *built_in(stream, "files_unchanged", metric="conflicts", at_most=0),
    )


def _entries(
    stream: Stream, scene: _Scene, states: Mapping[datetime, HourState], run_id: str
) -> tuple[dict[datetime, Entry], list[Verdict]]:
    """Status and completeness of each hour, as its files have it."""
    ordered = sorted(states)
    metrics = [
        {"files": states[hour].files, "conflicts": len(states[hour].conflicts) or None} for hour in ordered
    ]
    verdicts = []
    failed: dict[datetime, dict[str, list[str]]] = {hour: {} for hour in ordered}
    for finding in judge(_hour_checks(stream), metrics):
        hour = ordered[finding.row]
        verdict = verdict_of(_node("events", hour), finding, accepted_of(stream))
        if not verdict.success:
            failed[hour].setdefault(verdict.severity, []).append(in_short(verdict))
            if verdict.check == "files_unchanged":
                verdict = verdict.with_sample(states[hour].conflicts)
        verdicts.append(verdict)
    entries = {}
    for hour in ordered:
        state = states[hour]
        wrong = [*state.withheld, *failed[hour].get("error", ())]
        missing = [*state.missing, *failed[hour].get("incomplete", ())]
        entries[hour] = Entry(
            "quarantined" if wrong else "published",
            run_id,
            complete=not (wrong or missing),
            inputs=scene.inputs(hour),
            cause="; ".join(wrong or missing) or None,
            asked=hour in scene.scope.asked or scene.asked_before(hour),
        )
    return entries, verdicts
